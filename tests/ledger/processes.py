"""Services in processes of their own, to be killed at will, and the command line."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def environment(url: str, **settings: str) -> dict[str, str]:
    """The environment of a process that runs from this source tree, its ledger at an address."""
    paths = [str(ROOT / room) for room in ("allocator", "models", "api")]
    known = {name: value for name, value in os.environ.items() if not name.startswith("EVENHAND_")}
    return known | {"PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "100", "EVENHAND_DATABASE_URL": url} | settings


def run(url: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command line once."""
    command = [sys.executable, "-m", "evenhand_api.cli", *arguments]
    return subprocess.run(command, capture_output=True, env=environment(url), cwd=ROOT, timeout=120, check=False)


class Service:
    """A service over loopback."""

    def __init__(self, url: str, **settings: str) -> None:
        command = [sys.executable, "-m", "evenhand_api.cli", "serve", "--port", "0"]
        self._process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=environment(url, **settings), cwd=ROOT, process_group=0
        )
        assert self._process.stderr is not None
        self.address = self._process.stderr.readline().split("serving on ")[1].split()[0]

    def wait_until_ready(self) -> None:
        end = time.monotonic() + 120
        while not self._ready():
            assert self._process.poll() is None, "the service ended"
            assert time.monotonic() < end, "the service did not become ready"
            time.sleep(0.1)

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/readyz", timeout=5):
                return True
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def kill(self) -> None:
        """Kill it and its worker processes at once, as a power switch would."""
        os.killpg(self._process.pid, 9)
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def stop(self) -> None:
        self._process.terminate()
        if self._process.stderr is not None:
            self._process.stderr.read()
            self._process.stderr.close()
        self._process.wait(30)


@contextmanager
def serving(url: str, **settings: Any) -> Iterator[Service]:
    service = Service(url, **settings)
    try:
        service.wait_until_ready()
        yield service
    finally:
        service.stop()

"""Real services as processes, over loopback."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Service:
    """A running service."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process = process
        self.port = port
        self.log = log

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        connection = self.connect()
        try:
            return ask(connection, method, path, body, **headers)
        finally:
            connection.close()

    def metric(self, name: str) -> float:
        """The value of a metric without labels."""
        lines = self.ask("GET", "/metrics")[1].decode().splitlines()
        (found,) = [line.split()[1] for line in lines if line.startswith(f"evenhand_{name} ")]
        return float(found)


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, bytes]:
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, data, {"Content-Type": "application/json"} | headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


@contextmanager
def serving(folder: Path, **settings: object) -> Iterator[Service]:
    """Start a service with these settings, wait until it is ready, end it afterwards."""
    own = {f"EVENHAND_{name.upper()}": str(value) for name, value in settings.items()}
    paths = os.pathsep.join(str(ROOT / room) for room in ("allocator", "models", "api"))
    known = {name: value for name, value in os.environ.items() if not name.startswith("EVENHAND_")}
    environment = known | {"PYTHONPATH": paths, "EVENHAND_DATA_DIR": str(folder), "EVENHAND_PORT": "0"} | own
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "service.log"
    with log.open("wb") as out:
        command = [sys.executable, "-m", "evenhand_api.cli", "serve"]
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out, cwd=ROOT)
    try:
        service = Service(process, _port(process, log), log)
        _wait(service)
        yield service
    finally:
        process.kill()
        process.wait()


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    for _ in range(1_200):
        first = log.read_text().partition("serving on http://127.0.0.1:")[2]
        if "(" in first:
            return int(first.split()[0])
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    raise AssertionError("the service did not say where it serves")


def _wait(service: Service) -> None:
    for _ in range(1_200):
        if service.ask("GET", "/readyz")[0] == 200:
            return
        assert service.process.poll() is None, service.log.read_text()
        time.sleep(0.1)
    raise AssertionError("the service did not become ready")

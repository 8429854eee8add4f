import copy
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from evenhand_api.rest import create_app
from evenhand_api.rest.rounds import TINY
from evenhand_api.settings import Settings

ROOT = Path(__file__).parents[2]
PHILLY = ROOT / "examples" / "states" / "philly_3vc_day40.json.gz"
sys.path.append(str(Path(__file__).parent / "stand_ins"))


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of processes that run from this source tree, installed or not."""
    paths = [str(ROOT / room) for room in ("allocator", "models", "api")]
    mine = ("EVENHAND_", "PYTHONDONTWRITEBYTECODE")
    known = {name: value for name, value in os.environ.items() if not name.startswith(mine)}
    compiled = str(tmp_path_factory.mktemp("pycache"))  # imports are most of what a short process does
    data = str(tmp_path_factory.mktemp("data"))
    return known | {
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONPYCACHEPREFIX": compiled,
        "COLUMNS": "100",
        "EVENHAND_DATA_DIR": data,
        "EVENHAND_LOG_LEVEL": "warning",  # its pipe is read at the end only
    }


@pytest.fixture
def tiny() -> dict[str, Any]:
    """A request that is right, to be spoiled at will."""
    return copy.deepcopy(json.loads(TINY))


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """The whole service in this process, its rounds in one of their own."""
    app = create_app(Settings(max_concurrent=1, max_body_mb=20, data_dir=str(tmp_path_factory.mktemp("ledger"))))
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="session")
def service(environment: dict[str, str]) -> Iterator[str]:
    """A real service over loopback; gives its address."""
    command = [sys.executable, "-m", "evenhand_api.cli", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT) as process:
        assert process.stderr is not None
        try:
            url = process.stderr.readline().split("serving on ")[1].split()[0]
            wait_until_ready(url, process)
            yield url
        finally:
            process.terminate()
            process.stderr.read()
        assert process.wait(20) in {0, -15}


def wait_until_ready(url: str, process: "subprocess.Popen[str]") -> None:
    end = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=5):
                return
        except urllib.error.HTTPError as not_yet:
            not_yet.close()
        except urllib.error.URLError:
            pass
        assert process.poll() is None, "the service ended"
        assert time.monotonic() < end, "the service did not become ready"
        time.sleep(0.1)


@pytest.fixture
def run(environment: dict[str, str]) -> Callable[..., "subprocess.CompletedProcess[bytes]"]:
    """Run the command line as a process: run("allocate", "-", input=b"...")."""

    def run(*arguments: str, **more: Any) -> "subprocess.CompletedProcess[bytes]":
        env = environment | more.pop("env", {})
        command = [sys.executable, "-m", "evenhand_api.cli", *arguments]
        return subprocess.run(command, capture_output=True, env=env, cwd=ROOT, timeout=120, check=False, **more)

    return run

"""One real service as a process, over loopback."""

import gzip
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from evenhand_models import parse_plan

ROOT = Path(__file__).parents[2]
PHILLY = ROOT / "examples" / "states" / "philly_3vc_day40.json.gz"


def post(url: str, body: bytes, **headers: str) -> bytes:
    request = urllib.request.Request(
        f"{url}/v1/allocate", body, {"Content-Type": "application/json", **headers}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        answered: bytes = answer.read()
    return answered


def test_a_real_cluster_posted_as_gzip_gets_a_whole_verified_plan(service: str) -> None:
    plan = parse_plan(post(service, PHILLY.read_bytes(), **{"Content-Encoding": "gzip"}))
    jobs = json.loads(gzip.decompress(PHILLY.read_bytes()))["state"]["jobs"]
    assert {assignment.job for assignment in plan.assignments} == {job["id"] for job in jobs}
    assert plan.certificate.verified


def test_requests_at_the_same_time_do_not_disturb_each_other(service: str, tiny: Any) -> None:
    bodies = []
    for number in range(6):
        tiny["state"]["jobs"][0]["id"] = f"job-{number}"
        bodies.append(json.dumps(tiny).encode())
    with ThreadPoolExecutor(6) as crowd:
        together = list(crowd.map(lambda body: json.loads(post(service, body)), bodies))
    for number, (body, plan) in enumerate(zip(bodies, together, strict=True)):
        assert {a["job"] for a in plan["assignments"]} == {f"job-{number}", "train-2"}
        alone = json.loads(post(service, body))
        assert plan["solver"]["plan_hash"] == alone["solver"]["plan_hash"]


def test_problems_come_over_the_wire_with_their_media_type(service: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(service, b"{}")
    assert refused.value.code == 422
    assert refused.value.headers["Content-Type"] == "application/problem+json"
    assert json.loads(refused.value.read())["errors"][0]["pointer"] == "/state"


def test_the_shipped_example_posts_a_round(service: str) -> None:
    command = [sys.executable, "examples/post_a_round.py", str(PHILLY), service]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "verified True" in done.stdout


def test_the_serving_process_loads_no_solver_and_nobody_loads_pulp(service: str) -> None:
    port = int(service.rsplit(":", 1)[1])
    served = [
        process
        for process in Path("/proc").iterdir()
        if process.name.isdecimal() and b"evenhand_api.cli\0serve" in _bytes(process / "cmdline")
    ]
    assert served, port
    for process in served:
        assert not re.search(r"ortools|highspy|pulp", (process / "maps").read_text())


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""

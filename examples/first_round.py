"""What `make run` does: serve on this machine, post a real cluster's state, show the plan, go on serving.

Serves until Ctrl-C; with --once, or where standard input is no terminal, it ends after the plan.
"""

import argparse
import gzip
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from post_a_round import post_round

from evenhand_api.report import as_text, plan_report
from evenhand_models import parse_plan, parse_request

STATE = Path(__file__).parent / "states" / "philly_3vc_day40.json.gz"


def free_port(wished: int) -> int:
    """Take the port wished for if nobody has it, else any free one."""
    for port in (wished, 0):
        try:
            with socket.create_server(("127.0.0.1", port)) as taken:
                found: int = taken.getsockname()[1]
                return found
        except OSError:
            continue
    raise SystemExit("no free port on 127.0.0.1")


def wait_until_ready(url: str, service: "subprocess.Popen[bytes]", timeout_s: float = 120.0) -> None:
    """Wait until the service has loaded its solver and solved a first, tiny round."""
    end, said = time.monotonic() + timeout_s, "nothing"
    while time.monotonic() < end:
        if service.poll() is not None:
            raise SystemExit(f"the service ended with code {service.returncode}")
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=5):
                return
        except urllib.error.HTTPError as not_yet:
            said = json.loads(not_yet.read())["detail"]
        except (urllib.error.URLError, OSError) as reason:
            said = str(reason)
        time.sleep(0.2)
    raise SystemExit(f"the service did not become ready: {said}")


def show_a_round(url: str, path: Path) -> None:
    """Post a state and show the plan as the command line would."""
    packed = path.read_bytes()
    began = time.monotonic()
    answer = post_round(url, packed)
    took_ms = 1000 * (time.monotonic() - began)
    state = parse_request(gzip.decompress(packed)).state
    width = max(80, os.get_terminal_size().columns if sys.stdout.isatty() else 110)
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print(as_text(plan_report(state, parse_plan(answer), width, rows=12), width, colour))
    print(f"That was POST {url}/v1/allocate with {path.name}, answered in {took_ms:,.0f} ms.", flush=True)


def main() -> int:
    """Run the service and one round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="end after the plan")
    parser.add_argument("--port", type=int, default=8080, help="port to serve on if it is free (default: 8080)")
    parser.add_argument("--state", type=Path, default=STATE, help="request body to post, gzip")
    wanted = parser.parse_args()
    url = f"http://127.0.0.1:{free_port(wanted.port)}"
    command = [sys.executable, "-m", "evenhand_api.cli", "serve", "--port", url.rsplit(":", 1)[1]]
    service = subprocess.Popen(command)
    try:
        wait_until_ready(url, service)
        show_a_round(url, wanted.state)
        if wanted.once or not sys.stdin.isatty():
            return 0
        print(f"Serving on {url} until Ctrl-C; documentation at {url}/docs", flush=True)
        return service.wait()
    except KeyboardInterrupt:
        print()
        return 0
    finally:
        service.terminate()
        try:
            service.wait(10)
        except subprocess.TimeoutExpired:
            service.kill()


if __name__ == "__main__":
    sys.exit(main())

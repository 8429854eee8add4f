"""Post a cluster's state to a running service and say what the plan does. Standard library only.

python examples/post_a_round.py examples/states/philly_3vc_day40.json.gz http://127.0.0.1:8080
"""

import gzip
import json
import sys
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any


def post_round(url: str, packed: bytes, timeout_s: float = 120.0) -> bytes:
    """Post a request body, packed with gzip, and return the plan's JSON."""
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    request = urllib.request.Request(f"{url}/v1/allocate", packed, headers, method="POST")
    with urllib.request.urlopen(request, timeout=timeout_s) as answer:
        body: bytes = answer.read()
    return body


def summary(plan: dict[str, Any]) -> str:
    """Say what a plan does, in a few lines."""
    actions = Counter(assignment["action"] for assignment in plan["assignments"])
    proof = plan["certificate"]
    lines = [f"{count:6,} {action}" for action, count in actions.most_common()]
    for group in plan["groups"]:
        held = sum(group["allocated"].values())
        lines.append(f"group {group['group']}: entitled to {group['entitled_gpus']:.1f} GPUs, holds {held}")
    lines.append(f"{proof['status']}, gap {proof['gap']}, verified {proof['verified']}")
    return "\n".join(lines)


def main() -> int:
    """Post the file named on the command line."""
    if len(sys.argv) not in {2, 3}:
        print(__doc__)
        return 2
    body = Path(sys.argv[1]).read_bytes()
    packed = body if body.startswith(b"\x1f\x8b") else gzip.compress(body)
    url = sys.argv[2] if len(sys.argv) == 3 else "http://127.0.0.1:8080"
    try:
        print(summary(json.loads(post_round(url, packed))))
    except urllib.error.HTTPError as refused:  # an RFC 9457 problem: what is wrong, and where
        problem = json.loads(refused.read())
        print(f"{problem['status']} {problem['title']}: {problem['detail']}", file=sys.stderr)
        for error in problem["errors"]:
            print(f"  {error['pointer']}: {error['message']}", file=sys.stderr)
        return 1
    except urllib.error.URLError as reason:
        print(f"nothing answers at {url}: {reason.reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

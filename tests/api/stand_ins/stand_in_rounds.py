"""What a process does in tests of the doors alone: it obeys its body."""

import json
import os
import time

from evenhand_api.rest.problems import Answer


def obey(body: bytes, max_time_limit_s: float) -> Answer:
    """Sleep, die or echo, as the body says; a body that says nothing is echoed at once."""
    wish = json.loads(body)
    if wish.get("die"):
        os._exit(3)
    time.sleep(wish.get("sleep_s", 0))
    return Answer(200, "application/json", json.dumps({"echo": wish.get("echo"), "pid": os.getpid()}).encode())


def never_well(body: bytes, max_time_limit_s: float) -> Answer:
    """Fail every round, the first one included."""
    return Answer(500, "application/problem+json", b"{}")

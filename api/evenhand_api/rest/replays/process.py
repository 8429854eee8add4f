"""What processes do with replays: check a request before it is taken, and replay it. Never raises."""

from __future__ import annotations

import logging
import os
import signal
from multiprocessing.connection import Connection

from evenhand_api.rest.problems import Answer
from evenhand_api.rest.rounds import answer_error

log = logging.getLogger(__name__)


def answer_check(body: bytes, _: float) -> Answer:
    """Check a replay request; an answer of 202 says how many runs it has."""
    try:
        from evenhand_api.whatif.asked import asked  # only in a process of its own: the service loads no solver

        return Answer(202, "text/plain", str(len(asked(body).runs)).encode())
    except Exception as error:  # noqa: BLE001 - whatever it is, it becomes one answer and one line in the log
        return answer_error(error, body)


def replay_in_background(pipe: Connection, body: bytes, number: str) -> None:
    """Replay a request that was checked; sends shares and counts, then the outcome and the page, or why not."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the service's to hear
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    os.nice(5)  # rounds come first
    try:
        from evenhand_api.whatif.asked import asked, outcome

        pipe.send(("outcome", *outcome(asked(body), number, lambda share, runs: pipe.send(("progress", share, runs)))))
    except (BrokenPipeError, EOFError):
        return  # the service is gone
    except Exception as defect:
        log.error("replay %s failed", number, exc_info=defect)
        pipe.send(
            ("failed", f"The replay could not be finished: {type(defect).__name__}. The service's log has the details.")
        )

"""What a connection to the service is like."""

from __future__ import annotations

import socket

from evenhand_api.service import listen
from evenhand_api.settings import Settings


def test_answers_are_sent_at_once_and_not_held_back_for_the_callers_acknowledgement() -> None:
    with listen(Settings(port=0)) as listener, socket.create_connection(listener.getsockname()) as caller:
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
        assert caller.getpeername() == listener.getsockname()

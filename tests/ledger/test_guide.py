"""docs/service.md says what is so: every curl in it is sent, in order, to a real service."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

GUIDE = Path(__file__).parents[2] / "docs" / "service.md"
BASE = "http://127.0.0.1:8080"


def commands() -> list[list[str]]:
    """Every curl of the guide, as a shell would split it."""
    blocks = re.findall(r"```sh\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    words = [word for block in blocks for word in shlex.split(block)]
    found: list[list[str]] = []
    for word in words:
        if word == "curl":
            found.append([])
        else:
            found[-1].append(word)
    return found


def send(client: TestClient, words: list[str]) -> Any:
    """Send one; options the guide does not use are not known here."""
    method, headers, body, address = "GET", {}, None, ""
    rest = iter(words)
    for word in rest:
        if word == "-X":
            method = next(rest)
        elif word == "-H":
            name, value = next(rest).split(": ", 1)
            headers[name] = value
        elif word == "-d":
            body = next(rest).encode()
        else:
            assert word.startswith(BASE), word
            address = word.removeprefix(BASE)
    return client.request(method, address, content=body, headers=headers)


def test_every_command_of_the_guide_does_what_it_says(house: TestClient) -> None:
    answers = [send(house, words) for words in commands()]
    assert len(answers) >= 12
    assert [a.status_code for a in answers if a.status_code >= 300] == []
    written = json.loads(re.findall(r"```json\n(.*?)```", GUIDE.read_text(), re.DOTALL)[0])
    assert answers[0].json() == written
    usage = next(a for a in answers if "/usage" in str(a.url)).json()
    assert usage["groups"] == [{"group": "vision", "charged_gpu_hours": 8 * 2.0 * 0.5}]
    groups = next(a for a in answers if str(a.url).endswith("/groups")).json()["groups"]
    assert {g["group"]: g["own_usage_gpu_hours"] for g in groups} == {"language": 0.0, "vision": 0.0}
    owed = next(a for a in answers if "owed-received" in str(a.url)).json()
    assert [h["received_gpu_hours"] for h in owed["hours"]] == [8.0]

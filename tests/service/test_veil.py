"""Names of strangers leave sentences whatever they look like and wherever they stand; numbers stay."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand_api.access.cuts import MOST_WORDS, cut_explanation
from evenhand_api.access.veil import HIDDEN, Veil

NAMES = st.text(st.sampled_from("ab1.-/_:+@ ,'()é"), min_size=1, max_size=6).filter(
    lambda name: name.strip(" .:,'()/@+-_")
)
FRAMES = ("Job {} waits.", "jobs {}, {} and {} (group {}) hold 4 GPUs: {}", "wait for {}'s protection; {}.", "{}")


def veil(*hidden: str, jobs: tuple[str, ...] = (), groups: tuple[str, ...] = ()) -> Veil:
    return Veil(frozenset(jobs), frozenset(groups), frozenset(hidden))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(FRAMES), st.lists(NAMES, min_size=1, max_size=6, unique=True))
def test_a_sentence_made_of_strangers_names_keeps_only_its_frame(frame: str, names: list[str]) -> None:
    slots = frame.count("{}")
    sentence = frame.format(*(names[i % len(names)] for i in range(slots)))
    told = veil(*names).text(sentence)
    for name in names:
        if " " in name or "," in name:
            assert name not in told.replace(HIDDEN, "\n")
    assert HIDDEN in told
    words = {
        word for found in re.findall(r"[\w.:/@+-]+", told) for word in (found, found.strip(".:"), found.rstrip(".:"))
    }
    assert not words & set(names)


@pytest.mark.parametrize(
    ("hidden", "sentence", "told"),
    [
        ("b-7", "Job b-7 holds 8 of 12 GPUs.", f"Job {HIDDEN} holds 8 of 12 GPUs."),
        ("b-7", "jobs b-7, a-1 and b-70", f"jobs {HIDDEN}, a-1 and b-70"),
        ("b", "the best b, by b.", f"the best {HIDDEN}, by {HIDDEN}."),
        ("b.", "group b. and group b..", f"group {HIDDEN} and group {HIDDEN}."),
        ("lab/b", "(group lab/b) lab/b/c lab", f"(group {HIDDEN}) lab/b/c lab"),
        ("two words", "of two words: 3", f"of {HIDDEN}: 3"),
        ("x", "'x' \"x\" [x] x=1 -x- x's", f"'{HIDDEN}' \"{HIDDEN}\" [{HIDDEN}] {HIDDEN}=1 -{HIDDEN}- {HIDDEN}'s"),
    ],
)
def test_whole_names_are_hidden_and_nothing_else(hidden: str, sentence: str, told: str) -> None:
    assert veil(hidden).text(sentence) == told


def test_references_and_order_lose_strangers_only() -> None:
    assignment = {
        "job": "a-1",
        "after": ["a-2", "b-1"],
        "cheapest_change": "wait for the protection of b-1 to end",
        "reasons": [
            {"code": "c", "message": "b-1 and a-2", "refs": ["b-1", "a-2", "n1"], "cheapest_change": "stop b-1"}
        ],
    }
    told = veil("b-1", jobs=("a-1", "a-2")).assignment(assignment)
    assert told["after"] == ["a-2"]
    assert told["reasons"][0]["refs"] == ["a-2", "n1"]
    assert "b-1" not in str(told)
    assert assignment["after"] == ["a-2", "b-1"]


def test_of_many_changes_the_older_ones_keep_their_codes_without_words() -> None:
    def change(n: int) -> dict[str, Any]:
        reason = {"code": "preempted_for", "message": "for b-1", "refs": ["b-1"]}
        return {"round": n, "now": "t", "assignment": {"job": "a-1", "after": ["b-1"], "reasons": [reason]}}

    view: Any = SimpleNamespace(veil=lambda n: veil("b-1", jobs=("a-1",)))
    document = {"latest": None, "changes": [change(n) for n in range(MOST_WORDS + 5)]}
    told = cut_explanation(document, view)
    assert len(told["changes"]) == MOST_WORDS + 5
    assert "b-1" not in str(told)
    assert [c["assignment"]["reasons"][0]["code"] for c in told["changes"]] == ["preempted_for"] * (MOST_WORDS + 5)
    assert [bool(c["assignment"]["reasons"][0]["message"]) for c in told["changes"]] == [False] * 5 + [
        True
    ] * MOST_WORDS

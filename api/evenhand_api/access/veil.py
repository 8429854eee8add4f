"""Hiding the names of strangers in sentences and lists: numbers stay, names go."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

HIDDEN = "(not shown)"
"""What stands in a sentence in place of a stranger's name."""
_plain = re.compile(r"[\w.:/@+-]+").fullmatch
_words = re.compile(r"[\w.:/@+-]+")
_EDGES = ".:/@+-"


@dataclass(frozen=True)
class Veil:
    """What may be named and what may not, where a round speaks.

    Attributes
    ----------
    jobs, groups : ids of the token's own jobs and groups.
    hidden : names of all others: jobs, groups, users.
    """

    jobs: frozenset[str]
    groups: frozenset[str]
    hidden: frozenset[str]

    def text(self, sentence: str) -> str:
        """Return a sentence with every hidden name taken out."""
        if self._odd is not None:
            sentence = self._odd.sub(HIDDEN, sentence)
        return _words.sub(lambda found: self._word(found[0]), sentence)

    def names(self, ids: list[str]) -> list[str]:
        """Return those that may be named."""
        return [name for name in ids if name not in self.hidden]

    def spoken(self, said: dict[str, Any]) -> dict[str, Any]:
        """Return a reason or a warning without strangers' names."""
        veiled = said | {"message": self.text(said["message"])}
        if "refs" in said:
            veiled["refs"] = self.names(said["refs"])
        if said.get("cheapest_change") is not None:
            veiled["cheapest_change"] = self.text(said["cheapest_change"])
        return veiled

    def assignment(self, assignment: dict[str, Any]) -> dict[str, Any]:
        """Return what was decided about an own job without strangers' names."""
        veiled = dict(assignment)
        if "after" in assignment:
            veiled["after"] = self.names(assignment["after"])
        if "reasons" in assignment:
            veiled["reasons"] = [self.spoken(reason) for reason in assignment["reasons"]]
        if assignment.get("cheapest_change") is not None:
            veiled["cheapest_change"] = self.text(assignment["cheapest_change"])
        return veiled

    def _word(self, word: str) -> str:
        """Hide a word, or the part of it that is left without the punctuation at its ends."""
        if word in self.hidden:
            return HIDDEN
        for end in range(len(word), 0, -1):
            if word[:end] in self.hidden:
                return HIDDEN + word[end:]
            if word[end - 1] not in _EDGES:
                break
        bare = word.strip(_EDGES)
        return word.replace(bare, HIDDEN) if bare in self.hidden else word

    @cached_property
    def _odd(self) -> re.Pattern[str] | None:
        """Names that are no single word, the longest first; wherever they stand."""
        odd = sorted((name for name in self.hidden if not _plain(name)), key=lambda name: (-len(name), name))
        return re.compile("|".join(map(re.escape, odd))) if odd else None

"""Everything that can go wrong by name.

The tree, one root; the other rooms hang their own errors under it::

    EvenhandError
    └── InvalidInput        a request, state, policy or plan that is malformed or contradicts itself
                            carries errors: tuple[FieldError(pointer, message), ...], all of them

Which error comes from where:

* ``parse_request``, ``parse_document``, ``parse_state``, ``parse_policy`` and ``parse_plan`` (bytes in) raise
  `InvalidInput` and nothing else.
* Building a model from Python objects (``ClusterState(...)``, ``ClusterState.model_validate({...})``) raises
  pydantic's ``ValidationError`` for a field that is malformed by itself, and `InvalidInput` where well-formed
  fields contradict each other (duplicate ids, cycles, more GPUs placed on a node than it has).

`InvalidInput` is deliberately no ``ValueError``: pydantic would swallow it and its pointers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class FieldError:
    """One thing wrong with the input, and where.

    Attributes
    ----------
    pointer : str
        JSON pointer (RFC 6901) into the document that was read, ``""`` for the whole of it.
    message : str
        One sentence with the ids and numbers it is about.
    """

    pointer: str
    message: str

    def under(self, prefix: str) -> FieldError:
        """Return the same error with its pointer moved below `prefix`."""
        return FieldError(prefix + self.pointer, self.message)


class EvenhandError(Exception):
    """The root of every error evenhand raises on purpose."""


class InvalidInput(EvenhandError):
    """The input is malformed or contradicts itself; nothing was decided.

    Attributes
    ----------
    errors : tuple of FieldError
        All that is wrong, never only the first, in the order of the document.
    """

    errors: tuple[FieldError, ...]

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__(self.errors)

    def __str__(self) -> str:
        shown = [f"{error.pointer or '(whole input)'}: {error.message}" for error in self.errors[:10]]
        if len(self.errors) > len(shown):
            shown.append(f"... and {len(self.errors) - len(shown)} more")
        return "; ".join(shown)

    def under(self, prefix: str) -> InvalidInput:
        """Return the same errors with all pointers moved below `prefix`."""
        return InvalidInput(error.under(prefix) for error in self.errors)

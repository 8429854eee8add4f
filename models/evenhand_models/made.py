"""Words made of values that are valid by construction, in bulk: no check, a third of the time."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel

from evenhand_models.quantities import WireModel

M = TypeVar("M", bound=WireModel)
_new = object.__new__
_set_fields, _set_names, _set_extra, _set_private = (
    BaseModel.__dict__[name].__set__
    for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)
"""What pydantic keeps of a word, set without asking whether it is frozen."""
_NAMES: dict[type[WireModel], set[str]] = {}
"""The fields of each model, all of them given: words share the set, which pydantic copies before it changes it."""


def made(model: type[M], fields: dict[str, object], given: set[str] | None = None) -> M:
    """Return a word that holds these fields as they are.

    Parameters
    ----------
    fields : every field of the model in the order of its declaration, each as validation would leave it; the
        caller vouches for that, and a test reads what the library makes this way back with full validation.
    given : the fields that were given, the others stand at their defaults; unset: all.
    """
    word = _new(model)
    _set_fields(word, fields)
    _set_names(word, given or _NAMES.get(model) or _NAMES.setdefault(model, set(fields)))
    _set_extra(word, None)
    _set_private(word, None)
    return word

"""Finished runs in a folder, one file each, named by content: what is there is not replayed again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Protocol

from evenhand_api.commands.terminal import Failure
from evenhand_models import FieldError, InvalidInput


class Store(Protocol):
    """Where finished runs are kept."""

    def get(self, key: str) -> bytes | None:
        """The result of a run, if it is finished."""

    def put(self, key: str, result: bytes) -> None:
        """Keep the result of a run."""


class Memory:
    """Runs of one command, gone with it."""

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        """The result of a run, if it is finished."""
        return self._known.get(key)

    def put(self, key: str, result: bytes) -> None:
        """Keep the result of a run."""
        self._known[key] = result


class Folder:
    """Runs in files; a file is there whole or not at all, so that a kill at any moment costs at most its run.

    Raises
    ------
    Failure
        If the folder cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as reason:
            raise Failure(f"{path} cannot be made: {reason.strerror or reason}.") from None

    def get(self, key: str) -> bytes | None:
        """The result of a run, if it is finished."""
        file = self._path / f"{key}.json"
        return file.read_bytes() if file.is_file() else None

    def put(self, key: str, result: bytes) -> None:
        """Keep the result of a run."""
        part = self._path / f".{key}.{os.getpid()}.part"
        try:
            part.write_bytes(result)
            part.replace(self._path / f"{key}.json")
        except OSError as reason:
            raise Failure(f"{self._path} cannot be written: {reason.strerror or reason}.") from None


def read_results(paths: list[str]) -> list[dict[str, Any]]:
    """Read finished runs from files and folders, in the order of the paths, then of labels and seeds.

    Raises
    ------
    InvalidInput
        If one cannot be read, is no result, or there are none.
    """
    found: list[dict[str, Any]] = []
    for path in map(Path, paths):
        files = sorted(path.glob("*.json")) if path.is_dir() else [path]
        documents = [_result(file) for file in files]
        found += sorted(documents, key=lambda document: (document["label"], document["seed"], document["key"]))
    if not found:
        raise InvalidInput([FieldError("", f"There is no finished run in {', '.join(paths)}.")])
    return found


def _result(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_bytes())
    except (OSError, ValueError) as reason:
        raise InvalidInput([FieldError("", f"{file} cannot be read: {reason}.")]) from None
    if not isinstance(document, dict) or "metrics" not in document or "key" not in document:
        raise InvalidInput([FieldError("", f"{file} is no result of a replay.")])
    return document

"""What a sweep goes through: scenarios times values of policy fields times schedulers times seeds."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, JsonValue, ValidationError

from evenhand.replay import Scheduler
from evenhand_api.commands.terminal import read_input
from evenhand_api.whatif.runs import Run
from evenhand_models import FieldError, InvalidInput
from evenhand_models.parse import field_errors
from evenhand_models.quantities import Id, Seed, WireModel
from evenhand_models.scenarios import BASE, Scenario, read_scenario


class Grid(WireModel):
    """The axes of a sweep; every combination is a run."""

    scenarios: tuple[Scenario, ...] = Field(default=(BASE,), description="Scenarios; the base is named base.")
    files: tuple[Id, ...] = Field(default=(), description="Files with further scenarios, beside the grid's own file.")
    policy: dict[str, tuple[JsonValue, ...]] = Field(
        default_factory=dict, description="Values to try by field of the policy; every combination is tried."
    )
    schedulers: tuple[Scheduler, ...] = Field(default=(Scheduler.EVENHAND,), description="Who decides.")
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)] = Field(default=(0,), description="Seeds.")

    def runs(self) -> list[Run]:
        """All combinations, scenarios first; comparators do not look at the policy's values but at its window.

        Raises
        ------
        InvalidInput
            If two scenarios have one name, or a value is none of its field.
        """
        whole = [combined for scenario in self.scenarios for combined in self._combined(scenario)]
        names = [scenario.name for scenario in whole]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InvalidInput([FieldError("/scenarios", f"two scenarios are called {twice[0]!r}.")])
        return [Run(*parts) for parts in itertools.product(whole, self.schedulers, self.seeds)]

    def _combined(self, scenario: Scenario) -> Iterator[Scenario]:
        for values in itertools.product(*self.policy.values()):
            fields = dict(zip(self.policy, values, strict=True))
            name = " ".join([scenario.name, *(f"{field}={_short(value)}" for field, value in fields.items())])
            document = scenario.model_dump(mode="json", exclude_unset=True)
            yield read_scenario(document | {"name": name, "policy": {**scenario.policy, **fields}})


def _short(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def load_document(path: str) -> object:
    """Read YAML or JSON from a file.

    Raises
    ------
    InvalidInput
        If it is neither.
    """
    text = read_input(path).decode("utf-8", "replace")
    try:
        document: object = yaml.safe_load(text)
    except yaml.YAMLError as reason:
        mark = getattr(reason, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 1}, column {mark.column + 1}"
        said = getattr(reason, "problem", None) or str(reason).splitlines()[0]
        raise InvalidInput([FieldError("", f"{path} is neither YAML nor JSON: {said}{where}.")]) from None
    return document


def load_scenario(path: str) -> Scenario:
    """Read a scenario from a YAML or JSON file.

    Raises
    ------
    InvalidInput
        If anything is wrong with it; pointers begin with the file's name.
    """
    document = load_document(path)
    if isinstance(document, dict) and "name" not in document:
        document = {"name": Path(path).stem, **document}
    try:
        return read_scenario(document)
    except InvalidInput as invalid:
        raise invalid.under(f"{path}#") from None


def load_grid(path: str) -> Grid:
    """Read a grid, with the scenarios of the files it names.

    Raises
    ------
    InvalidInput
        If anything is wrong with it; pointers begin with the file's name.
    """
    document = load_document(path)
    errors = field_errors(document, Grid)
    if isinstance(document, dict) and isinstance(document.get("scenarios"), list):
        errors = [error for error in errors if not error.pointer.startswith("/scenarios/")]
        errors += _scenario_errors(document["scenarios"])
    if errors:
        raise InvalidInput(errors).under(f"{path}#")
    try:
        grid = Grid.model_validate(document)
    except ValidationError as refused:
        raise InvalidInput([FieldError("", f"{path} is no grid: {refused}.")]) from None
    beside = Path(path).parent if path != "-" else Path()
    more = tuple(load_scenario(str(beside / name)) for name in grid.files)
    known = grid.scenarios if "scenarios" in grid.model_fields_set or not more else (BASE,)
    return grid.model_copy(update={"scenarios": (*known, *more), "files": ()})


def _scenario_errors(listed: list[Any]) -> list[FieldError]:
    found = []
    for i, document in enumerate(listed):
        try:
            read_scenario(document)
        except InvalidInput as invalid:
            found += [error.under(f"/scenarios/{i}") for error in invalid.errors]
    return found

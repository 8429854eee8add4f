"""What if months had gone otherwise: a replay asked of the service, how far it is, and what came of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from evenhand_models.errors import FieldError, InvalidInput
from evenhand_models.groups import Group
from evenhand_models.hardware import GpuType, Node
from evenhand_models.parse import field_errors, read_model
from evenhand_models.policy import Policy
from evenhand_models.quantities import Flag, Fraction, Id, Instant, Number, Seed, Text, WholeNumber, WireModel
from evenhand_models.scenarios import BASE, Days, Scenario, read_scenario

MOST_SCENARIOS = 64
"""Most scenarios one request may name."""


class ReplayTrace(WireModel):
    """A trace as text, in any layout that is read."""

    name: Id = Field(default="trace", description="What results are headed with.")
    text: Text = Field(
        description="The trace: neutral CSV, sacct --parsable2 or --json, SWF, Philly, Helios or Alibaba 2023."
    )
    group_by: Id | None = Field(default=None, description="Which of its fields names the group; unset: the usual one.")


class ReplayCluster(WireModel):
    """A cluster to replay on."""

    gpu_types: tuple[GpuType, ...] = Field(description="The types of GPU.")
    nodes: tuple[Node, ...] = Field(description="The nodes.")
    groups: tuple[Group, ...] = Field(description="The organisation tree.")


class ReplayRequest(WireModel):
    """A trace, a cluster, and what to set side by side: scenarios times schedulers times seeds."""

    trace: ReplayTrace = Field(description="The jobs.")
    cluster: ReplayCluster = Field(description="The cluster.")
    policy: Policy | None = Field(default=None, description="The policy; unset: all defaults.")
    scenarios: Annotated[tuple[Scenario, ...], Field(min_length=1, max_length=MOST_SCENARIOS)] = Field(
        default=(BASE,), description="What would be otherwise; left out: the base alone."
    )
    schedulers: Annotated[tuple[Id, ...], Field(min_length=1, max_length=16)] = Field(
        default=("evenhand",), description="Who decides: evenhand, or a comparator by name."
    )
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1, max_length=100)] = Field(
        default=(0,), description="Seeds; several give confidence intervals."
    )
    until_day: Days | None = Field(default=None, description="Replay only so many days; unset: the whole trace.")


class ReplayState(StrEnum):
    """Where a replay stands."""

    WAITING = "waiting"
    """Others are replayed first."""
    RUNNING = "running"
    """It is being replayed."""
    DONE = "done"
    """Its result can be fetched."""
    FAILED = "failed"
    """It ended without a result."""
    CANCELLED = "cancelled"
    """Somebody took it back."""


class ReplayStatus(WireModel):
    """How far a replay is."""

    id: Id = Field(description="Id of the replay.")
    state: ReplayState = Field(description="waiting, running, done, failed or cancelled.")
    share: Fraction = Field(description="How much of it is done, 0 to 1.")
    runs: WholeNumber = Field(description="Runs it has: scenarios times schedulers times seeds.")
    runs_finished: WholeNumber = Field(description="Runs that are finished.")
    detail: Text = Field(default="", description="Why it failed; empty otherwise.")


class FigureEstimate(WireModel):
    """A figure, over seeds."""

    mean: Number = Field(description="Mean over the seeds.")
    half_width_95: Number | None = Field(
        default=None, description="Half of the 95 % confidence interval; unset: one seed."
    )
    seeds: WholeNumber = Field(description="Seeds that have the figure.")


class FigureValue(WireModel):
    """A figure of one run."""

    value: FigureEstimate | None = Field(description="The figure; null: there is none.")
    difference: FigureEstimate | None = Field(description="Its difference to the first run's, paired by seed.")


class ReplayFigure(WireModel):
    """A figure of all runs."""

    key: Id = Field(description="Its name for programs.")
    title: Text = Field(description="Its name for people.")
    unit: Id = Field(description="share (0 to 1), s, ratio or count.")
    better: Id = Field(description="more, less or neither.")
    values: tuple[FigureValue, ...] = Field(description="One for each run, in their order.")


class ComparedRun(WireModel):
    """What stands side by side: a scenario under a scheduler, over its seeds."""

    label: Text = Field(description="Scenario, and scheduler if it is a comparator.")
    seeds: tuple[Seed, ...] = Field(description="Its seeds.")
    keys: tuple[Id, ...] = Field(description="Names of its runs by content.")


class ReplayOutcome(WireModel):
    """What came of a replay."""

    id: Id = Field(description="Id of the replay.")
    trace: Text = Field(description="Name of the trace.")
    credit: Text = Field(description="Whose data it is; empty: not known.")
    t0: Instant = Field(description="Beginning of the trace.")
    odd_rows: WholeNumber = Field(description="Rows of the trace that were odd.")
    first_odd_rows: tuple[Text, ...] = Field(description="The first of them, line and why.")
    runs: tuple[ComparedRun, ...] = Field(description="What stands side by side.")
    figures: tuple[ReplayFigure, ...] = Field(description="Figures of all runs.")
    results: tuple[dict[str, Any], ...] = Field(description="Everything about every run: metrics, series, policy.")
    html: Flag = Field(description="Whether there is a report with plots too.")


def parse_replay(body: bytes) -> ReplayRequest:
    """Read a replay request; the text of the trace and whether scenarios fit the cluster are not looked at.

    Raises
    ------
    InvalidInput
        If anything is wrong with it; pointers are relative to the body.
    """
    return read_model(body, ReplayRequest, _errors)


def _errors(document: object) -> list[FieldError]:
    errors = field_errors(document, ReplayRequest)
    listed = document.get("scenarios") if isinstance(document, dict) else None
    if not isinstance(listed, list) or not listed:
        return errors
    errors = [error for error in errors if not error.pointer.startswith("/scenarios")]  # said better below
    if len(listed) > MOST_SCENARIOS:
        errors.append(FieldError("/scenarios", f"there are {len(listed)} scenarios, more than {MOST_SCENARIOS}."))
    for i, raw in enumerate(listed):
        try:
            read_scenario(raw)
        except InvalidInput as invalid:
            errors += [error.under(f"/scenarios/{i}") for error in invalid.errors]
    return errors

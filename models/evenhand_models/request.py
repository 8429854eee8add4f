"""What is asked: a state, and the policy to decide by."""

from __future__ import annotations

from typing import Self

from pydantic import Field, ValidationInfo, ValidatorFunctionWrapHandler, field_validator, model_validator

from evenhand_models.checks import protection_errors
from evenhand_models.cluster import ClusterState
from evenhand_models.errors import InvalidInput
from evenhand_models.policy import Policy
from evenhand_models.quantities import CHECKS_DEFERRED, WireModel


class AllocateRequest(WireModel):
    """The body of an allocate request.

    Raises
    ------
    InvalidInput
        If parts contradict each other; pointers are relative to the request.
    """

    state: ClusterState = Field(description="The state of the cluster.")
    policy: Policy | None = Field(default=None, description="The policy to decide by; unset: all defaults.")

    @property
    def effective_policy(self) -> Policy:
        """The policy in force: the one given, or all defaults."""
        return Policy() if self.policy is None else self.policy

    @field_validator("state", mode="wrap")
    @classmethod
    def _point_below_state(cls, value: object, read: ValidatorFunctionWrapHandler) -> ClusterState:
        try:
            state: ClusterState = read(value)
        except InvalidInput as refused:
            raise refused.under("/state") from None
        return state

    @model_validator(mode="after")
    def _refuse_contradictions(self, info: ValidationInfo) -> Self:
        cap = self.effective_policy.max_protection_s
        if info.context is CHECKS_DEFERRED:
            return self
        if errors := protection_errors(enumerate(self.state.jobs), cap):
            raise InvalidInput(errors).under("/state")
        return self

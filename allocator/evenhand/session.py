"""Rounds that follow one another: what one has learnt makes the next quicker."""

from __future__ import annotations

from evenhand.program.memory import Memory
from evenhand.rounds import decide
from evenhand_models import ClusterState, Plan, Policy


class Session:
    """A cluster's rounds, one after the other; not to be shared between threads.

    A plan that is proven optimal is worth what `allocate` would find; of several equally good plans, or where time is short,
    which one comes out may depend on the rounds before. Who needs the same bytes for the same state asks `allocate`.

    Parameters
    ----------
    policy : rules of the rounds; defaults if left out.
    """

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self._memory = Memory()

    def allocate(self, state: ClusterState) -> Plan:
        """Decide the next round; raises as `evenhand.allocate` does."""
        return decide(state, self.policy, self._memory)

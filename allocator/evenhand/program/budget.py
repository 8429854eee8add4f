"""What a search may still spend: deterministic seconds first, the wall as a safeguard."""

from __future__ import annotations

from evenhand.deadline import Deadline
from evenhand.program.variables import Program
from evenhand.solvers import cp_sat

DETERMINISTIC_SHARE = 0.3
"""Deterministic seconds of CP-SAT granted per second of `time_limit_s`: reached before the wall limit on a slow core."""

AT_ONCE = 2
"""Neighbourhoods under way at once where work is counted, whatever the threads."""


class Budget:
    """Work granted to CP-SAT, and time that must be left over for words and audit."""

    def __init__(self, program: Program, deadline: Deadline, reserve_s: float) -> None:
        policy = program.snapshot.policy
        self._deadline, self._reserve = deadline, reserve_s
        self._seed = policy.seed % 2**31
        self._free = not policy.deterministic
        self._workers = policy.workers if self._free else 1
        self.at_once = policy.workers if self._free else AT_ONCE
        """Neighbourhoods under way at once."""
        self.threads = min(policy.workers, self.at_once)
        """Calls that may run at once, one thread each."""
        self.in_order = not self._free
        """Whether calls have to end in the order of their start."""
        self._granted = DETERMINISTIC_SHARE * policy.time_limit_s
        self.cut_by_wall = False
        """Whether the clock ended a piece of work that had more granted: another machine might answer otherwise."""

    @property
    def wall_s(self) -> float:
        """Seconds left for searching."""
        return max(0.0, self._deadline.left_s - self._reserve)

    def in_time(self) -> bool:
        """Whether time is left; if not, that is remembered."""
        return self.leaves(0.0)

    def leaves(self, seconds: float) -> bool:
        """Whether so many seconds are left, at least; if not, that is remembered."""
        if self.wall_s <= seconds:
            self.cut_by_wall = True
        return self.wall_s > seconds

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left to start another solve with."""
        return (not self._free and self._granted <= 0.0) or not self.in_time()

    def has_more_than(self, share: float) -> bool:
        """Whether more than a share of the work, and some time, is left."""
        if self._free:
            return self.wall_s > share * max(0.0, self._deadline.limit_s - self._reserve)
        return not self.exhausted and self._granted > share * DETERMINISTIC_SHARE * self._deadline.limit_s

    def charge(self, found: cp_sat.Solution) -> None:
        """Take off what a solve used, and remember if the clock ended it."""
        self._granted -= found.deterministic_s
        self.cut_by_wall = self.cut_by_wall or found.cut_by_wall

    def lend(self, deterministic_s: float) -> cp_sat.Effort:
        """So much work for a call beside others, one worker, as far as it is left; taken off until `settle` says what it used."""
        granted = deterministic_s if self._free else min(deterministic_s, self._granted)
        self._granted -= granted
        return cp_sat.Effort(granted, self.wall_s, self._seed)

    def settle(self, lent: cp_sat.Effort, found: cp_sat.Solution) -> None:
        """Take off what a call used of what it was lent."""
        self._granted += lent.deterministic_s
        self.charge(found)

    def rest(self) -> cp_sat.Effort:
        """All that is left."""
        granted = 1e6 if self._free else self._granted
        return cp_sat.Effort(granted, self.wall_s, self._seed, self._workers)

    def piece(self, share: float, most_s: float = 1e6, clock: float = 1.0) -> cp_sat.Effort:
        """A share of the whole budget, at most so many deterministic seconds and that share of the clock, as far as it is left.

        For one worker: a solver adds up what all of its own use, and two spend it in half the time to no more effect.
        """
        granted = min(share * DETERMINISTIC_SHARE * self._deadline.limit_s, most_s)
        if not self._free:
            granted = min(granted, self._granted)
        wall = min(self.wall_s, 4 * share * self._deadline.limit_s) if self._free else self.wall_s
        wall *= clock
        return cp_sat.Effort(granted, wall, self._seed)

    def part(self, share: float) -> cp_sat.Effort:
        """A share of the work that is left; of the clock all where work is counted, else a share too."""
        whole = self.rest()
        wall = whole.wall_s * (share if self._free else 1.0)
        return cp_sat.Effort(share * whole.deterministic_s, wall, self._seed, self._workers)

"""What an audit says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach of a rule.

    Attributes
    ----------
    rule : str
        The rule's id in docs/model.md.
    message : str
        One sentence with the ids and numbers.
    refs : tuple of str
        Ids of the jobs, groups, nodes and types it names.
    """

    rule: str
    message: str
    refs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The verdict on a plan.

    Attributes
    ----------
    findings : tuple of Finding
        All breaches found; empty if the plan keeps every rule.
    """

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether the plan keeps every rule."""
        return not self.findings

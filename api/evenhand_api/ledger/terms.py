"""On which terms a job holds GPUs: its group, whether it is charged, at what rate (rules S4, S7, S8 and D's rates)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from evenhand_models import GpuType, Group


class Terms:
    """The tree and the rates of one configuration."""

    def __init__(self, groups: Iterable[Group], gpu_types: Iterable[GpuType]) -> None:
        self._groups = {group.id: group for group in groups}
        self.rates_m: Mapping[str, int] = {t.name: max(1, round(1_000 * t.charge_rate)) for t in gpu_types}

    def charged_to(self, group: str) -> str | None:
        """Return the group, else the nearest ancestor that its id names by its slashes; None: an orphan."""
        name = group
        while name and name not in self._groups:
            name = name.rpartition("/")[0]
        return name or None

    def is_charged(self, group: str, min_runtime_s: int) -> bool:
        """Tell budgeted work from unallocated use."""
        known = self.charged_to(group)
        return min_runtime_s > 0 and known is not None and self._claims[known]

    def rate_m(self, gpu_type: str) -> int:
        """Return the charge rate of a type in thousandths; of an unknown one 1,000."""
        return self.rates_m.get(gpu_type, 1_000)

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """Share of each group among its siblings; 1 for all where every sibling has 0."""
        levelled = {parent for parent, siblings in self._families.items() if not any(s.share > 0 for s in siblings)}
        return {name: 1.0 if g.parent in levelled else g.share for name, g in self._groups.items()}

    @cached_property
    def shares(self) -> Mapping[str, float]:
        """Product of shares on the way down to each group, as a part of the whole cluster."""
        part: dict[str, float] = {}

        def of(name: str) -> float:
            if name not in part:
                group = self._groups[name]
                total = sum(self.weights[sibling.id] for sibling in self._families[group.parent])
                part[name] = self.weights[name] / total * (1.0 if group.parent is None else of(group.parent))
            return part[name]

        return {name: of(name) for name in self._top_down}

    @cached_property
    def _claims(self) -> Mapping[str, bool]:
        claims: dict[str, bool] = {}
        for name in self._top_down:
            parent = self._groups[name].parent
            claims[name] = self.weights[name] > 0 and (parent is None or claims[parent])
        return claims

    @cached_property
    def _families(self) -> Mapping[str | None, list[Group]]:
        families: dict[str | None, list[Group]] = {}
        for group in self._groups.values():
            families.setdefault(group.parent, []).append(group)
        return families

    @cached_property
    def _top_down(self) -> list[str]:
        """Parents before children: the tree may be deeper than the stack."""
        order = [group.id for group in self._families.get(None, [])]
        for name in order:  # grows while it is read
            order.extend(child.id for child in self._families.get(name, []))
        return order

"""Which objectives reward wrong declarations (V8): what docs/speedups.md says of them is measured here."""

from __future__ import annotations

from pathlib import Path

import pytest
from speedups.lies import how_often_it_pays

from evenhand_models import Objective, ThroughputUnit

DOCS = Path(__file__).parents[2] / "docs" / "speedups.md"
COLUMNS = [(ThroughputUnit(unit), too_much) for unit in ("best", "slowest") for too_much in (True, False)]


def documented(objective: Objective) -> list[tuple[float, float]]:
    """The cells of a row: how often, and the most, in percent."""
    (row,) = [line for line in DOCS.read_text().splitlines() if line.startswith(f"| `{objective}` |")]
    cells = row.split("|")[2:-1]
    return [tuple(float(part.strip().rstrip(" %").replace(",", "")) for part in cell.split(";")) for cell in cells]


def test_declaring_too_much_never_pays_under_equal_throughput_on_a_common_slowest_type():
    assert how_often_it_pays(Objective.EQUAL_THROUGHPUT, ThroughputUnit.SLOWEST, True, range(15)) == (0.0, 0.0)


def test_nothing_pays_where_speedups_are_not_looked_at():
    for too_much in (True, False):
        assert how_often_it_pays(Objective.FAIR_SHARE, ThroughputUnit.BEST, too_much, range(5)) == (0.0, 0.0)


@pytest.mark.heavy
@pytest.mark.parametrize("objective", list(Objective))
def test_how_often_lies_pay_is_what_the_documentation_says(objective):
    for (unit, too_much), (often, most) in zip(COLUMNS, documented(objective), strict=True):
        found = how_often_it_pays(objective, unit, too_much, range(60))
        assert 100 * found[0] == pytest.approx(often, abs=2)
        assert 100 * found[1] == pytest.approx(most, abs=1, rel=0.02)

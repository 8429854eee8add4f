"""There and back: what a plan decides is a point of the program."""

from __future__ import annotations

import pytest
from program.searched import decided
from strategies.sweeps import case


@pytest.mark.parametrize("seed", [593, 697, 903, 984])
def test_a_plan_is_a_point_whichever_rack_an_elastic_gang_stands_on(seed: int) -> None:
    """There is one way for each rack and size: the plan's nodes say which."""
    assert decided(*case(seed, "small")) is not None

"""Scenarios of the examples and of the documents are scenarios."""

import re
from pathlib import Path

import yaml

from evenhand_api.whatif.grid import Grid, load_grid, load_scenario
from evenhand_models.scenarios import read_scenario

ROOT = Path(__file__).parents[2]


def test_the_examples_are_read() -> None:
    files = sorted((ROOT / "examples" / "scenarios").glob("*.yaml"))
    names = {load_scenario(str(file)).name for file in files if file.name != "grid.yaml"}
    assert names == {"64 B200 more", "four nodes fail", "double arrivals", "sweeps without budget"}
    assert len(load_grid(str(ROOT / "examples" / "scenarios" / "grid.yaml")).runs()) == 3 * 2 * 2 * 3


def test_what_the_document_shows_is_read() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "replay.md").read_text(), re.DOTALL)
    scenario, grid = (yaml.safe_load(block) for block in blocks)
    assert read_scenario(scenario).name == "B gets more, a rack fails"
    assert Grid.model_validate(grid).seeds == (0, 1, 2)

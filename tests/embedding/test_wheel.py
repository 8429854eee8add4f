"""The wheel built from the sdist holds the three packages whole, and nothing else."""

import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = {"evenhand": "allocator", "evenhand_models": "models", "evenhand_api": "api"}


def sources() -> set[str]:
    return {
        str(path.relative_to(ROOT / room))
        for package, room in ROOMS.items()
        for path in (ROOT / room / package).rglob("*")
        if path.is_file() and path.suffix in {".py", ".typed"} and "__pycache__" not in path.parts
    }


def test_it_holds_every_source_file_and_the_markers_for_type_checkers(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
    assert sources() <= names
    assert {f"{package}/py.typed" for package in ROOMS} <= names


def test_it_brings_no_package_of_a_name_a_host_may_use(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        tops = {name.split("/")[0] for name in packed.namelist() if ".dist-info/" not in name}
    assert tops == set(ROOMS)


def test_it_carries_its_licence_and_its_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        about = {name.split(".dist-info/")[1]: name for name in packed.namelist() if ".dist-info/" in name}
        assert "licenses/LICENSE" in about
        assert "evenhand = evenhand_api.cli:main" in packed.read(about["entry_points.txt"]).decode()
        metadata = packed.read(about["METADATA"]).decode()
    assert "License-Expression: Apache-2.0" in metadata

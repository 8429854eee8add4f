"""The third judge stays out of the others' way: no shared code, and no PuLP unless it is asked for."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOM = ROOT / "allocator" / "evenhand" / "crosscheck"
MAY_USE = {"audit", "crosscheck", "errors"}


def imported(path: Path) -> set[str]:
    """Rooms of evenhand that a file imports."""
    found = set()
    for part in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [part.module or ""] if isinstance(part, ast.ImportFrom) else []
        names += [alias.name for alias in part.names] if isinstance(part, ast.Import) else []
        found |= {name.split(".")[1] if "." in name else name for name in names if name.startswith("evenhand")}
    return found - {"evenhand_models"}


@pytest.mark.parametrize("path", sorted(ROOM.glob("*.py")), ids=lambda path: path.stem)
def test_it_shares_no_code_with_the_way_plans_are_made(path: Path) -> None:
    extra = {"rounds"} if path.stem == "export" else set()  # to get a plan's target, if none is given
    assert imported(path) <= MAY_USE | extra


def test_importing_loads_no_pulp() -> None:
    statement = "import evenhand, evenhand_api, evenhand.crosscheck"
    paths = [str(ROOT / room) for room in ("allocator", "models", "api")]
    script = f"import sys; sys.path[:0] = {paths!r}; {statement}; print('pulp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False"

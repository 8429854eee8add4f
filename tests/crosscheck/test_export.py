"""Exported programs: other readers take them, and rows and columns say what they are."""

import warnings
from pathlib import Path

import highspy
import pytest
from audit.build import at, group, job, node, running, state

from evenhand import EvenhandError, Policy, allocate
from evenhand.crosscheck import cross_check, export_program
from evenhand.crosscheck.names import LONGEST, plain_names

GIVEN = state(
    [node("n0001", 4), node("n0002", 4, "a100")],
    [group("a", guaranteed_gpus=2), group("b", max_gpus=6), group("team c")],
    [
        job("j1", "a", 2, speedup={"h100": 2.0, "a100": 1.0}),
        job("j 2", "b", 3, speedup={"h100": 1.0, "a100": 1.0}),
        job("j_2", "team c", 3, speedup={"h100": 1.0, "a100": 1.0}),
        running("j4", "b", {"n0001": 4}, checkpointed_at=at(0), min_gpus=1),
        job("ü", "a", 1, c=0),
    ],
)
ROWS = {"C1_node_n0001", "C1_node_n0002", "G1_job_j1", "L1_group_b", "O1_group_a", "R1_job_j4"}


def highs(path: Path) -> highspy.Highs:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    solver.run()
    return solver


@pytest.mark.parametrize(("suffix", "sign"), [(".lp", 1), (".mps", -1), (".MPS", -1)])
def test_another_solver_reads_the_file_and_finds_the_same_best(tmp_path: Path, suffix: str, sign: int) -> None:
    path = tmp_path / f"round{suffix}"
    plan = allocate(GIVEN)
    export_program(GIVEN, Policy(), path, plan)
    if suffix == ".MPS":  # HiGHS knows only small letters
        path = path.rename(tmp_path / "round.mps")
    solver = highs(path)
    best = cross_check(GIVEN, Policy(), plan).objective
    assert sign * solver.getInfo().objective_function_value == pytest.approx(best, abs=1e-6)


def test_rows_and_columns_speak_the_domain(tmp_path: Path) -> None:
    path = tmp_path / "round.mps"
    export_program(GIVEN, Policy(), path)
    rows, columns = _names_by_pulp(path)
    assert rows >= ROWS
    assert {"start_j1_2_on_h100", "keep_j4_4_on_h100", "preempt_j4"} <= columns
    assert {"start_j_2_3_on_h100", "start_j_2_3_on_h100__2"} <= columns
    said = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("*")]
    assert "* start_j_2_3_on_h100 stands for start_j 2_3_on_h100" in said


def test_envy_rows_name_both_groups(tmp_path: Path) -> None:
    kinds = {"h100": 1.0}
    jobs = [job(f"{owner}{place}", owner, 1, speedup=kinds) for owner in "ab" for place in range(8)]
    given = state([node("n1", 8)], [group("a"), group("b")], jobs)
    path = tmp_path / "round.lp"
    export_program(given, Policy(), path)
    text = path.read_text(encoding="utf-8")
    assert "E1_a_envies_b:" in text
    assert "O3_group_a:" in text
    assert "G1_job_a0_and_7_like_it:" in text


def _names_by_pulp(path: Path) -> tuple[set[str], set[str]]:
    """Read a file back with PuLP's own reader."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import pulp

        columns, problem = pulp.LpProblem.fromMPS(str(path), sense=pulp.LpMinimize)
        return set(problem.constraints.keys()), set(columns)


@pytest.mark.parametrize("name", ["round.json", "round", "round.lp.gz"])
def test_other_formats_are_refused_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(EvenhandError, match=r"\.lp or \.mps") as refused:
        export_program(GIVEN, Policy(), tmp_path / name)
    assert isinstance(refused.value, ValueError)
    assert not list(tmp_path.iterdir())


def test_names_are_plain_short_and_one_for_each_thing() -> None:
    spoken = ["a b", "a_b", "A_b", "9", "é", "x" * 300, "x" * 301, "a_b__2"]
    plain = plain_names(spoken, "row_")
    assert plain[:2] == ["a_b", "a_b__2"]
    assert plain[3] == "row_9"
    assert len({name.lower() for name in plain}) == len(spoken)
    assert max(map(len, plain)) <= LONGEST

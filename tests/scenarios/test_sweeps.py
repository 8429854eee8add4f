"""Sweeps: the same results by any pool and any number of workers, killed and resumed or not."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from queue import Queue

import pytest
from scenarios.small import case, trace

from evenhand.replay import Scheduler
from evenhand_api.commands.terminal import Failure
from evenhand_api.whatif.grid import load_grid, load_scenario
from evenhand_api.whatif.pools import Here, Processes, Ray, _listen
from evenhand_api.whatif.runs import Base, Run, execute, run_key
from evenhand_api.whatif.store import Folder, Memory, read_results
from evenhand_api.whatif.sweep import sweep
from evenhand_models import InvalidInput
from evenhand_models.scenarios import BASE, Scenario, read_scenario

MORE = read_scenario({"name": "more", "cluster": {"add": [{"gpu_type": "h100", "nodes": 1}]}, "jobs": {"jitter_s": 60}})


def base(**more) -> Base:
    return Base(case(jobs=20, **more))


def runs(seeds: int = 2) -> list[Run]:
    return [
        Run(one, who, seed)
        for one in (BASE, MORE)
        for who in (Scheduler.FIRST_FIT, Scheduler.FIFO)
        for seed in range(seeds)
    ]


class Counting(Here):
    """Counts what it is given, and may be killed after so many."""

    def __init__(self, after: int | None = None) -> None:
        self.asked: list[str] = []
        self._after = after

    def run(self, base, tasks, done, going) -> None:
        for key, run in tasks:
            if self._after is not None and len(self.asked) >= self._after:
                raise KeyboardInterrupt
            self.asked.append(key)
            super().run(base, [(key, run)], done, going)


def test_one_worker_or_eight_make_the_same_bytes() -> None:
    """The engine itself among them: what it decides depends on no process it runs in, and on nothing it did before."""
    engine = [Run(one, Scheduler.EVENHAND, seed) for one in (BASE, MORE) for seed in range(2)]
    one, eight, asked = Memory(), Memory(), [*runs(), *engine]
    first = sweep(base(), asked, Here(), one)
    second = sweep(base(), asked[::-1], Processes(8), eight)
    assert first == second[::-1]
    assert [result["seed"] for result in first] == [0, 1] * 6
    for result in first:
        assert one.get(result["key"]) == eight.get(result["key"])


SWEEP = """
import sys
from pathlib import Path
from scenarios.test_sweeps import base, runs
from evenhand_api.whatif.pools import Processes
from evenhand_api.whatif.store import Folder
from evenhand_api.whatif.sweep import sweep
if __name__ == "__main__":
    sweep(base(), runs(seeds=6), Processes(2), Folder(Path(sys.argv[1])))
"""


def test_a_sweep_killed_without_warning_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    script, out = tmp_path / "killed.py", tmp_path / "runs"
    script.write_text(SWEEP)
    roots = os.pathsep.join(str(Path(__file__).parents[2] / name) for name in ("allocator", "models", "api", "tests"))
    process = subprocess.Popen([sys.executable, str(script), str(out)], env={**os.environ, "PYTHONPATH": roots})
    while not list(out.glob("*.json")):
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    finished = len(list(out.glob("*.json")))
    resumed, want = Counting(), Memory()
    assert sweep(base(), runs(seeds=6), resumed, Folder(out)) == sweep(base(), runs(seeds=6), Here(), want)
    assert len(resumed.asked) == 24 - finished  # what a process was at when its parent died is done again
    for file in out.glob("*.json"):
        assert file.read_bytes() == want.get(file.stem)


def test_a_killed_sweep_goes_on_where_it_was_and_ends_the_same(tmp_path: Path) -> None:
    want = sweep(base(), runs(), Here(), Memory())
    killed, resumed = Counting(after=3), Counting()
    with pytest.raises(KeyboardInterrupt):
        sweep(base(), runs(), killed, Folder(tmp_path))
    assert sweep(base(), runs(), resumed, Folder(tmp_path)) == want
    assert len(killed.asked) == 3
    assert len(resumed.asked) == 5
    assert not set(killed.asked) & set(resumed.asked)
    again = Counting()
    assert sweep(base(), runs(), again, Folder(tmp_path)) == want
    assert again.asked == []


def test_a_half_written_result_is_none(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.put("abc", b"whole")
    (tmp_path / ".def.1.part").write_bytes(b"ha")
    assert folder.get("abc") == b"whole"
    assert folder.get("def") is None
    assert [file.name for file in tmp_path.iterdir() if not file.name.startswith(".")] == ["abc.json"]


def test_a_run_is_named_by_all_that_it_depends_on() -> None:
    run = Run(BASE, Scheduler.FIFO, 0)
    other_rules = Base(case(jobs=20), until_s=1_000)
    digests = [base().digest(), base(seed=2).digest(), other_rules.digest()]
    keys = {run_key(digest, run) for digest in digests}
    keys |= {run_key(digests[0], Run(MORE, Scheduler.FIFO, 0)), run_key(digests[0], Run(BASE, Scheduler.FIRST_FIT, 0))}
    keys |= {run_key(digests[0], Run(BASE, Scheduler.FIFO, 1))}
    assert len(keys) == 6
    assert base().digest() == base().digest()


def test_a_result_says_no_time_of_day_and_is_strict_json() -> None:
    run = Run(BASE, Scheduler.FIRST_FIT, 0)
    first, second = (execute(base(), run, "k") for _ in range(2))
    assert first == second
    document = json.loads(first, parse_constant=pytest.fail)
    assert document["metrics"]["seconds"] is None
    assert sum(document["metrics"]["jobs"].values()) == 20


def test_series_add_up_to_the_figures() -> None:
    result = json.loads(execute(base(), Run(BASE, Scheduler.FIRST_FIT, 0), "k"))
    series, metrics = result["series"], result["metrics"]
    assert len(series["held"]) == 48
    assert sum(series["held"]) == pytest.approx(metrics["occupancy"] * metrics["gpu_hours"], rel=1e-4)
    assert sorted(series["groups"]) == ["lab/a", "lab/b"]
    received = sum(sum(group["received"]) for group in series["groups"].values())
    assert received == pytest.approx(sum(series["held"]) - sum(series["unallocated"]), abs=0.1)


def test_long_replays_are_drawn_in_a_few_hundred_points() -> None:
    long = Base(case(jobs=20, days=60))
    series = json.loads(execute(long, Run(BASE, Scheduler.FIRST_FIT, 0), "k"))["series"]
    assert series["step_h"] == 4
    assert len(series["held"]) == 360


def test_progress_never_goes_back_and_ends_at_1() -> None:
    seen: list[float] = []
    sweep(base(), runs(), Here(), Memory(), lambda share, *_: seen.append(share))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_a_scenario_that_does_not_fit_is_refused_before_anything_is_replayed() -> None:
    bad = Scenario(name="bad", cluster={"lose": [{"gpu_type": "b200"}]})
    pool = Counting()
    with pytest.raises(InvalidInput, match="bad#/cluster/lose/0"):
        sweep(base(), [*runs(), Run(bad, Scheduler.FIFO, 0)], pool, Memory())
    assert pool.asked == []


def test_a_failure_midway_keeps_what_was_finished() -> None:
    store = Memory()

    def until_two(share: float, finished: int, _: int) -> None:
        if finished == 2:
            raise Failure("enough")

    with pytest.raises(Failure, match="enough"):
        sweep(base(), runs(), Processes(2), store, until_two)
    digest = base().digest()
    assert sum(store.get(run_key(digest, run)) is not None for run in runs()) == 2


def test_what_goes_wrong_while_progress_is_shown_is_kept_for_who_waits() -> None:
    lines: Queue[tuple[str, float] | None] = Queue()
    for line in (("a", 0.1), ("a", 0.2), None):
        lines.put(line)
    shown: list[float] = []

    def going(_: str, share: float) -> None:
        shown.append(share)
        raise Failure("enough")

    trouble: list[Exception] = []
    _listen(lines, going, trouble)
    assert shown == [0.1]
    assert [str(error) for error in trouble] == ["enough"]


def test_ray_without_ray_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("evenhand_api.whatif.pools.import_module", missing)
    with pytest.raises(Failure, match=r"evenhand\[ray\]"):
        sweep(base(), runs(), Ray("auto"), Memory())


class StandInRay:
    """What the adapter uses of Ray, in this process: puts are counted, one task finishes at a time, the last first."""

    class exceptions:
        class RayError(Exception):
            pass

    def __init__(self) -> None:
        self.puts = 0

    def init(self, **options) -> None:
        self.options = options

    def put(self, value):
        self.puts += 1
        return ("ref", value)

    def remote(self, function):
        ray = self

        class Remote:
            @staticmethod
            def remote(ref, *arguments):
                return (len(arguments), id(arguments), lambda: function(ref[1], *arguments))

        assert ray is self
        return Remote

    def wait(self, refs, num_returns):
        return refs[-num_returns:], refs[:-num_returns]

    def get(self, ref):
        return ref[2]()

    def shutdown(self) -> None:
        self.down = True


def test_the_ray_adapter_puts_the_base_once_and_makes_the_same_results(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = StandInRay()
    monkeypatch.setattr("evenhand_api.whatif.pools.import_module", lambda _: ray)
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        address = f"127.0.0.1:{somebody.getsockname()[1]}"
        assert sweep(base(), runs(), Ray(address), Memory()) == sweep(base(), runs(), Here(), Memory())
    assert ray.puts == 1
    assert ray.options["address"] == address
    assert ray.down


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_a_ray_cluster_that_is_not_there_is_said_at_once(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    ray = StandInRay()
    monkeypatch.setattr("evenhand_api.whatif.pools.import_module", lambda _: ray)
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        port = somebody.getsockname()[1]
    with pytest.raises(Failure, match=f"127.0.0.1:{port} cannot be reached"):
        sweep(base(), runs(), Ray(f"{scheme}127.0.0.1:{port}"), Memory())
    assert ray.puts == 0


def test_a_grid_is_every_combination_with_names_that_tell_them_apart(tmp_path: Path) -> None:
    (tmp_path / "big.yaml").write_text("cluster: {add: [{gpu_type: h100, nodes: 3}]}\n")
    path = tmp_path / "grid.yaml"
    path.write_text(
        "files: [big.yaml]\npolicy: {horizon_s: [3600, 86400], objective: [nash]}\nschedulers: [fifo, evenhand]\nseeds: [0, 1]\n"
    )
    found = load_grid(str(path)).runs()
    assert len(found) == 16
    names = list(dict.fromkeys(run.scenario.name for run in found))
    assert names == [
        "base horizon_s=3600 objective=nash", "base horizon_s=86400 objective=nash",
        "big horizon_s=3600 objective=nash", "big horizon_s=86400 objective=nash",
    ]  # fmt: skip
    assert found[0].scenario.policy == {"horizon_s": 3600, "objective": "nash"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("policy: {horizon_s: [0]}", "/policy/horizon_s"),
        ("scenarios: [{name: a, jobs: {arrivals: -1}}]", "/scenarios/0/jobs/arrivals"),
        ("scenarios: [{name: a}, {name: a}]", "two scenarios"),
        ("schedulers: [best]", "/schedulers/0"),
        ("seeds: []", "/seeds"),
        ("a: [", "neither YAML nor JSON"),
        ("- 1", "Input should be an object"),
    ],
)
def test_a_grid_that_is_wrong_is_refused_in_a_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "grid.yaml"
    path.write_text(text)
    with pytest.raises(InvalidInput) as refused:
        load_grid(str(path)).runs()
    assert said in str(refused.value)


def test_a_scenario_file_is_named_after_itself_and_wrong_ones_by_pointer(tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    path.write_text("jobs: {arrivals: 2}\n")
    assert load_scenario(str(path)).name == "twice"
    path.write_text("policy: {window_s: week}\n")
    with pytest.raises(InvalidInput, match="#/policy/window_s"):
        load_scenario(str(path))


def test_results_are_read_back_from_folders_and_what_is_none_is_refused(tmp_path: Path) -> None:
    sweep(base(), runs(), Here(), Folder(tmp_path))
    assert len(read_results([str(tmp_path)])) == 8
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(InvalidInput, match="no result"):
        read_results([str(tmp_path)])
    assert trace(jobs=3).jobs

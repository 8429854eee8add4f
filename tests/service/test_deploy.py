"""What deploy/ ships: readable, about settings that exist, and fitting the service and itself. Nothing is started here."""

from __future__ import annotations

import configparser
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from evenhand_api.cli import app
from evenhand_api.settings import FILE_VARIABLE, PREFIX, Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "evenhand"
TEMPLATES = sorted((CHART / "templates").iterdir())
PUBLIC_PATHS = {"/healthz", "/readyz"}


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def rendered(template: str, values: Any, release: str = "trial") -> Any:
    """Fill a template that uses values, the release's name, the chart and `quote`, and nothing else of Helm."""
    roots = {
        "Values": values,
        "Release": {"Name": release},
        "Chart": {"AppVersion": load(CHART / "Chart.yaml")["appVersion"]},
    }

    def fill(found: re.Match[str]) -> str:
        said = re.fullmatch(r"\.([A-Za-z.]+)( \| quote)?", found[1].strip())
        assert said, f"{found[0]} is more than the tests can fill"
        value: Any = roots
        for name in said[1].split("."):
            value = value[name]
        return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"' if said[2] else str(value)

    return yaml.safe_load(re.sub(r"\{\{(.*?)\}\}", fill, template))


def objects(**changes: Any) -> dict[str, Any]:
    values = load(CHART / "values.yaml") | changes
    return {one["kind"]: one for one in (rendered(path.read_text(), values) for path in TEMPLATES)}


def settings_of(environment: dict[str, str]) -> Settings:
    return Settings.from_environment({name: value for name, value in environment.items() if name.startswith(PREFIX)})


def seconds(said: str) -> int:
    return int(said.removesuffix("s"))


def command_is_known(arguments: list[str]) -> None:
    """Let the command line read the arguments, without running them."""
    command = get_command(app)
    name, *rest = arguments
    command.commands[name].make_context(name, list(rest))  # type: ignore[attr-defined]


@pytest.fixture
def compose() -> Any:
    return load(DEPLOY / "compose.yaml")


def test_the_compose_file_starts_the_service_after_a_healthy_database_and_lets_it_finish(compose: Any) -> None:
    service, database = compose["services"]["evenhand"], compose["services"]["database"]
    command_is_known(service["command"])
    assert service["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert database["healthcheck"]["test"][0] == "CMD"
    assert set(compose["volumes"]) == {volume.split(":")[0] for volume in database["volumes"]}
    settings = settings_of(service["environment"])
    assert settings.tokens_required
    assert seconds(service["stop_grace_period"]) >= settings.stop_within_s + 10
    host, outside, inside = service["ports"][0].rsplit(":", 2)
    assert (host, outside, int(inside)) == ("127.0.0.1", "8080", settings.port)
    probe = service["healthcheck"]["test"]
    assert f"http://127.0.0.1:{settings.port}/readyz" in probe[-1]
    compile(probe[-1], "probe", "exec")
    assert (DEPLOY / service["build"]["context"]).resolve() == ROOT
    assert (ROOT / service["build"]["dockerfile"]).is_file()


def test_no_password_stands_in_the_compose_file(compose: Any) -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    assert len(re.findall(r"\$\{POSTGRES_PASSWORD:\?[^}]+\}", text)) == text.count("PASSWORD}") + text.count(
        "PASSWORD:?"
    )
    assert settings_of(compose["services"]["evenhand"]["environment"]).shown()["database_url"].count("***") == 1


def test_the_memory_of_all_processes_fits_into_the_container(compose: Any) -> None:
    service = compose["services"]["evenhand"]
    settings = settings_of(service["environment"])
    limit_mb = int(service["mem_limit"].removesuffix("g")) * 1_024**3 / 1e6
    assert settings.worker_memory_mb * settings.max_concurrent < limit_mb
    values = load(CHART / "values.yaml")
    limit_mb = int(values["resources"]["memory"].removesuffix("Gi")) * 1_024**3 / 1e6
    chosen = values["settings"]
    assert float(chosen["workerMemoryMb"]) * int(chosen["maxConcurrent"]) < limit_mb


@pytest.fixture
def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string((DEPLOY / "evenhand.service").read_text())
    return parser


def test_the_unit_runs_a_command_that_exists_with_settings_that_hold(unit: configparser.ConfigParser) -> None:
    assert unit.sections() == ["Unit", "Service", "Install"]
    program, *arguments = shlex.split(unit["Service"]["ExecStart"])
    assert Path(program).name == "evenhand"
    command_is_known(arguments)
    assert Path(arguments[-1]).name == "evenhand.toml"
    settings = Settings.from_environment({}, str(DEPLOY / "evenhand.toml"))
    assert settings.loopback
    assert settings.data_dir == f"/var/lib/{unit['Service']['StateDirectory']}"
    assert int(unit["Service"]["TimeoutStopSec"]) >= settings.stop_within_s + 10
    assert settings.max_connections * 4 <= int(unit["Service"]["LimitNOFILE"])
    assert set(unit["Service"]["RestrictAddressFamilies"].split()) == {"AF_INET", "AF_INET6", "AF_UNIX"}


def test_what_is_commented_out_in_the_settings_file_holds_too() -> None:
    text = (DEPLOY / "evenhand.toml").read_text()
    every = re.sub(r"^# ([a-z_]+ = )", r"\1", text, flags=re.MULTILINE)
    assert tomllib.loads(every).keys() > tomllib.loads(text).keys()
    Settings.model_validate(tomllib.loads(every))


def test_the_chart_makes_a_deployment_a_service_and_a_budget_that_belong_together() -> None:
    chart = load(CHART / "Chart.yaml")
    assert (chart["apiVersion"], chart["name"]) == ("v2", "evenhand")
    made = objects()
    assert {kind: one["apiVersion"] for kind, one in made.items()} == {
        "Deployment": "apps/v1",
        "Service": "v1",
        "PodDisruptionBudget": "policy/v1",
    }
    labels = made["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert labels == made["Deployment"]["spec"]["selector"]["matchLabels"]
    assert labels == made["Service"]["spec"]["selector"]
    assert labels == made["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"]
    assert {one["metadata"]["name"] for one in made.values()} == {"trial"}


def test_the_charts_pod_runs_the_service_as_it_should() -> None:
    pod = objects()["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    command_is_known(container["args"])
    plain = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    assert all(isinstance(value, str) for value in plain.values())
    settings = settings_of(plain)
    assert settings.tokens_required
    assert pod["terminationGracePeriodSeconds"] >= settings.stop_within_s + 10
    (port,) = container["ports"]
    assert port == {"name": "http", "containerPort": settings.port}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["path"] in PUBLIC_PATHS
        assert container[probe]["httpGet"]["port"] == "http"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    (secret,) = [one for one in container["env"] if "valueFrom" in one]
    assert secret["name"] == f"{PREFIX}DATABASE_URL"
    assert secret["valueFrom"]["secretKeyRef"] == {"name": "evenhand-database", "key": "url"}
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


def test_every_value_of_the_chart_is_used_and_none_is_missing() -> None:
    def leaves(node: Any, path: str) -> set[str]:
        if not isinstance(node, dict):
            return {path}
        return set().union(*(leaves(child, f"{path}.{name}") for name, child in node.items()))

    text = "".join(path.read_text() for path in TEMPLATES)
    assert set(re.findall(r"\.Values[A-Za-z.]+", text)) == leaves(load(CHART / "values.yaml"), ".Values")


def test_a_changed_value_arrives_in_the_objects() -> None:
    pod = objects(port=9_000, replicas=3)
    assert pod["Deployment"]["spec"]["replicas"] == 3
    assert pod["Deployment"]["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"] == 9_000


def test_the_image_is_built_from_what_is_there_for_the_user_the_chart_names() -> None:
    lines = [line.split() for line in (DEPLOY / "Containerfile").read_text().splitlines() if line[:1].isupper()]
    for _, *sources, _ in (line for line in lines if line[0] == "COPY" and "--from=build" not in line):
        assert all((ROOT / source).exists() for source in sources)
    pod = objects()["Deployment"]["spec"]["template"]["spec"]["securityContext"]
    assert ["USER", f"{pod['runAsUser']}:{pod['runAsGroup']}"] in lines
    (environment,) = [dict(pair.split("=", 1) for pair in line[1:]) for line in lines if line[0] == "ENV"]
    assert settings_of(environment).tokens_required
    command_is_known(["serve"])


def test_every_variable_the_documents_name_is_a_setting() -> None:
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | {FILE_VARIABLE, f"{PREFIX}TRACEBACK"}
    for path in (*DEPLOY.rglob("*"), ROOT / "README.md", ROOT / "docs" / "operations.md"):
        if path.is_file():
            assert set(re.findall(r"EVENHAND_[A-Z_]*[A-Z]", path.read_text())) <= known, path.name


def test_the_operations_document_lists_every_setting_with_its_default() -> None:
    rows = dict(
        re.findall(r"^\| `([a-z_]+)` \| ([^|]*) \|", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)
    )
    shown = Settings().shown()
    assert set(rows) >= set(shown)
    for name, value in shown.items():
        told = f"{value:g}" if isinstance(value, float) else str(value)
        assert rows[name].strip().replace("`", "") == (told or "none"), name


def test_the_operations_document_lists_every_metric(tmp_path: Path) -> None:
    from service.inline import inline_client

    text = inline_client(Settings(data_dir=str(tmp_path))).get("/metrics").text
    names = {name for name in re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE) if not name.endswith("_created")}
    told = set(re.findall(r"`(evenhand_[a-z_]+)`", (ROOT / "docs" / "operations.md").read_text()))
    assert names == told

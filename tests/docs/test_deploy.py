"""The files in deploy/ fit the program: its settings, commands, ports, and how long it drains."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from typer.main import get_command
from typer.testing import CliRunner

from holdfast import Holdfast
from holdfast.app import GRACE
from holdfast.cli import app as command
from holdfast.journal.condition import Figures
from holdfast.runtime.dispatch import STALLED_SECONDS
from holdfast.server import create, serving
from holdfast.server.routes import metrics
from holdfast.server.routes.metrics import _of_installation
from holdfast.server.working import _told
from holdfast.settings.sources import Sources
from holdfast.settings.table import SETTINGS

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
YAMLS = sorted(path for path in DEPLOY.rglob("*.yaml") if "application" not in path.parts)
UNITS = sorted(DEPLOY.glob("systemd/*.service"))
VARIABLES = {one.variable for one in SETTINGS.values()}
SPARE = 5.0
"""Beyond what a drain takes at most."""


@pytest.mark.parametrize("path", YAMLS, ids=lambda path: path.name)
def test_every_file_is_yaml(path: Path) -> None:
    kinds = [one.get("kind", "compose") for one in documents(path)]
    assert kinds
    assert None not in kinds


def test_the_application_beside_them_has_a_plan() -> None:
    [plan] = Holdfast.in_memory().load_plans(DEPLOY / "application" / "plans")
    assert plan.plan_id == "leave"


def documents(path: Path) -> list[Any]:
    return [one for one in YAML(typ="safe", pure=True).load_all(path.read_text("utf-8")) if one]


def manifests() -> Iterator[dict[str, Any]]:
    for path in sorted(DEPLOY.glob("kubernetes/*.yaml")):
        yield from documents(path)


def compose() -> dict[str, Any]:
    [found] = documents(DEPLOY / "compose.yaml")
    return dict(found)


def unit(path: Path) -> ConfigParser:
    read = ConfigParser(strict=False, interpolation=None)
    read.optionxform = str  # type: ignore[assignment, method-assign]
    read.read_string(path.read_text("utf-8"))
    return read


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    for one in manifests():
        if one["kind"] in ("Deployment", "Job"):
            yield one["metadata"]["name"], one["spec"]["template"]["spec"]


def containers() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, pod in pods():
        [container] = pod["containers"]
        yield name, container


def command_lines() -> Iterator[list[str]]:
    for service in compose()["services"].values():
        if service["image"].startswith("holdfast:"):
            yield service["command"]
    for _, container in containers():
        yield container["args"]
    for path in UNITS:
        program, *arguments = shlex.split(unit(path)["Service"]["ExecStart"].replace("%i", "8420"))
        assert program.endswith("/bin/holdfast")
        yield arguments
    docker = (DEPLOY / "Dockerfile").read_text("utf-8")
    yield json.loads(re.findall(r"^CMD (\[.*\])$", docker, re.MULTILINE)[0])
    for text in (path.read_text("utf-8") for path in DEPLOY.rglob("*") if path.is_file()):
        for line in re.findall(r"run --rm migrate (token .*)$", text, re.MULTILINE):
            yield shlex.split(line)


@pytest.mark.parametrize("arguments", list(command_lines()), ids=" ".join)
def test_every_command_line_is_one_of_the_program(arguments: list[str]) -> None:
    """Options that it does not know are refused before its help is shown."""
    ended = CliRunner().invoke(command, [*arguments, "--help"])
    assert (ended.exit_code, "Usage" in ended.output) == (0, True), ended.output
    assert arguments[0] in get_command(command).commands  # type: ignore[attr-defined]


def named_variables() -> Iterator[tuple[str, str | None]]:
    for path in DEPLOY.rglob("*"):
        if path.is_file():
            for name in re.findall(r"\bHOLDFAST_[A-Z_]+\b", path.read_text("utf-8")):
                yield name, None
    for service in compose()["services"].values():
        yield from service.get("environment", {}).items()
    for one in manifests():
        yield from {**one.get("data", {}), **one.get("stringData", {})}.items()
    for line in (DEPLOY / "systemd" / "environment").read_text("utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield name, value


def test_every_variable_is_in_the_table_and_its_value_can_be_read() -> None:
    seen = set()
    for name, value in named_variables():
        if not name.startswith("HOLDFAST_"):
            continue
        assert name in VARIABLES
        [setting] = [key for key, one in SETTINGS.items() if one.variable == name]
        seen.add(name)
        if value is not None and not value.startswith("${") and value != "change-me":
            Sources({name: value}).value(setting)
    assert {"HOLDFAST_DATABASE", "HOLDFAST_SECRET_KEY", "HOLDFAST_GRACE"} <= seen


def probes(container: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        yield container[name]["httpGet"]


async def test_probes_ask_for_what_is_there() -> None:
    routes = {getattr(one, "path", None) for one in create(Holdfast.in_memory()).routes}
    [settings] = [one["data"] for one in manifests() if one["kind"] == "ConfigMap"]
    for name, container in containers():
        if name.startswith("migrate"):
            continue
        [port] = container["ports"]
        for probe in probes(container):
            assert probe["port"] == port["name"]
            if name == "server":
                assert probe["path"] in routes
                [host] = probe["httpHeaders"]
                assert host["value"] in settings["HOLDFAST_ALLOW_HOST"].split()
            else:
                status, _ = await _told(Holdfast.in_memory(), ["GET", probe["path"], "HTTP/1.1"])
                assert not status.startswith("404")
        told = settings["HOLDFAST_PORT"] if name == "server" else container["args"][-1]
        assert str(port["containerPort"]) == told


def test_addresses_lead_to_each_other() -> None:
    services = compose()["services"]
    proxy = (DEPLOY / "nginx.conf").read_text("utf-8")
    [upstream] = re.findall(r"^    server (\w+):(\d+);", proxy, re.MULTILINE)
    assert upstream == ("server", services["server"]["environment"]["HOLDFAST_PORT"])
    [listens] = re.findall(r"^    listen (\d+);", proxy, re.MULTILINE)
    assert services["proxy"]["ports"][0].endswith(f":{listens}")
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)
    known = {
        (one["kind"], one["metadata"]["name"]): one for one in manifests() if "metadata" in one
    }
    [service] = [one["spec"] for (kind, _), one in known.items() if kind == "Service"]
    server = known["Deployment", "server"]["spec"]["template"]
    assert service["selector"].items() <= server["metadata"]["labels"].items()
    for (kind, name), one in known.items():
        if kind == "PodDisruptionBudget":
            labels = known["Deployment", name]["spec"]["template"]["metadata"]["labels"]
            assert one["spec"]["selector"]["matchLabels"].items() <= labels.items()
    for _, container in containers():
        for source in container["envFrom"]:
            [(kind, reference)] = source.items()
            wanted = {"secretRef": "Secret", "configMapRef": "ConfigMap"}[kind]
            assert (wanted, reference["name"]) in known
    [listed] = documents(DEPLOY / "kubernetes" / "kustomization.yaml")
    assert all((DEPLOY / "kubernetes" / one).exists() for one in listed["resources"])


def seconds(text: str) -> float:
    amount, unit_of_time = re.fullmatch(r"(\d+)([sm]?)", text).groups()  # type: ignore[union-attr]
    return float(amount) * (60 if unit_of_time == "m" else 1)


def drain(grace: float) -> float:
    """How long a server or a worker takes to end, at most."""
    return max(serving.GRACE + GRACE, grace + STALLED_SECONDS) + SPARE


def test_whoever_is_told_to_stop_has_the_time_to_drain() -> None:
    [settings] = [one["data"] for one in manifests() if one["kind"] == "ConfigMap"]
    for name, pod in pods():
        if name.startswith("migrate"):
            continue
        [container] = pod["containers"]
        before = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command")
        waits = float(before[-1]) if before else 0.0
        granted = pod["terminationGracePeriodSeconds"]
        assert granted > drain(float(settings["HOLDFAST_GRACE"])) + waits
    worker = compose()["services"]["worker"]
    grace = float(worker["environment"]["HOLDFAST_GRACE"])
    assert seconds(worker["stop_grace_period"]) > drain(grace)
    environment = (DEPLOY / "systemd" / "environment").read_text("utf-8")
    [grace_there] = re.findall(r"^HOLDFAST_GRACE=(\d+)$", environment, re.MULTILINE)
    for path in UNITS:
        if "migrate" not in path.name:
            granted = unit(path)["Service"]["TimeoutStopSec"]
            assert seconds(granted) > drain(float(grace_there))


def test_units_start_behind_the_migration_and_may_do_little() -> None:
    assert [path.stem for path in UNITS] == [
        "holdfast-migrate",
        "holdfast-server@",
        "holdfast-worker@",
    ]
    for path in UNITS:
        read = unit(path)
        service = read["Service"]
        assert service["User"] == "holdfast"
        assert (service["ProtectSystem"], service["NoNewPrivileges"]) == ("strict", "yes")
        if "migrate" in path.name:
            assert service["Type"] == "oneshot"
        else:
            assert "holdfast-migrate.service" in read["Unit"]["After"]


def test_nothing_runs_as_root() -> None:
    docker = (DEPLOY / "Dockerfile").read_text("utf-8")
    assert re.search(r"^USER \d+:\d+$", docker, re.MULTILINE)
    assert docker.count("\nFROM ") == 2
    assert "\nHEALTHCHECK " in docker
    for source in re.findall(r"^COPY (?!--from)(.+) \S+$", docker, re.MULTILINE):
        assert all((ROOT / one).exists() for one in source.split())
    user = int(re.findall(r"^USER (\d+)", docker, re.MULTILINE)[0])
    for _, pod in pods():
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["runAsUser"] == user


def test_workers_are_scaled_by_figures_that_are_told() -> None:
    told = {name for name, _, _ in _of_installation(Figures(*[0] * 10))}
    [scaled] = documents(DEPLOY / "kubernetes" / "autoscaling.yaml")
    assert scaled["spec"]["scaleTargetRef"]["name"] in dict(pods())
    for trigger in scaled["spec"]["triggers"]:
        named = set(re.findall(r"holdfast_\w+", trigger["metadata"]["query"]))
        assert named
        assert named <= told


def test_alerts_look_at_figures_that_are_told() -> None:
    [rules] = documents(DEPLOY / "alerts.yaml")
    source = Path(metrics.__file__).read_text("utf-8")
    told = set(re.findall(r'"(holdfast_\w+)"', source))
    for rule in rules["groups"][0]["rules"]:
        named = set(re.findall(r"holdfast_\w+", rule["expr"]))
        assert named
        assert named <= told


def test_the_figures_are_all_explained() -> None:
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    for name, _, _ in _of_installation(Figures(*[0] * 10)):
        assert f"`{name}`" in page

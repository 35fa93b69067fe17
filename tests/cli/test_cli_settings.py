"""The settings command, the configuration file, and log lines, as an operator has them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from cli_scene import Command
from serving import BY_HAND, served

from holdfast.runtime.log_lines import Lines
from holdfast.settings.sources import use
from holdfast.settings.table import SETTINGS

LOGGING = """
import logging
from holdfast import Holdfast

app = Holdfast()


@app.tool
def pay(who: str) -> dict:
    logging.getLogger("office").info("paying %s", who)
    return {}
"""


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    use(None)
    root = logging.getLogger()
    for handler in [one for one in root.handlers if isinstance(one, Lines)]:
        root.removeHandler(handler)
    root.setLevel(logging.WARNING)


def configure(place: Path, text: str) -> None:
    (place / "holdfast.toml").write_text(text, encoding="utf-8")


def test_it_prints_every_setting_its_value_and_its_source(
    place: Path, holdfast: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(place, 'port = 3\nallow_host = ["a.example"]\n')
    monkeypatch.setenv("HOLDFAST_MAX_CONNECTIONS", "7")
    monkeypatch.setenv("HOLDFAST_TOKEN", "hf_hunter2")
    monkeypatch.setenv("HOLDFAST_DATABASE", "postgresql://u:hunter2@h/d")
    told = holdfast("settings", "--home", "kept", "--json")
    assert (told.code, told.json["file"]) == (0, "holdfast.toml")
    found = {name: (one["value"], one["source"]) for name, one in told.json["settings"].items()}
    assert set(found) == set(SETTINGS)
    assert found["home"] == ("kept", "--home")
    assert found["max_connections"] == (7, "HOLDFAST_MAX_CONNECTIONS")
    assert found["port"] == (3, "holdfast.toml")
    assert found["allow_host"] == (["a.example"], "holdfast.toml")
    assert found["header_count"] == (100, "default")
    assert found["token"] == ("…", "HOLDFAST_TOKEN")
    plain = holdfast("settings", "--home", "kept")
    assert plain.code == 0
    rows = {line.split()[0]: line.split()[1:] for line in plain.out.splitlines() if line}
    assert rows["port"] == ["3", "holdfast.toml"]
    assert rows["database"] == ["postgresql://u:…@h/d", "HOLDFAST_DATABASE"]
    assert "hunter2" not in told.out + plain.out


def test_a_variable_that_is_no_setting_is_warned_of(
    holdfast: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_PROT", "1")
    assert "$HOLDFAST_PROT is no setting: did you mean $HOLDFAST_PORT?" in holdfast("settings").err
    assert "HOLDFAST_PROT" in holdfast("settings", "--json").json["unknown_variables"]


def test_a_mistake_in_the_file_stops_every_command(place: Path, holdfast: Command) -> None:
    configure(place, "prot = 3\n")
    refused = holdfast("runs", "--json")
    assert (refused.code, refused.json["error"]["kind"]) == (1, "WrongSetting")
    assert "did you mean port?" in refused.json["error"]["message"]


def test_a_wrong_variable_stops_the_command_that_needs_it(
    holdfast: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_PORT", "x")
    refused = holdfast("serve")
    assert (refused.code, "HOLDFAST_PORT: it is no whole number" in refused.err) == (1, True)
    assert holdfast("run", "ask").code == 4


@pytest.mark.parametrize("named_by", ["option", "variable"])
def test_the_file_may_be_named(
    place: Path, holdfast: Command, monkeypatch: pytest.MonkeyPatch, named_by: str
) -> None:
    configure(place, "port = 3\n")
    (place / "other.toml").write_text('home = "elsewhere"\n', encoding="utf-8")
    if named_by == "variable":
        monkeypatch.setenv("HOLDFAST_CONFIG", "other.toml")
    more = ("--config", "other.toml") if named_by == "option" else ()
    assert holdfast("run", "ask", "--json", *more).code == 4
    assert (place / "elsewhere" / "holdfast.db").exists()
    assert not (place / ".holdfast").exists()
    missing = holdfast("runs", "--config", "none.toml")
    assert (missing.code, "none.toml: No such file" in missing.err) == (1, True)


def test_an_option_goes_before_the_file(place: Path, holdfast: Command) -> None:
    configure(place, 'home = "elsewhere"\n')
    assert holdfast("run", "ask", "--home", "here").code == 4
    assert not (place / "elsewhere").exists()


def test_a_server_is_as_the_file_says(place: Path) -> None:
    configure(place, 'allow_host = ["holdfast.example"]\n')
    with served(place) as server:
        assert httpx.get(f"{server.url}/healthz").status_code == 400
        named = httpx.get(f"{server.url}/healthz", headers={"Host": "holdfast.example"})
        assert named.status_code == 200


def test_what_a_tool_logs_has_run_and_step(
    place: Path, application: str, holdfast: Command
) -> None:
    (place / "logs.py").write_text(LOGGING, encoding="utf-8")
    more = ("--app", "logs:app", "--plans", "calls/pay.yaml", "--log-level", "info")
    ended = holdfast("run", "call_pay", *more, "--log-format", "json")
    assert ended.code == 0, ended.err
    told = [json.loads(line) for line in ended.err.splitlines() if line.startswith("{")]
    [paid] = [one for one in told if one["logger"] == "office"]
    assert (paid["run"], paid["step"], paid["level"]) == ("inst_000001", "L001", "info")


def test_the_access_log_is_json_too_without_links_and_with_who_asked(place: Path) -> None:
    trusting = ("--access-log", "--log-format", "json", "--trusted-proxy", "127.0.0.1")
    trusting += ("--log-level", "info")
    with served(place, *trusting) as server:
        assert server.link is not None
        token = server.token("viewer")
        asked = {"Authorization": f"Bearer {token}", "X-Forwarded-For": "1.2.3.4"}
        answer = httpx.get(f"{server.url}/me", headers=asked)
        httpx.get(server.link, headers=BY_HAND)
        code, _, err = server.stop()
    assert code == 0
    told = [json.loads(line) for line in err.splitlines()]
    assert "stopping: what is in flight ends first" in {one["message"] for one in told}
    [me] = [one for one in told if one.get("path") == "/me"]
    assert (me["client"].rpartition(":")[0], me["method"], me["status"]) == ("1.2.3.4", "GET", 200)
    assert (me["person"], me["request"]) == ("will", answer.headers["X-Request-ID"])
    assert {one["path"] for one in told if one.get("path", "").startswith("/login")} == {"/login?…"}
    assert "link_" not in err
    assert token not in err

"""The table of settings: each has one name in three spellings, and its default is the server's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from holdfast.cli import app
from holdfast.server.settings import SAME, ServerSettings, chosen
from holdfast.settings.kinds import Kind
from holdfast.settings.setting import EVERY, WORKER, Setting
from holdfast.settings.sources import DEFAULT, Sources
from holdfast.settings.table import SETTINGS

ODD = {"allow_host": "--allow-host", "trusted_proxies": "--trusted-proxy", "rules": "--rule"}


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_option_and_variable_are_the_name(setting: Setting) -> None:
    dashed = ODD.get(setting.name, f"--{setting.name.replace('_', '-')}")
    assert setting.flag in ("", dashed)
    assert setting.variable in ("", f"HOLDFAST_{setting.name.upper()}")
    assert setting.flag or setting.variable
    assert setting.purpose.endswith(".")


def test_a_secret_has_neither_option_nor_key() -> None:
    secrets = [one for one in SETTINGS.values() if one.secret]
    assert {one.name for one in secrets} == {"token", "secret_key", "model_api_key"}
    assert {(one.flag, one.key) for one in secrets} == {("", "")}


def options(command: Any) -> Iterator[Any]:
    yield from command.params
    for below in getattr(command, "commands", {}).values():
        yield from options(below)


def test_every_option_of_the_table_is_there_with_its_help() -> None:
    found = {flag: one for one in options(typer.main.get_command(app)) for flag in one.opts}
    serve = typer.main.get_command(app).commands["serve"]  # type: ignore[attr-defined]
    found |= {flag: one for one in serve.params for flag in one.opts}
    for setting in SETTINGS.values():
        if setting.flag and setting.scope != (WORKER,) and setting.scope != (EVERY,):
            assert found[setting.flag].help == setting.help, setting.name


def test_the_defaults_are_those_of_the_server() -> None:
    assert chosen(Sources({})) == ServerSettings()
    for name in SAME:
        assert SETTINGS[name].default == getattr(ServerSettings(), name), name


def test_a_default_is_a_value_that_may_be_said() -> None:
    for setting in SETTINGS.values():
        if setting.default not in (None, ()) and setting.variable:
            told = Sources({setting.variable: str(setting.default)}).find(setting.name)
            assert (told.value, told.source) == (setting.default, setting.variable)
    assert Sources({}).find("port").source == DEFAULT
    assert {one.kind for one in SETTINGS.values()} == set(Kind)

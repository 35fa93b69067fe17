"""Where a value comes from: flag, environment, file, default; and what cannot be a value."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.errors import WrongSetting
from holdfast.journal.home import default_home
from holdfast.server.settings import chosen
from holdfast.settings.file import ConfigFile, find_file, read_file
from holdfast.settings.sources import DEFAULT, Sources, in_effect, use
from holdfast.work.models import ModelClient


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in os.environ:
        if name.startswith("HOLDFAST_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return Path("holdfast.toml")


@pytest.fixture(autouse=True)
def _used() -> Iterator[None]:
    yield
    use(None)


def test_a_flag_goes_before_the_environment_that_before_the_file_that_before_the_default(
    file: Path,
) -> None:
    file.write_text("port = 3\n", encoding="utf-8")
    flags, environ, said = {"port": "1"}, {"HOLDFAST_PORT": "2"}, read_file(file)
    found = [
        Sources(environ, said, flags).find("port"),
        Sources(environ, said, {"port": None}).find("port"),
        Sources({"HOLDFAST_PORT": ""}, said).find("port"),
        Sources({}, None).find("port"),
    ]
    assert [(one.value, one.source) for one in found] == [
        (1, "--port"),
        (2, "HOLDFAST_PORT"),
        (3, "holdfast.toml"),
        (8420, DEFAULT),
    ]


@pytest.mark.parametrize(
    ("variable", "said", "value"),
    [
        ("HOLDFAST_ALLOW_HOST", "a.example  b.example", ("a.example", "b.example")),
        ("HOLDFAST_ALLOW_HOST", "a.example, b.example", ("a.example", "b.example")),
        ("HOLDFAST_TRUSTED_PROXIES", "10.0.0.0/8 ::1", ("10.0.0.0/8", "::1/128")),
        ("HOLDFAST_SECURE_COOKIES", "On", True),
        ("HOLDFAST_SECURE_COOKIES", "0", False),
        ("HOLDFAST_HEADER_SECONDS", "0.5", 0.5),
        ("HOLDFAST_LOG_LEVEL", "INFO", "info"),
        ("HOLDFAST_KNOWLEDGE", "docs", Path("docs")),
        ("HOLDFAST_DATABASE", "postgresql://u:p@h/d", "postgresql://u:p@h/d"),
    ],
)
def test_a_variable_is_read_as_its_kind(variable: str, said: str, value: Any) -> None:
    name = variable.removeprefix("HOLDFAST_").lower()
    assert Sources({variable: said}).value(name) == value


@pytest.mark.parametrize(
    ("variable", "said", "why"),
    [
        ("HOLDFAST_PORT", "x", "it is no whole number"),
        ("HOLDFAST_PORT", "1.5", "it is no whole number"),
        ("HOLDFAST_PORT", "70000", "it must be at most 65535"),
        ("HOLDFAST_HEADER_BYTES", "5", "it must be at least 1024"),
        ("HOLDFAST_HEADER_SECONDS", "nan", "it is no number"),
        ("HOLDFAST_HEADER_SECONDS", "inf", "it is no number"),
        ("HOLDFAST_FOUR_EYES", "ture", "it must be yes or no"),
        ("HOLDFAST_LOG_FORMAT", "xml", "it must be one of text, json"),
        ("HOLDFAST_URL", "127.0.0.1:8420", "begins with http:// or https://"),
        ("HOLDFAST_DATABASE", "mysql://h/d", "begins with postgresql://"),
        ("HOLDFAST_TRUSTED_PROXIES", "10.0.0.1/8", "write 10.0.0.0/8"),
        ("HOLDFAST_TRUSTED_PROXIES", "proxy.example", "10.0.0.0/8 or ::1"),
        ("HOLDFAST_TRUSTED_PROXIES", "0.0.0.0/0", "is everybody"),
        ("HOLDFAST_TRUSTED_PROXIES", "*", "10.0.0.0/8 or ::1"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(variable: str, said: str, why: str) -> None:
    name = variable.removeprefix("HOLDFAST_").lower()
    with pytest.raises(WrongSetting, match=why) as refused:
        Sources({variable: said}).value(name)
    assert str(refused.value).startswith(f"{variable}: ")
    assert refused.value.source == variable


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("prot = 1", "there is no setting prot: did you mean port"),
        ("Log-Level = 1", "there is no setting Log-Level: did you mean log_level"),
        ("zzzzz = 1", "`holdfast settings` lists all"),
        ("[serve]\nport = 1", "is a section"),
        ('port = "1"', "port: it must be a number, without quotation marks"),
        ("port = true", "port: it must be a number"),
        ("port = 70000", "port: it must be at most 65535"),
        ("port = 1.5", "port: it is no whole number"),
        ("host = 1", "host: it must be a text"),
        ('access_log = "yes"', "access_log: it must be true or false"),
        ('allow_host = "a"', "allow_host: it must be a list of texts"),
        ("allow_host = [1]", "allow_host: it must be a list of texts"),
        ('secret_key = "x"', "secret, and files are copied: set .HOLDFAST_SECRET_KEY"),
        ('model_api_key = "x"', "HOLDFAST_MODEL_API_KEY"),
        ('token = "x"', "HOLDFAST_TOKEN"),
        ('url = "http://h"', "may not stand in the file.*HOLDFAST_URL"),
        ('token_file = "x"', "may not stand in the file"),
        ('config = "x"', "may not stand in the file"),
        ('database = "postgresql://u:hunter2@h/d"', "has a password in it.*PGPASSWORD"),
        ('database = "postgresql://h/d?user=u&password=hunter2"', "has a password in it"),
        ('model_base_url = "http://u:hunter2@h/v1"', "has a password in it"),
        ("port = ", "is not TOML"),
        ("port = 1\nport = 2", "is not TOML"),
    ],
)
def test_a_file_with_a_mistake_is_refused_with_its_key(file: Path, text: str, why: str) -> None:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(WrongSetting, match=why) as refused:
        find_file(None)
    assert str(refused.value).startswith("holdfast.toml")
    assert "hunter2" not in str(refused.value)


def test_bytes_that_are_no_text_are_refused(file: Path) -> None:
    file.write_bytes(b"host = \xff")
    with pytest.raises(WrongSetting, match="is not TOML"):
        find_file(None)


def test_a_file_without_end_is_refused(file: Path) -> None:
    file.write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(WrongSetting, match="larger than"):
        find_file(None)


def test_there_need_be_no_file_but_one_that_is_named(file: Path) -> None:
    assert find_file(None) is None
    with pytest.raises(FileNotFoundError):
        find_file(Path("other.toml"))


def test_a_file_of_another_user_counts_only_when_it_is_named(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("port = 3\n", encoding="utf-8")
    owner = file.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    if owner == 0:
        assert find_file(None) is not None
        os.chown(file, 12345, 12345)
    with pytest.raises(WrongSetting, match=r"belongs to another user.*--config"):
        find_file(None)
    assert read_file(file).values == find_file(file).values  # type: ignore[union-attr]


def test_a_database_without_a_password_may_stand_in_the_file(file: Path) -> None:
    file.write_text('database = "postgresql://u@h/d?sslmode=require"\n', encoding="utf-8")
    assert read_file(file).values["database"] == "postgresql://u@h/d?sslmode=require"


def test_paths_are_counted_from_the_file(tmp_path: Path) -> None:
    place = tmp_path / "etc"
    place.mkdir()
    (place / "h.toml").write_text('home = "runs"\nplans = "/plans"\n', encoding="utf-8")
    assert read_file(place / "h.toml").values == {"home": place / "runs", "plans": Path("/plans")}


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("postgresql://u:hunter2@h:5432/d", "postgresql://u:…@h:5432/d"),
        ("postgresql://:hunter2@h/d", "postgresql://:…@h/d"),
        ("postgresql://u:hun@ter2@h/d", "postgresql://u:…@h/d"),
        ("postgresql://u:hun/te?r#2[@h/d", "postgresql://u:…@h/d"),
        ("postgresql://u:hu@n/ter2@h/d?sslmode=require", "postgresql://u:…@h/d?sslmode=require"),
        ("postgresql:///d?passw%6Frd=hunter#2&host=h", "postgresql:///d?passw%6Frd=…&host=h"),
        ("postgresql://h/d?user=u&password=hunter2", "postgresql://h/d?user=u&password=…"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
        ("postgresql:///d?host=/run/pg", "postgresql:///d?host=/run/pg"),
    ],
)
def test_a_password_in_a_url_is_not_shown(said: str, shown: str) -> None:
    assert Sources({"HOLDFAST_DATABASE": said}).find("database").shown == shown


def test_a_secret_is_not_shown() -> None:
    assert Sources({"HOLDFAST_TOKEN": "hf_1"}).find("token").shown == "…"
    assert Sources({}).find("token").shown is None


def test_what_the_command_line_has_named_holds_for_the_application_too(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text('home = "kept"\nfour_eyes = true\nmodel = "openai:m"\n', encoding="utf-8")
    assert (default_home(), Holdfast().engine.four_eyes.enabled) == (Path(".holdfast"), False)
    use(find_file(None))
    assert (default_home(), Holdfast().engine.four_eyes.enabled) == (Path("kept"), True)
    assert ModelClient.from_environment().default_model == "openai:m"
    monkeypatch.setenv("HOLDFAST_HOME", "elsewhere")
    assert in_effect().value("home") == Path("elsewhere")


def test_an_issuer_needs_its_audience() -> None:
    with pytest.raises(WrongSetting, match="go together"):
        chosen(Sources({"HOLDFAST_OIDC_ISSUER": "https://issuer.example"}))
    both = {"oidc_issuer": "https://issuer.example", "oidc_audience": "holdfast"}
    made = chosen(Sources({}, ConfigFile(Path("h.toml"), both)))
    assert made.oidc is not None
    assert made.oidc.audience == "holdfast"

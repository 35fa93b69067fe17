"""A place to work in, and the command itself, in this process or in one of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_scene import (
    APPLICATION,
    ASK,
    CALL,
    DESK,
    GOALS,
    GREET,
    LOCALE,
    Command,
    Ending,
    command_line,
    environment,
)

import warm
from holdfast.cli import main


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory; the applications that the command loads from it go with it."""
    ours = ("HOME", "APP", "URL", "TOKEN", "MODEL", "MODEL_BASE_URL", "MODEL_API_KEY")
    for name in (*(f"HOLDFAST_{one}" for one in ours), "CI"):
        monkeypatch.delenv(name, raising=False)
    for name in LOCALE:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "ask.yaml").write_text(ASK, encoding="utf-8")
    (tmp_path / "plans" / "greet.yaml").write_text(GREET, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(f"{tmp_path}/"):
            del sys.modules[name]


@pytest.fixture
def holdfast(place: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process, which is quick and has no terminal."""

    def run(*arguments: str) -> Ending:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ending:
            main(arguments)
        said = capsys.readouterr()
        return Ending(int(ending.value.code or 0), said.out, said.err)

    return run


@pytest.fixture
def application(place: Path) -> str:
    """A user's application with tools; the name to give to --app."""
    (place / "calls").mkdir()
    for tool in ("pay", "shaky", "slow"):
        text = CALL.format(tool=tool)
        (place / "calls" / f"{tool}.yaml").write_text(text, encoding="utf-8")
    (place / "works.py").write_text(APPLICATION, encoding="utf-8")
    return "works:app"


@pytest.fixture
def desk(place: Path) -> str:
    """A user's application with agents on a scripted model; the name to give to --app."""
    (place / "desk.py").write_text(DESK, encoding="utf-8")
    return "desk:app"


@pytest.fixture
def goals(place: Path) -> str:
    """A user's application for conversations, on a scripted model; the name to give to --app."""
    (place / "goals.py").write_text(GOALS, encoding="utf-8")
    return "goals:app"


@pytest.fixture
def holdfast_process(place: Path) -> Command:
    """The command in a process of its own, without a terminal."""

    def run(*arguments: str) -> Ending:
        done = warm.run(
            command_line(*arguments),
            cwd=place,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return Ending(done.returncode, done.stdout, done.stderr)

    return run

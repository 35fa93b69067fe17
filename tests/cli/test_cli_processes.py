"""The command among other processes: a home in use, an interrupt, a pipe, a start from cold."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_scene import Command, command_line, environment
from terminal import usual_signals

import warm

HEAVY = {"pydantic", "lark", "httpx", "rich", "questionary", "prompt_toolkit", "ruamel", "sqlite3"}


@contextmanager
def driving_slowly(place: Path, application: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has the home and a run in flight, until the file `go` appears."""
    process = warm.Popen(
        command_line("run", "call_slow", "--app", application),
        cwd=place,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=usual_signals,
    )
    try:
        appears(place / "slow.begun")
        yield process
    finally:
        (place / "go").touch()
        process.communicate(timeout=60)


def appears(file: Path) -> None:
    end = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < end, f"{file.name} never came"
        time.sleep(0.02)


def test_help_imports_nothing_heavy() -> None:
    script = "import sys, holdfast.cli; print(' '.join(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    loaded = {name.partition(".")[0] for name in shown.stdout.split()}
    assert loaded & HEAVY == set()


def test_looking_works_while_another_process_has_the_home(
    holdfast_process: Command, application: str, place: Path
) -> None:
    with driving_slowly(place, application):
        common = ("--home", "kept", "--json")
        [row] = holdfast_process("runs", *common).json
        assert (row["instance_id"], row["status"]) == ("inst_000001", "running")
        assert holdfast_process("inbox", *common).json == []
        events = holdfast_process("history", "1", *common).json
        assert events[-1]["type"] == "ListenerStarted"
        assert holdfast_process("graph", "1", "--home", "kept").code == 0


def test_changing_a_run_of_a_home_in_use_says_who_has_it(
    holdfast_process: Command, application: str, place: Path
) -> None:
    with driving_slowly(place, application) as holder:
        ending = holdfast_process("cancel", "1", "--app", application, "--json")
        assert ending.code == 1
        assert ending.json["error"]["kind"] == "HomeBusy"
        assert f"process {holder.pid}" in ending.json["error"]["message"]


def test_watching_follows_another_process_to_the_end(application: str, place: Path) -> None:
    with driving_slowly(place, application):
        watching = warm.Popen(
            command_line("watch", "1", "--home", "kept", "--json"),
            cwd=place,
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["type"] == "RunStarted"
        (place / "go").touch()
        rest, _ = watching.communicate(timeout=60)
    assert watching.returncode == 0
    assert json.loads(rest.splitlines()[-1])["type"] == "RunCompleted"


def test_an_interrupt_lets_go_of_the_run_and_says_how_to_go_on(
    holdfast_process: Command, application: str, place: Path
) -> None:
    with driving_slowly(place, application) as process:
        process.send_signal(signal.SIGINT)
        (place / "go").touch()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    first, last = err.splitlines()
    assert first.startswith("stopping: what is in flight ends first")
    assert last == "error: stopped; to go on: holdfast continue inst_000001 --app works:app"
    went_on = holdfast_process("continue", "1", "--app", application, "--json")
    assert (went_on.code, went_on.json["status"]) == (0, "done")


def test_watching_a_run_that_nobody_drives_ends_and_says_so(
    holdfast_process: Command, application: str, place: Path
) -> None:
    with driving_slowly(place, application) as process:
        process.kill()
        process.wait(timeout=60)
    ending = holdfast_process("watch", "1", "--home", "kept")
    assert ending.code == 1
    assert "no process is driving it" in ending.out
    assert "to go on: holdfast continue inst_000001" in ending.out


def test_a_run_that_failed_is_resumed_once_its_cause_is_mended(
    holdfast_process: Command, application: str, place: Path
) -> None:
    common = ("--app", application, "--json")
    failed = holdfast_process("run", "call_shaky", *common)
    assert failed.code == 3
    assert failed.json["error_info"]["status"] == "waiting_for_resume"
    assert failed.json["failed_listener_id"] == "inst_000001_L001"
    assert holdfast_process("resume", "1", *common).code == 3
    (place / "mended").touch()
    mended = holdfast_process("resume", "1", *common)
    assert (mended.code, mended.json["status"], mended.json["error_info"]) == (0, "done", None)


def test_an_application_keeps_its_own_home(holdfast_process: Command, application: str) -> None:
    ending = holdfast_process("run", "call_shaky", "--app", application, "--home", "elsewhere")
    assert ending.code == 1
    assert "leave --home out" in ending.err


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("nowhere:app", "there is no nowhere.py in "),
        ("now.here:app", "there is no now/here.py in "),
        ("works.py", "name it as MODULE:NAME, as clerk:app for the app in clerk.py"),
        ("works.py:app", "name it as MODULE:NAME"),
        ("imports:app", "--app imports:app: No module named 'not_installed'"),
        ("works:other", "works has no Holdfast object 'other'"),
    ],
)
def test_an_application_that_is_not_there_is_named(
    holdfast_process: Command, application: str, place: Path, name: str, complaint: str
) -> None:
    (place / "imports.py").write_text("import not_installed", encoding="utf-8")
    ending = holdfast_process("run", "call_shaky", "--app", name)
    assert ending.code == 1
    assert complaint in ending.err
    assert "Traceback" not in ending.err


def test_a_reader_that_has_gone_is_no_traceback(holdfast: Command, place: Path) -> None:
    holdfast("run", "ask")
    process = warm.Popen(
        command_line("history", "1", "--json"),
        cwd=place,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(timeout=60) == 1


@pytest.mark.parametrize(
    "command",
    [
        ("run", "call_slow", "--app", "works:app"),
        ("converse", "slow", "--app", "goals:app"),
        ("converse", "slow", "--app", "goals:app", "--json"),
        ("chat", "slow", "--agent", "clerk", "--app", "desk:app", "--json"),
    ],
)
@pytest.mark.usefixtures("application", "goals", "desk")
def test_what_drives_a_run_ends_once_its_reader_has_gone(
    place: Path, command: tuple[str, ...]
) -> None:
    process = warm.Popen(
        command_line(*command),
        cwd=place,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    appears(place / "slow.begun")
    process.stdout.close()
    (place / "go").touch()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(timeout=60) == 1


def test_a_watch_ends_once_its_reader_has_gone(application: str, place: Path) -> None:
    with driving_slowly(place, application):
        watching = warm.Popen(
            command_line("watch", "1", "--home", "kept"),
            cwd=place,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert watching.stdout is not None
        assert watching.stdout.readline()
        watching.stdout.close()
        (place / "go").touch()
        assert watching.stderr is not None
        assert watching.stderr.read() == ""
        watching.stderr.close()
        assert watching.wait(timeout=60) == 1

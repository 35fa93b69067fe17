"""Runs that wait for a moment: shown as waiting, at home and over HTTP, and killed meanwhile."""

from __future__ import annotations

import subprocess
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from cli_scene import Command, command_line, environment
from rich.console import Console
from serving import served

import warm
from holdfast.app import Holdfast
from holdfast.cli.terminal.progress import task_table
from holdfast.journal.memory import MemoryJournal
from holdfast.language.moments import utc_text
from holdfast.source.planfile import read_plan
from holdfast.views.reader import RunReader
from holdfast.views.stories.text import clock

WAIT = """
plan_id: wait
name: Wait
main_task_id: "001"
tasks: [{{task_id: "001", name: Wait}}, {{task_id: "002", name: Waited}}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: wait_until
    after: {after}
    success_output: {{task_id: "002", status: Done}}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {{'success': True}}"
    success_output: {{task_id: "001", status: Done}}
"""
AWAY = 2.0


def put(place: Path, after: str) -> None:
    (place / "plans" / "wait.yaml").write_text(WAIT.format(after=after), encoding="utf-8")


def moment_of(entries: Any) -> float:
    [started] = [one for one in entries if one["type"] == "WaitStarted"]
    return float(started["data"]["until"])


def over(moment: float) -> None:
    while time.time() <= moment:
        time.sleep(0.01)


def test_lists_show_until_when_it_waits(place: Path, holdfast: Command) -> None:
    put(place, "1h")
    begun = holdfast("run", "wait", "--no-wait")
    moment = moment_of(holdfast("history", "1", "--json").json)
    told = f"inst_000001 is running, and waits until {clock(moment, date=True)}\n"
    assert (begun.code, begun.out.startswith(told)) == (0, True)
    assert f"waiting until {clock(moment, date=True)}" in holdfast("runs").out
    [row] = holdfast("runs", "--json").json
    assert datetime.fromisoformat(row["waits_until"]).timestamp() == pytest.approx(moment, abs=1)
    assert (row["status"], row["summary"]["waits_until"]) == ("running", moment)
    assert holdfast("cancel", "1").code == 0
    [row] = holdfast("runs", "--json").json
    assert (row["waits_until"], "waits_until" in row["summary"]) == (None, False)


async def test_the_board_of_tasks_says_until_when_one_waits() -> None:
    async with Holdfast(journal=MemoryJournal()) as app:
        app.add_plan(read_plan(WAIT.format(after="1h")))
        instance = await app.plans.start_plan_by_prompt("", "wait")
        await app.engine.wait_for(instance.id, lambda state: bool(state.timers))
        run = await RunReader.of(app).run(instance.id)
        screen = Console(width=120, record=True)
        screen.print(task_table(run))
        [step] = [one for one in run.steps if one.waits_until is not None]
        assert step.waits_until is not None
        [line] = [one for one in screen.export_text().splitlines() if one.startswith("002")]
        assert line.split(maxsplit=2)[2] == (f"waiting  waits until {utc_text(step.waits_until)}")


@pytest.mark.parametrize("reopened", ["before", "after"])
def test_a_process_killed_while_it_waits_is_no_loss(
    place: Path, holdfast: Command, reopened: str
) -> None:
    put(place, f"{AWAY:g}")
    waiting = warm.Popen(
        command_line("run", "wait"),
        cwd=place,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert waiting.stdout is not None
    while "waits until" not in waiting.stdout.readline():
        assert waiting.poll() is None
    waiting.kill()
    waiting.communicate(timeout=60)
    moment = moment_of(holdfast("history", "1", "--json").json)
    if reopened == "after":
        over(moment)
    assert holdfast("continue", "1").code == 0
    entries = holdfast("history", "1", "--json").json
    assert moment_of(entries) == moment
    [ended] = [one for one in entries if one["type"] == "WaitEnded"]
    assert datetime.fromisoformat(ended["at"]).timestamp() >= int(moment)
    assert entries[-1]["type"] == "RunCompleted"


@pytest.mark.parametrize("reopened", ["before", "after"])
def test_so_is_a_server(
    place: Path,
    holdfast: Command,
    holdfast_process: Command,
    monkeypatch: pytest.MonkeyPatch,
    reopened: str,
) -> None:
    put(place, f"{AWAY:g}")
    made = holdfast_process("token", "create", "will", "--role", "admin", "--json")
    monkeypatch.setenv("HOLDFAST_TOKEN", made.json["token"])
    with served(place) as server:
        at = ("--url", server.url)
        assert holdfast("run", "wait", "--no-wait", *at).code == 0
        [row] = holdfast("runs", "--json", *at).json
        moment = row["summary"]["waits_until"]
        assert (row["status"], bool(row["waits_until"])) == ("running", True)
        assert f"waiting until {clock(moment, date=True)}" in holdfast("runs", *at).out
        server.process.kill()
        server.process.communicate(timeout=60)
    if reopened == "after":
        over(moment)
    with served(place) as server:
        at = ("--url", server.url)
        assert holdfast("watch", "1", *at).code == 0
        entries = holdfast("history", "1", "--json", *at).json
        assert moment_of(entries) == moment
        assert [one["type"] for one in entries].count("WaitEnded") == 1
        assert entries[-1]["type"] == "RunCompleted"
        assert "waits_until" not in holdfast("runs", "--json", *at).json[0]["summary"]

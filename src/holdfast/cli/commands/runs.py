"""Commands on runs: list, watch and read them; continue, resume and cancel them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import shell
from holdfast.cli.shell import (
    OK,
    AnywayOption,
    FailedOption,
    SetOption,
    Settings,
    WaitOption,
)
from holdfast.model.run import JOURNAL_KINDS, RunKind

if TYPE_CHECKING:
    from rich.text import Text

    from holdfast.cli.driver import Driver
    from holdfast.model.form import Field
    from holdfast.views.records import RunLine, TimelineEntry

RunArgument = Annotated[
    str,
    typer.Argument(metavar="RUN", help="A run, as inst_000001, 1, chat_000001 or conv_000001."),
]
PlanRunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="A run of a plan, as inst_000001 or 1.")
]


_NONE_YET = "no runs yet: start one with `holdfast run PLAN`"

NAMES = {RunKind.PLAN: "plan_id", RunKind.CHAT: "agent_id", RunKind.CONVERSATION: "name"}
"""What a run's name is."""


def register(group: typer.Typer) -> None:
    shell.register(group, "runs", runs, distant=True)
    shell.register(group, "watch", watch, distant=True)
    shell.register(group, "continue", continue_run, distant=True)
    shell.register(group, "resume", resume, distant=True)
    shell.register(group, "cancel", cancel, distant=True)
    shell.register(group, "history", history, distant=True)


async def runs(
    settings: Settings,
    status: Annotated[
        list[str] | None,
        typer.Option(
            "--status",
            help="Only runs in this status: running, pause, done, error, cancelled. Repeatable.",
            show_default=False,
        ),
    ] = None,
    plan: Annotated[
        str | None, typer.Option("--plan", metavar="ID", help="Only runs of this plan.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="ID", help="Only chats with this agent.")
    ] = None,
    kind: Annotated[
        RunKind | None,
        typer.Option("--kind", help="Only runs of this kind.", show_default=False),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=10_000, help="How many, the newest first.")
    ] = 50,
) -> int:
    """List runs of plans, chats with agents and conversations, the newest first."""
    from holdfast.cli.home_reader import reading
    from holdfast.cli.terminal.plain import print_json
    from holdfast.model.rows import RunQuery

    wanted = _one_kind(plan, agent, kind)
    query = RunQuery(
        status=_statuses(status),
        name=plan or agent,
        kind=None if wanted is None else JOURNAL_KINDS[wanted],
        roots_only=True,
        limit=limit,
    )
    async with reading(settings) as reader:
        rows = await reader.runs(query)
    if settings.as_json:
        print_json([row_json(row) for row in rows])
    else:
        _show(rows, "no such run" if status or wanted else _NONE_YET)
    return OK


def _show(rows: Sequence[RunLine], if_none: str) -> None:
    from holdfast.cli.terminal.screen import print_table, say

    if rows:
        print_table(ROW_TITLES, [row_cells(row) for row in rows])
    else:
        say(if_none)


def _one_kind(plan: str | None, agent: str | None, kind: RunKind | None) -> RunKind | None:
    named = {RunKind.PLAN: plan is not None, RunKind.CHAT: agent is not None}
    wanted = [one for one in RunKind if named.get(one) or one is kind]
    if len(wanted) > 1:
        raise typer.BadParameter("no run is of two kinds: leave one option out.")
    return wanted[0] if wanted else None


def _statuses(given: list[str] | None) -> frozenset[str] | None:
    from holdfast.model.plan import PlanInstanceStatus

    if not given:
        return None
    known = [status.value for status in PlanInstanceStatus]
    unknown = [one for one in given if one not in known]
    if unknown:
        raise typer.BadParameter(f"--status {unknown[0]}: choose one of {', '.join(known)}.")
    return frozenset(given)


ROW_TITLES = ("run", "kind", "name", "status", "progress", "waits", "moved", "title")


_EMPTY = {"waiting": 0, "failed": [], "retries": 0, "stopped": False}
"""What a summary has at least, of a home as of a server."""


def row_json(line: RunLine) -> dict[str, Any]:
    from holdfast.language.instants import iso

    return {
        "instance_id": line.run_id,
        "kind": line.kind.value,
        NAMES[line.kind]: line.name,
        "title": line.title,
        "status": line.status.value,
        "created_at": iso(line.created_at),
        "updated_at": iso(line.updated_at),
        "waits_until": None if line.waits_until is None else iso(line.waits_until),
        "summary": {**_EMPTY, **line.summary},
    }


def row_cells(line: RunLine) -> tuple[Any, ...]:
    from holdfast.views.stories.text import clock, visible

    summary = line.summary
    skipped = f", {summary['skipped']} skipped" if summary.get("skipped") else ""
    tasks = f"{summary.get('done', 0)}/{summary.get('tasks', 0)} tasks{skipped}"
    return (
        line.run_id,
        line.kind.value,
        visible(line.name),
        _status(line),
        f"turn {summary.get('turn', 0)}" if line.kind is RunKind.CHAT else tasks,
        str(summary.get("waiting") or ""),
        clock(line.updated_at, date=True),
        visible(_titled(line)),
    )


def _status(line: RunLine) -> Text:
    from holdfast.cli.terminal.screen import status_text
    from holdfast.views.stories.text import clock

    if line.waits_until is None:
        return status_text(line.status.value)
    return status_text("waiting", f"waiting until {clock(line.waits_until, date=True)}")


def _titled(line: RunLine) -> str:
    """What it is called, and what it is about."""
    return line.title if line.about in ("", line.title) else f"{line.title}: {line.about}"


async def watch(
    settings: Settings,
    instance: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="A run, as inst_000001, 1, chat_000001 or conv_000001. Default: all.",
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Keep watching what waits for a person."),
    ] = False,
) -> int:
    """Watch one run, or all, until nothing moves any more.

    Only looks: the run may belong to another process. With --json every event, or every
    change of a run, is one line.
    """
    from holdfast.cli.commands.watcher import watch_all, watch_one
    from holdfast.cli.home_reader import reading
    from holdfast.cli.values import full_run_id

    async with reading(settings) as reader:
        if instance is None:
            return await watch_all(reader, settings, follow)
        return await watch_one(reader, settings, full_run_id(instance), follow)


async def continue_run(
    settings: Settings,
    instance: RunArgument,
    pairs: SetOption = None,
    anyway: AnywayOption = False,
    wait: WaitOption = True,
) -> int:
    """Give a paused run what it asks for, or go on with one that no process drives.

    Values go to the open forms by field name; all must fit, or nothing changes.
    """
    from holdfast.cli.driver import Driver, do_and_see
    from holdfast.cli.opening import opened_backend
    from holdfast.cli.values import full_run_id, read_values
    from holdfast.errors import NotAllowed

    async with opened_backend(settings) as backend:
        driver = Driver(backend, settings)
        run_id = full_run_id(instance)
        await backend.refuse_without_tools(run_id, anyway=anyway)
        values = read_values(pairs, None, await _asked_fields(driver, run_id), "--set")
        if not values:
            return await do_and_see(driver, run_id, lambda: asyncio.sleep(0), wait=wait)
        if (await backend.run(run_id)).kind is not RunKind.PLAN:
            raise NotAllowed(
                f"{run_id} is no run of a plan: answer its questions, "
                f"`holdfast inbox{settings.repeated}` has them"
            )
        return await _provide(driver, run_id, values, wait)


async def _provide(driver: Driver, run_id: str, values: dict[str, Any], wait: bool) -> int:
    """Hand the values over, and show what comes of them meanwhile."""
    before = await driver.backend.run(run_id)
    handing = await driver.backend.provide(run_id, values)
    if wait:
        await driver.see_through(before)
    await handing
    return await driver.conclude(run_id, None if wait else OK)


async def _asked_fields(driver: Driver, run_id: str) -> list[Field]:
    questions = await driver.backend.open_questions(run_id)
    return [field for one in questions for field in one.request.form.fields]


async def resume(
    settings: Settings,
    instance: RunArgument,
    failed: FailedOption = None,
    anyway: AnywayOption = False,
    wait: WaitOption = True,
) -> int:
    """Run again what failed in a run that waits for a resume; what is done stays done.

    A conversation that failed is told how to go on with --failed; at a terminal you are asked.
    """
    from holdfast.cli.commands.failure_choice import chosen
    from holdfast.cli.driver import Driver, do_and_see
    from holdfast.cli.opening import opened_backend
    from holdfast.cli.values import full_run_id

    async with opened_backend(settings) as backend:
        run_id = full_run_id(instance)
        how = await chosen(await backend.run(run_id), failed, settings)
        await backend.refuse_without_tools(run_id, anyway=anyway)
        driver = Driver(backend, settings)
        return await do_and_see(driver, run_id, lambda: backend.resume(run_id, how), wait=wait)


async def cancel(
    settings: Settings,
    instance: RunArgument,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.")] = "",
    wait: WaitOption = True,
) -> int:
    """Cancel a run: nothing new starts, and what is in flight comes to its end."""
    from holdfast.cli.driver import Driver, do_and_see
    from holdfast.cli.opening import opened_backend
    from holdfast.cli.values import full_run_id

    async with opened_backend(settings) as backend:
        run_id = full_run_id(instance)
        driver = Driver(backend, settings)
        action = partial(backend.cancel, run_id, reason)
        return await do_and_see(driver, run_id, action, wait=wait, code=OK)


async def history(settings: Settings, instance: RunArgument) -> int:
    """Tell what happened in a run, by whom and when; --json gives the events."""
    from holdfast.cli.home_reader import reading
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import say
    from holdfast.cli.terminal.untrusted_text import rows, told
    from holdfast.cli.values import full_run_id
    from holdfast.views.stories.text import clock

    async with reading(settings) as reader:
        run_id = full_run_id(instance)
        entries = await reader.timeline(run_id)
        raised = [] if settings.as_json else await reader.tracebacks(run_id)
    if settings.as_json:
        print_json([event_json(one) for one in entries])
        return OK
    for entry in entries:
        for line in entry.lines(date=True) if entry.told else ():
            say(*told(line))
    for one in raised:
        when = clock(one.at, date=True)
        say("", *told(f"{when}  {one.name} raised this at try {one.attempt}:"))
        say(*rows(one.text.rstrip()))
    return OK


def event_json(entry: TimelineEntry) -> dict[str, Any]:
    from holdfast.language.instants import iso

    return {"seq": entry.seq, "at": iso(entry.at), "type": entry.type, "data": dict(entry.data)}

"""Watching: runs that another process may be driving, by what is committed of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from holdfast.cli.backend import Reading
from holdfast.cli.commands.runs import ROW_TITLES, event_json, row_cells, row_json
from holdfast.cli.home_journal import PATIENCE
from holdfast.cli.shell import FAILED, OK, Interrupted, Settings
from holdfast.cli.terminal.plain import print_json_line
from holdfast.cli.terminal.progress import Silence, View, follow, rests, view_of
from holdfast.cli.terminal.report import exit_code, say_standing
from holdfast.cli.terminal.screen import console, say, table
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.journal.port import QuestionQuery, RunQuery, RunRow
from holdfast.model.run import RunStatus
from holdfast.runtime.hub import Recorded

_SHOWN = 20
_UNMOVED = frozenset({"done", "cancelled", "error", "pause"})


class JsonLines(Silence):
    """Every event as a line of JSON."""

    def show(self, state: RunState, recorded: Recorded) -> None:
        print_json_line(event_json(recorded))


async def watch_one(reader: Reading, settings: Settings, run_id: str, keep_on: bool) -> int:
    start = await reader.beginning(run_id)

    async def settled(state: RunState) -> bool:
        if not (_is_over(state) if keep_on else rests(state)):
            return False
        return await reader.version(run_id) == state.version

    try:
        with _view(settings, start) as view:
            state = await follow(start, reader.listen(run_id), view, settled)
    except asyncio.CancelledError:
        raise Interrupted("stopped watching; the run is not affected") from None
    if not settings.as_json:
        query = QuestionQuery(status=frozenset({"open"}), root_id=state.root_id)
        elsewhere = settings.server is not None
        say_standing(state, await reader.questions(query), settings.repeated, elsewhere=elsewhere)
    if not rests(state):
        return _undriven(settings)
    return exit_code(state.status)


def _is_over(state: RunState) -> bool:
    """For ever: a session or a conversation that is done may be told more."""
    done = state.status is RunStatus.DONE and isinstance(state, PlanState)
    return done or state.status is RunStatus.CANCELLED


def _view(settings: Settings, state: RunState) -> View:
    return JsonLines() if settings.as_json else view_of(settings, state)


def _undriven(settings: Settings) -> int:
    if not settings.as_json:
        say("  no process is driving it")
    return FAILED


async def watch_all(reader: Reading, settings: Settings, keep_on: bool) -> int:
    try:
        async with aclosing(_pages(reader, keep_on)) as pages:
            if settings.interactive:
                await _show_live(pages)
            else:
                await _show_changes(pages, settings)
    except asyncio.CancelledError:
        raise Interrupted("stopped watching; the runs are not affected") from None
    return OK


async def _pages(reader: Reading, keep_on: bool) -> AsyncGenerator[Sequence[RunRow], None]:
    """The newest runs, again and again while any of them moves."""
    idle = 0
    while True:
        rows = await reader.runs(RunQuery(roots_only=True, limit=_SHOWN))
        yield rows
        moving = any(row.status not in _UNMOVED for row in rows)
        idle = 0 if reader.is_driven() else idle + 1
        if not keep_on and (not moving or idle >= PATIENCE):
            return
        await asyncio.sleep(reader.look_again)


async def _show_live(pages: AsyncGenerator[Sequence[RunRow], None]) -> None:
    with Live(Text(""), console=console(), refresh_per_second=8) as live:
        async for rows in pages:
            live.update(_picture(rows))


def _picture(rows: Sequence[RunRow]) -> RenderableType:
    made = table(*ROW_TITLES)
    for row in rows:
        made.add_row(*row_cells(row))
    return made


async def _show_changes(pages: AsyncGenerator[Sequence[RunRow], None], settings: Settings) -> None:
    shown: dict[str, RunRow] = {}
    async for rows in pages:
        for row in reversed(rows):
            if shown.get(row.run_id) != row:
                shown[row.run_id] = row
                _show_change(row, settings)


def _show_change(row: RunRow, settings: Settings) -> None:
    if settings.as_json:
        print_json_line(row_json(row))
    else:
        say("  ".join(str(cell) for cell in row_cells(row)))

"""Watching: runs of a home that another process may be driving, by reading its journal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from holdfast.cli.opening import Reading, is_driven
from holdfast.cli.progress import LOOK_AGAIN, Silence, View, follow, rests, view_of
from holdfast.cli.report import exit_code, say_standing
from holdfast.cli.runs import ROW_TITLES, event_json, row_cells, row_json
from holdfast.cli.screen import console, print_json_line, say, table
from holdfast.cli.shell import FAILED, OK, Interrupted, Settings
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.journal.port import QuestionQuery, RunQuery, RunRow
from holdfast.model.run import RunStatus
from holdfast.runtime.hub import AskedBelow, Recorded, Spoken

_SHOWN = 20
_PATIENCE = 8
_UNMOVED = frozenset({"done", "cancelled", "error", "pause"})


class JsonLines(Silence):
    """Every event as a line of JSON."""

    def show(self, state: RunState, recorded: Recorded) -> None:
        print_json_line(event_json(recorded))


async def watch_one(book: Reading, settings: Settings, run_id: str, keep_on: bool) -> int:
    start = await book.beginning(run_id)

    async def settled(state: RunState) -> bool:
        if await book.journal.version(run_id) > state.version:
            return False
        return _is_over(state) if keep_on else rests(state)

    try:
        with _view(settings, start) as view:
            state = await follow(start, _events(book, run_id), view, settled)
    except asyncio.CancelledError:
        raise Interrupted("stopped watching; the run is not affected") from None
    if not settings.as_json:
        query = QuestionQuery(status=frozenset({"open"}), root_id=state.root_id)
        say_standing(state, await book.journal.questions(query), settings.repeated)
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


async def _events(
    book: Reading, run_id: str
) -> AsyncGenerator[Recorded | Spoken | AskedBelow, None]:
    """The run's events; ends when for a while nothing came and nobody is at work."""
    after, idle = 0, 0
    while idle < _PATIENCE or is_driven(book.home):
        records = await book.records(run_id, after)
        for recorded in records:
            after = recorded.seq
            yield recorded
        idle = 0 if records else idle + 1
        await asyncio.sleep(LOOK_AGAIN)


async def watch_all(book: Reading, settings: Settings, keep_on: bool) -> int:
    try:
        async with aclosing(_pages(book, keep_on)) as pages:
            if settings.interactive:
                await _show_live(pages)
            else:
                await _show_changes(pages, settings)
    except asyncio.CancelledError:
        raise Interrupted("stopped watching; the runs are not affected") from None
    return OK


async def _pages(book: Reading, keep_on: bool) -> AsyncGenerator[Sequence[RunRow], None]:
    """The newest runs, again and again while any of them moves."""
    idle = 0
    while True:
        rows = await book.journal.runs(RunQuery(roots_only=True, limit=_SHOWN))
        yield rows
        moving = any(row.status not in _UNMOVED for row in rows)
        idle = 0 if is_driven(book.home) else idle + 1
        if not keep_on and (not moving or idle >= _PATIENCE):
            return
        await asyncio.sleep(LOOK_AGAIN)


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

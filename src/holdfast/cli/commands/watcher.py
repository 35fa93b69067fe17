"""Watches runs that another process may be driving, by what is committed of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from holdfast.cli.backend import Reader
from holdfast.cli.commands.runs import ROW_TITLES, event_json, row_cells, row_json
from holdfast.cli.home_reader import PATIENCE
from holdfast.cli.shell import FAILED, OK, Interrupted, Settings
from holdfast.cli.terminal.plain import print_json_line
from holdfast.cli.terminal.progress import Display, Point, Silence, display_of, follow
from holdfast.cli.terminal.report import exit_code, say_report
from holdfast.cli.terminal.screen import console, say, table
from holdfast.model.rows import RunQuery
from holdfast.views.folds import is_over
from holdfast.views.records import RunLine, TimelineEntry

_SHOWN = 20
_UNMOVED = frozenset({"done", "cancelled", "error", "pause"})


class JsonLines(Silence):
    """Every event as a line of JSON."""

    def show(self, entry: TimelineEntry) -> None:
        print_json_line(event_json(entry))


async def watch_one(reader: Reader, settings: Settings, run_id: str, keep_on: bool) -> int:
    run = await reader.run(run_id)

    async def settled(point: Point) -> bool:
        over = is_over(run.kind, point.status)
        at_rest = over if keep_on else point.rests
        return at_rest and await reader.is_newest(run_id, point.version)

    display: Display = JsonLines() if settings.as_json else display_of(settings, run)
    try:
        with display:
            updates = reader.follow(run_id, views=display.wants_views)
            point = await follow(Point(run_id, 0), updates, display, settled)
            run = await reader.run(run_id)
            display.update(run)
    except asyncio.CancelledError:
        raise Interrupted("stopped watching; the run is not affected") from None
    if not settings.as_json:
        questions = await reader.open_questions(run.root_id)
        elsewhere = settings.server is not None
        say_report(run, questions, settings.repeated, elsewhere=elsewhere)
    return exit_code(point.status) if point.rests else _undriven(settings)


def _undriven(settings: Settings) -> int:
    if not settings.as_json:
        say("  no process is driving it")
    return FAILED


async def watch_all(reader: Reader, settings: Settings, keep_on: bool) -> int:
    try:
        async with aclosing(_pages(reader, keep_on)) as pages:
            if settings.interactive:
                await _show_live(pages)
            else:
                await _show_changes(pages, settings)
    except asyncio.CancelledError:
        raise Interrupted("stopped watching; the runs are not affected") from None
    return OK


async def _pages(reader: Reader, keep_on: bool) -> AsyncGenerator[Sequence[RunLine], None]:
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


async def _show_live(pages: AsyncGenerator[Sequence[RunLine], None]) -> None:
    with Live(Text(""), console=console(), refresh_per_second=8) as live:
        async for rows in pages:
            live.update(_picture(rows))


def _picture(rows: Sequence[RunLine]) -> RenderableType:
    made = table(*ROW_TITLES)
    for row in rows:
        made.add_row(*row_cells(row))
    return made


async def _show_changes(pages: AsyncGenerator[Sequence[RunLine], None], settings: Settings) -> None:
    shown: dict[str, RunLine] = {}
    async for rows in pages:
        for row in reversed(rows):
            if shown.get(row.run_id) != row:
                shown[row.run_id] = row
                _show_change(row, settings)


def _show_change(row: RunLine, settings: Settings) -> None:
    if settings.as_json:
        print_json_line(row_json(row))
    else:
        say("  ".join(str(cell) for cell in row_cells(row)))

"""Commands that remove finished runs: what is old, and what one person did."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import shell
from holdfast.cli.shell import FAILED, OK, Settings, optional

if TYPE_CHECKING:
    from holdfast.model.rows import RunRow
    from holdfast.views.housekeeping import Keeper, Swept, Why


def register(group: typer.Typer) -> None:
    shell.register(group, "retention", retention, distant=True)
    shell.register(group, "erase", erase, distant=True)


_Export = Annotated[
    Path | None,
    optional("--export", "FILE", "Write the runs down first, as JSON Lines, in a new file."),
]
_Yes = Annotated[bool, typer.Option("--yes", help="Remove them without asking.")]
_DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only list what would go; it may be in use meanwhile.")
]
_SHOWN = 20


async def retention(
    settings: Settings,
    older_than: Annotated[
        str | None,
        optional("--older-than", "TIME", "How long ago they ended at least, as 90d or 12h."),
    ] = None,
    plan: Annotated[
        str | None, optional("--plan", "NAME", "Only runs of this plan or agent.")
    ] = None,
    status: Annotated[
        list[str] | None,
        optional(
            "--status",
            "NAME",
            "done, cancelled or error. Repeatable. Default: done and cancelled.",
        ),
    ] = None,
    export: _Export = None,
    dry_run: _DryRun = False,
    yes: _Yes = False,
    compact: Annotated[
        bool,
        typer.Option(
            "--compact",
            help="Write the file of a home anew, which gives back all space at once and takes the "
            "home meanwhile. For large homes of earlier releases, once.",
        ),
    ] = False,
) -> int:
    """Remove finished runs for ever, and give their space back.

    Whole trees go, a run with all runs below it. What is waited for, or goes on, stays whatever is
    said. The audit keeps how much went, why, and a digest. With --url a server does it beside its
    work; without, the home is taken for this.
    """
    from holdfast.cli.commands.tokens import read_duration
    from holdfast.views.housekeeping import DAY, FINISHED, RETENTION, SETTLED, Why, all_finished

    if compact and settings.server is not None:
        raise typer.BadParameter("--compact takes the home: stop the server, and leave --url out.")
    if older_than is None and not compact:
        raise typer.BadParameter("--older-than says how old they must be, as 90d.")
    wrong = sorted({*(status or ())} - FINISHED)
    if wrong:
        raise typer.BadParameter(f"--status {wrong[0]}: done, cancelled or error are finished.")
    if older_than is not None:
        days = read_duration(older_than, "--older-than", least=0) / DAY
        statuses = frozenset(status) if status else SETTLED
        told = {"older_than_days": days, "statuses": sorted(statuses)}
        detail = told if plan is None else {**told, "plan": plan}
        async with _keeper(settings, to_write=not dry_run) as keeper:
            found = await all_finished(keeper, _finished(days, plan, statuses))
            why = Why(RETENTION, detail=detail)
            code = await _remove(settings, keeper, found, why, export, dry_run=dry_run, yes=yes)
        if code != OK or not compact or dry_run:
            return code
    return await _compact(settings) if compact else OK


async def erase(
    settings: Settings,
    name: Annotated[str, typer.Argument(metavar="NAME", help="As histories and tokens name them.")],
    export: _Export = None,
    dry_run: _DryRun = False,
    yes: _Yes = False,
) -> int:
    """Remove every finished run that a person started, or in which they answered or did anything.

    They go for ever, with their events, questions, snapshots and secrets. Runs that are not
    finished are named and stay: end them, then erase again. The audit stays, which has the name and
    no values. Backups hold what they held.
    """
    from holdfast.cli.terminal.plain import note
    from holdfast.views.housekeeping import ERASURE, Why, all_naming

    if not name.strip():
        raise typer.BadParameter("NAME is empty: say whose runs are to go.")
    async with _keeper(settings, to_write=not dry_run) as keeper:
        told = await all_naming(keeper, name)
        found = [row for row, whole in told if whole and row.status != "error"]
        living = [row for row, whole in told if not whole or row.status == "error"]
        for row in living:
            note(f"{row.run_id} ({row.name}) is {row.status} and stays: end it, then erase again")
        why = Why(ERASURE, name, person=name)
        code = await _remove(
            settings, keeper, found, why, export, dry_run=dry_run, yes=yes, living=living
        )
    return FAILED if living and code == OK else code


async def _remove(
    settings: Settings,
    keeper: Keeper,
    found: Sequence[RunRow],
    why: Why,
    export: Path | None,
    *,
    dry_run: bool,
    yes: bool,
    living: Sequence[RunRow] = (),
) -> int:
    from holdfast.cli.home_backend import as_this_user
    from holdfast.views.housekeeping import Swept, for_owner, sweep

    if not dry_run and not found:
        await keeper.reclaim()  # what an earlier one has left behind, which was interrupted
    if dry_run or not found:
        if settings.as_json and not dry_run:
            _say(settings, Swept(), None, living)
        else:
            _list(settings, found, living)
        return OK
    if not yes and not settings.interactive:
        raise typer.BadParameter(f"{len(found):,} runs would go for ever: say --yes, or --dry-run.")
    if not yes:
        _list(settings, found, living)
        if not typer.confirm(f"Remove these {len(found):,} for ever?"):
            return FAILED
    with ExitStack() as stack:
        stack.enter_context(as_this_user())
        file = None if export is None else stack.enter_context(for_owner(export))
        roots = [row.run_id for row in found]
        swept = await sweep(keeper, roots, why, file, _shown(settings))
    _say(settings, swept, export, living)
    return OK


def _list(settings: Settings, found: Sequence[RunRow], living: Sequence[RunRow]) -> None:
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import print_table, say
    from holdfast.views.stories.text import clock, visible

    if settings.as_json:
        print_json({"would_remove": _told(found), "stay": _told(living)})
        return
    if not found:
        say("there is nothing to remove")
        return
    print_table(
        ("run", "of", "status", "since"),
        [
            (row.run_id, visible(row.name), row.status, clock(row.updated_at, date=True))
            for row in found[:_SHOWN]
        ],
    )
    more = f", {len(found) - _SHOWN:,} of them not shown" if len(found) > _SHOWN else ""
    say(f"{len(found):,} runs with all below them would go{more}")


def _told(rows: Sequence[RunRow]) -> list[dict[str, Any]]:
    return [{"run_id": row.run_id, "name": row.name, "status": row.status} for row in rows]


def _say(settings: Settings, swept: Swept, export: Path | None, living: Sequence[RunRow]) -> None:
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.screen import say

    told = {"trees": swept.trees, "runs": swept.runs, "records": swept.records}
    if settings.as_json:
        file = None if export is None else str(export)
        print_json({**told, "left": [*swept.left], "export": file, "stay": _told(living)})
        return
    say(f"{swept.runs:,} runs are gone, with {swept.records:,} events")
    if export is not None:
        say(f"  {export} has them")
    for run_id in swept.left[:_SHOWN]:
        say(f"  {run_id} is in use again and stays")


async def _compact(settings: Settings) -> int:
    from holdfast.cli.home_reader import journal_path
    from holdfast.cli.terminal.screen import say
    from holdfast.views.backups import file_of
    from holdfast.views.housekeeping import compacted

    path = file_of(journal_path(settings))
    await compacted(path)
    if not settings.as_json:
        say(f"{path} is compacted")
    return OK


def _finished(days: float, plan: str | None, statuses: frozenset[str]) -> Any:
    import time

    from holdfast.views.housekeeping import DAY, Finished

    return Finished(time.time() - days * DAY, plan, statuses)


@asynccontextmanager
async def _keeper(settings: Settings, *, to_write: bool) -> AsyncIterator[Keeper]:
    if settings.server is not None:
        from holdfast.cli.server_backend import connected
        from holdfast.cli.server_keeper import ServerKeeper

        async with connected(settings.server) as client:
            yield ServerKeeper(client)
        return
    from holdfast.cli.home_reader import journal_path
    from holdfast.views.housekeeping import home_keeper

    async with home_keeper(journal_path(settings), to_write=to_write) as keeper:
        yield keeper


def _shown(settings: Settings) -> Any:
    from holdfast.cli.terminal.counting import counted

    show = counted(settings)
    return lambda done, total: show("trees removed", done, total)

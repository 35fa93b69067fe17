"""Copies of a whole journal from a home into a database in PostgreSQL, or the other way.

The source is not used meanwhile. The target is empty, or an unfinished copy of the same source,
which is gone on with. Until everything is there, and verified, no process opens it.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from holdfast.errors import CallerError, JournalDamaged, JournalUnavailable, OperatorError
from holdfast.i18n.message import msg
from holdfast.journal import sqlite_transfer
from holdfast.journal.home import DATABASE
from holdfast.journal.port import Journal
from holdfast.journal.reading import refuse_empty
from holdfast.journal.shared import SharedJournal
from holdfast.journal.transfer import Progress, Source, Standing, Target, transfer, unlike
from holdfast.journal.vault import KEY_FILE, KEY_VARIABLE, Vault, key_source
from holdfast.journal.vault import KIND as SECRET
from holdfast.runtime.clock import SystemClock
from holdfast.views.homes import Place, place_name, reading, writing
from holdfast.views.integrity import Report, examined

WOKEN_AT_ONCE: Final = 10_000
_URLS: Final = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class Copied:
    """What came of a copy: how many rows of each kind went over just now, how it stands, how many
    runs go on by themselves there; and where it was verified, what was read."""

    source: str
    target: str
    rows: Mapping[str, int]
    standing: Standing
    active: int
    report: Report | None


def place_named(name: str) -> Place:
    """A home's journal, or the URL of a database."""
    if name.startswith(_URLS):
        return name
    if "://" in name:
        raise CallerError(
            msg(
                "{name} is neither a home's directory nor the address of a database, which "
                "begins with postgresql://",
                name=name.partition("://")[0] + "://…",
            )
        )
    return Path(name) / DATABASE


async def copy(source: Place, target: Place, shown: Progress, *, verify: bool = True) -> Copied:
    _refuse_alike(source, target)
    _refuse_keys(source, target)
    async with AsyncExitStack() as stack:
        read = await stack.enter_async_context(_source(source))
        standing = await read.standing()
        written = await stack.enter_async_context(_target(target))
        await _confirm_key(target)
        try:
            rows = await transfer(read, written, standing, shown)
            report = await _verified(read, written, target, shown) if verify else None
            await read.confirm(standing)
            active = await _wake(target)
            await written.finish(standing)
        except JournalUnavailable as error:
            raise JournalUnavailable(f"{error} {unfinished(target)}") from error
    return Copied(place_name(source), place_name(target), rows, standing, active, report)


def unfinished(target: Place) -> str:
    """What becomes of a copy that was interrupted."""
    return msg(
        "The copy in {target} is unfinished and cannot be used: the same command goes on with it, "
        "or remove it.",
        target=_of_home(target),
    )


def _of_home(place: Place) -> str:
    return str(place.parent) if isinstance(place, Path) else place_name(place)


def _refuse_alike(source: Place, target: Place) -> None:
    if isinstance(source, Path) and isinstance(target, Path):
        raise CallerError(
            msg(
                "both are homes: `holdfast backup` and `holdfast restore` make one of another, "
                "also while it is in use"
            )
        )
    if isinstance(source, str) and isinstance(target, str):
        raise CallerError(
            msg(
                "both are databases in PostgreSQL, whose own tools copy them: `pg_dump` and "
                "`pg_restore`"
            )
        )
    if isinstance(source, Path):
        refuse_empty(source)


def _refuse_keys(source: Place, target: Place) -> None:
    """The key of secrets stays the same, and a database has it from the variable only."""
    home = source if isinstance(source, Path) else cast(Path, target)
    file = home.with_name(KEY_FILE)
    key = os.environ.get(KEY_VARIABLE)
    if file.exists() and key is None:
        raise OperatorError(
            msg(
                "the secrets of this home are sealed with {file}, and a database takes the key "
                'from {variable} only: `export {variable}="$(cat {file})"`, keep it safe, and '
                "give it to every server and worker",
                file=str(file),
                variable=KEY_VARIABLE,
            )
        )
    if file.exists() and key is not None and file.read_text(encoding="utf-8").split() != [key]:
        raise OperatorError(
            msg(
                "{variable} is not the key in {file}: set it with "
                '`export {variable}="$(cat {file})"`; or if this home was always served with the '
                "variable, move that file away",
                file=str(file),
                variable=KEY_VARIABLE,
            )
        )
    if key is None:
        raise OperatorError(
            msg(
                "a database needs {variable}, the same for every server and worker, and it is not "
                "set here: `openssl rand -base64 32` prints one. Keep it safe: what is sealed with "
                "it opens with no other",
                variable=KEY_VARIABLE,
            )
        )


@asynccontextmanager
async def _source(place: Place) -> AsyncIterator[Source]:
    if isinstance(place, Path):
        async with writing(place) as journal, sqlite_transfer.opened_source(place) as source:
            await _check_secrets(journal)
            yield source
        return
    from holdfast.journal.postgres_transfer import opened_source, refuse_use

    await refuse_use(place)
    async with reading(place) as journal:
        await _check_secrets(journal)
        await cast(SharedJournal, journal).seal()
    async with opened_source(place) as source:
        yield source


@asynccontextmanager
async def _target(place: Place) -> AsyncIterator[Target]:
    if isinstance(place, Path):
        async with sqlite_transfer.opened_target(place) as target:
            yield target
        return
    from holdfast.journal.postgres_migrations import migrate
    from holdfast.journal.postgres_transfer import opened_target

    await migrate(place)
    async with opened_target(place) as database:
        yield database


async def _check_secrets(journal: Journal) -> None:
    """Every secret opens with the key that is set here."""
    clock = SystemClock()
    vault = Vault(journal, key_source(journal), clock)
    await vault.confirm()
    for one in await journal.all_kept(SECRET, clock.now()):
        await vault.open([one.key], json.loads(one.body)["root_id"])


async def _confirm_key(target: Place) -> None:
    """From now on a database takes no other key."""
    if isinstance(target, str):
        async with reading(target, unfinished=True) as journal:
            await Vault(journal, key_source(journal), SystemClock()).confirm()


async def _verified(source: Source, target: Target, place: Place, shown: Progress) -> Report:
    different = await unlike(source, target, shown)
    async with reading(place, unfinished=True) as journal:
        report = await examined(
            journal,
            lambda done, total: shown("runs read", done, total),
            lambda done, total: shown("runs replayed", done, total),
        )
    for name in different:
        report.found("copy", name, "is not what the source holds")
    if report.findings:
        first = report.findings[0]
        raise JournalDamaged(
            msg(
                "the copy is not sound in {count} places, the first in {what} {name}: {problem}. "
                "It stays unfinished: see `holdfast doctor --integrity` on the source. If that "
                "tells the same, `--no-verify` takes it as it is; if not, remove the copy",
                count=len(report.findings),
                what=first.what,
                name=first.name,
                problem=first.problem,
            )
        )
    return report


async def _wake(target: Place) -> int:
    """Have what goes on by itself driven there, where that takes jobs; how many runs that is."""
    async with reading(target, unfinished=True) as journal:
        if journal.shared:
            while await cast(SharedJournal, journal).wake_forgotten(WOKEN_AT_ONCE):
                pass
        return len(await journal.active_runs())


def to_json(copied: Copied) -> dict[str, Any]:
    report = copied.report
    return {
        "source": copied.source,
        "target": copied.target,
        "rows": dict(copied.rows),
        "runs": copied.standing.runs,
        "last_commit": copied.standing.last_commit,
        "audit_head": copied.standing.audit_head,
        "active_runs": copied.active,
        "verified": report is not None,
        "read": dict(report.counts) if report is not None else {},
    }

"""Removes runs from SQLite, inside a transaction that the committer owns.

First the rows go, all at once: from then on there is no such run. Its records follow in stretches
of a bounded size, then the pages of the file that nothing is in any more. What is deleted is
overwritten (`secure_delete`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from holdfast.journal import database
from holdfast.journal.append_writer import AppendWriter, attach, locate
from holdfast.journal.database import Transaction
from holdfast.journal.port import Attached, Removal, split_run_id
from holdfast.journal.rows import load_queries
from holdfast.model.run import FINISHED

_SQL = load_queries("sqlite_removal.sql")

RECORDS: Final = 200
PAGES: Final = 32
KEPT_PAGES: Final = 256
"""How many records, or pages of the file, go in one transaction; and how many free pages are kept
for what is written next."""

_INCREMENTAL: Final = 2

Given = tuple[AppendWriter, Sequence[Removal], Attached]


def remove(transaction: Transaction, given: Given) -> list[str]:
    """The roots of the trees that may not go; nothing is changed where there are any."""
    appends, removals, attached = given
    appends.flush(transaction)
    refused = [next(iter(one.versions)) for one in removals if not _may_go(transaction, one)]
    if refused:
        return refused
    transaction.execute("PRAGMA secure_delete = ON").fetchall()
    dropped = [name for one in removals for name in one.dropped]
    attach(transaction, replace(attached, dropped=[*attached.dropped, *dropped]))
    for removal in removals:
        _remove(transaction, appends, removal)
    return []


def reclaim(transaction: Transaction, appends: AppendWriter) -> bool:
    """Some of what is left to do; whether there is more."""
    appends.flush(transaction)
    transaction.execute("PRAGMA secure_delete = ON").fetchall()
    left = RECORDS
    while rows := transaction.execute(_SQL["first_removed"]).fetchall():
        if left <= 0:
            return True
        [[run]] = rows
        gone = _changed(transaction, "remove_placed", {"run": run, "limit": left})
        left -= gone
        if left > 0:
            left -= 1 + _changed(transaction, "remove_tail", {"run": run})
            transaction.execute(_SQL["end_removed"], (run,))
    return left < RECORDS or _shrink(transaction)


def compact(transaction: Transaction, appends: AppendWriter) -> None:
    """Outside of any transaction, which what must not block always is when it begins."""
    assert not transaction.begun
    assert not appends.gathered
    database.compact(transaction.connection)


def _may_go(transaction: Transaction, removal: Removal) -> bool:
    root_id = next(iter(removal.versions))
    if transaction.execute(_SQL["is_asking"], (root_id,)).fetchall():
        return False
    return all(
        _is_finished(transaction, run_id, version, removal)
        for run_id, version in removal.versions.items()
    )


def _is_finished(transaction: Transaction, run_id: str, version: int, removal: Removal) -> bool:
    rows = transaction.execute(_SQL["run"], (run_id,)).fetchall()
    if not rows or locate(transaction, run_id) & 0xFFFFFFFF != version:
        return False
    [[_, parent_id, _, status, active, wake_at]] = rows
    is_root = run_id == next(iter(removal.versions))
    if active or wake_at is not None or status not in FINISHED or (parent_id is None) != is_root:
        return False
    children = transaction.execute(_SQL["children"], (run_id,)).fetchall()
    if not all(child in removal.versions for (child,) in children):
        return False
    return not transaction.execute(_SQL["is_told"], {"run_id": run_id}).fetchall()


def _remove(transaction: Transaction, appends: AppendWriter, removal: Removal) -> None:
    root_id = next(iter(removal.versions))
    if appends.questions.kept:
        for status, kind, count in transaction.execute(_SQL["questions"], (root_id,)).fetchall():
            leave = partial(appends.questions.leave, (status, kind), count)
            appends.moves.append(leave)
    transaction.execute(_SQL["remove_questions"], (root_id,))
    for run_id in removal.versions:
        [[run, _, kind, status, *_]] = transaction.execute(_SQL["run"], (run_id,)).fetchall()
        if appends.runs.kept:
            appends.moves.append(partial(appends.runs.leave, (kind, status), 1))
        transaction.execute(_SQL["remove_snapshot"], (run,))
        transaction.execute(_SQL["remove_run"], (run,))
        transaction.execute(_SQL["note_removed"], (run,))
        appends.forget_run(run_id)
    series, number = split_run_id(root_id)
    if number is not None:
        transaction.execute(_SQL["note_number"], (series, number))


def _shrink(transaction: Transaction) -> bool:
    """Give some free pages back to the file system; whether there are more."""
    [[mode]] = transaction.execute("PRAGMA auto_vacuum").fetchall()
    [[free]] = transaction.execute("PRAGMA freelist_count").fetchall()
    surplus = free - KEPT_PAGES
    if mode != _INCREMENTAL or surplus <= 0:
        return False
    count = min(surplus, PAGES)
    for _ in range(count):
        # With a larger number Python would take its first step only, which frees one page.
        transaction.execute("PRAGMA incremental_vacuum(1)")
    return bool(surplus > count)


def _changed(transaction: Transaction, name: str, parameters: dict[str, Any]) -> int:
    before = transaction.connection.total_changes
    transaction.execute(_SQL[name], parameters)
    # A record and its place; one without a place counts as half a record, which is no matter.
    return (transaction.connection.total_changes - before + 1) // 2

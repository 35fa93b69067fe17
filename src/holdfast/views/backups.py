"""Backups of a home: made while its process goes on, and put back; both are verified by replay.

A backup is a directory: `holdfast.db`, `manifest.json`, and `secret.key` where that was asked for.
It is written beside its place and renamed, so that a backup with that name is whole.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from holdfast.errors import CallerError, JournalDamaged, NotAllowed, NotFound, OperatorError
from holdfast.i18n.message import msg
from holdfast.journal.backup import copy, copy_file, sha256_of
from holdfast.journal.home import DATABASE, make_directory, sync_directory
from holdfast.journal.reading import ReadingJournal, refuse_empty
from holdfast.journal.vault import KEY_FILE, KEY_VARIABLE
from holdfast.journal.vault import KIND as SECRET
from holdfast.views.homes import Place, journal_path, reading
from holdfast.views.integrity import Report, examined

if TYPE_CHECKING:
    from holdfast.app import Holdfast

MANIFEST: Final = "manifest.json"
FORMAT: Final = 1

FOREIGN: Final = msg(
    "this journal is kept in PostgreSQL, whose own tools back it up and put it back: "
    '`pg_dump --format=custom --file=holdfast.dump "$HOLDFAST_DATABASE"` and '
    '`pg_restore --dbname="$HOLDFAST_DATABASE" holdfast.dump`, or pg_basebackup with the archive '
    "of the log; then `holdfast doctor --integrity` verifies what is there"
)
NO_FILE: Final = msg("this journal is kept in memory, and cannot be backed up")

Shown = Callable[[str, int, int], None]
"""Hears what is being done, and how much of how much of it is."""

Fetch = Callable[[Path, Shown], Awaitable[None]]
"""Writes a copy of the journal into a file."""


@dataclass(frozen=True, slots=True)
class Made:
    """A backup, what it says of itself, and what of it is damaged, as the home is."""

    place: Path
    manifest: Mapping[str, Any]
    report: Report


def copied_from(database: Path) -> Fetch:
    """From a home on this machine, whichever process has it."""

    async def fetch(target: Path, shown: Shown) -> None:
        refuse_empty(database)
        copy(database, target, lambda done, total: shown("pages copied", done, total))

    return fetch


async def make(fetch: Fetch, target: Path, key: Path | None, *, keyed: str, shown: Shown) -> Made:
    """A backup at `target`, which must not be there yet; `key` is a secret key that goes along,
    and `keyed` what the manifest says of it."""
    _refuse_target(target)
    with _draft_of(target) as draft:
        database = draft / DATABASE
        await fetch(database, shown)
        report, found = await _verified(database, shown)
        if key is not None:
            _copy_key(key, draft)
        manifest = {
            "format": FORMAT,
            "holdfast": version("holdfast"),
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "bytes": database.stat().st_size,
            "sha256": sha256_of(database),
            **found,
            "key": keyed,
            "sound": not report.findings,
        }
        _write(draft / MANIFEST, json.dumps(manifest, indent=2) + "\n")
    return Made(target, manifest, report)


async def restore(source: Path, home: Path, shown: Shown) -> Mapping[str, Any]:
    """Make a home of a backup; its manifest. Until everything is verified there is no home."""
    manifest = read_manifest(source)
    _refuse_home(home)
    with _draft_of(home) as draft:
        database = draft / DATABASE
        digest = copy_file(
            source / DATABASE, database, lambda done, total: shown("bytes copied", done, total)
        )
        if digest != manifest["sha256"]:
            raise JournalDamaged(
                f"{source / DATABASE} has changed since the backup was made: take another backup."
            )
        report, found = await _verified(database, shown)
        if report.findings:
            first = report.findings[0]
            raise JournalDamaged(
                f"{source} is damaged in {len(report.findings)} places, the first in {first.what} "
                f"{first.name}: {first.problem}. Nothing was restored: take another backup."
            )
        for name, value in found.items():
            if manifest.get(name) != value:
                raise JournalDamaged(
                    f"{source}: its {name} is not what {MANIFEST} says. Nothing was restored: take "
                    "another backup."
                )
        if (source / KEY_FILE).exists():
            _copy_key(source / KEY_FILE, draft)
        _refuse_home(home)
    return manifest


def read_manifest(source: Path) -> Mapping[str, Any]:
    try:
        manifest = json.loads((source / MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(
            f"{source} is no backup: it has no {MANIFEST}. `holdfast backup` makes one."
        ) from None
    except (OSError, ValueError) as error:
        raise OperatorError(
            f"{source / MANIFEST} cannot be read: {error}. Take another backup."
        ) from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise CallerError(f"{source} was made by another Holdfast: restore it with that one")
    return manifest


def key_of(database: Path) -> Path | None:
    """The file with the home's key; None where none was ever needed, or it is a variable's."""
    file = database.with_name(KEY_FILE)
    return file if file.exists() and KEY_VARIABLE not in os.environ else None


def key_is_variable() -> bool:
    return KEY_VARIABLE in os.environ


def _refuse_target(target: Path) -> None:
    if target.exists():
        raise NotAllowed(f"{target} is there already: name a backup that is not")


def _refuse_home(home: Path) -> None:
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise NotAllowed(
            f"{home} is not empty, and a restore changes no home that is there: name another with "
            "--home, or move it away first"
        )


async def _verified(database: Path, shown: Shown) -> tuple[Report, Mapping[str, Any]]:
    """Everything read and replayed; and what a manifest tells of it."""
    async with reading(database) as journal:
        report = await examined(
            journal,
            lambda done, total: shown("runs read", done, total),
            lambda done, total: shown("runs replayed", done, total),
        )
        return report, await _told(journal, report)


async def _told(journal: ReadingJournal, report: Report) -> Mapping[str, Any]:
    entries = await journal.audit(max(report.counts.get("audit entries", 0) - 1, 0), limit=1)
    return {
        "schema": journal.schema,
        "counts": dict(report.counts),
        "last_commit": await journal.last_commit(),
        "audit_head": entries[-1].digest if entries else "",
        "sealed_secrets": len(await journal.all_kept(SECRET, 0.0)),
    }


@contextmanager
def _draft_of(place: Path) -> Iterator[Path]:
    """A directory beside the place, which becomes it at the end; else it is as if never made."""
    place = place.absolute()
    make_directory(place.parent)
    draft = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        yield draft
        sync_directory(draft)
        draft.rename(place)
        sync_directory(place.parent)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _copy_key(key: Path, directory: Path) -> None:
    _write(directory / KEY_FILE, key.read_text(encoding="utf-8"))


def _write(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as written:
        written.write(text)
        written.flush()
        os.fsync(written.fileno())


def journal_copy(app: Holdfast) -> Path:
    """A copy of an open application's journal, beside it and for its owner only; it blocks, and
    may run in any thread."""
    path = journal_path(app)
    if path is None:
        raise NotAllowed(FOREIGN if app.journal.shared else NO_FILE)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".copy", dir=path.parent)
    os.close(descriptor)
    try:
        copy(path, Path(name))
    except BaseException:
        Path(name).unlink()
        raise
    return Path(name)


def file_of(place: Place) -> Path:
    """Where a home's journal lies; OperatorError for PostgreSQL, which has tools of its own."""
    if isinstance(place, str):
        raise OperatorError(FOREIGN)
    return place

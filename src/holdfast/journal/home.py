"""A home belongs to one process at a time.

The right to it is an advisory lock (flock) on a file beside the database: the
kernel takes it back when its holder dies, however it dies, so a stale lock cannot
exist. What the file says is only for the message that a second process shows.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path

from holdfast.errors import HomeBusy, OperatorError
from holdfast.settings.sources import in_effect

DATABASE = "holdfast.db"
_COMMAND_LENGTH = 200


def default_home() -> Path:
    return Path(in_effect().value("home"))


def database_url() -> str:
    """The PostgreSQL database that the settings name, if they name one."""
    return in_effect().value("database") or ""


class HomeLock:
    """The lock on one database; harmless to release twice."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._file = database.with_name(database.name + ".lock")
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the home, or raise `HomeBusy` saying who has it."""
        descriptor = self._open()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, _signature(), 0)
        except BlockingIOError:
            os.close(descriptor)
            raise HomeBusy(self._holder()) from None
        except OSError as error:
            os.close(descriptor)
            raise OperatorError(
                f"{self._file} cannot be locked: {error.strerror}. "
                "Put the home on a local disk with free space."
            ) from error
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        try:
            return os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise OperatorError(
                f"{self._file} cannot be opened: {error.strerror}. "
                "Choose a home that this user may write to."
            ) from error

    def _holder(self) -> str:
        remedy = (
            "Wait for that process or stop it; "
            "`holdfast watch`, `inbox`, `runs` and `history` work meanwhile."
        )
        try:
            by = json.loads(self._file.read_text(encoding="utf-8"))
            who = f"process {by['pid']} ({by['command']}) on {by['host']} since {by['since']}"
            url = _announced_by(self._database, by["pid"])
        except (OSError, ValueError, LookupError, TypeError):
            who, url = "a process that has only just started", None
        if url is not None:
            remedy = f"It serves over HTTP: say `--url {url}` to go through it."
        return f"{self._database} is in use by {who}. {remedy}"


def announce(database: Path, url: str) -> Path:
    """Say where this process, which has the home, serves it; the file that says so."""
    place = _announcement(database)
    fresh = place.with_suffix(".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({"url": url, "pid": os.getpid()}, file)
    fresh.replace(place)
    return place


def _announced_by(database: Path, pid: int) -> str | None:
    """Where the holder of the home serves it; what a dead process left behind is not believed."""
    try:
        said = json.loads(_announcement(database).read_text(encoding="utf-8"))
        return str(said["url"]) if said["pid"] == pid else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _announcement(database: Path) -> Path:
    return database.with_name("server.json")


def make_directory(directory: Path) -> None:
    """Create a directory that survives a power cut, with all its parents."""
    missing = [place for place in (directory, *directory.parents) if not place.exists()]
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for place in missing:
            sync_directory(place.parent)
    except OSError as error:
        raise OperatorError(
            f"{directory} cannot be used as a home: {error.strerror}. "
            "Choose a directory that this user may create."
        ) from error


def make_file(path: Path) -> None:
    """See to it that the database is a file that may be written, readable by its owner only."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise OperatorError(
            f"{path} cannot be opened for writing: {error.strerror}. "
            "Give the path of a file that this user may write to."
        ) from error


def _signature() -> bytes:
    by = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "command": " ".join(sys.argv)[:_COMMAND_LENGTH],
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return json.dumps(by).encode()


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable: files created, files deleted."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise OperatorError(
            f"{directory} cannot be synced: {error.strerror}. Put the home on a local disk."
        ) from error

"""Group commit: many jobs in one transaction, and the rule for a commit that failed.

A job that fails, fails alone. Nearly always it is a conflict, found before the job
has changed a row, and nothing needs undoing; if one does fail half-way, the batch
starts again with a savepoint for every job, which costs a tenth more. So a job may
run twice and must do nothing but execute statements.

An error of the store fails the whole batch, for nobody knows what reached the disk:
after a crash the refused rows may still appear in the log. From then on the
committer is *suspended*: it refuses everything at once until a probe commit has
succeeded. The probe goes through the same connection on purpose. That connection
remembers where the last good commit ended, so the probe overwrites what the failed
one left; a fresh connection would believe the log, including pages that a failed
sync has left in the page cache only.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from holdfast.errors import HoldfastError
from holdfast.journal.append_writer import Scribe
from holdfast.journal.database import Connection, Transaction, explain
from holdfast.journal.statements import load_queries

Job: TypeAlias = Callable[[Transaction, Any], Any]
Write: TypeAlias = tuple[Job, Any]
"""A job, and what it is to write."""
Outcome: TypeAlias = tuple[Any, Exception | None]

PROBE_SECONDS = 0.2
"""How long a failed commit is left alone before the next probe."""

_PROBE = load_queries("sqlite_queries.sql")["probe"]


class Committer:
    """Owns the writing connection. Any thread may call, one at a time: the writer sees to that."""

    def __init__(self, connection: Connection, path: Path, scribe: Scribe) -> None:
        self._connection = connection
        self._transaction = Transaction(connection)
        self._path = path
        self._scribe = scribe
        self._flush = scribe.finish
        self.trouble: sqlite3.Error | None = None
        """Why it is suspended; None while it is not."""
        self._failed_at = 0.0
        self.epoch = 0
        self.commit_seconds = 0.0

    def refusal(self) -> HoldfastError | None:
        """Why nothing is accepted now; None when it is, or when a probe is due."""
        trouble = self.trouble  # the writing thread may clear it at any moment
        if trouble is None or self._probe_is_due():
            return None
        return explain(trouble, self._path)

    def commit(self, writes: Sequence[Write]) -> list[Outcome]:
        """Commit all writes together; one outcome each, in order."""
        if self.trouble is not None and not self._probe():
            return self._refuse(writes, self.trouble)
        began = time.perf_counter()
        try:
            outcomes = self._run_each(writes, self._flush)
            if self._transaction.begun:
                self._transaction.commit()
        except sqlite3.Error as error:
            return self._fail(writes, error)
        except BaseException:
            self._roll_back()
            raise
        if self._scribe.moves:
            self._scribe.committed()
        self.commit_seconds = time.perf_counter() - began
        return outcomes

    def prepare(self, writes: Sequence[Write]) -> list[Outcome]:
        """As much of it as does not wait for the disk; `finish` is the rest."""
        try:
            return self._run_each(writes, self._scribe.prepare)
        except sqlite3.Error as error:
            return self._fail(writes, error)
        except BaseException:
            self._roll_back()
            raise

    def finish(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Commit what was prepared with these outcomes."""
        began = time.perf_counter()
        try:
            if self._transaction.begun:
                self._transaction.commit()
        except sqlite3.Error as error:
            return self._fail(outcomes, error)
        except BaseException:
            self._roll_back()
            raise
        self._scribe.committed()
        self.commit_seconds = time.perf_counter() - began
        return outcomes

    def close(self) -> None:
        """Leave an empty log behind, if the disk lets us."""
        self._roll_back()
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._connection.close()

    def _run_each(
        self, writes: Sequence[Write], flush: Callable[[Transaction], None]
    ) -> list[Outcome]:
        """Without savepoints while every job that fails has failed before it changed a row."""
        connection, transaction, scribe = self._connection, self._transaction, self._scribe
        outcomes: list[Outcome] = []
        for job, given in writes:
            changes, values = connection.total_changes, len(scribe.gathered)
            try:
                outcomes.append((job(transaction, given), None))
            except sqlite3.OperationalError:
                raise
            except Exception as error:
                if connection.total_changes != changes or len(scribe.gathered) != values:
                    return self._run_each_apart(writes)
                outcomes.append((None, self._told(error)))
        try:
            flush(transaction)
        except sqlite3.OperationalError:
            raise
        except Exception:
            return self._run_each_apart(writes)
        return outcomes

    def _run_each_apart(self, writes: Sequence[Write]) -> list[Outcome]:
        """From the beginning, with a savepoint for every job."""
        transaction, scribe = self._transaction, self._scribe
        self._roll_back()
        outcomes: list[Outcome] = []
        for job, given in writes:
            transaction.execute("SAVEPOINT job")
            try:
                outcome: Outcome = job(transaction, given), None
                scribe.flush(transaction)
            except sqlite3.OperationalError:
                raise
            except Exception as error:
                transaction.execute("ROLLBACK TO job")
                scribe.forget()
                outcome = None, self._told(error)
            transaction.execute("RELEASE job")
            outcomes.append(outcome)
        scribe.prepare(transaction)
        return outcomes

    def _told(self, error: Exception) -> Exception:
        return explain(error, self._path) if isinstance(error, sqlite3.Error) else error

    def _probe_is_due(self) -> bool:
        return time.monotonic() >= self._failed_at + PROBE_SECONDS

    def _probe(self) -> bool:
        """Ends the trouble with a commit, if it is time to try one."""
        if not self._probe_is_due():
            return False
        try:
            self._roll_back()
            self._transaction.execute(_PROBE)
            self._transaction.commit()
        except sqlite3.Error as error:
            self._suspend(error)
        else:
            self.trouble = None
        return self.trouble is None

    def _suspend(self, error: sqlite3.Error) -> None:
        self._roll_back()
        self.trouble = error
        self._failed_at = time.monotonic()

    def _fail(self, writes: Sequence[Any], error: sqlite3.Error) -> list[Outcome]:
        self._suspend(error)
        self.epoch += 1
        return self._refuse(writes, error)

    def _refuse(self, writes: Sequence[Any], error: sqlite3.Error) -> list[Outcome]:
        return [(None, explain(error, self._path)) for _ in writes]

    def _roll_back(self) -> None:
        self._scribe.forget()
        self._transaction.roll_back()

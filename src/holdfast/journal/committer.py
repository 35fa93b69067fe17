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
from threading import Lock
from typing import Any, TypeAlias

from holdfast.errors import HoldfastError
from holdfast.journal.database import Connection, explain
from holdfast.journal.scribe import Scribe
from holdfast.journal.statements import load_queries

Job: TypeAlias = Callable[[Connection], Any]
Outcome: TypeAlias = tuple[Any, Exception | None]

PROBE_SECONDS = 0.2
"""How long a failed commit is left alone before the next probe."""

_PROBE = load_queries("sqlite_queries.sql")["probe"]


class Committer:
    """Owns the writing connection; any thread may call, one at a time commits."""

    def __init__(self, connection: Connection, path: Path, scribe: Scribe) -> None:
        self._connection = connection
        self._path = path
        self._scribe = scribe
        self._turn = Lock()
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

    def commit(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Commit all jobs together; one outcome each, in order."""
        with self._turn:
            self._probe_if_due()
            if self.trouble is not None:
                return self._refuse(jobs, self.trouble)
            try:
                return self._transact(jobs)
            except sqlite3.Error as error:
                self._suspend(error)
                self.epoch += 1
                return self._refuse(jobs, error)
            except BaseException:
                self._roll_back()
                raise

    def close(self) -> None:
        """Leave an empty log behind, if the disk lets us."""
        with self._turn:
            self._roll_back()
            with suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._connection.close()

    def _transact(self, jobs: Sequence[Job]) -> list[Outcome]:
        began = time.perf_counter()
        self._connection.execute("BEGIN IMMEDIATE")
        outcomes = self._run_one(jobs[0]) if len(jobs) == 1 else self._run_each(jobs)
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")
        if self._scribe.moves:
            self._scribe.committed()
        self.commit_seconds = time.perf_counter() - began
        return outcomes

    def _run_one(self, job: Job) -> list[Outcome]:
        """A lone job needs no savepoint: what it spoils is the whole transaction."""
        outcome = self._attempt_whole(job)
        if outcome[1] is not None:
            self._roll_back()
        return [outcome]

    def _run_each(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Without savepoints while every job that fails has failed before it changed a row."""
        connection, gathered = self._connection, self._scribe.gathered
        outcomes = []
        for job in jobs:
            before = connection.total_changes, len(gathered)
            outcome = self._attempt(job)
            if outcome[1] is not None and (connection.total_changes, len(gathered)) != before:
                return self._run_each_apart(jobs)
            outcomes.append(outcome)
        flushed = self._attempt(self._scribe.flush)
        return outcomes if flushed[1] is None else self._run_each_apart(jobs)

    def _run_each_apart(self, jobs: Sequence[Job]) -> list[Outcome]:
        """From the beginning, with a savepoint for every job."""
        self._roll_back()
        self._connection.execute("BEGIN IMMEDIATE")
        outcomes = []
        for job in jobs:
            self._connection.execute("SAVEPOINT job")
            outcome = self._attempt_whole(job)
            if outcome[1] is not None:
                self._connection.execute("ROLLBACK TO job")
                self._scribe.forget()
            self._connection.execute("RELEASE job")
            outcomes.append(outcome)
        return outcomes

    def _attempt_whole(self, job: Job) -> Outcome:
        """With everything that it has gathered."""
        outcome = self._attempt(job)
        if outcome[1] is not None:
            return outcome
        flushed = self._attempt(self._scribe.flush)
        return outcome if flushed[1] is None else flushed

    def _attempt(self, job: Job) -> Outcome:
        try:
            return job(self._connection), None
        except sqlite3.OperationalError:
            raise
        except sqlite3.Error as error:
            return None, explain(error, self._path)
        except Exception as error:
            return None, error

    def _probe_is_due(self) -> bool:
        return time.monotonic() >= self._failed_at + PROBE_SECONDS

    def _probe_if_due(self) -> None:
        if self.trouble is None or not self._probe_is_due():
            return
        try:
            self._roll_back()
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute(_PROBE)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._suspend(error)
        else:
            self.trouble = None

    def _suspend(self, error: sqlite3.Error) -> None:
        self._roll_back()
        self.trouble = error
        self._failed_at = time.monotonic()

    def _refuse(self, jobs: Sequence[Job], error: sqlite3.Error) -> list[Outcome]:
        return [(None, explain(error, self._path)) for _ in jobs]

    def _roll_back(self) -> None:
        self._scribe.forget()
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

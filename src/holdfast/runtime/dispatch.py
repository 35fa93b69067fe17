"""The dispatcher: Procrastinate's worker gives this process runs to drive.

A drive job names a run; the journal defers it with the append that makes the run need a driver. The
worker fetches jobs, beats its heart, and gives a job back when its driver is gone. What it does by
itself is only this:

* It waits for a database that is away, however long that takes (`PatientConnector`).
* A job is finished or returned only as the attempt that it was fetched as (`GuardedJobs`): a worker
  that was thought dead must not end what another has taken over.
* Jobs of workers whose heart has stopped are returned (`_rescue`), though not before the database
  has been there for as long as it takes to be sure: after it was away every heart has stopped.
* A run that a worker refuses is offered to each other that is alive. Those that poll in step would
  have it in the same order each time, so how long it waits is a matter of chance, and so is when
  each polls again.
* A job that this worker holds and does not know of (its fetching was not acknowledged, or the birth
  that should have come with it has failed) is returned too.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final, Protocol, Self, TypeVar

import psycopg
from procrastinate import App, JobContext, PsycopgConnector, RetryDecision, exceptions
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager
from procrastinate.retry import BaseRetryStrategy
from procrastinate.worker import Worker
from psycopg_pool import AsyncConnectionPool

from holdfast.errors import HoldfastError, JournalUnavailable
from holdfast.journal.condition import MOST_SKEW
from holdfast.journal.port import Drive
from holdfast.journal.postgres_database import is_sound, session
from holdfast.journal.rows import load_queries
from holdfast.journal.shared import SharedJournal
from holdfast.runtime.clock import ClockWatch
from holdfast.runtime.drives import HandedBack, Refused

log = logging.getLogger("holdfast")

QUEUE: Final = "drive"
TASK: Final = "holdfast.drive"

HEARTBEAT_SECONDS: Final = 2.0
STALLED_SECONDS: Final = 8.0
"""A driver that was not heard of for so long is gone."""

POLL_SECONDS: Final = 1.0
FORGOTTEN_SECONDS: Final = 10.0
WOKEN_AT_ONCE: Final = 500
RETRY_SECONDS: Final = 0.5
WAIT_SECONDS: Final = 5.0
RECONNECT_SECONDS: Final = 1.0
"""For how long a connection is waited for before it is asked for again, and for how long the pool
goes on trying to make one: its tries become rarer, so that after an hour's absence of the database
it would find it minutes later."""

LONGEST_DELAY: Final = 600.0

MOST_TRIES: Final = 5
"""How often a run is offered at least before it is driven by a worker that lacks what it needs; and
not before each that is alive has refused it."""

OFFER_SECONDS: Final = 4.0
"""How long it waits at most while there are workers that have not been asked."""

_FOREVER: Final = 30 * 24 * 3600.0

_SQL: Final = load_queries("dispatch_queries.sql")

T = TypeVar("T")


class Driver(Protocol):
    """What drives runs: the engine."""

    async def drive(self, run_id: str, drive: Drive, *, anyway: bool = False) -> None: ...

    def holds(self, job: int) -> bool: ...


async def _all(wake: Callable[[int], Awaitable[int]]) -> None:
    """Wake runs, a few in each transaction, until there are no more."""
    while await wake(WOKEN_AT_ONCE) == WOKEN_AT_ONCE:
        pass


class _Connection(psycopg.AsyncConnection[Any]):
    """Commits by itself, and relies on no setting of the database."""

    @classmethod
    async def connect(cls, conninfo: str = "", **given: Any) -> Self:
        connection = await super().connect(conninfo, **{**given, "autocommit": True})
        try:
            await connection.execute(session(), prepare=False)
        except BaseException:
            await connection.close()
            raise
        return connection


async def _be_sound(connection: psycopg.AsyncConnection[Any]) -> None:
    """The pool takes one that fails this back, and makes another only if this one is closed."""
    if not is_sound(connection):
        await connection.close()
        raise psycopg.OperationalError("the server has closed this connection")


class _Pool(AsyncConnectionPool[psycopg.AsyncConnection[Any]]):
    """Is open without a connection: a worker that begins just as the database goes away waits for
    it like any other. Looks at the socket before a connection is used; Procrastinate's would ask
    the server, which was every third statement of an idle worker."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{**given, "check": _be_sound})

    async def open(self, wait: bool = False, timeout: float = 0.0) -> None:
        await super().open()


class PatientConnector(PsycopgConnector):
    """Waits for a database that is away. `failed_at` is when it was last found so, `heard_at` when
    it last answered."""

    failed_at = heard_at = float("-inf")

    async def _patiently(self, query: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                found = await query()
            except exceptions.UniqueViolation:
                raise  # the database has said so: it is there
            except exceptions.ConnectorException as error:
                first, self.failed_at = self.heard_at > self.failed_at, time.monotonic()
                if not isinstance(error.__cause__, psycopg.OperationalError):
                    raise
                level = logging.WARNING if first else logging.INFO
                log.log(level, "the dispatcher waits for the database: %s", error.__cause__)
            else:
                self.heard_at = time.monotonic()
                return found
            await asyncio.sleep(RETRY_SECONDS)

    async def execute_query_async(self, query: Any, **arguments: Any) -> None:
        ask = super().execute_query_async
        return await self._patiently(lambda: ask(query, **arguments))

    async def execute_query_one_async(self, query: Any, **arguments: Any) -> dict[str, Any]:
        ask = super().execute_query_one_async
        return await self._patiently(lambda: ask(query, **arguments))

    async def execute_query_all_async(self, query: Any, **arguments: Any) -> list[dict[str, Any]]:
        ask = super().execute_query_all_async
        return await self._patiently(lambda: ask(query, **arguments))

    async def listen_notify(self, on_notification: Any, channels: Any) -> None:
        listen = super().listen_notify
        await self._patiently(lambda: listen(on_notification, channels))


class GuardedJobs(JobManager):
    """Ends and returns jobs only as the attempt that they were fetched as."""

    def __init__(
        self, connector: PatientConnector, registered: Callable[[int | None], None]
    ) -> None:
        super().__init__(connector)
        self._registered = registered

    async def register_worker(self) -> int:
        worker_id = await super().register_worker()
        self._registered(worker_id)
        return worker_id

    async def unregister_worker(self, worker_id: int) -> None:
        """What it still holds is done by others."""
        self._registered(None)
        for job_id, attempts in await self.held(worker_id):
            await self.give_back(job_id, attempts)
        await super().unregister_worker(worker_id)

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        await self.connector.execute_query_async(
            _SQL["finish_job"], id=job.id, attempts=job.attempts
        )

    async def retry_job(
        self, job: Job, retry_at: datetime | None = None, *given: Any, **more: Any
    ) -> None:
        assert job.id is not None
        delay = 0.0 if retry_at is None else (retry_at - datetime.now(UTC)).total_seconds()
        await self.give_back(job.id, job.attempts, delay)

    async def give_back(self, job_id: int, attempts: int, delay: float = 0.0) -> None:
        """Have a job done by another worker, by the database's clock so many seconds from now; one
        whose run has another job waiting is not needed any more."""
        held = {"id": job_id, "attempts": attempts}
        try:
            await self.connector.execute_query_async(_SQL["return_job"], **held, delay=delay)
        except exceptions.UniqueViolation:
            await self.connector.execute_query_async(_SQL["finish_job"], **held)

    async def held(self, worker_id: int) -> list[tuple[int, int]]:
        """The jobs that a worker holds, each with the attempt."""
        rows = await self.connector.execute_query_all_async(_SQL["held_jobs"], worker_id=worker_id)
        return [(row["id"], row["attempts"]) for row in rows]


class _Returned(BaseRetryStrategy):
    """A run that could not be driven to its end is driven again: soon, where only the database was
    away, and else ever more rarely."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision:
        delay = 0.0
        if isinstance(exception, HandedBack):
            delay = exception.delay
        elif isinstance(exception, JournalUnavailable):
            delay = RETRY_SECONDS
        elif not isinstance(exception, asyncio.CancelledError):
            delay = min(2.0 ** min(job.attempts, 20), LONGEST_DELAY)
        return RetryDecision(retry_at=datetime.now(UTC) + timedelta(seconds=delay))


class Dispatcher:
    """Drives runs of a journal in this process, until it is closed."""

    def __init__(
        self,
        journal: SharedJournal,
        url: str,
        driver: Driver,
        clock: Callable[[], float],
        most: int,
    ) -> None:
        self._journal = journal
        self._driver = driver
        self._now = clock
        self._most = most
        self._connector = PatientConnector(
            pool_factory=_Pool,
            conninfo=url,
            min_size=1,
            max_size=4,
            timeout=WAIT_SECONDS,
            reconnect_timeout=RECONNECT_SECONDS,
            connection_class=_Connection,
        )
        self._app = App(connector=self._connector)
        self._jobs = GuardedJobs(self._connector, self._registered)
        self._app.job_manager = self._jobs
        self._app.task(name=TASK, queue=QUEUE, pass_context=True, retry=_Returned())(self._drive)
        self._watch = ClockWatch()
        self._worker: Worker | None = None
        self._running: set[Drive] = set()
        """Each is ended by itself: the same job may be given to us again."""
        self._unknown: set[tuple[int, int]] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = False
        self.ready = asyncio.Event()
        """Set while runs are taken."""

    async def open(self) -> None:
        try:
            await self._connector.open_async()
        except BaseException:
            await self._connector.close_async()
            raise
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._work()), loop.create_task(self._look_after())]

    def drain(self) -> None:
        """Take no more runs."""
        self._closing = True
        self.ready.clear()
        if self._worker is not None:
            self._worker.stop()  # type: ignore[no-untyped-call]

    async def close(self) -> None:
        """Everything that was driven here has ended or was handed back; what does neither is left
        to whoever rescues the jobs of workers that are gone."""
        self.drain()
        working, looking = self._tasks
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
        await asyncio.wait((working,), timeout=STALLED_SECONDS)
        working.cancel()
        _, left = await asyncio.wait((working,), timeout=STALLED_SECONDS)
        if left:
            jobs = ", ".join(str(one.job) for one in self._running)
            log.warning(
                "left behind, for they do not end: the drives of jobs %s", jobs or "unknown"
            )
        await self._connector.close_async()

    @property
    def driving(self) -> int:
        return len(self._running)

    @property
    def is_heard(self) -> bool:
        """Whether its heart has beaten, or it has asked for runs, so lately that nobody takes it
        for gone."""
        return time.monotonic() - self._connector.heard_at < STALLED_SECONDS

    def _registered(self, worker_id: int | None) -> None:
        self._journal.worker_id = worker_id
        if worker_id is None:
            self.ready.clear()
        else:
            self.ready.set()

    async def _drive(
        self, context: JobContext, run_id: str, refused: Mapping[str, bool] | None = None
    ) -> None:
        job = context.job
        assert job.id is not None
        drive = Drive(job.id, job.attempts)
        self._running.add(drive)
        try:
            await self._drive_or_offer(run_id, drive)
        except HandedBack as back:
            log.info("%s", back, extra={"run": run_id})
            raise
        except Exception as error:
            level = logging.INFO if isinstance(error, JournalUnavailable) else logging.WARNING
            told = {"run": run_id}
            log.log(level, "run %s is to be driven again: %s", run_id, error, extra=told)
            raise
        finally:
            self._running.discard(drive)

    async def _drive_or_offer(self, run_id: str, drive: Drive) -> None:
        try:
            await self._driver.drive(run_id, drive)
        except Refused as back:
            others = await self._refuse(drive)
            if others or drive.attempt < MOST_TRIES:
                longest = min(back.delay, OFFER_SECONDS) if others else back.delay
                back.delay = longest * random.uniform(0.5, 1.0)  # noqa: S311
                raise
            await self._driver.drive(run_id, drive, anyway=True)

    async def _refuse(self, drive: Drive) -> bool:
        """Whether workers are alive that have not refused the run."""
        if self._journal.worker_id is None:
            return True
        told = await self._connector.execute_query_all_async(
            _SQL["refuse_job"],
            id=drive.job,
            attempts=drive.attempt,
            worker_id=self._journal.worker_id,
            seconds=STALLED_SECONDS,
        )
        return any(row["others"] for row in told)

    async def _work(self) -> None:
        """A worker that fails is replaced."""
        while not self._closing:
            self._worker = Worker(
                self._app,
                queues=[QUEUE],
                concurrency=self._most,
                fetch_job_polling_interval=POLL_SECONDS,
                install_signal_handlers=False,
                update_heartbeat_interval=HEARTBEAT_SECONDS,
                stalled_worker_timeout=_FOREVER,
                delete_jobs="always",
            )
            try:
                await self._worker.run()  # type: ignore[no-untyped-call]
            except Exception as error:
                log.warning("the dispatcher's worker is replaced: %s", error)
            self._registered(None)
            if not self._closing:
                await asyncio.sleep(RETRY_SECONDS)

    async def _look_after(self) -> None:
        """What a worker of Procrastinate's does not do by itself."""
        for turn in count(1):
            await asyncio.sleep(POLL_SECONDS)
            if self._worker is not None:
                out_of_step = random.uniform(0.5, 1.5)  # noqa: S311
                self._worker.fetch_job_polling_interval = POLL_SECONDS * out_of_step
            try:
                await self._look_around(turn)
            except HoldfastError as error:
                self._connector.failed_at = time.monotonic()
                log.info("the dispatcher waits for the journal: %s", error)
            except Exception:
                log.exception("the dispatcher could not look after its jobs")

    async def _look_around(self, turn: int) -> None:
        if await self._is_on_time(turn):
            await _all(lambda most: self._journal.wake_due(self._now(), most))
        if turn % (FORGOTTEN_SECONDS // POLL_SECONDS) == 0:
            await _all(self._journal.wake_forgotten)
        if turn % 2 == 0:
            await self._rescue()
            await self._return_unknown()

    async def _is_on_time(self, turn: int) -> bool:
        """Whether deadlines may be judged here: a clock that was set far ahead would end all."""
        if self._watch.moved <= MOST_SKEW:
            return True
        there = await self._connector.execute_query_one_async(_SQL["clock"])
        apart = abs(time.time() - there["seconds"])
        if apart <= MOST_SKEW:
            self._watch.accept()
            return True
        told = "no timers are taken: the clocks here and of the database are %.0f s apart"
        log.log(logging.DEBUG if turn % 10 else logging.WARNING, told, apart)
        return False

    async def _rescue(self) -> None:
        stalled = await self._jobs.get_stalled_jobs(
            queue=QUEUE, seconds_since_heartbeat=STALLED_SECONDS
        )
        if not stalled:
            return
        sure = STALLED_SECONDS + HEARTBEAT_SECONDS
        up = await self._connector.execute_query_one_async(_SQL["server_up_for"])
        if min(up["seconds"], time.monotonic() - self._connector.failed_at) < sure:
            return
        for job in stalled:
            if job.id is not None and Drive(job.id, job.attempts) not in self._running:
                told = "the driver of run %s is gone: another takes it over"
                log.warning(told, job.lock, extra={"run": job.lock})
                await self._jobs.give_back(job.id, job.attempts)

    async def _return_unknown(self) -> None:
        """Twice unknown: between two looks anything under way has come to its end."""
        worker_id = self._journal.worker_id
        if worker_id is None:
            return
        held = await self._jobs.held(worker_id)
        unknown = {one for one in held if not self._knows(*one)}
        for job_id, attempts in unknown & self._unknown:
            await self._jobs.give_back(job_id, attempts)
        self._unknown = unknown

    def _knows(self, job_id: int, attempts: int) -> bool:
        return Drive(job_id, attempts) in self._running or self._driver.holds(job_id)

"""What processes tell each other beside the journal: hints, and that jobs wait.

A notification inside the transaction of an append would have all commits wait for each other, so
they are sent afterwards, apart, and for no disk: one may be lost, and who needs what it told looks
from time to time. They are sent at once, and while some are on their way those that come
meanwhile are gathered; of jobs that wait one is told for all.

Listening needs a connection that is the same all the time, so it goes to `HOLDFAST_DATABASE_DIRECT`
where the database is reached through PgBouncer. PostgreSQL lists that connection by a name that
tells the process, so `doctor` sees who has the database open.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from typing import Final

from holdfast.errors import HoldfastError
from holdfast.journal.postgres_database import (
    Connection,
    Connections,
    DatabaseError,
    connect,
    load_statements,
)

log = logging.getLogger("holdfast")

_SQL: Final = load_statements("postgres_hints.sql")

RETRY_SECONDS: Final = 0.5
LOOK_SECONDS: Final = 5.0
"""How long a silent connection is trusted before it is asked whether it is still there."""


_LONGEST_LABEL: Final = 63


def process_label(role: str) -> str:
    """What PostgreSQL lists this process as: its role, version, machine and number."""
    from importlib.metadata import version

    head, tail = f"holdfast {role} {version('holdfast')} ", f"/{os.getpid()}"
    host = "".join(one for one in socket.gethostname() if one.isascii() and one.isprintable())
    return head + (host or "unnamed")[: _LONGEST_LABEL - len(head) - len(tail)] + tail


class Hints:
    """Sends and receives the hints of one process."""

    def __init__(self, connections: Connections, direct: str, role: str) -> None:
        self._connections = connections
        self._direct = direct
        self._role = role
        self._gathered: dict[str, None] = {}
        self._job: int | None = None
        self._sending: asyncio.Task[None] | None = None
        self._notifying: asyncio.Task[None] | None = None
        self._listening: set[asyncio.Task[None]] = set()
        self._closed = False

    def tell(self, hints: Sequence[str]) -> None:
        self._gathered.update(dict.fromkeys(hints))
        if self._sending is None and self._gathered and not self._closed:
            self._sending = asyncio.create_task(self._send_all())

    def notify(self, job: int) -> None:
        """A job waits for a worker."""
        self._job = job
        if self._notifying is None and not self._closed:
            self._notifying = asyncio.create_task(self._notify_all())

    async def stop(self) -> None:
        self._closed = True
        for task in (self._sending, self._notifying):
            if task is not None:
                await task
        for listener in list(self._listening):
            listener.cancel()
            with suppress(asyncio.CancelledError):
                await listener

    async def _send_all(self) -> None:
        try:
            while self._gathered:
                hints, self._gathered = list(self._gathered), {}
                with suppress(HoldfastError):
                    await self._connections.select(_SQL["tell"], [hints])
        finally:
            self._sending = None

    async def _notify_all(self) -> None:
        try:
            while self._job is not None:
                job, self._job = self._job, None
                payload = json.dumps({"type": "job_inserted", "job_id": job})
                with suppress(HoldfastError):
                    await self._connections.select(_SQL["notify_workers"], [payload])
        finally:
            self._notifying = None

    async def listen(self) -> AsyncGenerator[str, None]:
        """Hints until the journal is closed; "" whenever the connection has been made."""
        heard: asyncio.Queue[str | None] = asyncio.Queue()
        task = asyncio.create_task(self._listen(heard.put_nowait))
        self._listening.add(task)
        task.add_done_callback(lambda _: heard.put_nowait(None))
        try:
            while (hint := await heard.get()) is not None:
                yield hint
        finally:
            self._listening.discard(task)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _listen(self, hear: Callable[[str], None]) -> None:
        while True:
            try:
                label = process_label(self._role)
                connection = await connect(self._direct, application_name=label)
                try:
                    await connection.execute(_SQL["listen"])
                    hear("")
                    await _follow(connection, hear)
                finally:  # at once: its own way would have asked the server first
                    await connection.close()
            except DatabaseError as error:
                log.info("hints are not heard for a moment: %s", error)
            await asyncio.sleep(RETRY_SECONDS)


async def _follow(connection: Connection, hear: Callable[[str], None]) -> None:
    while True:
        async for notification in connection.notifies(timeout=LOOK_SECONDS):
            hear(notification.payload)
        await connection.execute(_SQL["look"])

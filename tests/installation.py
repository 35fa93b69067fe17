"""Servers and workers of one database, each in a process of its own, as an operator starts them.

They serve `workshop`. A test speaks to them over HTTP, looks at the same runs through an
application of its own that only decides, and reads in the workshop what has been called.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx

import warm
import workshop
from holdfast import Holdfast, PlanInstance
from holdfast.model.run import RunStatus
from workshop import Workshop

PATIENCE = 180.0
"""Far beyond what anything here takes."""

SECRET_KEY = b64encode(bytes(range(32))).decode()
"""For databases, which need one that all who share them have."""

LOCALE = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
COMMAND = [sys.executable, "-c", "from holdfast.cli import main; main()"]
TESTS = Path(__file__).parent
_NUMBERS = count(1)


@dataclass(slots=True)
class Started:
    """A process that has said that it is ready."""

    process: subprocess.Popen[str]
    said: dict[str, Any]
    log: Path
    """What it says on stderr, which nobody need read for it to go on."""

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def url(self) -> str:
        """Of a server."""
        return str(self.said["url"])

    @property
    def health(self) -> str:
        """Of a worker's port for probes."""
        return f"http://127.0.0.1:{self.said['health_port']}"

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)

    def stop(self) -> tuple[int, str]:
        """Told to stop: the exit code, and what it has said on stderr."""
        self.signal(signal.SIGTERM)
        return self.ends()

    def ends(self) -> tuple[int, str]:
        self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, self.log.read_text()


@dataclass(slots=True)
class Installation:
    """Processes that share a database; `variables` are in the environment of each."""

    database: str
    workshop: Workshop
    variables: dict[str, str]
    _stack: ExitStack = field(default_factory=ExitStack)

    def worker(self, *arguments: str, **variables: str) -> Started:
        given = ("worker", "--app", "workshop:app", "--health-port", "0", "--json", *arguments)
        return self._stack.enter_context(self._started(given, variables))

    def server(self, *arguments: str, **variables: str) -> Started:
        given = ("serve", "--app", "workshop:app", "--port", "0", "--json", *arguments)
        return self._stack.enter_context(self._started(given, variables))

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """A command that ends by itself."""
        done: subprocess.CompletedProcess[str] = warm.run(
            [*COMMAND, *arguments],
            cwd=TESTS,
            env=self.environment(variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        return done

    def environment(self, more: dict[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in ("CI", *LOCALE)}
        directory = {workshop.DIRECTORY: str(self.workshop.directory)}
        return {**kept, "HOLDFAST_DATABASE": self.database, **directory, **self.variables, **more}

    @contextmanager
    def _started(self, given: tuple[str, ...], variables: dict[str, str]) -> Iterator[Started]:
        log = self.workshop.directory / f"log-{next(_NUMBERS)}"
        with log.open("wb") as said:
            process = warm.Popen(
                [*COMMAND, *given],
                cwd=TESTS,
                env=self.environment(variables),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            # A worker may go down with its first run before it has said anything.
            assert line or process.wait(PATIENCE) == -signal.SIGKILL, log.read_text()
            yield Started(process, json.loads(line or "{}"), log)
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=PATIENCE)

    def close(self) -> None:
        self._stack.close()

    # -- what a test sees of them

    @asynccontextmanager
    async def decider(self) -> AsyncIterator[Holdfast]:
        """An application in this process that drives nothing."""
        app = Holdfast(database=self.database, drives=False, max_retry_count=0)
        async with workshop.furnish(app, self.workshop):
            yield app

    def token(self) -> str:
        """An admin's."""
        done = self.run("token", "create", "will", "--role", "admin", "--json")
        assert done.returncode == 0, done.stderr
        return str(json.loads(done.stdout)["token"])

    @contextmanager
    def client(self, server: Started, token: str) -> Iterator[httpx.Client]:
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=server.url, headers=headers, timeout=PATIENCE) as client:
            yield client


async def becomes(holds: Callable[[], object]) -> None:
    """Waits for what another process brings about; TimeoutError if it does not."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def begun(app: Holdfast, plan: str, part: str = "part") -> PlanInstance:
    return await app.plans.start_plan_by_prompt(plan, plan, values={"part": part})


async def over(app: Holdfast, run_id: str) -> RunStatus:
    """How a run ends."""
    async with asyncio.timeout(PATIENCE):
        ends = frozenset({RunStatus.DONE, RunStatus.ERROR, RunStatus.CANCELLED})
        return (await app.engine.wait_for_status(run_id, ends)).status

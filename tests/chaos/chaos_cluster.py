"""An installation in processes of its own: PostgreSQL, the mock office, servers and workers.

A worker that was killed is started again, as a supervisor would. One that cannot start while the
database is away is started once more; one that had started and ends by itself is a failure
(`ended`).
"""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cli_scene import command_line, environment

import warm
from holdfast.demo.office import Office
from postgresql_server import Server, migrated

HERE = Path(__file__).parent
PAUSE = 0.3
STOPS_WITHIN = 60.0
STARTS_WITHIN = 120.0


class Member:
    """A server or a worker, and those that come after it."""

    def __init__(self, name: str, command: tuple[str, ...], env: Mapping[str, str], log: Path):
        self.name = name
        self.first_kill = float("inf")
        self.ended: list[str] = []
        self.ready = asyncio.Event()
        self.said: dict[str, object] = {}
        self.log = log / f"{name}.log"
        self._command, self._env = command, env
        self._process: asyncio.subprocess.Process | None = None
        self._expected = False
        self._stopping = False
        self._keeping = asyncio.create_task(self._keep())

    async def kill(self) -> None:
        """SIGKILL, whatever it is at; returns when it is gone."""
        process = self._process
        if process is not None and process.returncode is None:
            self._expected = True
            self.first_kill = min(self.first_kill, time.time())
            process.kill()
            await process.wait()

    async def stop(self) -> None:
        """SIGTERM: what is in flight ends."""
        self._stopping = True
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        await asyncio.wait((self._keeping,), timeout=STOPS_WITHIN)
        if not self._keeping.done():
            self.ended.append(f"{self.name} did not stop within {STOPS_WITHIN:g} s")
            await self.kill()
        await self._keeping

    async def _keep(self) -> None:
        while not self._stopping:
            self._expected = False
            with self.log.open("ab") as log:
                self._process = process = await warm.create_subprocess_exec(
                    *self._command,
                    cwd=HERE,
                    env=self._env,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=log,
                )
            if self._stopping:
                process.terminate()
            assert process.stdout is not None
            said = json.loads(await process.stdout.readline() or "{}")
            works = "pid" in said
            if works:
                self.said = said
                self.ready.set()
            code = await process.wait()
            self.ready.clear()
            if works and not self._expected and not (self._stopping and code == 0):
                self.ended.append(f"{self.name} ended by itself with {code}")
            if not works:
                await asyncio.sleep(PAUSE)


@dataclass
class Cluster:
    postgres: Server
    database: str
    office: Office
    logs: Path
    env: Mapping[str, str]
    servers: list[Member] = field(default_factory=list)
    workers: list[Member] = field(default_factory=list)

    @property
    def urls(self) -> list[str]:
        return [str(one.said["url"]) for one in self.servers]

    async def token(self, name: str) -> str:
        made = await self.command("token", "create", name, "--role", "admin", "--json")
        return str(json.loads(made)["token"])

    async def command(self, *arguments: str) -> str:
        """What a command prints; that it succeeded is part of it."""
        pipe = asyncio.subprocess.PIPE
        process = await warm.create_subprocess_exec(
            *command_line(*arguments), cwd=HERE, env=self.env, stdout=pipe, stderr=pipe
        )
        out, err = await process.communicate()
        assert process.returncode == 0, (arguments, out.decode(), err.decode())
        return out.decode()

    def member(self, name: str, *arguments: str) -> Member:
        return Member(name, tuple(command_line(*arguments)), self.env, self.logs)

    async def stop(self) -> None:
        await asyncio.gather(*(one.stop() for one in (*self.workers, *self.servers)))

    def ended(self) -> list[str]:
        return [told for one in (*self.servers, *self.workers) for told in one.ended]

    def tracebacks(self) -> Counter[str]:
        """The last lines of the tracebacks that were logged; there should be none."""
        found: Counter[str] = Counter()
        for log in sorted(self.logs.glob("*.log")):
            inside = False
            for line in log.read_text(errors="replace").splitlines():
                if line.startswith("Traceback"):
                    inside = True
                elif inside and line and not line.startswith(" "):
                    found[f"{log.stem.rstrip('0123456789')}: {line}"] += 1
                    inside = False
        return found


@asynccontextmanager
async def cluster(
    place: Path, secret_key: str, servers: int = 2, workers: int = 4
) -> AsyncIterator[Cluster]:
    """Whatever happens, nothing of it is left."""
    async with AsyncExitStack() as stack:
        postgres = Server(fsync=False, max_connections=200)
        stack.push_async_callback(asyncio.to_thread, postgres.close)
        await asyncio.to_thread(postgres.open)
        database = await asyncio.to_thread(postgres.create_database, migrated)
        office = await stack.enter_async_context(Office.start())
        env = {
            **environment(),
            "HOLDFAST_DATABASE": database,
            "HOLDFAST_SECRET_KEY": secret_key,
            "OFFICE_URL": office.url,
        }
        made = Cluster(postgres, database, office, place, env)
        stack.push_async_callback(made.stop)
        application = ("--app", "chaos_app:app", "--json")
        for n in range(servers):
            made.servers.append(made.member(f"server{n}", "serve", "--port", "0", *application))
        for n in range(workers):
            made.workers.append(made.member(f"worker{n}", "worker", *application))
        async with asyncio.timeout(STARTS_WITHIN):
            for one in (*made.servers, *made.workers):
                await one.ready.wait()
        yield made

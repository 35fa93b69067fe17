"""A PostgreSQL of the tests' own, beside any that the machine runs.

`Server` keeps everything in one temporary directory and speaks through a unix socket in it and
through a loopback port, where a password is asked. PostgreSQL refuses to run as root, so root's
servers run as `postgres` or `nobody`. A watchdog (`postgresql_watch`) ends the server with the
process that owns it, however that ends.

With `fsync=False` it is quicker, and loses what it has committed only if the machine itself goes
down: a killed server keeps everything.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import random
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

import postgresql
from holdfast.journal.postgres_migrations import migrate

PATIENCE = 60.0
"""Far beyond what a start or a stop takes."""

USER = "holdfast"
PORTS = range(20000, 32768)
"""Below those that systems give to outgoing connections: none takes it while a server is away."""

LONGEST = 80
"""Of a directory's path: a socket's may have 103 characters on some systems."""

WATCHDOG = Path(__file__).with_name("postgresql_watch.py")
UNDER_WAY = ("pre-existing shared memory block", "could not create any TCP/IP sockets")
"""Why a start fails that succeeds a moment later: the last one's processes are still ending."""

Migrate = Callable[[str], object]


class Unstartable(Exception):
    """The server ended instead of starting; its log says why."""


class Server:
    """Started by `with` or `open`; `settings` are PostgreSQL's own, by name."""

    def __init__(self, *, fsync: bool = True, **settings: object) -> None:
        durable = {} if fsync else {"fsync": "off", "full_page_writes": "off"}
        self.settings: dict[str, object] = {**durable, **settings}
        self.directory = Path()
        self.port = 0
        self._password = secrets.token_hex(16)
        self._account = _account()
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._templates: dict[Migrate, str] = {}
        self._lock = threading.Lock()
        self._made = 0

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def open(self) -> Self:
        self.directory = Path(tempfile.mkdtemp(prefix="holdfast-pg-", dir=_room(self._account)))
        self._watchdog = subprocess.Popen(
            [sys.executable, "-ISu", WATCHDOG, self.directory],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            self._initialise()
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """End the server and leave nothing of it; twice does no harm."""
        self.stop(immediate=True)
        if self._watchdog is not None:
            self._watchdog.communicate()
            self._watchdog = None

    def url(self, database: str = "postgres", *, tcp: bool = False) -> str:
        """Through the socket; through the loopback port where `tcp` says so."""
        if tcp:
            return f"postgresql://{USER}:{self._password}@127.0.0.1:{self.port}/{database}"
        return f"postgresql://{USER}@/{database}?host={self.directory}&port={self.port}"

    def create_database(self, migrate: Migrate | None = None, *, options: str = "") -> str:
        """The URL of a new database, a copy of one that `migrate(url)` was called on once.

        Without `migrate` it is empty; `options` are those of CREATE DATABASE.
        """
        with self._lock, self._connected() as connection:
            template = "template0"
            if migrate is not None:
                if migrate not in self._templates:
                    made = self._create(connection, template)
                    migrate(self.url(made))
                    self._templates[migrate] = made
                template = self._templates[migrate]
            return self.url(self._create(connection, template, options))

    def drop_database(self, url: str) -> None:
        """Also while there are connections to it, which end."""
        name = sql.Identifier(str(conninfo_to_dict(url)["dbname"]))
        with self._connected() as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))

    def start(self) -> None:
        """Returns when it takes connections. The port stays what it was at the first start."""
        limit = time.monotonic() + PATIENCE
        first = not self.port
        while True:
            self.port = _free_port() if first else self.port
            said = self._spawn()
            if self._becomes_ready(limit):
                return
            log = self.log()[said:]
            if time.monotonic() > limit or not any(reason in log for reason in UNDER_WAY):
                raise Unstartable(log)
            time.sleep(0.05)

    def stop(self, *, immediate: bool = False) -> None:
        """Immediately: sessions break off, and the next start recovers from the log."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT if immediate else signal.SIGINT)
            self._ended()

    def restart(self, *, immediate: bool = False) -> None:
        self.stop(immediate=immediate)
        self.start()

    def kill(self) -> None:
        """SIGKILL for it and for each of its processes, as if the machine had stopped them all."""
        if self._process is not None:
            children = _children(self._process.pid)
            self._process.kill()
            self._ended()
            for child in children:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            limit = time.monotonic() + PATIENCE
            while any(map(_lives, children)) and time.monotonic() < limit:
                time.sleep(0.005)

    def log(self) -> str:
        """What the server has said."""
        return (self.directory / "log").read_text(errors="replace")

    def _initialise(self) -> None:
        password = self.directory / "password"
        password.write_text(self._password)
        for path in (self.directory, password):
            if self._account is not None:
                os.chown(path, self._account.pw_uid, self._account.pw_gid)
        command = [_binary("initdb"), f"--pgdata={self.directory / 'data'}", "--encoding=UTF8"]
        command += ["--locale=C", "--no-sync", "--no-instructions", f"--username={USER}"]
        command += ["--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={password}"]
        done = subprocess.run(command, capture_output=True, text=True, **self._as_account())
        if done.returncode != 0:
            raise Unstartable(done.stderr)

    def _spawn(self) -> int:
        """The length of the log before what this start writes to it."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.directory,
            **self.settings,
        }
        command = [_binary("postgres"), "-D", str(self.directory / "data")]
        command += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with open(self.directory / "log", "ab") as log:
            said = len(self.log())
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._as_account(),
            )
        self._tell(self._process.pid)
        return said

    def _becomes_ready(self, limit: float) -> bool:
        """Told by the eighth line of its lock file, as `pg_ctl` has it."""
        assert self._process is not None
        lock = self.directory / "data" / "postmaster.pid"
        while self._process.poll() is None and time.monotonic() < limit:
            with suppress(FileNotFoundError):
                lines = lock.read_text().splitlines()
                mine = lines[:1] == [str(self._process.pid)]
                if mine and len(lines) > 7 and lines[7].startswith("ready"):
                    return True
            time.sleep(0.005)
        self.stop(immediate=True)
        return False

    def _ended(self) -> None:
        assert self._process is not None
        self._process.wait(PATIENCE)
        self._process = None
        self._tell(0)

    def _tell(self, server: int) -> None:
        assert self._watchdog is not None
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.write(f"{server}\n".encode())
        self._watchdog.stdin.flush()

    def _as_account(self) -> dict[str, Any]:
        if self._account is None:
            return {"cwd": self.directory}
        ids = {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}
        return {**ids, "cwd": self.directory}

    def _connected(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url(), autocommit=True)

    def _create(self, connection: psycopg.Connection[Any], template: str, options: str = "") -> str:
        self._made += 1
        name = f"test_{self._made}"
        statement = f"CREATE DATABASE {name} TEMPLATE {template} {options}"
        connection.execute(statement.encode())
        return name


def migrated(url: str) -> None:
    """Brings a database to Holdfast's schema, also where an event loop runs already."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, migrate(url)).result()


def _binary(name: str) -> str:
    binaries = postgresql.find()
    if binaries is None:
        raise Unstartable(postgresql.REMEDY)
    return str(binaries / name)


def _account() -> pwd.struct_passwd | None:
    """Whom the server runs as; None for whoever runs the tests."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise Unstartable("PostgreSQL does not run as root, and there is no user postgres or nobody.")


def _room(account: pwd.struct_passwd | None) -> str:
    """A directory for temporary files that the account can enter, and with a short path."""
    for place in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        path = Path(place).resolve()
        way = (path, *path.parents)
        open_to_all = account is None or all(one.stat().st_mode & 0o001 for one in way)
        if open_to_all and len(str(path)) < LONGEST - 30:
            return str(path)
    raise Unstartable("There is no directory for temporary files that PostgreSQL could use.")


def _free_port() -> int:
    while True:
        port = random.choice(PORTS)
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            return port


def _children(process: int) -> list[int]:
    """Known on Linux; elsewhere they end by themselves when they miss their parent."""
    return [child for child in _processes() if _stat(child)[1:2] == [str(process)]]


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if _LINUX else []


_LINUX = sys.platform == "linux"


def _stat(process: int) -> list[str]:
    """State, parent and more, behind the name, which may hold spaces; nothing if it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _lives(process: int) -> bool:
    """Whether it is there and not merely uncollected. Ours to collect if we are its reaper."""
    with suppress(ChildProcessError):
        os.waitpid(process, os.WNOHANG)
    return _stat(process)[:1] not in ([], ["Z"])

"""A private PostgreSQL server for the tests of one session, and databases on it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path

import psycopg

BIN = Path("/usr/lib/postgresql/15/bin")
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "max_prepared_transactions": "5",
    "autovacuum_naptime": "1d",
}


class PostgresServer:
    """Started, stopped and killed as a test wants; its data stay meanwhile."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="hf-pg-", dir="/tmp"))
        self.data = self.directory / "data"
        if os.getuid() == 0:
            shutil.chown(self.directory, "postgres", "postgres")
        self._run(["initdb", "-D", self.data, "-U", "holdfast", "-E", "UTF8", "--locale=C", "-N"])

    def start(self) -> None:
        options = " ".join(f"-c {key}='{value}'" for key, value in _SETTINGS.items())
        options += f" -k {self.directory}"
        log = self.directory / "log"
        self._run(["pg_ctl", "-D", self.data, "-w", "-t", "60", "-l", log, "-o", options, "start"])

    def stop(self, mode: str = "fast") -> None:
        self._run(["pg_ctl", "-D", self.data, "-w", "-m", mode, "stop"])

    def kill(self) -> None:
        """As if the machine had gone: no goodbye to anybody."""
        pid = int((self.data / "postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, signal.SIGQUIT)
        self._wait_gone(pid)

    def remove(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    def url(self, database: str) -> str:
        return f"postgresql://holdfast@/{database}?host={self.directory}"

    def create_database(self, options: str = "") -> str:
        name = f"t{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} {options}".encode())
        return self.url(name)

    def copy_database(self, url: str) -> str:
        return self.create_database(f"TEMPLATE {_name(url)}")

    def drop_database(self, url: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {_name(url)} WITH (FORCE)".encode())

    def _run(self, command: Sequence[str | Path]) -> None:
        program, *arguments = map(str, command)
        words = [str(BIN / program), *arguments]
        if os.getuid() == 0:
            words = ["runuser", "-u", "postgres", "--", *words]
        subprocess.run(
            words, check=True, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def _wait_gone(self, pid: int) -> None:
        while Path(f"/proc/{pid}").exists():
            os.sched_yield()


def _name(url: str) -> str:
    return (
        url.rsplit("/", 1)[-1].partition("?")[0]
        if "?host=" not in url
        else (url.split("@/", 1)[1].partition("?")[0])
    )

"""A server in a process of its own, as a person who starts it sees it."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from cli_scene import command_line, environment

import warm

BY_HAND = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}
"""What a browser says when a person opens a link that was printed in a terminal."""


@dataclass(frozen=True, slots=True)
class Served:
    process: subprocess.Popen[str]
    url: str
    link: str | None

    def open_link(self) -> httpx.Response:
        assert self.link is not None
        return httpx.get(self.link, headers=BY_HAND)

    @contextmanager
    def sign_in(self) -> Iterator[httpx.Client]:
        """A browser that has opened the link."""
        assert self.link is not None
        with httpx.Client(base_url=self.url, headers={"Origin": self.url}) as browser:
            assert browser.get(self.link, headers=BY_HAND).status_code == 303
            yield browser

    def token(self, *roles: str, **more: Any) -> str:
        with self.sign_in() as admin:
            wanted = {"name": "will", "roles": list(roles), **more}
            made = admin.post("/tokens", json=wanted)
            assert made.status_code == 201, made.text
            return str(made.json()["token"])

    def is_closed(self) -> bool:
        """It takes no more requests."""
        try:
            httpx.get(f"{self.url}/healthz")
        except httpx.TransportError:
            return True
        return False

    def stop(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@contextmanager
def served(place: Path, *arguments: str, **variables: str) -> Iterator[Served]:
    process = warm.Popen(
        command_line("serve", "--port", "0", "--json", *arguments),
        cwd=place,
        env={**environment(), **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate(timeout=60)[1]
        said = json.loads(line)
        assert said["pid"] == process.pid
        yield Served(process, said["url"], said["link"])
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=60)

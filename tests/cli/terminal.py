"""A terminal for tests: runs a command on a pseudo-terminal and types into it."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import warm

ENTER, DOWN, SPACE, CTRL_C, ESCAPE = "\r", "\x1b[B", " ", "\x03", "\x1b"
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]")


def usual_signals() -> None:
    """What a shell's background jobs ignore, and leave ignored to those that they start."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        signal.signal(number, signal.SIG_DFL)


def _as_a_terminal_starts_it() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    usual_signals()


class Terminal:
    def __init__(self, *arguments: str, cwd: Path, rows: int = 40, columns: int = 120) -> None:
        self.screen = ""
        self._written = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._seen = 0
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        environment = {**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
        environment.pop("CI", None)
        self._process = warm.Popen(
            [sys.executable, "-c", "from holdfast.cli import main; main()", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env=environment,
            start_new_session=True,
            preexec_fn=_as_a_terminal_starts_it,
        )
        self._master, self._slave = master, slave

    def wait_for(self, text: str, timeout: float = 60.0) -> None:
        """Read until `text` shows up after everything waited for before."""
        end = time.monotonic() + timeout
        while (found := self.screen.find(text, self._seen)) < 0:
            assert time.monotonic() < end, f"{text!r} never came:\n{self.screen}"
            if not self._read(0.2) and self._process.poll() is not None:
                self._read(0.2)
                assert text in self.screen[self._seen :], f"{text!r} never came:\n{self.screen}"
        self._seen = found + len(text)

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def interrupt(self) -> None:
        os.killpg(self._process.pid, signal.SIGINT)

    def kill(self, number: signal.Signals) -> None:
        os.kill(self._process.pid, number)

    def modes(self) -> list[Any]:
        """How the terminal treats what is typed."""
        return list(termios.tcgetattr(self._slave))

    def end(self, timeout: float = 60.0) -> int:
        end = time.monotonic() + timeout
        while self._process.poll() is None:
            assert time.monotonic() < end, f"it does not end:\n{self.screen}"
            self._read(0.2)
        while self._read(0.1):
            continue
        return int(self._process.returncode)

    def _read(self, timeout: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], timeout)
        try:
            chunk = os.read(self._master, 65536) if ready else b""
        except OSError:
            return False
        self._written += self._decoder.decode(chunk)
        self.screen = CONTROL.sub("", self._written)
        return bool(chunk)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._slave)
        os.close(self._master)

"""Keys: single keys of a terminal, without Enter, while something else is on the screen.

The terminal gets its own ways back whatever happens: at the end, on an error, and when
the process is told to end. A shell that stops and continues the process may have changed
them meanwhile, so they are set again then.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import tty
from collections.abc import Callable, Mapping
from typing import Any, Self

KeyAction = Callable[[], object]

_ENDINGS = (signal.SIGTERM, signal.SIGHUP)
_SHOW_CURSOR = b"\x1b[?25h\n"


class Keys:
    """What each key does; used as a context, within which keys are heard."""

    def __init__(self, actions: Mapping[str, KeyAction]) -> None:
        self._actions = actions
        self._fd = sys.stdin.fileno()
        self._before: list[Any] | None = None

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._fd)
        loop = asyncio.get_running_loop()
        try:
            for ending in _ENDINGS:
                loop.add_signal_handler(ending, self._end, ending)
            loop.add_signal_handler(signal.SIGCONT, self._set)
            loop.add_reader(self._fd, self._heard)
            self._set()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._fd)
        for number in (*_ENDINGS, signal.SIGCONT):
            loop.remove_signal_handler(number)
        self._restore()

    def _set(self) -> None:
        tty.setcbreak(self._fd, termios.TCSADRAIN)

    def _restore(self) -> None:
        if self._before is not None:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)
            self._before = None

    def _end(self, number: signal.Signals) -> None:
        self._restore()
        os.write(sys.stdout.fileno(), _SHOW_CURSOR)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _heard(self) -> None:
        """Keys that mean nothing here, and the ends of longer ones, are passed over."""
        try:
            typed = os.read(self._fd, 1024)
        except OSError:
            typed = b""
        if not typed:
            asyncio.get_running_loop().remove_reader(self._fd)
        for key in typed.decode("utf-8", "ignore") if typed[:1] != b"\x1b" else "":
            action = self._actions.get(key.lower())
            if action is not None:
                action()

"""The show behind `holdfast demo`: an office, a server with its console, and five waiting runs.

It serves this machine alone, until Ctrl-C or SIGTERM. Then the server ends, the application,
the office, and the home, if it was a temporary one.
"""

from __future__ import annotations

import asyncio
import signal
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import uvloop

from holdfast.cli.commands.serve import link_address
from holdfast.cli.home_backend import os_user
from holdfast.cli.shell import Settings
from holdfast.cli.terminal.plain import note, print_json_line
from holdfast.cli.terminal.screen import say
from holdfast.console import install
from holdfast.demo.show import ASSISTANT, VISITOR, Show, open_show, play
from holdfast.errors import OperatorError
from holdfast.runtime.identity import Identity, acting
from holdfast.server.serving import Serving, listening, serve
from holdfast.server.settings import ServerSettings


@dataclass(frozen=True, slots=True)
class DemoServer:
    """The demo in a terminal, or under a script that reads one line of JSON."""

    settings: Settings
    port: int | None

    def run(self) -> None:
        # What a signal does before the server is there to hear it.
        with suppress(KeyboardInterrupt, asyncio.CancelledError):
            loop = asyncio.Runner(loop_factory=uvloop.new_event_loop)
            with self._home() as home, loop as runner:
                runner.run(self._play(home))
        self._note("The demo is over; nothing of it is running any more.")

    @contextmanager
    def _home(self) -> Iterator[Path]:
        if self.settings.home is not None:
            yield self.settings.home
            return
        with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as temporary:
            yield Path(temporary)

    async def _play(self, home: Path) -> None:
        chosen = ServerSettings(default_agent=ASSISTANT)
        port = free_port(chosen.port) if self.port is None else self.port
        chosen = replace(chosen, port=port)
        async with AsyncExitStack() as opened:
            with _cancelled_by_signals():
                self._note("Starting a mock office, a server and five runs …")
                stage = await opened.enter_async_context(open_show(home))
                with acting(Identity(who=VISITOR, origin="cli")):
                    show = await play(stage)
            await serve(
                stage.app,
                chosen,
                lambda serving: self._announce(serving, show),
                on_stop=lambda: self._note("stopping …"),
                install=install,
            )

    async def _announce(self, serving: Serving, show: Show) -> None:
        tokens = serving.services.tokens
        _, secret = await tokens.new_link(VISITOR, by=os_user(), origin="cli")
        link = link_address(serving.url, secret)
        if self.settings.as_json:
            print_json_line({"url": serving.url, "link": link, "runs": asdict(show)})
        else:
            say(*_invitation(link, show), *self._farewell())

    def _farewell(self) -> list[str]:
        kept = f"The runs are kept in {self.settings.home}." if self.settings.home else ""
        return [f"Ctrl-C ends everything. {kept}".rstrip()]

    def _note(self, text: str) -> None:
        if not self.settings.as_json:
            note(text)


@contextmanager
def _cancelled_by_signals() -> Iterator[None]:
    """Within, Ctrl-C and SIGTERM cancel this task, and never raise in the midst of other work."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, task.cancel)
    try:
        yield
    finally:
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(one)


def free_port(wanted: int) -> int:
    """`wanted`, or 0, which takes any, when it is taken."""
    try:
        with listening("127.0.0.1", wanted):
            return wanted
    except OperatorError:
        return 0


def _invitation(link: str, show: Show) -> list[str]:
    return [
        "",
        "Open this link in your browser. It signs you in, once and within 15 minutes:",
        "",
        f"  {link}",
        "",
        "Five runs of yours wait for you. Their mock office failed, and works again. Try:",
        "",
        "  1. Inbox, apply_computer needs more: choose a computer and submit;",
        f"     it is ordered, and {show.computer} is done.",
        f"  2. Runs, {show.failed} (Failed): press Resume, and confirm;",
        "     only what failed runs again, and the onboarding ends.",
        f"  3. Runs, {show.onboarding} (2 retries): choose a desk and a first day;",
        "     the welcome mail goes out, and the onboarding ends.",
        f"  4. Inbox, Repair L001? ({show.repair}): read the proposal, and approve it;",
        "     HR gets the profile first, and only then access is granted.",
        f"  5. Chat, {show.chat}: approve, edit or reject the payment;",
        "     what you see is what is paid, and nothing else.",
        "",
    ]

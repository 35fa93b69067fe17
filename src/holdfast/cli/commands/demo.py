"""The demo: a colleague's onboarding and requests, against a mock office that can fail."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import shell
from holdfast.cli.shell import OK, Interrupted, Settings, optional

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.demo.onboarding import Stage
    from holdfast.runs.handles import PlanInstance

UNHURRIED = 0.4
"""Seconds that the office takes for each call in a terminal."""


class Wanted(StrEnum):
    COMPUTER = "computer"
    MAIL = "mail"
    ACCOUNT = "account"
    PERMISSION = "permission"


WithAgents = Annotated[
    bool,
    typer.Option(
        "--with-agents", help="Let each department's agent do its part, on a scripted model."
    ),
]

app = typer.Typer(name="demo", rich_markup_mode=None)


def demo(
    settings: Settings,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            help="Where to serve. Default: 8420, or a free one if that is taken.",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Show what Holdfast does, in your browser: five runs that wait for you.

    Starts a mock office and a server on this machine, prints a link that signs you in and
    what to try, and serves until Ctrl-C. With --json it prints one line: url, link and runs.
    Runs are kept in a temporary home unless --home is given.
    """
    from holdfast.cli.commands.demo_server import DemoServer

    DemoServer(settings, port).run()
    return OK


async def tour(settings: Settings, with_agents: WithAgents = False) -> int:
    """Show it in the terminal: a run that fails and is resumed, and one that asks a person.

    A mock office answers from a process of its own. Without a terminal the question is
    answered with sample values. Runs are kept in a temporary home unless --home is given.
    """
    from holdfast.cli.terminal.report import exit_code
    from holdfast.demo.onboarding import Request

    async with _stage(settings, with_agents=with_agents) as stage:
        _narrate(
            settings,
            "Will Zhang joins. The office's access control will fail six times in a row:",
            "each call is tried three times, the planner tries once more, then it gives up.",
        )
        onboarding = await stage.onboard({"grant_access": 6})
        _narrate(
            settings,
            f"{onboarding.id} is {onboarding.status}: nothing is lost, a person may resume it.",
            "Now the office works again, and the run is resumed: only what failed runs again.",
        )
        await stage.mend_and_resume(onboarding)
        calls = await stage.office.counts()
        _narrate(
            settings,
            f"{onboarding.id} is {onboarding.status}: {_spelled(calls)}.",
            "Now a request that lacks something: the run pauses until a person answers.",
        )
        request = await _ask_for(stage, settings, Request.COMPUTER)
        if settings.as_json:
            first, second = await _report(stage, onboarding), await _report(stage, request)
            return _end(settings, {"onboarding": first, "request": second}, request)
        _narrate(settings, f"{request.id} is {request.status}. That was the demo.")
        return exit_code(request.status)


async def onboarding(
    settings: Settings,
    failures: Annotated[
        list[str] | None,
        optional(
            "--failures",
            "TOOL=COUNT",
            "Let the tool fail so many times, as grant_access=3. Repeatable.",
        ),
    ] = None,
    max_retry_count: Annotated[
        int,
        typer.Option(
            "--max-retry-count", min=0, help="How often the planner runs a listener again."
        ),
    ] = 1,
    resume: Annotated[
        bool, typer.Option("--resume", help="If it fails, mend the office and resume the run.")
    ] = False,
    with_agents: WithAgents = False,
) -> int:
    """Run Will Zhang's onboarding against the mock office."""
    from holdfast.cli.values import read_failures

    wanted = read_failures(failures)
    async with _stage(settings, max_retry_count, with_agents=with_agents) as stage:
        run = await stage.onboard(wanted)
        more: dict[str, Any] = {}
        if resume:
            more["resumed"] = await stage.mend_and_resume(run)
            more["second_resume"] = await stage.mend_and_resume(run)
        return _end(settings, {**await _report(stage, run), **more}, run)


async def request(
    settings: Settings,
    wanted: Annotated[
        Wanted, typer.Argument(metavar="[KIND]", help="computer, mail, account or permission.")
    ] = Wanted.COMPUTER,
    with_agents: WithAgents = False,
) -> int:
    """Make a request that lacks something, so that a person is asked.

    Without a terminal it is answered with sample values.
    """
    from holdfast.demo.onboarding import Request

    async with _stage(settings, with_agents=with_agents) as stage:
        run = await _ask_for(stage, settings, Request(wanted.value))
        return _end(settings, await _report(stage, run), run)


shell.register_group(app, demo, shell.TEMPORARY)
shell.register(app, "tour", tour, options=shell.TEMPORARY)
shell.register(app, "onboarding", onboarding, options=shell.TEMPORARY)
shell.register(app, "request", request, options=shell.TEMPORARY)


@asynccontextmanager
async def _stage(
    settings: Settings, max_retry_count: int = 1, *, with_agents: bool = False
) -> AsyncIterator[Stage]:
    import tempfile

    from holdfast.cli.driver import Driver
    from holdfast.cli.home_backend import HomeBackend, as_this_user
    from holdfast.demo.onboarding import open_stage

    async def follow(app: Holdfast, run_id: str, after: int) -> None:
        backend = HomeBackend(app, language=settings.language)
        try:
            run = await backend.run(run_id)
            await Driver(backend, settings).see_through(run, after=after)
        except Interrupted:
            raise Interrupted("stopped; the demo is over") from None

    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as temporary:
        home = settings.home or Path(temporary)
        opening = open_stage(
            home, max_retry_count=max_retry_count, follow=follow, with_agents=with_agents
        )
        async with opening as stage:
            if settings.interactive:
                await stage.office.configure_delays(dict.fromkeys(stage.tool_names(), UNHURRIED))
            with as_this_user():
                yield stage


async def _ask_for(stage: Stage, settings: Settings, wanted: Any) -> PlanInstance:
    from holdfast.demo.onboarding import SAMPLES

    run = await stage.ask_for(wanted)
    if run.status == "pause" and not settings.interactive:
        sample = ", ".join(f"{name} = {value}" for name, value in SAMPLES[wanted].items())
        _narrate(settings, f"This is no terminal, so a sample answers: {sample}")
        await stage.answer_with_sample(run, wanted)
    return run


async def _report(stage: Stage, run: PlanInstance) -> dict[str, Any]:
    from holdfast.cli.home_backend import HomeBackend
    from holdfast.cli.terminal.report import report_json

    backend = HomeBackend(stage.app)
    report = report_json(await backend.run(run.id), await backend.open_questions(run.id))
    return {**report, "tool_calls": await stage.office.counts()}


def _end(settings: Settings, report: dict[str, Any], run: PlanInstance) -> int:
    from holdfast.cli.terminal.plain import print_json
    from holdfast.cli.terminal.report import exit_code
    from holdfast.cli.terminal.screen import say
    from holdfast.views.stories.text import visible

    if settings.as_json:
        print_json(report)
    else:
        say(f"{run.id} is {run.status}; calls: {_spelled(report['tool_calls'])}")
        if report["error_info"]:
            say(f"  {visible(report['error_info']['message'])}")
    return exit_code(run.status)


def _narrate(settings: Settings, *lines: str) -> None:
    from holdfast.cli.terminal.screen import say

    if not settings.as_json:
        say("", *lines, "")


def _spelled(calls: dict[str, int]) -> str:
    return ", ".join(f"{tool} {count}" for tool, count in calls.items()) or "none"

"""`holdfast fork`: go on from an event of a run that is over, as a new run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import shell
from holdfast.cli.commands.runs import PlanRunArgument
from holdfast.cli.shell import OK, AnywayOption, Settings, WaitOption
from holdfast.model.run import RunKind

if TYPE_CHECKING:
    from holdfast.views.records import RunView


def register(group: typer.Typer) -> None:
    shell.register(group, "fork", fork, distant=True)


async def fork(
    settings: Settings,
    instance: PlanRunArgument,
    at: Annotated[
        int,
        typer.Option(
            "--at",
            metavar="SEQ",
            min=1,
            help="The event to go on from: its `seq` in `holdfast history RUN --json`.",
        ),
    ],
    anyway: AnywayOption = False,
    wait: WaitOption = True,
) -> int:
    """Go on from an event of a plan's run that is over, as a new run.

    One that waits, also for a resume, must be cancelled first; it is forked as it stood before.
    What was done by then counts as done. What was in flight counts as far as it is known what came
    of it; else it is called again where that is harmless, or a person is asked.
    """
    from holdfast.cli.driver import Driver
    from holdfast.cli.opening import opened_backend
    from holdfast.cli.values import full_run_id

    async with opened_backend(settings) as backend:
        origin = full_run_id(instance)
        _refuse_alive(await backend.run(origin), settings.repeated)
        await backend.refuse_without_tools(origin, anyway=anyway)
        run_id = await backend.fork(origin, at)
        driver = Driver(backend, settings)
        if wait:
            await driver.see_through(await backend.run(run_id), after=0)
        return await driver.conclude(run_id, None if wait else OK)


def _refuse_alive(run: RunView, options: str) -> None:
    """The rule is the core's; here is the command that ends the run, and all above it."""
    from holdfast.errors import NotAllowed

    if run.kind is RunKind.PLAN and not run.over:
        raise NotAllowed(
            f"{run.run_id} is {run.status.value}, and only a run that is over can be forked; "
            f"to end it first: holdfast cancel {run.root_id}{options}"
        )

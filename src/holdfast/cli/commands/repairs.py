"""Commands on failures: say what is wrong with a run, and change its plan so that it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import shell
from holdfast.cli.commands.runs import PlanRunArgument
from holdfast.cli.shell import OK, AnywayOption, Settings, WaitOption, optional

if TYPE_CHECKING:
    from holdfast.cli.commands.repairing import Wanted


def register(group: typer.Typer) -> None:
    shell.register(group, "diagnose", diagnose, distant=True)
    shell.register(group, "repair", repair, distant=True)


async def diagnose(settings: Settings, instance: PlanRunArgument) -> int:
    """Say what is wrong with a run of a plan, what is proposed, and what that would do.

    Each failure with its cause, the evidence with the numbers of its events, the proposal with
    its rehearsal, and what a resume alone would do. Only looks. The exit code is 4 where a
    proposal waits for a person, else how the run stands.
    """
    from holdfast.cli.commands.repairing import say_diagnosis
    from holdfast.cli.home_reader import reading
    from holdfast.cli.values import full_run_id

    async with reading(settings) as reader:
        return await say_diagnosis(reader, settings, full_run_id(instance))


async def repair(
    settings: Settings,
    instance: PlanRunArgument,
    patch: Annotated[
        Path | None,
        optional("--patch", "FILE", "Propose these operations: a list in JSON or YAML."),
    ] = None,
    to_current: Annotated[
        bool,
        typer.Option("--to-current", help="Propose what brings it to today's version of its plan."),
    ] = False,
    rehearse: Annotated[
        bool,
        typer.Option("--rehearse", help="Only say what it would do; nothing is changed."),
    ] = False,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why, for who is to approve it.")
    ] = "",
    listener: Annotated[
        str | None,
        optional(
            "--listener",
            "ID",
            "The failed listener that it is about. Default: the one that failed.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Approve what is proposed, without being asked.")
    ] = False,
    anyway: AnywayOption = False,
    wait: WaitOption = True,
) -> int:
    """Change the plan of a run, so that it goes on: see the open proposal, or make one.

    Without a patch it is the proposal that is open: at a terminal you are asked, with --yes it
    is approved. With --patch or --to-current a change is judged and proposed; who may approve it
    is asked, as by any question.
    """
    from holdfast.cli.values import full_run_id

    wanted = _wanted(patch, to_current, reason, listener)
    if rehearse and yes:
        raise typer.BadParameter("--rehearse changes nothing: leave --yes out.")
    run_id = full_run_id(instance)
    if wanted is None and rehearse:
        return await _say_open(settings, run_id, listener)
    from holdfast.cli.commands.repairing import Repairing
    from holdfast.cli.opening import opened_backend

    async with opened_backend(settings) as backend:
        repairing = Repairing(backend, settings, run_id, anyway, wait)
        if wanted is None:
            return await repairing.decided(listener, yes=yes)
        if rehearse:
            return await repairing.rehearsed(wanted)
        return await repairing.proposed(wanted, yes=yes)


async def _say_open(settings: Settings, run_id: str, listener: str | None) -> int:
    from holdfast.cli.commands.repairing import say_proposal
    from holdfast.cli.home_reader import reading

    async with reading(settings) as reader:
        await say_proposal(reader, settings, run_id, listener)
    return OK


def _wanted(
    patch: Path | None, to_current: bool, reason: str, listener: str | None
) -> Wanted | None:
    """None where nothing is proposed."""
    if patch is not None and to_current:
        raise typer.BadParameter("--patch and --to-current are two patches: leave one out.")
    if patch is None and not to_current:
        if reason:
            raise typer.BadParameter("--reason is for what you propose: --patch or --to-current.")
        return None
    from holdfast.cli.commands.repairing import Wanted
    from holdfast.cli.patch_files import read_patch

    return Wanted(None if patch is None else read_patch(patch), reason, listener)

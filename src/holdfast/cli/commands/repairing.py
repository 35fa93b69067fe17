"""Looking for what is wrong with a run, and carrying its repair through.

A sub-run that failed has cases of its own: they are looked for from the run that the person knows.
A patch of one's own is a patch of the run that was named.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from rich.text import Text

from holdfast.cli.backend import Backend, OwnPatch, Reader
from holdfast.cli.commands.answers import Answering, Words
from holdfast.cli.commands.questions import show_one
from holdfast.cli.driver import Driver
from holdfast.cli.home_reader import ANOTHER_PERSON
from holdfast.cli.patch_files import PatchFile
from holdfast.cli.shell import OK, WAITS_FOR_PERSON, Settings
from holdfast.cli.terminal.plain import print_json
from holdfast.cli.terminal.question import answering, question_json
from holdfast.cli.terminal.repairs import (
    case_json,
    patch_json,
    proposal_json,
    shown_case,
    shown_patch,
    shown_proposal,
)
from holdfast.cli.terminal.report import exit_code, next_steps
from holdfast.cli.terminal.screen import say, status_text
from holdfast.cli.terminal.untrusted_text import BAR, rows
from holdfast.errors import NotAllowed, NotFound, NotPermitted, PatchRejected
from holdfast.model.repair import Proposal
from holdfast.model.run import RunStatus
from holdfast.model.values import JsonObject
from holdfast.views.records import CaseView, InteractionView, PlanView, RunView
from holdfast.views.stories.text import named, visible

APPROVED = Words("apply", (), (), None, yes=True)
ASKED = Words(None, (), (), None, yes=False)


@dataclass(frozen=True, slots=True)
class Found:
    """A case, the run that has it, and the open question about its proposal."""

    run: RunView
    case: CaseView
    asked: InteractionView | None

    @property
    def question(self) -> InteractionView:
        assert self.asked is not None, "one with an open proposal"
        return self.asked


async def plan_run(reader: Reader, run_id: str) -> tuple[RunView, PlanView]:
    run = await reader.run(run_id)
    if run.plan is None:
        raise NotAllowed(f"{run_id} is no run of a plan: only those are diagnosed and repaired")
    return run, run.plan


async def look(reader: Reader, run: RunView) -> list[Found]:
    """Its cases, then those of the sub-runs that stand in its way."""
    runs = [one async for one in _failing(reader, run)]
    cases = [(one, case) for one in runs for case in await reader.cases(one.run_id)]
    asked = {one.question_id: one for one in await reader.open_questions(run.run_id)}
    return [Found(one, case, asked.get(case.question_id or "")) for one, case in cases]


async def _failing(reader: Reader, run: RunView) -> AsyncIterator[RunView]:
    yield run
    for step in run.steps:
        if step.child_id is not None and step.child_status == RunStatus.ERROR:
            child = await _readable(reader, step.child_id)
            if child is not None and child.plan is not None:
                async for one in _failing(reader, child):
                    yield one


async def _readable(reader: Reader, run_id: str) -> RunView | None:
    """Who may see a run may not always see those that work for it."""
    with suppress(NotFound, NotPermitted):
        return await reader.run(run_id)
    return None


async def say_diagnosis(reader: Reader, settings: Settings, run_id: str) -> int:
    run, plan = await plan_run(reader, run_id)
    found = await look(reader, run)
    if settings.as_json:
        print_json(_diagnosis_json(run, plan, found))
    else:
        _show_diagnosis(run, plan, found, settings)
    waits = any(one.asked is not None for one in found)
    return WAITS_FOR_PERSON if waits else exit_code(run.status)


def _diagnosis_json(run: RunView, plan: PlanView, found: Sequence[Found]) -> dict[str, Any]:
    return {
        "instance_id": run.run_id,
        "plan_id": plan.plan_id,
        "status": run.status.value,
        "error_info": plan.error_info,
        "cases": [case_json(one.case, one.asked, one.run.run_id) for one in found],
        "patches": [patch_json(one) for one in plan.patches],
        "resume_runs": list(plan.resume_runs),
    }


def _show_diagnosis(
    run: RunView, plan: PlanView, found: Sequence[Found], settings: Settings
) -> None:
    say(Text.assemble(f"{run.run_id} is ", status_text(run.status.value)))
    if run.status is RunStatus.ERROR:
        say(*rows(visible(run.error, 2000), "  │ ", "  │ "))
    if not found:
        say("  nothing is known of it that a repair could mend")
    for one in found:
        below = "" if one.run is run else one.run.run_id
        say("", *shown_case(one.case, one.asked, settings.language, below))
        if one.asked is not None:
            name, options = one.asked.question_id[:8], settings.repeated
            say(*answering(one.asked, name, options, "  to answer: "))
    for patch in plan.patches:
        say("", *shown_patch(patch))
    if run.status is RunStatus.ERROR:
        ids = ", ".join(map(named, plan.resume_runs))
        again = f"would run again: {ids}" if ids else "would run nothing again"
        say("", *rows(f"a resume alone {again}", "", f"  {BAR}"))
        say(*(f"  {one}" for one in next_steps(run, settings.repeated)))


async def open_proposal(reader: Reader, run: RunView, listener_id: str | None) -> Found:
    """The only one, or the only one about that listener."""
    found = [one for one in await look(reader, run) if one.asked is not None]
    about = [one for one in found if listener_id in (None, one.case.listener_id)]
    if len(about) == 1:
        return about[0]
    if about:
        ids = ", ".join(f"{one.question.question_id[:8]} ({_about(one)})" for one in about)
        raise NotAllowed(
            f"{len(about)} proposals are open: {ids}; name a listener with --listener, or answer "
            "one by its id with `holdfast answer`"
        )
    if run.over:
        raise NotAllowed(f"{run.run_id} is {run.status.value}: there is nothing to repair")
    which = f" about {listener_id}" if listener_id is not None else ""
    raise NotAllowed(
        f"{run.run_id} has no open proposal{which}: `holdfast diagnose {run.run_id}` says what is "
        "known, and --patch FILE proposes a repair"
    )


def _about(found: Found) -> str:
    return f"{found.run.run_id} {found.case.listener_id or 'as a whole'}"


async def say_proposal(
    reader: Reader, settings: Settings, run_id: str, listener_id: str | None
) -> None:
    """The open proposal, and what it would do."""
    run, _ = await plan_run(reader, run_id)
    found = await open_proposal(reader, run, listener_id)
    if not settings.as_json:
        await show_one(reader, settings, found.question)
        return
    print_json(
        {
            "instance_id": run_id,
            "status": run.status.value,
            "case": case_json(found.case, found.asked, found.run.run_id),
            "question": question_json(found.question, whole=True),
        }
    )


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person proposes: operations of a file, or what brings the run to today's version."""

    file: PatchFile | None
    reason: str
    listener_id: str | None

    @property
    def patch(self) -> OwnPatch:
        operations = None if self.file is None else self.file.operations
        return OwnPatch(operations, self.reason, self.listener_id or "")

    def about(self, run: RunView, operations: Sequence[JsonObject]) -> OwnPatch:
        """It mends the failed listener that it changes, unless another is named."""
        changed = {one.get("listener_id") for one in operations}
        failed = [one for one in run.failed if one in changed]
        if self.listener_id is None and len(failed) == 1:
            return replace(self.patch, listener_id=failed[0])
        return self.patch


@dataclass(frozen=True, slots=True)
class Repairing:
    """Changes a run's plan, by what is proposed already or by what is `wanted`."""

    backend: Backend
    settings: Settings
    run_id: str
    anyway: bool
    wait: bool

    async def rehearsed(self, wanted: Wanted) -> int:
        await self._changeable()
        proposal = await self._judged(wanted)
        if self.settings.as_json:
            print_json({"instance_id": self.run_id, "proposal": proposal_json(proposal)})
        else:
            say(f"what this would do to {self.run_id}; nothing is changed:")
            say(*shown_proposal(proposal, "", "the same with --json"))
        return OK

    async def _judged(self, wanted: Wanted) -> Proposal:
        """PatchRejected with all that is wrong, each with its place in the file."""
        try:
            proposal = await self.backend.rehearsed(self.run_id, wanted.patch)
        except PatchRejected as rejected:
            problems = rejected.problems
        else:
            problems = proposal.verdict.problems
        if wanted.file is not None:
            problems = tuple(wanted.file.placed(problems))
        if problems:
            raise PatchRejected(problems)
        return proposal

    async def proposed(self, wanted: Wanted, *, yes: bool) -> int:
        """Propose a patch; with `yes` it is approved in the same breath, by who may."""
        run = await self._changeable()
        judged = await self._judged(wanted)
        patch = wanted.about(run, judged.patch.operations)
        question_id = await self.backend.propose(self.run_id, patch)
        if question_id is None:
            return await Driver(self.backend, self.settings).conclude(self.run_id)
        return await (self._approved(question_id) if yes else self._say(patch.listener_id))

    async def decided(self, listener_id: str | None, *, yes: bool) -> int:
        """Approve the open proposal, or ask about it where a person is there to be asked."""
        if not yes and not self.settings.interactive:
            return await self._say(listener_id)
        run, _ = await plan_run(self.backend, self.run_id)
        question = (await open_proposal(self.backend, run, listener_id)).question
        if yes:
            return await self._approved(question.question_id)
        if not question.is_ours:
            return await self._say(listener_id)
        return await self._answered(question.question_id, ASKED)

    async def _say(self, listener_id: str | None) -> int:
        await say_proposal(self.backend, self.settings, self.run_id, listener_id)
        return WAITS_FOR_PERSON

    async def _approved(self, question_id: str) -> int:
        try:
            return await self._answered(question_id, APPROVED)
        except NotPermitted as error:
            to_see = f"holdfast inbox {question_id[:8]}{self.settings.repeated}"
            why = str(error) if self.backend.is_elsewhere else ANOTHER_PERSON
            raise NotPermitted(f"{why}. The proposal is open: {to_see}") from None

    async def _answered(self, question_id: str, words: Words) -> int:
        answering = Answering(self.backend, self.settings, words, self.anyway, self.wait)
        return await answering.one(question_id)

    async def _changeable(self) -> RunView:
        """One whose plan may be changed, and whose tools are known where it is driven."""
        run, _ = await plan_run(self.backend, self.run_id)
        if run.over:
            status = run.status.value
            raise NotAllowed(f"{self.run_id} is {status}: its plan cannot be changed any more")
        await self.backend.refuse_without_tools(self.run_id, anyway=self.anyway)
        return run

"""Looking at failures: what rules, lessons and models make of a case, and what a patch would do.

The pure rules stand in the room `repair`; here they are given what they need: the run's own
journal, the tools and plans of this installation, a model where there is one. They work beside the
loop, because a plan may have ten thousand listeners.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from holdfast.core.plan.fitting import frozen
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.difference import difference
from holdfast.core.repair.operations import read_operations, touched
from holdfast.core.repair.state import CaseState
from holdfast.errors import NotFound, OperatorError, PatchRejected
from holdfast.i18n.message import msg
from holdfast.language.strict import canonical_json, strict_text
from holdfast.model import commands as c
from holdfast.model.effects import ConsultPlanner, Diagnose
from holdfast.model.message import ToolOffer
from holdfast.model.plan import Listener, Plan, ToolAction
from holdfast.model.repair import Diagnosis, Lesson, Look, PlanPatch, Proposal, Thought, Verdict
from holdfast.model.retry import Cause, Failure, FailureKind, GiveUp, Retry
from holdfast.model.values import Json, JsonObject
from holdfast.plans.case_facts import CaseFacts, gathered
from holdfast.plans.hooks import (
    HOOK,
    Case,
    CaseHooks,
    Heard,
    after_hooks,
    concluded,
    heard,
    of_model,
)
from holdfast.repair.budgets import Call
from holdfast.repair.checks import judge
from holdfast.repair.contract import Asked
from holdfast.repair.evidence import evidence_of
from holdfast.repair.lessons import key_of
from holdfast.repair.looking import look, sound_candidates
from holdfast.repair.surroundings import Surroundings
from holdfast.repair.waits import failing_of, held, weighed
from holdfast.repair.words import described
from holdfast.runs.handles import instance_context
from holdfast.runtime.engine import Engine
from holdfast.runtime.experience import ExperienceKeeper
from holdfast.runtime.identity import LOCAL
from holdfast.runtime.machines import as_plan
from holdfast.source.check import Catalog
from holdfast.work.diagnosing import think
from holdfast.work.thinker import Thinker
from holdfast.work.tools import ToolRegistry

log = logging.getLogger("holdfast")

BY_A_PERSON: Final = "person"
BY_A_MODEL: Final = "model:written"
LONGEST_REASON: Final = 2_000
LONGEST_SUMMARY: Final = 60
"""Lines of a plan that a model is shown."""

_NOTHING_SAID: Final = Failure(FailureKind.PERMANENT, "")

Judged: TypeAlias = Proposal | tuple[str, ...]
Judging: TypeAlias = Callable[[tuple[JsonObject, ...], str], Judged]


class Repairer:
    def __init__(self, engine: Engine, tools: ToolRegistry, catalog: Callable[[], Catalog]) -> None:
        self._engine = engine
        self._tools = tools
        self._catalog = catalog

    def surroundings(self) -> Surroundings:
        facts = {one.name: self._engine.worker.tool_facts(one.name) for one in self._tools.specs()}
        known = {name: one for name, one in facts.items() if one is not None}
        return Surroundings(self._catalog(), known)

    async def diagnose(
        self,
        models: Thinker | None,
        effect: Diagnose,
        state: PlanState,
        hooks: CaseHooks | None = None,
    ) -> Look | Thought:
        """What is made of a case: by rules and lessons, or at its request by the application's own
        hooks and a model."""
        case = state.repair.cases.get(effect.case_id)
        if case is None:
            raise NotFound(msg("{id} has no case {case}", id=state.run_id, case=effect.case_id))
        if effect.number == 0:
            failure, has_model = case.failure or _NOTHING_SAID, models is not None
            of = (state, case.listener_id, failure, case.case_id)
            return await self.look(*of, has_model=has_model)
        facts = await self._facts(state)
        failed = (state, case.listener_id, case.failure or _NOTHING_SAID)
        lessons = await self._lessons(*failed, facts.surroundings)
        asked = await asyncio.to_thread(self._asked, state, case, facts, lessons)
        if hooks is None or case.complaint:
            return await _thought(models, asked, case)
        told = await self._heard(hooks, state, case, asked, facts)
        goes_on = told.proposal is None and await self._worth_asking(models, state, case)
        return concluded(told, asked.diagnosis, goes_on=goes_on)

    async def _heard(
        self, hooks: CaseHooks, state: PlanState, case: CaseState, asked: Asked, facts: CaseFacts
    ) -> Heard:
        given = Case(
            plan_instance_id=state.run_id,
            case_id=case.case_id,
            listener_id=case.listener_id,
            failure=case.failure or _NOTHING_SAID,
            diagnosis=asked.diagnosis,
            evidence=asked.evidence,
            candidates=asked.candidates,
            plan=state.plan.plan,
            context=instance_context(state),
        )
        judged = _judge(state, case, facts, hooks.source)

        async def judging(operations: tuple[JsonObject, ...], why: str) -> Judged:
            return await asyncio.to_thread(judged, operations, why)

        return await heard(hooks, given, judging)

    async def _worth_asking(
        self, models: Thinker | None, state: PlanState, case: CaseState
    ) -> bool:
        """Whether a model could add something, as a look says where there are no hooks."""
        if models is None:
            return False
        of = (state, case.listener_id, case.failure or _NOTHING_SAID, case.case_id)
        return (await self.look(*of, has_model=True)).thinks

    async def look(
        self, state: PlanState, listener_id: str, failure: Failure, case_id: str, *, has_model: bool
    ) -> Look:
        facts = await self._facts(state)
        lessons = await self._lessons(state, listener_id, failure, facts.surroundings)

        def work() -> Look:
            found = evidence_of(facts.events, listener_id)
            of = (state, listener_id, failure, found, facts.surroundings, lessons)
            return look(*of, has_model=has_model, case_id=case_id, **facts.judging)

        return await asyncio.to_thread(work)

    async def _lessons(
        self, state: PlanState, listener_id: str, failure: Failure, known: Surroundings
    ) -> tuple[Lesson, ...]:
        """What has repaired this very failure in other runs of the plan."""
        if listener_id not in state.plan.listeners:
            return ()
        tool = state.plan.listeners[listener_id].tool
        facts = known.tools.get(tool) if tool else None
        key = key_of(state, listener_id, facts.version if facts else "", failure.fingerprint)
        return (await self._experience()).lessons_for(key)

    async def worth_waiting(
        self, advice: Retry, effect: ConsultPlanner, state: PlanState
    ) -> Retry | GiveUp:
        """When a further round is worth it, as learned from how others like it recovered; as the
        author's backoff has it where too few are known. A service that asks for more has it."""
        failure, listener_id = effect.failure, effect.listener_id
        failing = failing_of(state, listener_id, failure, self._engine.clock.now())
        if failing is None or effect.retry_count >= advice.most:
            return advice
        keeper = await self._experience()
        found = weighed(advice, keeper.moments(failing.tool, failure, state.run_id), failing)
        if isinstance(found, GiveUp):
            return found
        call = Call(state.run_id, listener_id)
        return held(found, failing, *keeper.hold(failing.tool, failure, call))

    async def _experience(self) -> ExperienceKeeper:
        """As far as it can be read: a run that failed is dealt with all the same."""
        learning = self._engine.learning
        try:
            return await learning.experience()
        except OperatorError as error:
            log.warning("what is known of failures cannot be read: %s", error)
            return learning.keeper

    def _asked(
        self, state: PlanState, case: CaseState, facts: CaseFacts, lessons: Sequence[Lesson]
    ) -> Asked:
        plan, ids = state.plan.plan, [one.listener_id for one in state.plan.plan.listeners]
        found = evidence_of(facts.events, case.listener_id)
        failure = case.failure or _NOTHING_SAID
        of = (state, case.listener_id, failure, found, facts.surroundings, lessons)
        past = frozen(state)
        return Asked(
            run_id=state.run_id,
            case_id=case.case_id,
            number=case.number,
            evidence=found,
            diagnosis=case.diagnosis or Diagnosis(Cause.UNKNOWN, ""),
            judge=_judge(state, case, facts, BY_A_MODEL),
            candidates=sound_candidates(*of, case_id=case.case_id, **facts.judging),
            write=plan.repair.write,
            plan=summary_of(plan),
            tools=self._offers(plan),
            listeners=tuple(one for one in ids if one not in past),
            taken=frozenset((*ids, *state.plan.task_ids)),
        )

    def _offers(self, plan: Plan) -> tuple[ToolOffer, ...]:
        """The tools that a written patch may call: the plan's own, and those its author named."""
        own = (one.action.tool for one in plan.listeners if isinstance(one.action, ToolAction))
        found = (self._tools.find(name) for name in dict.fromkeys((*own, *plan.repair.tools)))
        specs = (one.spec for one in found if one is not None)
        return tuple(ToolOffer(one.name, one.description, one.parameters) for one in specs)

    async def proposal(
        self, run_id: str, operations: Sequence[JsonObject], *, reason: str = "", by: str = LOCAL
    ) -> Proposal:
        """A person's own patch with all that is to be said of it, its problems included; nothing is
        changed. PatchRejected where it cannot be read."""
        state = as_plan(await self._engine.state(run_id))
        read_operations(operations)
        patch = PlanPatch(
            f"patch_{secrets.token_hex(4)}",
            state.plan.digest,
            tuple(operations),
            strict_text(reason, "reason", longest=LONGEST_REASON),
            source=BY_A_PERSON,
            by=strict_text(by, "by"),
        )
        facts = await self._facts(state)

        def work() -> Proposal:
            verdict = judge(state, patch, facts.surroundings, by_model=False, **facts.judging)
            return _proposal(state, patch, verdict)

        return await asyncio.to_thread(work)

    async def propose(
        self,
        run_id: str,
        operations: Sequence[JsonObject],
        *,
        reason: str = "",
        by: str = LOCAL,
        listener_id: str = "",
    ) -> Proposal:
        """Ask for consent to a person's own patch; PatchRejected with all that is wrong with it. It
        mends the failed listener that it changes, unless another is named."""
        proposal = await self.proposal(run_id, operations, reason=reason, by=by)
        if proposal.verdict.problems:
            raise PatchRejected(proposal.verdict.problems)
        if not listener_id:
            changed = touched(read_operations(operations))
            failed = as_plan(await self._engine.state(run_id)).failed
            mended = [one for one in failed if one in changed]
            listener_id = mended[0] if len(mended) == 1 else ""
        await self._engine.submit(run_id, c.ProposePatch(proposal, by, listener_id))
        return proposal

    async def to_current(self, run_id: str) -> tuple[JsonObject, ...]:
        """What makes today's version of its plan of the one that a run has."""
        state = as_plan(await self._engine.state(run_id))
        current = self._engine.definitions.current(state.plan_id)
        return await asyncio.to_thread(difference, state.plan.plan, current.plan)

    async def _facts(self, state: PlanState) -> CaseFacts:
        return await gathered(self._engine, state, self.surroundings())


async def _thought(models: Thinker | None, asked: Asked, case: CaseState) -> Thought:
    """A model's; what a hook said is wrong stands, whatever the model says of it."""
    if models is None:
        return Thought(reason=msg("there is no model to ask"))
    found = after_hooks(await think(models, asked, of_model(case.complaint)), case.complaint)
    by_hook = asked.diagnosis.source.startswith(HOOK)
    return replace(found, diagnosis=asked.diagnosis) if by_hook else found


def _judge(state: PlanState, case: CaseState, facts: CaseFacts, source: str) -> Judging:
    """What becomes of operations that a model wrote, or a hook wants."""

    def judged(operations: tuple[JsonObject, ...], why: str) -> Judged:
        patch_id, base = f"{case.case_id}_{case.number}", state.plan.digest
        patch = PlanPatch(patch_id, base, operations, why, case.case_id, source)
        by_model = source == BY_A_MODEL
        verdict = judge(state, patch, facts.surroundings, by_model=by_model, **facts.judging)
        return verdict.problems or _proposal(state, patch, verdict)

    return judged


def _proposal(state: PlanState, patch: PlanPatch, verdict: Verdict) -> Proposal:
    words = described(state.plan.plan, patch.operations) if not verdict.problems else ()
    return Proposal(patch, verdict, {"words": list(words)})


def summary_of(plan: Plan) -> str:
    """A line of JSON for each listener, as a model is shown the plan."""
    return "\n".join(canonical_json(_line(one)) for one in plan.listeners[:LONGEST_SUMMARY])


def _line(listener: Listener) -> dict[str, Json]:
    line: dict[str, Any] = {
        "id": listener.listener_id,
        "of": list(listener.trigger_task_id),
        "when": listener.trigger_condition,
        "type": listener.listener_type,
    }
    if isinstance(listener.action, ToolAction):
        line |= {"tool": listener.action.tool, "args": dict(listener.action.args)}
    return line

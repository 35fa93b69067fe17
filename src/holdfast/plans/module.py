"""Plans in Python: the module that starts them and the planner that mends them.

The names, signatures and result shapes are the seeds'. Refusals of the caller come
back in the seeds' shapes (`{"success": False, "error": …}`, `False`); errors of the
infrastructure raise.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.core.interactions.answers import option_for_data
from holdfast.core.plan.cases import case_id_for
from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.spent import is_alone
from holdfast.core.plan.state import PlanState
from holdfast.core.storing import plan_digest
from holdfast.errors import (
    AlreadyAnswered,
    CallerError,
    InvalidAnswer,
    JournalUnavailable,
    NotAllowed,
    NotFound,
)
from holdfast.forms.validation import validate
from holdfast.i18n.message import msg, term
from holdfast.journal.port import NOTHING, Attached, ExpiringValue, RunQuery
from holdfast.journal.vault import SecretScope, Vault, sealed_answer
from holdfast.language.strict import strict_json, strict_text
from holdfast.model import commands as c
from holdfast.model.effects import ConsultPlanner, Diagnose
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.message import Usage
from holdfast.model.plan import Listener, Plan, PlanInstanceStatus
from holdfast.model.repair import (
    LONGEST_REQUEST,
    Diagnosis,
    Look,
    Mend,
    Proposal,
    RepairMode,
    Thought,
)
from holdfast.model.retry import Advice, Cause, FailureKind, GiveUp, Retry
from holdfast.model.values import Json
from holdfast.plans import forks
from holdfast.plans.draft_plan import draft_plan, values_of
from holdfast.plans.drafts import LONGEST_PROMPT, Approvals, Drafts, Drawn
from holdfast.plans.hooks import HOOK, Case, CaseHooks, Operations
from holdfast.plans.repairs import Repairer
from holdfast.plans.results import Taken, result_of_answer
from holdfast.plans.routing import Routed, route
from holdfast.plans.selection import (
    chooser,
    chosen_plan,
    inputs_in,
    named_plan,
    secret_inputs,
    spending,
)
from holdfast.repair.looking import auto_covers
from holdfast.runs.handles import (
    PlanInstance,
    TaskInstance,
    changed_tasks,
    instance_context,
)
from holdfast.runtime.engine import Engine
from holdfast.runtime.identity import LOCAL
from holdfast.runtime.machines import as_plan
from holdfast.work.advice import hook_advice
from holdfast.work.driver import ListenerContext, TaskDriver
from holdfast.work.thinker import Thinker

__all__ = [
    "GiveUp",
    "ListenerContext",
    "PlanInstance",
    "PlanInstanceStatus",
    "PlanModule",
    "PlannerAgent",
    "Retry",
    "RetrySituation",
    "TaskDriver",
    "TaskInstance",
]

log = logging.getLogger("holdfast")

_OUTSIDE_ID = re.compile(r"(?P<run_id>inst_\d+(\.[\w-]+\.\d+)*)_(?P<inside>.+)")


@dataclass(frozen=True, slots=True)
class RetrySituation:
    """What the planner knows when it decides on a retry; `retry_after` is how many seconds the
    service asked to be left alone."""

    plan_instance_id: str
    task_id: str
    listener_id: str
    kind: FailureKind
    error: str
    retry_count: int
    max_retry_count: int
    retry_after: float | None = None


class PlannerAgent:
    """Decides on failures; continues what is paused and resumes what has failed.

    `decision_timeout` is how many seconds `decide_retry_strategy` may take, and `diagnose` and
    `propose` together, which may take a minute at most.
    """

    hears_of_tasks = False
    """Whether `on_task_status_change` is overridden."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = cls.on_task_status_change is not PlannerAgent.on_task_status_change
        cls.hears_of_tasks = own

    def __init__(
        self,
        a2a_client: Any = None,
        llm_client: Any = None,
        max_retry_count: int = 3,
        decision_timeout: float = 60.0,
    ) -> None:
        if max_retry_count < 0:
            raise ValueError("max_retry_count cannot be negative")
        if not 0 < decision_timeout < math.inf:
            raise ValueError("decision_timeout must be a number of seconds above 0")
        self.a2a_client = a2a_client
        self.llm_client = llm_client
        self.max_retry_count = max_retry_count
        self.decision_timeout = decision_timeout
        self.plan_module: PlanModule | None = None
        self.task_driver: TaskDriver | None = None
        self.repairer: Repairer | None = None
        self._told: set[asyncio.Task[None]] = set()

    async def decide_retry_strategy(self, situation: RetrySituation) -> int | Advice:
        """How many retries this failure may have in all; override to decide otherwise.

        An override, async or not, returns that number, `Retry(most, delay, why)` or
        `GiveUp(why)`. Trying again cannot help where the arguments or the rights are wrong.
        """
        hopeless = (FailureKind.PERMANENT, FailureKind.FORBIDDEN, FailureKind.MISSING)
        return 0 if situation.kind in hopeless else self.max_retry_count

    async def diagnose(self, case: Case) -> Diagnosis | None:
        """What is wrong; override where your own code knows better than rules and models.

        An override, async or not, returns a `Diagnosis` that cites evidence of the case, or None.
        """
        return None

    async def propose(self, case: Case, diagnosis: Diagnosis) -> Proposal | Operations | None:
        """What may help; override where your own code knows better than rules and models.

        An override, async or not, returns one of `case.candidates`, operations of its own, or
        None. It is judged, and a person decides. `diagnosis` is what `diagnose` said, if anything.
        """
        return None

    async def choose_plan(self, prompt: str, plans: Sequence[Plan]) -> str | None:
        """The plan that a prompt is for; None where it is not known, so that one is drawn up or a
        person chooses. Override to choose otherwise."""
        named = named_plan(prompt, plans)
        if named is None and self._thinks():
            return await chosen_plan(self.llm_client, prompt, plans)
        return named

    async def complete_inputs(
        self, prompt: str, plan: Plan, given: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        """Inputs that were not given, as far as the model finds them in the prompt."""
        missing = tuple(one for one in plan.inputs.fields if _may_be_read(one, given))
        if not missing or not prompt.strip() or not self._thinks():
            return given
        if not validate(plan.inputs, given).errors:
            return given
        return {**await inputs_in(self.llm_client, prompt, Form(missing)), **given}

    def _thinks(self) -> bool:
        return self.thinker() is not None

    def thinker(self) -> Thinker | None:
        """The model to ask, where one is named."""
        named = getattr(self.llm_client, "default_model", None) is not None
        return self.llm_client if named else None

    async def on_task_status_change(
        self, task_instance: TaskInstance, plan_context: Mapping[str, Any]
    ) -> None:
        """Called after every committed change of a task's status; override to follow along.

        The engine has already decided which listeners fire.
        """

    async def continue_plan(
        self, plan_instance_id: str, provided_params: Mapping[str, Any], *, by: str = LOCAL
    ) -> dict[str, Any]:
        """Give a paused instance what it asks for; returns the listener's result."""
        try:
            return await self._module().continue_instance(plan_instance_id, provided_params, by)
        except InvalidAnswer as error:
            return {"success": False, "error": str(error), "fields": error.fields}
        except AlreadyAnswered as error:
            return {"success": False, "error": str(error), "answered_by": error.by}
        except NotFound:
            return {
                "success": False,
                "error": msg("Plan instance {id} not found", id=plan_instance_id),
            }
        except CallerError as error:
            return {"success": False, "error": str(error)}

    async def resume_plan(
        self,
        plan_module: PlanModule,
        plan_id: str,
        plan_instance_id: str | None = None,
        *,
        by: str = LOCAL,
    ) -> bool:
        """Run again what failed; False when there is nothing to resume."""
        try:
            if plan_instance_id is None:
                plan_instance_id = await plan_module.only_instance_in_error(plan_id)
            instance = await plan_module.get_plan_instance(plan_instance_id)
            if instance is None or instance.plan_id != plan_id:
                return False
            await plan_module.engine.submit(plan_instance_id, c.Resume(by))
        except CallerError as error:
            log.info("resume of %s: %s", plan_instance_id or plan_id, error)
            return False
        return True

    async def advise(
        self, effect: ConsultPlanner, state: PlanState
    ) -> tuple[Advice | Mend, Look | None]:
        """The engine's question, and what the hook made of it; of a failure that is not tried
        again also what is known of it."""
        advice = await self._retry_advice(effect, state)
        if self.repairer is not None and isinstance(advice, Retry) and _learns(advice, state):
            advice = await self._worth_waiting(self.repairer, advice, effect, state)
        if isinstance(advice, Retry) and effect.retry_count < advice.most:
            return advice, None
        look = await self._look(effect, state)
        policy, found = state.plan.plan.repair, look is not None and look.proposal
        alone = is_alone(state)
        if look and found and not look.thinks and auto_covers(policy, found, alone=alone):
            return Mend(look.diagnosis, found, advice.why), None
        return advice, None if look is None else self._heard_first(look)

    async def _worth_waiting(
        self, repairer: Repairer, advice: Retry, effect: ConsultPlanner, state: PlanState
    ) -> Advice:
        """As the author has it where nothing can be made of what was learned."""
        try:
            return await repairer.worth_waiting(advice, effect, state)
        except Exception:
            log.exception("what was learned of %s is not used", effect.listener_id)
            return advice

    async def _look(self, effect: ConsultPlanner, state: PlanState) -> Look | None:
        if self.repairer is None or state.plan.plan.repair.mode is RepairMode.OFF:
            return None
        case_id = case_id_for(state, effect.listener_id)
        of = (state, effect.listener_id, effect.failure, case_id)
        try:
            return await self.repairer.look(*of, has_model=self._thinks())
        except Exception:
            log.exception("no diagnosis of %s in %s", effect.listener_id, state.run_id)
            return None

    async def examine(self, effect: Diagnose, state: PlanState) -> Look | Thought:
        """The engine's question about a case."""
        unknown = Diagnosis(Cause.UNKNOWN, msg("it could not be looked at"), source="rule:none")
        try:
            if self.repairer is not None:
                of = (self.thinker(), effect, state, self._hooks())
                found = await self.repairer.diagnose(*of)
                return self._heard_first(found) if isinstance(found, Look) else found
        except JournalUnavailable:
            raise
        except Exception:
            log.exception("no diagnosis of %s in %s", effect.case_id, state.run_id)
        return Thought(reason=unknown.summary) if effect.number else Look(unknown)

    def _hooks(self) -> CaseHooks | None:
        """Where an application has any of its own."""
        named = type(self).__name__
        limit = min(self.decision_timeout, LONGEST_REQUEST)
        own = CaseHooks(self.diagnose, self.propose, f"{HOOK}{named}", limit)
        usual = PlannerAgent.diagnose, PlannerAgent.propose
        theirs = (getattr(one, "__func__", None) for one in (own.diagnose, own.propose))
        return None if tuple(theirs) == usual else own

    def _heard_first(self, look: Look) -> Look:
        """Nothing is proposed before hooks of the application's own were asked."""
        return look if self._hooks() is None else Look(look.diagnosis, look.proposal, thinks=True)

    async def _retry_advice(self, effect: ConsultPlanner, state: PlanState) -> Advice:
        situation = RetrySituation(
            state.run_id,
            effect.task_id,
            effect.listener_id,
            effect.failure.kind,
            effect.failure.message,
            effect.retry_count,
            self.max_retry_count,
            effect.failure.retry_after,
        )
        usual = partial(PlannerAgent.decide_retry_strategy, self)
        hook, limit = self.decide_retry_strategy, self.decision_timeout
        return await hook_advice(hook, usual, situation, limit)

    async def close(self) -> None:
        """Let those be told who are being told."""
        while self._told:
            await asyncio.wait(tuple(self._told))

    def tasks_changed(self, before: PlanState, after: PlanState) -> None:
        if before.tasks is after.tasks:
            return
        task = asyncio.get_running_loop().create_task(self._tell(before, after))
        self._told.add(task)
        task.add_done_callback(self._told.discard)

    async def _tell(self, before: PlanState, after: PlanState) -> None:
        context = {"plan_instance_id": after.run_id, **instance_context(after)}
        for task in changed_tasks(before, after):
            try:
                await self.on_task_status_change(task, context)
            except Exception:
                log.exception("on_task_status_change failed for %s", task.id)

    def _module(self) -> PlanModule:
        if self.plan_module is None:
            raise NotAllowed("this PlannerAgent belongs to no PlanModule yet")
        return self.plan_module


def _learns(advice: Retry, state: PlanState) -> bool:
    """Whether the author leaves it to experience when a further round is worth it."""
    return advice.delay is None and state.plan.plan.repair.mode is RepairMode.AUTO


def _may_be_read(field: Field, given: Mapping[str, Json]) -> bool:
    """A secret is never looked for in a prompt, nor told to a model."""
    return field.name not in given and field.type is not FieldType.SECRET


class ListenerRepo:
    """Listeners by id: `L002` is looked up in the plan, `inst_000001_L002` in the instance."""

    def __init__(self, module: PlanModule) -> None:
        self._module = module

    async def get_by_id(self, listener_id: str, plan_id: str | None = None) -> Listener | None:
        try:
            if plan_id is not None:
                plan = self._module.engine.definitions.current(plan_id)
                return plan.listener(listener_id).listener
            number = _OUTSIDE_ID.match(listener_id)
            if number is None:
                return None
            state = as_plan(await self._module.engine.state(number["run_id"]))
            return state.plan.listener(number["inside"]).listener
        except NotFound:
            return None


@dataclass(frozen=True, slots=True)
class _Meant:
    """The plan that a prompt leads to, and the form of what is given for it, or for any that it may
    lead to; `draws_up`: it makes a plan first."""

    plan: CompiledPlan
    form: Form
    draws_up: bool = False


class PlanModule:
    """Starts plans, finds their instances, and passes people's words on to them."""

    def __init__(
        self, engine: Engine, planner_agent: PlannerAgent, vault: Vault, task_driver: TaskDriver
    ) -> None:
        self.engine = engine
        self.vault = vault
        self.planner_agent = planner_agent
        self.planner_agent.plan_module = self
        self.planner_agent.task_driver = task_driver
        self.listener_repo = ListenerRepo(self)
        self.drafts: Drafts | None = None

    async def start_plan_by_prompt(
        self,
        prompt: str,
        plan_id: str | None = None,
        *,
        values: Mapping[str, Any] | None = None,
        by: str = LOCAL,
    ) -> PlanInstance:
        """Start an instance, which drives itself; `values` are the plan's inputs.

        Without `plan_id` the planner chooses a plan. Where none fits, the instance has a model draw
        one up and asks for approval, or without a model asks which is meant.
        """
        words = strict_text(prompt, "prompt", longest=LONGEST_PROMPT)
        given = strict_json(dict(values or {}))
        by, spent = strict_text(by, "by"), list[Usage]()
        with spending(spent) if self.planner_agent.thinker() else nullcontext():
            meant = await self._plan_for(words, plan_id, given)
            plan, form = meant.plan, meant.form
            run_id = f"inst_{await self.engine.journal.next_number('inst'):06d}"
            attached = NOTHING
            if form.fields:
                sealed = await self.vault.take(form, given, SecretScope(run_id, run_id))
                given, attached = sealed.data, Attached(kept=sealed.kept)
            values = await self.planner_agent.complete_inputs(words, plan.plan, given)
        if meant.draws_up:
            values = values_of(words, values)
        usage = sum(spent, start=Usage()) if spent else None
        command = c.StartRun(plan.plan.plan_id, words, values, by=by, usage=usage)
        state = await self.engine.begin(run_id, plan, command, attached=attached)
        return PlanInstance(self.engine, state)

    async def draft(self, prompt: str, *, values: Mapping[str, Any] | None = None) -> Drawn:
        """The plan that a model would draw up for this, and what it would do; nothing is started.

        NotAllowed where no model is named.
        """
        return await self._drafts().draft(prompt, values)

    async def adopt(
        self, run_id: str, plan_id: str, *, by: str = LOCAL, approvals: Approvals = "keep"
    ) -> Plan:
        """Make the plan that was drawn up in a run one of the catalogue, under an id of its own.

        Its steps go on asking for approval, unless the author drops that; what tools ask for by
        their own rules they always ask for.
        """
        return await self._drafts().adopt(run_id, plan_id, by=by, approvals=approvals)

    def _drafts(self) -> Drafts:
        if self.drafts is None:
            raise NotAllowed("this PlanModule belongs to no application yet")
        return self.drafts

    async def _plan_for(
        self, prompt: str, plan_id: str | None, given: Mapping[str, Json]
    ) -> _Meant:
        library = self.engine.definitions
        if plan_id is not None:
            plan = library.current(plan_id)
            return _Meant(plan, plan.plan.inputs)
        draws_up = self.drafts is not None and self.drafts.has_model
        plans = [library.current(one).plan for one in sorted(library.plan_ids())]
        if not plans and not draws_up:
            raise NotFound(msg("no plan is loaded that the prompt could be for"))
        chosen = await self.planner_agent.choose_plan(prompt, plans) if plans else None
        if chosen is not None:
            plan = library.current(chosen)
            return _Meant(plan, plan.plan.inputs)
        asking = draft_plan(plans, given) if draws_up else chooser(plans, prompt, given)
        made = CompiledPlan(asking, plan_digest(asking))
        return _Meant(made, secret_inputs(plans), draws_up)

    async def fork(self, plan_instance_id: str, seq: int, *, by: str = LOCAL) -> PlanInstance:
        """A new instance that goes on from event `seq` of one that is over; what was done by then
        counts as done."""
        signed = strict_text(by, "by")
        state = await forks.fork(self.engine, plan_instance_id, seq, signed)
        return PlanInstance(self.engine, state)

    async def get_plan_instance(self, plan_instance_id: str) -> PlanInstance | None:
        try:
            return PlanInstance(self.engine, await self.engine.state(plan_instance_id))
        except NotFound:
            return None

    async def update_plan_instance(
        self, plan_instance_id: str, updates: Mapping[str, Any], *, by: str = LOCAL
    ) -> PlanInstance:
        """Edit the main task's values; a status moves by commands only."""
        unknown = set(updates) - {"context", "status"}
        if unknown:
            raise NotAllowed(
                msg("cannot update {names}; only context values", names=", ".join(sorted(unknown)))
            )
        state = as_plan(await self.engine.state(plan_instance_id))
        if updates.get("status", state.status) != state.status:
            raise NotAllowed(msg("a status cannot be set; use continue, resume, skip or cancel"))
        values = dict(updates.get("context", {}).get("values", {}))
        if values:
            command = c.EditContext(state.plan.main, strict_json(values), by)
            state = as_plan(await self.engine.submit(plan_instance_id, command))
        return PlanInstance(self.engine, state)

    async def wait_for_completion(self, plan_instance_id: str, timeout: float | None = None) -> str:
        instance = await self.get_plan_instance(plan_instance_id)
        if instance is None:
            raise NotFound(
                msg("there is no {kind} {name}", kind=term("run"), name=plan_instance_id)
            )
        return await instance.wait_for_completion(timeout)

    async def only_instance_in_error(self, plan_id: str) -> str:
        query = RunQuery(status=frozenset({"error"}), name=plan_id, limit=10)
        runs = await self.engine.journal.runs(query)
        if len(runs) == 1:
            return runs[0].run_id
        if not runs:
            raise NotFound(msg("no instance of {plan} waits for a resume", plan=plan_id))
        names = ", ".join(run.run_id for run in runs)
        raise NotAllowed(
            msg(
                "several instances of {plan} wait for a resume: name one of {names}",
                plan=plan_id,
                names=names,
            )
        )

    async def continue_instance(
        self, plan_instance_id: str, provided_params: Mapping[str, Any], by: str
    ) -> dict[str, Any]:
        """Values go to the forms by field name; nothing is answered unless all fit."""
        answers = await self.routed(plan_instance_id, provided_params)
        taken = await self.provide(answers, by)
        results = [await result_of_answer(self.engine, *one) for one in taken]
        final = await self.engine.state(plan_instance_id)
        return {"success": True, "status": final.status.value, "result": results[0]}

    async def routed(
        self, plan_instance_id: str, provided_params: Mapping[str, Any]
    ) -> list[Routed]:
        """Which open form each value belongs to; nothing is answered yet."""
        state = as_plan(await self.engine.state(plan_instance_id))
        return await route(self.engine, state, strict_json(dict(provided_params)))

    async def provide(self, answers: Sequence[Routed], by: str) -> list[Taken]:
        """Answer the forms; what came of each is committed, and goes on by itself."""
        sealed = [await self._sealed(one, by) for one in answers]
        taken = []
        for (run_id, question, _), (data, kept) in zip(answers, sealed, strict=True):
            option = option_for_data(question)
            named = None if option is None else option.option_id
            command = c.Answer(question.request.request_id, by, named, data)
            answered = await self.engine.submit(run_id, command, attached=Attached(kept=kept))
            taken.append((run_id, question, answered))
        return taken

    async def _sealed(
        self, answer: Routed, by: str
    ) -> tuple[dict[str, Json], tuple[ExpiringValue, ...]]:
        run_id, question, values = answer
        root_id = (await self.engine.state(run_id)).root_id
        scope = SecretScope(question.request.request_id, root_id, by)
        form, status = question.request.form, question.status
        sealed = await sealed_answer(self.vault, form, values, scope, status)
        return sealed.data, sealed.kept

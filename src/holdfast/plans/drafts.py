"""Plans that a model draws up: shown, approved and run, and adopted by an author.

The generated plan `draft_plan` calls two tools of ours. The one makes a request for each time that
it was started, and no more than `MOST_REQUESTS` in a run, whatever becomes of the process: the
starts are counted in the run's own journal. What it draws up it stores by content before it says
so. The other finds, once a person has approved, which plan that person was shown.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final, Literal, cast, get_args

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.storing import record_to_json
from holdfast.errors import (
    InvalidValue,
    NotAllowed,
    NotFound,
    PermanentError,
    PlanRejected,
    Problem,
)
from holdfast.i18n.message import msg
from holdfast.journal.codec import decode
from holdfast.language.strict import canonical_json, strict_json, strict_text
from holdfast.model import events as e
from holdfast.model.approval import ApprovalMode
from holdfast.model.message import ToolOffer, Usage
from holdfast.model.plan import Plan
from holdfast.model.record import record
from holdfast.model.recorded import Event
from holdfast.model.rows import Attached, AuditRecord
from holdfast.model.values import Json, JsonObject
from holdfast.plans.draft_plan import (
    AGAIN,
    APPROVE,
    APPROVED_TOOL,
    DRAFT_PLAN,
    DRAFTED,
    NONE,
    SKETCH_TOOL,
    SOUND,
    THINKING,
    values_of,
)
from holdfast.plans.registering import KIND, kept_plan, new_mark
from holdfast.plans.selection import CHOOSER
from holdfast.repair.drafting import Draft, draft_to_json, findings
from holdfast.repair.surroundings import Surroundings
from holdfast.runtime.audit import attach_claimed
from holdfast.runtime.engine import Engine
from holdfast.runtime.identity import LOCAL, Identity, current
from holdfast.runtime.machines import as_plan, definition_of
from holdfast.runtime.registry import compiled
from holdfast.source.check import Catalog
from holdfast.work.drafting import MOST_REQUESTS, Drafting, draft
from holdfast.work.thinker import Thinker
from holdfast.work.tools import CallInfo, ToolRegistry, ToolSpec

Approvals = Literal["keep", "drop"]

RESERVED: Final = (DRAFT_PLAN, DRAFTED, CHOOSER)
LONGEST_PROMPT: Final = 100_000
ADOPTED: Final = "<adopted>"

_ASKED: Final = {name: {"type": "string"} for name in ("number", "request", "complaint")}
_SPENT: Final = msg("the model was asked {n} times, and may be asked no more", n=MOST_REQUESTS)
_NOT_APPROVED: Final = msg("nobody has approved a plan that was drawn up in this run")
_NO_MODEL: Final = msg("no model is named: set HOLDFAST_MODEL (such as openai:gpt-4o)")


@record
class Drawn:
    """What a model came to after so many `requests`: a draft, or the `reason` why there is none."""

    draft: Draft | None
    reason: str
    usage: Usage
    requests: int


class Drafts:
    """`models` gives what is asked, or None where no model is named."""

    def __init__(
        self,
        engine: Engine,
        tools: ToolRegistry,
        surroundings: Callable[[], Surroundings],
        catalog: Callable[[], Catalog],
        models: Callable[[], Thinker | None],
    ) -> None:
        self._engine = engine
        self._tools = tools
        self._surroundings = surroundings
        self._catalog = catalog
        self._models = models

    @property
    def has_model(self) -> bool:
        return self._models() is not None

    async def draft(self, prompt: str, values: Mapping[str, Json] | None = None) -> Drawn:
        """What a plan for this would be; nothing is started or kept. NotAllowed without a model."""
        words = strict_text(prompt, "prompt", longest=LONGEST_PROMPT)
        request = str(values_of(words, strict_json(dict(values or {})))["request"])
        found, usage, number = Drafting(again=True), Usage(), 0
        while found.again and number < MOST_REQUESTS:
            found = await self._think(request, found.complaint)
            usage, number = usage + found.usage, number + 1
        return Drawn(found.draft, found.reason, usage, number)

    async def _think(self, request: str, complaint: str) -> Drafting:
        """One request."""
        models = self._models()
        if models is None:
            raise NotAllowed(_NO_MODEL)
        surroundings, now = self._surroundings(), self._engine.clock.now()
        offers = self._offers(surroundings)
        return await draft(
            models, request, offers, surroundings, complaint, plan_id=DRAFTED, now=now
        )

    def _offers(self, surroundings: Surroundings) -> Sequence[ToolOffer]:
        """The tools that a sketch may name."""
        known = surroundings.tools
        return [
            ToolOffer(one.name, one.description, one.parameters)
            for one in self._tools.specs()
            if one.name in known and known[one.name].mode is not ApprovalMode.DISABLED
        ]

    async def adopt(
        self, run_id: str, plan_id: str, *, by: str = LOCAL, approvals: Approvals = "keep"
    ) -> Plan:
        """The plan that was drawn up in a run, as a plan of the catalogue.

        Its steps go on asking for approval unless the author drops that; what a tool asks for by
        its own rule stays. It is kept as plans are that are registered over HTTP, and the audit
        has who did so. PlanRejected with all that is wrong with it here and now.
        """
        by = strict_text(by, "by")
        if approvals not in get_args(Approvals):
            told = msg("is keep or drop, not {value!r}", value=str(approvals))
            raise InvalidValue(told, "approvals")
        if plan_id in (*self._engine.definitions.plan_ids(), *RESERVED):
            raise NotAllowed(msg("the plan id {id} is taken: choose another", id=plan_id))
        drawn = await self._drawn_up_in(run_id)
        plan = replace(drawn, plan_id=plan_id)
        if approvals == "drop":
            kept = tuple(replace(one, approval=False) for one in plan.listeners)
            plan = replace(plan, listeners=kept)
        problems = tuple(findings(plan, self._catalog()))
        if problems:
            raise PlanRejected(tuple(map(Problem, problems)))
        from holdfast.source.plan_text import plan_text  # YAML is loaded where it is needed
        from holdfast.source.planfile import load_plan

        source = plan_text(record_to_json(plan))
        made = compiled(load_plan(source, ADOPTED, self._catalog()))
        if await self._is_kept_otherwise(made):
            raise NotAllowed(msg("the plan id {id} is taken: choose another", id=plan_id))
        await self._register(made, source, by, run_id, approvals)
        return self._engine.definitions.adopt(made).plan

    async def _is_kept_otherwise(self, made: CompiledPlan) -> bool:
        """Whether another plan is registered under its id, though it is not loaded here."""
        now = self._engine.clock.now()
        kept = await self._engine.store.kept(KIND, made.plan.plan_id, now)
        return kept is not None and json.loads(kept.body)["digest"] != made.digest

    async def _register(
        self, made: CompiledPlan, source: str, by: str, run_id: str, approvals: str
    ) -> None:
        library, store, now = self._engine.definitions, self._engine.store, self._engine.clock.now()
        await library.keep(made, now)
        plan_id, authors = made.plan.plan_id, library.credit(made.digest, [by])
        of = (plan_id, made.digest, source)
        kept = [kept_plan(*of, by=by, authors=authors, at=now, instead_of=None)]
        if store.shared:
            kept.append(new_mark())
        audit = (adoption(plan_id, made.digest, by, run_id, approvals, now),)
        await attach_claimed(store, Attached(audit, kept), now)
        if self._engine.outbox is not None:
            self._engine.outbox.plans_changed()

    async def _drawn_up_in(self, run_id: str) -> Plan:
        """By what is in the run's journal."""
        state = as_plan(await self._engine.state(run_id))
        definition = definition_of(state)
        if state.plan_id != DRAFTED:
            digest = _drawn_up(await self._events(run_id))
            if state.plan_id != DRAFT_PLAN or digest is None:
                raise NotFound(msg("no plan was drawn up in {id}", id=run_id))
            definition = await self._engine.definitions.by_digest(digest)
        assert isinstance(definition, CompiledPlan)
        return definition.plan

    async def _events(self, run_id: str) -> list[Event]:
        return [decode(one) for one in await self._engine.journal.read(run_id)]

    async def _own_events(self, call: CallInfo) -> list[Event]:
        """Of the run that calls, PermanentError where that is none of `draft_plan`."""
        events = await self._events(call.run_id)
        if not isinstance(events[0], e.RunStarted) or events[0].plan_id != DRAFT_PLAN:
            raise PermanentError(msg("only the plan {plan} calls this", plan=DRAFT_PLAN))
        return events

    def tools(self) -> tuple[OwnTool, ...]:
        """What `draft_plan` calls."""
        sketch = ToolSpec(
            SKETCH_TOOL,
            "Draws up a plan for a request. A repetition is another request, and counts.",
            {"type": "object", "properties": _ASKED, "required": [*_ASKED]},
            idempotent=True,
            read_only=True,
        )
        approved = ToolSpec(
            APPROVED_TOOL,
            "Finds the plan that a person has approved.",
            {"type": "object"},
            idempotent=True,
            read_only=True,
        )
        return OwnTool(sketch, self._sketch), OwnTool(approved, self._approved)

    async def _sketch(self, args: JsonObject, call: CallInfo) -> JsonObject:
        events = await self._own_events(call)
        starts = sum(
            isinstance(one, e.ListenerStarted) and one.listener_id in THINKING for one in events
        )
        told = await self._sketched(str(args["request"]), str(args["complaint"]), starts)
        return {**told, "number": args["number"]}

    async def _sketched(self, request: str, complaint: str, starts: int) -> JsonObject:
        """What the `starts`-th request of a run comes to."""
        if starts > MOST_REQUESTS:
            return {**_told(Drafting(reason=_SPENT)), "outcome": NONE}
        found = await self._think(request, complaint)
        if found.draft is not None:
            made = CompiledPlan(found.draft.plan, found.draft.digest)
            await self._engine.definitions.keep(made, self._engine.clock.now())
            return {**_told(found), "outcome": SOUND, **draft_to_json(found.draft)}
        again = found.again and starts < MOST_REQUESTS
        return {**_told(found), "outcome": AGAIN if again else NONE}

    async def _approved(self, args: JsonObject, call: CallInfo) -> JsonObject:
        """What was shown to the person who said yes is the plan that runs, whatever stands in the
        run's contexts by now."""
        events = await self._own_events(call)
        asked = next((one for one in reversed(events) if _asks_for_approval(one)), None)
        assert isinstance(asked, e.QuestionOpened | None)
        if asked is None or not any(_approves(one, asked) for one in events):
            raise PermanentError(_NOT_APPROVED)
        digest = _drawn_up(events, asked.request.message)
        if digest is None:
            raise PermanentError(_NOT_APPROVED)
        return {"digest": digest}


@dataclass(frozen=True, slots=True)
class OwnTool:
    """A tool of ours, for a generated plan."""

    spec: ToolSpec
    _call: Callable[[JsonObject, CallInfo], Awaitable[JsonObject]]

    async def call(self, args: JsonObject, call: CallInfo) -> JsonObject:
        return await self._call(args, call)


def adoption(
    plan_id: str, digest: str, by: str, run_id: str, approvals: str, now: float
) -> AuditRecord:
    """That a person made a drawn up plan one of the catalogue. Also where nobody is signed in: what
    new runs do from now on is theirs to answer for."""
    acting = current()
    detail = {"digest": digest, "approvals": approvals}
    if acting is None:
        acting = Identity(by)
    elif acting.via:
        detail["via"] = acting.via
    told = {"origin": acting.origin, "detail": canonical_json(detail)}
    return AuditRecord(now, acting.who, "adopted", plan_id, run_id, **told)


def _drawn_up(events: Iterable[Event], outline: str | None = None) -> str | None:
    """The digest of the last plan that was drawn up, or of the one with that outline."""
    found = None
    for one in events:
        if isinstance(one, e.ListenerSucceeded) and one.listener_id in THINKING:
            told = cast(JsonObject, one.result)
            if told["outcome"] == SOUND and outline in (None, told["outline"]):
                found = str(told["digest"])
    return found


def _asks_for_approval(event: Event) -> bool:
    return isinstance(event, e.QuestionOpened) and event.step_id == APPROVE


def _approves(event: Event, asked: e.QuestionOpened) -> bool:
    if not isinstance(event, e.QuestionAnswered):
        return False
    yes = event.values.get("runs") == DRAFTED
    return yes and event.question_id == asked.request.request_id


def _told(found: Drafting) -> dict[str, Json]:
    usage = {name: one for name, one in asdict(found.usage).items() if one is not None}
    return {
        "reason": found.reason,
        "complaint": found.complaint,
        "usage": usage,
        "outline": "",
    }

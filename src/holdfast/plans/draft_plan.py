"""The plan that draws up a plan: for a request that none of the plans fits.

    think_1 ──> drawn up ──> think_2, think_3 (the reply could not be used)
                   │
                   ├── sound ──> approve ──┬──> decided ──┬──> approved ──> that plan, a child run
                   └── none ───> choose ───┘              └──> another plan, a child run

Each request to a model is a listener of its own, so that its start is on disk before it is made,
and its result with what it cost. A person decides: to run what was drawn up, one of the plans that
are there, or nothing. The drawn plan is stored by content, and the child run is pinned to the
digest of what that person was shown, which `approved` finds in the journal: contexts can be edited.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from holdfast.core.run.window import shorten
from holdfast.forms.secrets import references_in
from holdfast.i18n.message import msg
from holdfast.language.strict import canonical_json
from holdfast.model.interaction import (
    Asking,
    InteractionAction,
    InteractionOption,
    InteractionType,
)
from holdfast.model.plan import (
    VERSION,
    HumanAction,
    Listener,
    Output,
    Plan,
    PlanAction,
    Task,
    TaskStatus,
    ToolAction,
)
from holdfast.model.repair import RepairMode, RepairPolicy
from holdfast.model.retry import RetryPolicy
from holdfast.model.values import Json
from holdfast.plans.selection import free_id, option_of
from holdfast.repair.sketch_prompt import LONGEST_REQUEST
from holdfast.work.drafting import MOST_REQUESTS

DRAFT_PLAN: Final = "draft_plan"
DRAFTED: Final = "drafted_plan"
"""The plan that draws up others, and each that it has drawn up: they differ by their digests."""

SKETCH_TOOL: Final = "holdfast.sketch_plan"
APPROVED_TOOL: Final = "holdfast.approved_plan"
APPROVE: Final = "approve"
THINKING: Final = tuple(f"think_{number}" for number in range(1, MOST_REQUESTS + 1))

SOUND: Final = "sound"
AGAIN: Final = "again"
NONE: Final = "none"
"""What one request comes to."""

_MAIN: Final = "001"
_SKETCHED: Final = "002"
_DECIDED: Final = "003"
_APPROVED: Final = "004"
_APPROVER: Final = "approver"
_TOLD: Final = ("outcome", "number", "complaint", "reason", "outline")
_ONCE: Final = RetryPolicy(attempts=1)


def draft_plan(plans: Sequence[Plan], names: Iterable[str]) -> Plan:
    """Draws up a plan for the request among its values; `names` are those of the values given with
    it, which are handed to a plan that is chosen instead."""
    offered = sorted(plans, key=lambda plan: plan.plan_id)
    handed = {name: f"{{{_MAIN}.context.given.{name}}}" for name in names}
    name = msg("A plan for a request")
    return Plan(
        plan_id=DRAFT_PLAN,
        name=name,
        main_task_id=_MAIN,
        tasks=(
            Task(_MAIN, name),
            Task(_SKETCHED, msg("Plan drawn up")),
            Task(_DECIDED, msg("Plan decided on")),
            Task(_APPROVED, msg("Plan approved")),
        ),
        listeners=(
            *(_think(number) for number in range(1, MOST_REQUESTS + 1)),
            _approve(offered),
            _choose(offered),
            _approved(),
            _run_drafted(),
            *(_run(plan, handed) for plan in offered),
        ),
        repair=RepairPolicy(mode=RepairMode.OFF),
    )


def values_of(prompt: str, given: Mapping[str, Json]) -> dict[str, Json]:
    """The values of a run of the plan: the request as a model is told it, without secrets."""
    told = {name: value for name, value in given.items() if not references_in(value)}
    words = f"{prompt}\n{canonical_json(told)}" if told else prompt
    return {"request": shorten(words, LONGEST_REQUEST), "given": dict(given)}


def _think(number: int) -> Listener:
    first = number == 1
    before = f'{_outcome(AGAIN)} && {_SKETCHED}.context.number == "{number - 1}"'
    asked = {
        "number": str(number),
        "request": f"{{{_MAIN}.context.request}}",
        "complaint": "" if first else f"{{{_SKETCHED}.context.complaint}}",
    }
    failed = {**dict.fromkeys(_TOLD, ""), "outcome": NONE, "reason": "{{result.error}}"}
    return Listener(
        THINKING[number - 1],
        (_MAIN if first else _SKETCHED,),
        TaskStatus.RUNNING.value if first else before,
        ToolAction(SKETCH_TOOL, asked),
        success_output=Output(
            _SKETCHED, TaskStatus.DONE, {one: f"{{{{result.{one}}}}}" for one in _TOLD}
        ),
        failure_output=Output(_SKETCHED, TaskStatus.DONE, failed),
        retry=_ONCE,
    )


def _outcome(outcome: str) -> str:
    return f'{_SKETCHED}.status == Done && {_SKETCHED}.context.outcome == "{outcome}"'


def _approve(plans: Sequence[Plan]) -> Listener:
    run = InteractionOption(
        free_id("confirm", plans),
        msg("Run this plan"),
        InteractionAction.APPROVE_AND_EXECUTE,
        description=msg("Each of its steps that acts still asks for approval."),
        metadata={"runs": DRAFTED, "plan_id": ""},
    )
    return Listener(
        APPROVE,
        (_SKETCHED,),
        _outcome(SOUND),
        HumanAction(
            asking=Asking(
                title=msg("Run the plan that was drawn up?"),
                message=f"{{{_SKETCHED}.context.outline}}",
                type=InteractionType.USER_CHOICE,
                options=(run, *_others(plans, "reject")),
                role=_APPROVER,
            )
        ),
        success_output=_decided(),
    )


def _choose(plans: Sequence[Plan]) -> Listener:
    """No plan came of it; `reason` says why."""
    return Listener(
        "choose",
        (_SKETCHED,),
        _outcome(NONE),
        HumanAction(
            asking=Asking(
                title=msg("Which plan is meant?"),
                message=f"{{{_SKETCHED}.context.reason}}",
                type=InteractionType.USER_CHOICE,
                options=_others(plans, NONE),
            )
        ),
        success_output=_decided(),
    )


def _others(plans: Sequence[Plan], none_id: str) -> tuple[InteractionOption, ...]:
    none = InteractionOption(
        free_id(none_id, plans), msg("None of these"), InteractionAction.TERMINATE
    )
    return (*(option_of(plan, runs="plan") for plan in plans), none)


def _decided() -> Output:
    told = {one: f"{{{{result.{one}}}}}" for one in ("runs", "plan_id")}
    return Output(_DECIDED, TaskStatus.DONE, told)


def _approved() -> Listener:
    return Listener(
        "approved",
        (_DECIDED,),
        f'{_DECIDED}.status == Done && {_DECIDED}.context.runs == "{DRAFTED}"',
        ToolAction(APPROVED_TOOL),
        success_output=Output(_APPROVED, TaskStatus.DONE, {"digest": "{{result.digest}}"}),
    )


def _run_drafted() -> Listener:
    return Listener(
        "drafted",
        (_APPROVED,),
        TaskStatus.DONE.value,
        PlanAction(DRAFTED, {VERSION: f"{{{_APPROVED}.context.digest}}"}),
        success_output=_done(),
    )


def _run(plan: Plan, handed: Mapping[str, str]) -> Listener:
    meant = f'{_DECIDED}.context.runs == "plan" && {_DECIDED}.context.plan_id == "{plan.plan_id}"'
    return Listener(
        f"run_{plan.plan_id}",
        (_DECIDED,),
        f"{_DECIDED}.status == Done && {meant}",
        PlanAction(plan.plan_id, handed),
        success_output=_done(),
    )


def _done() -> Output:
    return Output(_MAIN, TaskStatus.DONE, {"result": "{{result}}"})

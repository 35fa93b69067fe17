"""Which plan a prompt is for, and what it says of the plan's inputs.

A prompt that names one plan is for that plan. A name counts only as a whole, and a common
word (`fire`, `pay`) only where it is all that is said: it stands in sentences that mean
something else, and to ask costs less than to start the wrong thing. Otherwise a model
chooses, where there is one; and where it does not, or cannot, a person is asked. That
question is a small plan of its own, so it survives the process like every other: it asks
(USER_CHOICE), and runs the chosen plan as a child run.

What a model reads from a prompt is only a proposal: a value that does not fit the form is
as good as none, and is asked for.
"""

from __future__ import annotations

import logging
import re
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain, count
from typing import Final

from holdfast.errors import ToolError
from holdfast.forms.schemas import json_schema
from holdfast.forms.validation import validate
from holdfast.i18n.message import msg
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import (
    Asking,
    InteractionAction,
    InteractionOption,
    InteractionType,
)
from holdfast.model.message import ToolOffer, Usage, UserSaid
from holdfast.model.plan import (
    HumanAction,
    Listener,
    Output,
    Plan,
    PlanAction,
    Task,
    TaskStatus,
)
from holdfast.model.values import Json
from holdfast.work.thinker import Thinker

log = logging.getLogger("holdfast")

CHOOSER = "choose_plan"

_NONE = "none"
_UNPARTED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Kana and ideographs: nothing parts the words that are written with them."""

_PARTED = f"(?:[^\\W{_UNPARTED}]|-)"
_STANDS_ALONE = (f"(?<!{_PARTED})(?<!{_PARTED}\\.)", f"(?!\\.?{_PARTED})")


def named_plan(prompt: str, plans: Sequence[Plan]) -> str | None:
    """The only plan, or the only one that the prompt names by its id or name."""
    if len(plans) == 1:
        return plans[0].plan_id
    said = _plain(prompt)
    named = [
        plan.plan_id
        for plan in plans
        if any(_names(said, _plain(one)) for one in (plan.plan_id, plan.name))
    ]
    return named[0] if len(named) == 1 else None


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().strip()


def _names(said: str, name: str) -> bool:
    if said == name:
        return bool(name)
    return not _is_common(name) and re.search(_whole(name), said) is not None


def _is_common(name: str) -> bool:
    """Whether it is one word, one number or one ideograph: they may stand in any sentence."""
    if re.search(f"[{_UNPARTED}]", name):
        return len(name) == 1
    return name == "" or name.isalpha() or name.isdigit()


def _whole(name: str) -> str:
    """A pattern that finds the name where it is no part of a longer word."""
    before, behind = _STANDS_ALONE
    first, last = (re.match(_PARTED, edge) for edge in (name[0], name[-1]))
    return f"{before if first else ''}{re.escape(name)}{behind if last else ''}"


async def chosen_plan(models: Thinker, prompt: str, plans: Sequence[Plan]) -> str | None:
    """The plan that the model takes the prompt to be for."""
    ids = [plan.plan_id for plan in plans]
    listed = "\n".join(f"- {plan.plan_id}: {plan.name}. {plan.description}" for plan in plans)
    offer = ToolOffer(
        "start_plan",
        "Start the plan that the request is for.",
        {
            "type": "object",
            "properties": {"plan_id": {"type": "string", "enum": ids}},
            "required": ["plan_id"],
        },
    )
    system = (
        "Choose the plan that a request is for, and call start_plan. If none fits, or several do, "
        f"answer in words instead: a person will choose.\n{listed}"
    )
    answer = await _called(models, system, prompt, offer)
    plan_id = answer.get("plan_id")
    return plan_id if plan_id in ids else None


_SPENT: Final[ContextVar[list[Usage] | None]] = ContextVar("holdfast_spent", default=None)


@contextmanager
def spending(spent: list[Usage]) -> Iterator[None]:
    """What requests cost that are made meanwhile is added to `spent`."""
    token = _SPENT.set(spent)
    try:
        yield
    finally:
        _SPENT.reset(token)


async def inputs_in(models: Thinker, prompt: str, form: Form) -> dict[str, Json]:
    """What the prompt says of the inputs, as far as it fits them."""
    offer = ToolOffer(
        "fill_in", "Fill in what the request says, and nothing else.", _optional(form)
    )
    system = (
        "Read from the request what it says about the fields of fill_in, and call it once. Leave "
        "out whatever the request does not say; never guess."
    )
    answer = await _called(models, system, prompt, offer)
    known = {field.name for field in form.fields}
    given = {name: value for name, value in answer.items() if name in known}
    wrong = validate(form, given, partial=True).errors
    return {name: value for name, value in given.items() if name not in wrong}


def _optional(form: Form) -> Mapping[str, Json]:
    schema = json_schema(form)
    return {"type": "object", "properties": schema["properties"]}


async def _called(
    models: Thinker, system: str, prompt: str, offer: ToolOffer
) -> Mapping[str, Json]:
    """The arguments of the model's call; empty where it made none, or could not be asked. Of a
    request that failed it is known how long it took."""
    began = time.monotonic()
    try:
        reply = await models.request(
            models.default_model, system=system, messages=[UserSaid(prompt)], tools=[offer]
        )
    except ToolError as error:
        log.warning("the model could not read the prompt: %s", error)
        _spend(Usage(seconds=time.monotonic() - began))
        return {}
    _spend(reply.usage)
    calls = [call for call in reply.calls if call.tool == offer.name and call.malformed is None]
    return calls[0].args if len(calls) == 1 else {}


def _spend(usage: Usage) -> None:
    if (spent := _SPENT.get()) is not None:
        spent.append(usage)


def chooser(plans: Iterable[Plan], prompt: str, values: Iterable[str]) -> Plan:
    """A plan that asks which plan is meant, and runs it with the values that were given."""
    offered = sorted(plans, key=lambda plan: plan.plan_id)
    handed = {name: f"{{001.context.{name}}}" for name in values}
    return Plan(
        plan_id=CHOOSER,
        name=msg("Which plan?"),
        main_task_id="001",
        tasks=(Task("001", msg("Which plan?"), prompt), Task("002", "Plan chosen")),
        listeners=(_question(offered), *(_run(plan, handed) for plan in offered)),
    )


def secret_inputs(plans: Iterable[Plan]) -> Form:
    """What any of these plans would take as a secret; which rules hold, the choice will tell."""
    names = {
        field.name
        for plan in plans
        for field in plan.inputs.fields
        if field.type is FieldType.SECRET
    }
    return Form(tuple(Field(name, FieldType.SECRET) for name in sorted(names)))


def option_of(plan: Plan, **metadata: Json) -> InteractionOption:
    """To choose this plan; its id is among what the answer brings."""
    return InteractionOption(
        plan.plan_id,
        plan.name or plan.plan_id,
        InteractionAction.APPROVE_AND_EXECUTE,
        description=plan.description,
        metadata={"plan_id": plan.plan_id, **metadata},
    )


def _question(plans: Sequence[Plan]) -> Listener:
    options = map(option_of, plans)
    none = InteractionOption(
        free_id(_NONE, plans), msg("None of these"), InteractionAction.TERMINATE
    )
    asking = Asking(
        title=msg("Which plan is meant?"),
        type=InteractionType.USER_CHOICE,
        options=(*options, none),
    )
    return Listener(
        "choose",
        ("001",),
        TaskStatus.RUNNING.value,
        HumanAction(asking=asking),
        success_output=Output("002", TaskStatus.DONE, {"plan_id": "{{result.plan_id}}"}),
    )


def free_id(wanted: str, plans: Sequence[Plan]) -> str:
    """An option of our own, whatever the plans are called."""
    taken = {plan.plan_id for plan in plans}
    further = (f"{wanted}_{number}" for number in count(2))
    return next(one for one in chain((wanted,), further) if one not in taken)


def _run(plan: Plan, handed: Mapping[str, str]) -> Listener:
    return Listener(
        f"run_{plan.plan_id}",
        ("002",),
        f'002.status == Done && 002.context.plan_id == "{plan.plan_id}"',
        PlanAction(plan.plan_id, handed),
        success_output=Output("001", TaskStatus.DONE, {"result": "{{result}}"}),
    )

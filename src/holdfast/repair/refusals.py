"""What a run's tools have refused, as its journal tells it.

A value that a tool has refused is not proposed for the same argument again: the patch would end
where it began. That holds as long as nothing else was done about it: a patch that brings a step
along, now or since the refusal, may have made what the call lacked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from holdfast.core.plan.state import PlanState
from holdfast.core.repair.causes import cause_of
from holdfast.i18n.message import msg
from holdfast.language.display import clip
from holdfast.language.strict import canonical_json
from holdfast.model import events as e
from holdfast.model.plan import ToolAction
from holdfast.model.record import record
from holdfast.model.recorded import Event
from holdfast.model.retry import Cause, Failure, FailureKind
from holdfast.model.values import Json, JsonObject
from holdfast.repair.changes import Changed, Changes
from holdfast.repair.mentions import accused, said
from holdfast.repair.parts import data_of
from holdfast.repair.readings import rendered
from holdfast.repair.touches import Touch

_BY_ITS_ARGUMENTS: Final = frozenset({Cause.ARGUMENT, Cause.PRECONDITION, Cause.CONFLICT})
_VALUES_ALONE: Final = frozenset({"set_args", "set_output", "set_retry"})
_LONGEST_VALUE: Final = 80


@record
class Refusal:
    """A call that was made with these arguments, and why the tool refused it."""

    tool: str
    args: Mapping[str, Json]
    failure: Failure


def refusals_of(state: PlanState, events: Iterable[Event]) -> tuple[Refusal, ...]:
    """As far as these events tell; those that still count, of which each tool is the plan's own."""
    sent: dict[str, Mapping[str, Json] | None] = {}
    found: list[Refusal] = []
    for event in events:
        match event:
            case e.ListenerStarted(listener_id=listener_id, args=args):
                sent[listener_id] = args
            case e.AttemptFailed(step_id=listener_id) | e.ListenerFailed(listener_id=listener_id):
                args, tool = sent.pop(listener_id, None), _tool_of(state, listener_id)
                if args is not None and tool is not None and _is_final(event.failure):
                    found.append(Refusal(tool, args, event.failure))
            case e.PlanPatched(operations=operations):
                if any(one["op"] not in _VALUES_ALONE for one in operations):
                    found.clear()
            case _:
                pass
    return tuple(found)


def _tool_of(state: PlanState, listener_id: str) -> str | None:
    listener = state.plan.listeners.get(listener_id)
    return listener.tool if listener else None


def _is_final(failure: Failure) -> bool:
    return failure.kind is FailureKind.PERMANENT and cause_of(failure) in _BY_ITS_ARGUMENTS


def refused_again(
    state: PlanState, changes: Changes, refusals: Sequence[Refusal]
) -> Iterator[Touch]:
    """By its listener, each call that a patch would have made with what its tool has refused."""
    if any(one.before is None for one in changes.listeners):
        return
    for one in changes.listeners if refusals else ():
        if values := _refused_values(state, one, refusals):
            assert isinstance(one.after.action, ToolAction)
            told = {"tool": one.after.action.tool, "values": _told(values)}
            yield Touch(one.id, msg("{tool} has refused {values} in this run", **told))


def _refused_values(
    state: PlanState, one: Changed, refusals: Sequence[Refusal]
) -> Mapping[str, Json]:
    """The arguments that are changed to what was refused; none where it was not these."""
    action = one.after.action
    if not isinstance(action, ToolAction):
        return {}
    before, given = data_of(one.before), action.args
    changed = {name for name in given if not _alike(before, given, name)}
    found = ((name, rendered(value, state)) for name, value in given.items())
    sent = {name: value[0] for name, value in found if value is not None}
    of_tool = (each for each in refusals if each.tool == action.tool)
    repeated = (_repeated(sent, changed, each) for each in of_tool)
    return next(filter(None, repeated), {})


def _repeated(sent: JsonObject, changed: set[str], refusal: Refusal) -> Mapping[str, Json]:
    """What the failure was about, where that would be the same again; where it does not say, all
    of the call."""
    was, failure = refusal.args, refusal.failure
    about = accused(failure.field, said(failure.message), was) or [*was, *sent]
    if not all(_alike(was, sent, name) for name in about):
        return {}
    return {name: sent[name] for name in about if name in changed}


def _alike(one: Mapping[str, Json], other: Mapping[str, Json], name: str) -> bool:
    """By the spelling: in Python 1 is True."""
    both = name in one and name in other
    return both and canonical_json(one[name]) == canonical_json(other[name])


def _told(values: Mapping[str, Json]) -> str:
    each = (f"{name} = {canonical_json(one)}" for name, one in values.items())
    return ", ".join(clip(one, _LONGEST_VALUE) for one in each)

"""Evidence: what a run's own journal says of a failure, one line of JSON for each event.

Every value in a line is data: whatever a service or a person wrote stands in a string, with control
and direction characters spelled out, and cut so that the line stays JSON. Secrets are references in
the journal already.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from holdfast.language.display import visible
from holdfast.model import events as e
from holdfast.model.recorded import Event
from holdfast.model.repair import Evidence
from holdfast.model.retry import Failure
from holdfast.model.values import Json, JsonObject

MOST_EVIDENCE: Final = 40
LONGEST_LINE: Final = 400
_MOST_OF_OTHERS: Final = 15
"""What is known of the run beside the listener."""
_CUTS: Final = ((300, 20, 6), (120, 10, 4), (60, 6, 3), (30, 4, 2), (12, 2, 1))
"""How long texts, how many entries and how many levels are left, the more the better."""
_FAILURES: Final = frozenset({"attempt failed", "failed", "outcome lost", "checked", "gave up"})


def evidence_of(records: Sequence[tuple[int, Event]], listener_id: str) -> tuple[Evidence, ...]:
    """At most 40 lines, in the journal's order: the latest about the listener, and what else was
    done lately. Without a listener it is about the run."""
    told = list(_told(records))
    own = [one for one in told if listener_id in one[2]][-(MOST_EVIDENCE - _MOST_OF_OTHERS) :]
    known = {seq for seq, _, _ in own}
    others = [one for one in told if one[0] not in known]
    first, rest = others[:1], others[1:]
    left = MOST_EVIDENCE - len(own) - len(first)
    chosen = sorted((*own, *first, *rest[max(0, len(rest) - left) :]))
    return tuple(Evidence(seq, line_of(shape)) for seq, shape, _ in chosen)


def tells_of_failure(one: Evidence) -> bool:
    return json.loads(one.text)["event"] in _FAILURES


def line_of(shape: JsonObject) -> str:
    """One line of JSON of at most 400 characters."""
    lines = (_written(_cut(shape, *cut)) for cut in _CUTS)
    fitting = (line for line in lines if len(line) <= LONGEST_LINE)
    return next(fitting, _written({"event": shape["event"]}))


def _written(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _cut(value: Json, longest: int, most: int, deepest: int) -> Json:
    match value:
        case str():
            shown = visible(value[: longest + 1])
            return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"
        case Mapping() | list() | tuple() if deepest == 0:
            return "…"
        case Mapping():
            kept = list(value.items())[:most]
            made = {
                _cut(key, longest, most, 0): _cut(one, longest, most, deepest - 1)
                for key, one in kept
            }
            return made if len(value) <= most else {**made, "…": len(value) - most}
        case list() | tuple():
            items = [_cut(one, longest, most, deepest - 1) for one in value[:most]]
            return items if len(value) <= most else [*items, "…"]
    return value


def _told(
    records: Sequence[tuple[int, Event]],
) -> Iterator[tuple[int, JsonObject, tuple[str, ...]]]:
    """Each event that says something of a failure, and the listeners that it is about."""
    asked: dict[str, str] = {}
    for seq, event in records:
        if isinstance(event, e.QuestionOpened):
            asked[event.request.request_id] = event.step_id
        told = _LINES.get(type(event))
        if told is not None:
            name, values = told
            of = _listeners(event, asked)
            shape = {"event": name, **({"listener": of[0]} if len(of) == 1 else {})}
            said = {key: one for key, one in values(event).items() if one not in (None, "", {}, ())}
            yield seq, {**shape, **said}, of


def _listeners(event: Any, asked: Mapping[str, str]) -> tuple[str, ...]:
    match event:
        case e.QuestionAnswered() | e.QuestionExpired():
            return tuple(filter(None, [asked.get(event.question_id)]))
        case e.PlannerGaveUp(failed=failed):
            return failed
        case e.CaseOpened() | e.RepairDisproven():
            return tuple(filter(None, [event.listener_id]))
        case e.AttemptFailed() | e.OutcomeLost() | e.QuestionOpened():
            return (event.step_id,)
    found = getattr(event, "listener_id", "")
    return (found,) if found else ()


def _failure(failure: Failure) -> JsonObject:
    return {
        "kind": failure.kind.value,
        "cause": failure.cause.value if failure.cause else None,
        "status": failure.status,
        "code": failure.code,
        "field": failure.field,
        "message": str(failure.message),
    }


def _values(event: e.RunStarted) -> JsonObject:
    """What the run was given, which is its main task's context."""
    moved = (move.context for move in event.moves)
    return {**event.values, **{name: one for context in moved for name, one in context.items()}}


_Told: TypeAlias = tuple[str, Callable[[Any], JsonObject]]

_LINES: Final[Mapping[type, _Told]] = {
    e.RunStarted: (
        "run started",
        lambda one: {"plan": one.plan_id, "prompt": one.prompt, "values": _values(one)},
    ),
    e.RunForked: ("run forked", lambda one: {"plan": one.fork.plan_id, "prompt": one.fork.prompt}),
    e.ListenerStarted: ("started", lambda one: {"attempt": one.attempt, "args": one.args}),
    e.ListenerSucceeded: ("succeeded", lambda one: {"result": one.result}),
    e.AttemptFailed: ("attempt failed", lambda one: _failure(one.failure)),
    e.ListenerFailed: ("failed", lambda one: {**_failure(one.failure), "result": one.result}),
    e.OutcomeLost: ("outcome lost", lambda one: {"message": one.reason}),
    e.ListenerSkipped: ("skipped", lambda one: {"by": one.by, "reason": one.reason}),
    e.QuestionOpened: (
        "asked",
        lambda one: {
            "for": one.purpose,
            "fields": [field.name for field in one.request.form.fields],
        },
    ),
    e.QuestionAnswered: (
        "answered",
        lambda one: {"option": one.option_id, "by": one.by, "said": one.data, "why": one.feedback},
    ),
    e.QuestionExpired: ("nobody answered", lambda one: {"option": one.option_id}),
    e.PlannerRetried: ("retried", lambda one: {"count": one.retry_count, "why": one.why}),
    e.PlannerGaveUp: (
        "gave up",
        lambda one: {"listeners": list(one.failed), "message": one.message, "why": one.why},
    ),
    e.CheckConcluded: (
        "checked",
        lambda one: {"verdict": one.verdict, "message": one.message, "result": one.result},
    ),
    e.TasksEdited: ("tasks edited", lambda one: {"by": one.by, "reason": one.reason}),
    e.RunResumed: ("resumed", lambda one: {"by": one.by}),
    e.PlanPatched: ("plan patched", lambda one: {"by": one.by, "operations": one.operations}),
    e.PatchRefused: ("patch refused", lambda one: {"by": one.by, "reason": one.reason}),
    e.RepairDisproven: ("repair did not help", lambda one: {"reason": one.reason}),
}
"""What is told of which event, and how; nothing else says anything of a failure."""

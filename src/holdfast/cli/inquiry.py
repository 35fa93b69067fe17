"""An inquiry: a question as it is shown, wherever that is.

Title, message, tool and arguments are the executor's own data. What a model wrote stands
in `context.quoted` alone, and is shown as a quotation with a bar before each line, so that
it cannot pass for ours. Arguments are shown exactly: nothing of them is left out unsaid.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.cli.screen import clock, say, visible, visible_lines
from holdfast.core.forms.shapes import dump_form
from holdfast.core.language.strict import canonical_json
from holdfast.core.run.draft import iso
from holdfast.core.run.state import QuestionState
from holdfast.journal.port import QuestionRow
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)
from holdfast.model.values import Json
from holdfast.runtime.views import request_of

SHORTEST_PREFIX = 8
MOST_SHOWN = 20_000

_BEHIND_THE_SCENES = frozenset({"call_id", "tool_version", "before"})


def question_json(row: QuestionRow, question: QuestionState | None = None) -> dict[str, Any]:
    """`question` knows what the inbox's row does not: reminders and drafts."""
    request = request_of(row)
    shown = {
        "question_id": row.question_id,
        "instance_id": row.run_id,
        "root_id": row.root_id,
        "status": row.status,
        "type": row.type,
        "title": row.title,
        "message": request.message,
        "details": request.details,
        "context": dict(request.context),
        "options": [option_json(one) for one in request.options],
        "fields": dump_form(request.form),
        "required": request.required,
        "default_option_id": request.default_option_id,
        "opened_at": iso(row.opened_at),
        "deadline": None if row.deadline is None else iso(row.deadline),
        "role": row.role,
        "escalate_to": request.escalate_to,
        "escalate_at": _moment(row, request.escalate_after),
        "reminders": [_moment(row, after) for after in request.reminders],
    }
    return shown if question is None else {**shown, **_progress_json(question)}


def _progress_json(question: QuestionState) -> dict[str, Any]:
    return {
        "reminded": question.reminded,
        "drafts": {by: dict(data) for by, data in question.drafts.items()},
    }


def _moment(row: QuestionRow, after: float | None) -> str | None:
    return None if after is None else iso(row.opened_at + after)


def option_json(option: InteractionOption) -> dict[str, Any]:
    return {
        "option_id": option.option_id,
        "label": option.label,
        "action": option.action.value,
        "description": option.description,
        "dangerous": option.is_dangerous,
        "requires_input": option.requires_input,
    }


def short_ids(question_ids: Sequence[str]) -> dict[str, str]:
    """For each id a prefix that names only it."""
    length = SHORTEST_PREFIX
    while len({one[:length] for one in question_ids}) < len(set(question_ids)):
        length += 1
    return {one: one[:length] for one in question_ids}


def shown_context(request: InteractionRequest) -> Iterator[str]:
    """The call with its exact arguments, and whatever else the question is about."""
    for name, value in request.context.items():
        match name, value:
            case "tool", str():
                yield f"  tool: {visible(value)}"
            case "args", Mapping() if "tool" in request.context:
                yield from shown_args(value)
            case "quoted", _:
                yield "  in its own words:"
                yield from (f"  | {line}" for line in _whole(str(value)).split("\n"))
            case _ if name not in _BEHIND_THE_SCENES:
                yield f"  {visible(name)}: {_one_line(_spelled(value))}"


def shown_args(args: Mapping[str, Json]) -> Iterator[str]:
    if not args:
        yield "    (no arguments)"
    for name, value in args.items():
        yield f"    {visible(name)} = {_one_line(canonical_json(value))}"


def _spelled(value: Json) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def _one_line(text: str) -> str:
    return _whole(text.replace("\n", " "))


def _whole(text: str) -> str:
    if len(text) <= MOST_SHOWN:
        return visible_lines(text)
    more = len(text) - MOST_SHOWN
    return f"{visible_lines(text[:MOST_SHOWN])} … and {more} characters more: see them with --json"


def time_left(deadline: float | None, now: float) -> str:
    """`2 h 5 min left`; empty where there is no deadline."""
    if deadline is None:
        return ""
    seconds = int(deadline - now)
    if seconds <= 0:
        return "no time left"
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    parts = [(days, "d"), (hours, "h"), (minutes, "min")]
    told = [f"{count} {unit}" for count, unit in parts if count] or [f"{seconds} s"]
    return f"{' '.join(told[:2])} left"


def shown_times(row: QuestionRow, question: QuestionState | None, now: float) -> Iterator[str]:
    """Who is asked, until when, and what the clock does meanwhile."""
    request = request_of(row)
    if row.role:
        yield f"  asks the role {visible(row.role)}"
    if row.deadline is not None:
        default = request.default_option_id
        then = f"then {visible(default)} is taken" if default else "then it expires"
        left = time_left(row.deadline, now) if row.status == "open" else "over"
        yield f"  until {clock(row.deadline, date=True)} ({left}; {then})"
    if request.escalate_after is not None and request.escalate_to != row.role:
        at = clock(row.opened_at + request.escalate_after, date=True)
        yield f"  from {at} it asks the role {visible(request.escalate_to or '')}"
    if request.reminders:
        told = question.reminded if question is not None else 0
        yield f"  reminders: {told} of {len(request.reminders)}"


def shown_drafts(question: QuestionState | None) -> Iterator[str]:
    for by, data in question.drafts.items() if question is not None else ():
        yield f"  {visible(by)} has begun: {_one_line(canonical_json(dict(data)))}"


def say_open(questions: Sequence[QuestionRow], options: str = "") -> None:
    """Each open question, and the commands that answer it."""
    short = short_ids([row.question_id for row in questions])
    for row in questions:
        say(f"  waits for: {visible(row.title)}")
        request = request_of(row)
        say(*(f"  {line}" for line in shown_context(request)))
        for command in answering(request, short[row.question_id], options):
            say(f"    to answer: {command}")


def answering(request: InteractionRequest, name: str, options: str = "") -> Iterator[str]:
    """One command for each option; `options` are repeated in it."""
    if len(request.options) == 1:
        yield f"holdfast answer {name}{_values(request, request.options[0])}{options}"
        return
    for option in request.options:
        words = " --feedback '…'" if option.requires_input else ""
        sure = " --yes" if option.is_dangerous else ""
        given = f"--option {shlex.quote(option.option_id)}{_values(request, option)}{words}{sure}"
        yield f"holdfast answer {name} {given}{options}  # {visible(option.label)}"


def _values(request: InteractionRequest, option: InteractionOption) -> str:
    if option.action is not InteractionAction.PROVIDE_INFO:
        return ""
    needed = [one for one in request.form.fields if one.required]
    return "".join(f" --set {field.name}=…" for field in needed)


def edits(request: InteractionRequest, option: InteractionOption) -> bool:
    """Whether choosing the option may change the arguments that are shown."""
    approves = option.action is InteractionAction.APPROVE_AND_EXECUTE
    return approves and request.type is InteractionType.TOOL_APPROVAL and bool(request.form.fields)

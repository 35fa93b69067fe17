"""A question as it is shown, wherever that is.

Title, message, tool and arguments are the executor's own data. What a model wrote stands
in `context.quoted` alone, and is shown as a quotation with a bar before each row, so that
it cannot pass for ours. Arguments are a model's too: they are counted, in the tool's own
order, exact, and nothing of them is left out unsaid.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from rich.cells import cell_len

from holdfast.cli.terminal.fields import shown_fields
from holdfast.cli.terminal.repairs import is_repair, shown_request, who_is_asked
from holdfast.cli.terminal.screen import say
from holdfast.cli.terminal.untrusted_text import BAR, rows, screen_width
from holdfast.forms.schemas import dump_form
from holdfast.interactions import cards
from holdfast.interactions.cards import consequence, takes_the_form
from holdfast.language.instants import iso
from holdfast.language.strict import canonical_json
from holdfast.model.form import Field, FieldType
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)
from holdfast.model.values import Json
from holdfast.views.records import InteractionView
from holdfast.views.stories.text import clock, named, visible

SHORTEST_PREFIX = 8
MOST_SHOWN = 2_000

_ROW = 80
_LONGEST_LABEL = 200
_SPACES = frozenset(" \u3000")
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters by their kind, and nothing to be seen."""

_BEHIND_THE_SCENES = frozenset({"call_id", "tool_version", "before"})


def question_json(asked: InteractionView, *, whole: bool = False) -> dict[str, Any]:
    """A question as a list has it; one that is `whole` also has its reminders and drafts."""
    request = asked.request
    shown = {
        "question_id": asked.question_id,
        "request_id": asked.question_id,
        "instance_id": asked.run_id,
        "root_id": asked.root_id,
        "status": asked.status.value,
        "type": asked.type.value,
        "title": asked.title,
        "message": request.message,
        "details": request.details,
        "context": dict(request.context),
        "options": [option_json(request, one) for one in request.options],
        "fields": dump_form(request.form),
        "required": request.required,
        "default_option_id": request.default_option_id,
        "opened_at": iso(asked.opened_at),
        "deadline": None if asked.deadline is None else iso(asked.deadline),
        "role": asked.role,
        "may_not_because": asked.why_not or None,
        "may_not_approve_because": asked.why_not_approve or None,
        "escalate_to": request.escalate_to,
        "escalate_at": _moment(asked, request.escalate_after),
        "reminders": [_moment(asked, after) for after in request.reminders],
    }
    return {**shown, **_progress_json(asked)} if whole else shown


def _progress_json(asked: InteractionView) -> dict[str, Any]:
    return {
        "reminded": asked.reminded,
        "drafts": {by: dict(data) for by, data in asked.drafts.items()},
    }


def _moment(asked: InteractionView, after: float | None) -> str | None:
    return None if after is None else iso(asked.opened_at + after)


def option_json(request: InteractionRequest, option: InteractionOption) -> dict[str, Any]:
    return {
        "option_id": option.option_id,
        "label": option.label,
        "action": option.action.value,
        "description": option.description,
        "dangerous": asks_twice(option),
        "requires_input": option.requires_input,
        "consequence": consequence(request, option),
    }


def short_ids(question_ids: Sequence[str]) -> dict[str, str]:
    """For each id a prefix that names only it."""
    length = SHORTEST_PREFIX
    while len({one[:length] for one in question_ids}) < len(set(question_ids)):
        length += 1
    return {one: one[:length] for one in question_ids}


def shown_context(
    request: InteractionRequest, indent: str = "", options: str = ""
) -> Iterator[str]:
    """The call with its exact arguments, and whatever else the question is about.

    `options` are repeated in the commands shown.
    """
    if is_repair(request):
        yield from shown_request(request, indent, options)
        return
    bar = f"{indent}  {BAR}"
    for name, value in cards.shown_context(request).items():
        match name, value:
            case "tool", str():
                yield f"{indent}  tool: {named(value)}"
            case "args", Mapping() if "tool" in request.context:
                yield from shown_args(request, value, indent, options)
            case "quoted", _:
                yield f"{indent}  in its own words:"
                yield from _bounded(list(str(value)), request, bar, bar, options)
            case _ if name not in _BEHIND_THE_SCENES:
                words = _escaped(_spelled(value))
                yield from _bounded(words, request, f"{indent}  {named(name)}: ", bar, options)


def shown_details(request: InteractionRequest, indent: str = "") -> Iterator[str]:
    details = "" if request.details == request.message else request.details
    for line in filter(None, details.split("\n")):
        yield from rows(visible(line, 2000), f"{indent}{BAR}")


def shown_args(
    request: InteractionRequest, args: Mapping[str, Json], indent: str = "", options: str = ""
) -> Iterator[str]:
    """Each argument from a row of its own, counted, and in an order that no model chooses."""
    if not args:
        yield f"{indent}    (no arguments)"
        return
    yield f"{indent}    {len(args)} argument{'s' if len(args) != 1 else ''}:"
    order = [field.name for field in request.form.fields if field.name in args]
    bar = f"{indent}    {BAR}"
    for name in (*order, *sorted(args.keys() - set(order))):
        words = _escaped(canonical_json(args[name]))
        yield from _bounded(words, request, f"{bar}{named(name)} = ", f"{bar}    ", options)


def _spelled(value: Json) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def _escaped(text: str) -> list[str]:
    """On one line, character by character: what only pads is spelled as JSON spells it."""
    pairs = zip(f"x{text}", text, strict=False)
    return [f"\\u{ord(one):04x}" if _pads(before, one) else one for before, one in pairs]


def _pads(before: str, one: str) -> bool:
    """A single space parts words; all else that is blank only moves what follows."""
    if one in _BLANK_LETTERS:
        return True
    return one.isspace() and (before.isspace() or one not in _SPACES)


def _bounded(
    pieces: Sequence[str], request: InteractionRequest, first: str, rest: str, options: str
) -> Iterator[str]:
    """The rows of a text; of a long one the beginning, and how to see the rest."""
    sizes = accumulate(_ROW if piece == "\n" else len(piece) for piece in pieces)
    kept = sum(1 for size in sizes if size <= MOST_SHOWN)
    yield from rows("".join(pieces[:kept]), first, rest)
    if kept < len(pieces):
        see = f"holdfast inbox {request.request_id} --json{options}"
        yield f"    … {len(pieces) - kept} characters more are left out; to see all: {see}"


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


def shown_times(asked: InteractionView, now: float, but_not: str = "") -> Iterator[str]:
    """Who is asked, until when, and what the clock does meanwhile; `but_not` is who proposed what
    another person must approve."""
    request = asked.request
    if asked.role:
        yield f"  {who_is_asked(asked.role, but_not)}"
    if asked.deadline is not None:
        default = request.default_option_id
        then = f"then {visible(default)} is taken" if default else "then it expires"
        left = time_left(asked.deadline, now) if asked.is_open else "over"
        yield f"  until {clock(asked.deadline, date=True)} ({left}; {then})"
    if request.escalate_after is not None and request.escalate_to != asked.role:
        at = clock(asked.opened_at + request.escalate_after, date=True)
        yield f"  from {at} it asks the role {visible(request.escalate_to or '')}"
    if request.reminders:
        yield f"  reminders: {asked.reminded} of {len(request.reminders)}"


def shown_drafts(asked: InteractionView, options: str = "") -> Iterator[str]:
    for by, data in asked.drafts.items():
        words = _escaped(canonical_json(dict(data)))
        first = f"  {visible(by, 40)} has begun: "
        yield from _bounded(words, asked.request, first, "  │   ", options)


def say_open(questions: Sequence[InteractionView], options: str | None = "") -> None:
    """Each open question, and the commands that answer it, unless none could (None)."""
    short = short_ids([one.question_id for one in questions])
    for one in questions:
        say(*rows(visible(one.title), "  waits for: ", "  │ "))
        say(*shown_details(one.request, "  "))
        say(*shown_context(one.request, "  ", options or ""))
        if options is not None:
            say(*answering(one, short[one.question_id], options, "    to answer: "))


def answering(
    asked: InteractionView, name: str, options: str = "", prefix: str = ""
) -> Iterator[str]:
    """One command for each option that the reader may take, then what may be filled in; else why
    not. `options` are repeated."""
    request, indent = asked.request, prefix[: len(prefix) - len(prefix.lstrip())]
    if asked.why_not:
        yield from rows(f"you may not answer it: {visible(asked.why_not)}", indent, indent + BAR)
        return
    command = f"{prefix}holdfast answer {name}"
    if len(request.options) == 1:
        yield f"{command}{_only(request, request.options[0])}{options}"
    else:
        for option in _open_to(asked):
            given = f"{command}{_chosen(request, option)}{options}"
            yield from _labelled(given, request, option)
    if asked.why_not_approve:
        yield f"{indent}{visible(asked.why_not_approve)}"
    if any(_fills_in(request, option) for option in request.options):
        yield from shown_fields(request.form, indent)


def _open_to(asked: InteractionView) -> Iterator[InteractionOption]:
    """Those that its reader may take."""
    for option in asked.request.options:
        approves = option.action is InteractionAction.APPROVE_AND_EXECUTE
        if not (approves and asked.why_not_approve):
            yield option


def _only(request: InteractionRequest, option: InteractionOption) -> str:
    """What only provides goes without saying, where it provides something; all else by name."""
    given = _values(request, option)
    plain = option.action is InteractionAction.PROVIDE_INFO and not asks_twice(option)
    return _given(request, option) if plain and given else _chosen(request, option)


def _chosen(request: InteractionRequest, option: InteractionOption) -> str:
    sure = " --yes" if asks_twice(option) else ""
    return f" --option {shlex.quote(option.option_id)}{_given(request, option)}{sure}"


def _given(request: InteractionRequest, option: InteractionOption) -> str:
    values = _values(request, option)
    return values + (" --feedback '…'" if needs_words(option, filled=bool(values)) else "")


def needs_words(option: InteractionOption, *, filled: bool) -> bool:
    """What is filled in is the input that an option requires, unless it asks for words as well."""
    return option.requires_input and (bool(option.input_prompt) or not filled)


def asks_twice(option: InteractionOption) -> bool:
    """Ending a run is as final as what its author calls dangerous."""
    return option.is_dangerous or option.action is InteractionAction.TERMINATE


def meant(request: InteractionRequest, option: InteractionOption) -> str:
    """What an option does; then its label, which may say anything."""
    return f"{consequence(request, option)} (“{visible(option.label, _LONGEST_LABEL)}”)"


def _labelled(
    command: str, request: InteractionRequest, option: InteractionOption
) -> Iterator[str]:
    """The label may be a model's: it stands behind the command only where it fits whole."""
    label = meant(request, option)
    line = f"{command}  # {label}"
    if cell_len(line) <= screen_width():
        yield line
        return
    yield command
    yield from rows(label, "      # ", "      # ")


def _values(request: InteractionRequest, option: InteractionOption) -> str:
    """What the option needs of the form; an approval without changes needs nothing."""
    if not _fills_in(request, option):
        return ""
    brought = brought_along(request, option)
    needed = [one for one in request.form.fields if _is_needed(one) and one.name not in brought]
    return "".join(f" --set {field.name}={_hint(field)}" for field in needed)


def _fills_in(request: InteractionRequest, option: InteractionOption) -> bool:
    return takes_the_form(request, option) and not edits(request, option)


def _is_needed(field: Field) -> bool:
    """Whatever else is answered: a field that depends on other answers may be refused."""
    return field.required and field.visible_if is None


def brought_along(request: InteractionRequest, option: InteractionOption) -> dict[str, Json]:
    """The fields that a choice to go on fills in by itself."""
    if option.action is not InteractionAction.APPROVE_AND_EXECUTE:
        return {}
    names = {field.name for field in request.form.fields}
    return {name: value for name, value in option.metadata.items() if name in names}


def _hint(field: Field) -> str:
    """A secret is best not written into a command: shells remember those."""
    return "@-" if field.type is FieldType.SECRET else "…"


def edits(request: InteractionRequest, option: InteractionOption) -> bool:
    """Whether choosing the option may change the arguments that are shown."""
    approves = option.action is InteractionAction.APPROVE_AND_EXECUTE
    approval = request.type is InteractionType.TOOL_APPROVAL
    return approval and approves and takes_the_form(request, option)

"""Interactions on the wire: requests, options and responses as JSON.

Python says `request_id`, JavaScript says `requestId`; both are read, camelCase is written. A flag
such as `is_default` is also read as `default`, because Java's bean setters drop the `is`. A field
in two spellings is refused even if both say the same: which one was meant is not known. Keys
inside `context`, `data` and `metadata` belong to the user and are never renamed.

Reading guesses nothing. Unknown keys, wrong types and unknown words are refused, all of them at
once, each under the name that was given. What has a default may be left out, and null is the same
as left out. Messages say what kind of value was wrong, never the value: it may be a secret.

Writing gives every field that the seed names, so that a client may rely on each, and those of our
own only when they are set. `form` has the shape of `forms.shapes`; `formSchema` says the same as
JSON Schema for clients that draw forms from it, and is ignored on reading. So is `consequence`.

A label, an id and a description are the author's, and may say anything; beside them every surface
says in our words what an option does: its `consequence`. The action alone decides, and for a
question about a call it alone says whether that call runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from enum import StrEnum
from typing import Any, Final, Generic, TypeAlias, TypeVar, get_type_hints

from holdfast.core.interactions.checks import HAPPENED, STOP
from holdfast.errors import FormProblem, FormRejected, InvalidAnswer, InvalidValue
from holdfast.forms.problems import Problems
from holdfast.forms.schemas import dump_form, json_schema
from holdfast.forms.shapes import parse_form
from holdfast.forms.values import echo
from holdfast.i18n.message import joined, msg, msgid
from holdfast.language.spelling import (
    LONGEST_NAME_SHOWN,
    MOST_UNKNOWN,
    printable,
    remedy,
)
from holdfast.language.strict import strict_json
from holdfast.model.form import Form
from holdfast.model.interaction import (
    RUN_AGAIN,
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionResponse,
    InteractionType,
)
from holdfast.model.values import Json

T = TypeVar("T")
Reader: TypeAlias = Callable[[Any, Problems], Any]

_OUR_FIELDS: Final = ("role", "reminders", "escalate_after", "escalate_to", "custom_type")

_A: Final = InteractionAction

_APPROVAL: Final[Mapping[InteractionAction, str]] = {
    _A.APPROVE_AND_EXECUTE: msgid("Runs {tool} with these arguments."),
    _A.PROVIDE_INFO: msgid("Runs {tool} with these arguments, completed by you."),
    _A.REJECT_WITH_REASON: msgid("Does not run {tool}."),
    _A.SKIP: msgid("Does not run {tool}; goes on without it."),
    _A.TERMINATE: msgid("Does not run {tool}; ends the whole run."),
    _A.CUSTOM: msgid("A handler decides whether {tool} runs."),
}
_MISSING: Final[Mapping[InteractionAction, str]] = {
    **_APPROVAL,
    _A.APPROVE_AND_EXECUTE: msgid("Goes on to run {tool} with what is given here."),
    _A.PROVIDE_INFO: msgid("Goes on to run {tool} with what is given here."),
}
_UNKNOWN: Final[Mapping[InteractionAction, str]] = {
    _A.PROVIDE_INFO: msgid("Does not run {tool} again; goes on with the result that you give."),
    _A.APPROVE_AND_EXECUTE: msgid("Runs {tool} again with these arguments."),
    _A.TERMINATE: msgid("Does not run {tool} again; ends the whole run."),
}
_NO_CALL: Final[Mapping[InteractionAction, str]] = {
    _A.APPROVE_AND_EXECUTE: msg("Goes on with this choice."),
    _A.PROVIDE_INFO: msg("Goes on with what you give."),
    _A.RETRY_WITH_FEEDBACK: msg("Does not go on yet; your words go back, and it is asked anew."),
    _A.REJECT_WITH_REASON: msg("Refuses what is asked."),
    _A.SKIP: msg("Goes on without an answer."),
    _A.TERMINATE: msg("Ends the whole run."),
    _A.CUSTOM: msg("A handler decides what happens."),
}
_AGENT_AGAIN: Final = msgid("Does not run {tool}; the agent thinks again with your words.")
_ASKED_AGAIN: Final = msgid("Does not run {tool}; it is asked again with your words.")


def request_to_wire(request: InteractionRequest) -> dict[str, Any]:
    """Every field of the seed, and ours where set; InvalidValue if `context` is not JSON."""
    options = [option_to_wire(option) for option in request.options]
    given = _fields_of(request) | {"context": dict(request.context), "options": options}
    unset = {name for name in _OUR_FIELDS if given[name] in (None, ())}
    seed = {name: value for name, value in given.items() if name not in {"form", *unset}}
    return _written(seed) | _form_to_wire(request.form)


def request_from_wire(raw: object) -> InteractionRequest:
    """The request, or InvalidAnswer with one message per wrong field."""
    return REQUEST.from_wire(raw)


def option_to_wire(option: InteractionOption) -> dict[str, Any]:
    """Every field of the seed; InvalidValue if `metadata` is not JSON."""
    return _written(_fields_of(option) | {"metadata": dict(option.metadata)})


def option_from_wire(raw: object) -> InteractionOption:
    """The option, or InvalidAnswer with one message per wrong field."""
    return _OPTION.from_wire(raw)


def response_to_wire(response: InteractionResponse) -> dict[str, Any]:
    """Every field of the seed; InvalidValue if `data` is not JSON."""
    return _written(_fields_of(response) | {"data": dict(response.data)})


def response_from_wire(raw: object) -> InteractionResponse:
    """The response, or InvalidAnswer with one message per wrong field."""
    return RESPONSE.from_wire(raw)


_REPAIR: Final[Mapping[InteractionAction, str]] = {
    _A.APPROVE_AND_EXECUTE: msg("Changes the plan of this run as shown, and goes on."),
    _A.REJECT_WITH_REASON: msg("Leaves the plan as it is."),
}


def consequence(request: InteractionRequest, option: InteractionOption) -> str:
    """What choosing `option` does, as a sentence."""
    call = call_of(request)
    if is_about_repair(request):
        return _REPAIR.get(option.action, "")
    if call is None:
        return _NO_CALL[option.action]
    return msg(_about_a_call(request, option.action), tool=call[0])


def is_about_repair(request: InteractionRequest) -> bool:
    return "repair_tools" in request.context


def call_of(request: InteractionRequest) -> tuple[str, Mapping[str, Json]] | None:
    """The tool and the arguments that a question is about, if it is about a call."""
    tool, args = request.context.get("tool"), request.context.get("args")
    return (tool, args) if isinstance(tool, str) and isinstance(args, Mapping) else None


def _about_a_call(request: InteractionRequest, action: InteractionAction) -> str:
    if [one.option_id for one in request.options] == [HAPPENED, RUN_AGAIN, STOP]:
        return _UNKNOWN[action]
    if action is _A.RETRY_WITH_FEEDBACK:
        return _AGENT_AGAIN if "call_id" in request.context else _ASKED_AGAIN
    approval = request.type is InteractionType.TOOL_APPROVAL
    return (_APPROVAL if approval else _MISSING)[action]


def _fields_of(one: Any) -> dict[str, Any]:
    return {each.name: getattr(one, each.name) for each in fields(one)}


def _written(given: Mapping[str, object]) -> dict[str, Json]:
    return {camel(name): strict_json(value) for name, value in given.items()}


def _form_to_wire(form: Form) -> dict[str, Any]:
    return {"form": dump_form(form), "formSchema": json_schema(form)} if form.fields else {}


def camel(name: str) -> str:
    """The wire's spelling of a Python name."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


class RecordReader(Generic[T]):
    """How a record is read: what its attributes may be is said by their annotations, or by readers.

    An attribute that has neither is no part of the wire. `further` are other spellings.
    """

    def __init__(
        self, kind: type[T], what: str, further: Mapping[str, str] | None = None, **readers: Reader
    ) -> None:
        known = get_type_hints(kind).items()
        self.kind: Any = kind
        self.what = what
        self.readers = {
            name: readers.get(name) or _BY_TYPE[declared]
            for name, declared in known
            if name in readers or declared in _BY_TYPE
        }
        names = {camel(name): name for name in self.readers} | {name: name for name in self.readers}
        self.spellings = names | dict(further or {})

    def from_wire(self, raw: object) -> T:
        """The record, or InvalidAnswer with one message per wrong field."""
        problems = Problems()
        made = self.read(raw, problems)
        if made is None:
            raise _refusal(problems.found, self.what)
        return made

    def read(self, raw: object, problems: Problems) -> T | None:
        """The record, or None after everything wrong with it was reported."""
        if not isinstance(raw, Mapping):
            problems.add(msg("must be an object, not {sort}", sort=_sort(raw)))
            return None
        known_before = len(problems.found)
        given = dict(self._given(raw, problems))
        values = dict(self._values(raw, given, problems))
        made: T | None = self.kind(**values) if len(problems.found) == known_before else None
        return made

    def _given(self, raw: Mapping[Any, object], problems: Problems) -> Iterator[tuple[str, str]]:
        """The attributes that are given, each with the key that gives it."""
        first: dict[str, str] = {}
        for key in raw:
            name = self.spellings.get(key)
            if name is None:
                if len(problems.found) < MOST_UNKNOWN:
                    _report_unknown(str(key), self.spellings, problems)
            elif name in first:
                problems.at(key).add(
                    msg("says the same as {name}: give only one of them", name=first[name])
                )
            else:
                first[name] = key
                yield name, key

    def _values(
        self, raw: Mapping[str, object], given: Mapping[str, str], problems: Problems
    ) -> Iterator[tuple[str, Any]]:
        for each in fields(self.kind):
            key = given.get(each.name)
            value = None if key is None else raw[key]
            if key is not None and value is not None:
                yield each.name, self.readers[each.name](value, problems.at(key))
            elif each.default is MISSING and each.default_factory is MISSING:
                problems.at(key or camel(each.name)).add(msg("is required"))


def _refusal(problems: list[FormProblem], what: str) -> InvalidAnswer:
    messages: dict[str, str] = {}
    for problem in problems:
        name = printable(problem.place) if problem.path else "$"
        known = messages.get(name)
        messages[name] = joined("; ", (known, problem.message)) if known else problem.message
    name, message = next(iter(messages.items()))
    found = msg("{place}: {problem}", place=name, problem=message)
    if len(messages) > 1:
        found = msg("{problem} (and {n} more)", problem=found, n=len(messages) - 1)
    told = msg("this {what} cannot be read: {problem}", what=what, problem=found)
    return InvalidAnswer(told, messages)


def _report_unknown(key: str, known: Mapping[str, str], problems: Problems) -> None:
    names = [camel(name) for name in dict.fromkeys(known.values())]
    hint = remedy(key[:LONGEST_NAME_SHOWN], names, msg("known are {names}", names=", ".join(names)))
    problems.at(key).add(msg("unknown key: {hint}", hint=hint))


def _sort(value: object) -> str:
    match value:
        case None:
            return msg("null")
        case bool():
            return msg("true or false")
        case int() | float():
            return msg("a number")
        case str():
            return msg("text")
        case list() | tuple():
            return msg("a list")
    return msg("an object") if isinstance(value, Mapping) else type(value).__name__


def _reader(wanted: str, *kinds: type) -> Reader:
    """Reads a value of one kind; strict JSON has exact types, so true is no number."""

    def read(value: object, problems: Problems) -> Json:
        try:
            plain = strict_json(value)
        except InvalidValue as error:
            problems.add(str(error))
            return None
        if (str if isinstance(plain, str) else type(plain)) not in kinds:
            problems.add(msg("must be {wanted}, not {sort}", wanted=wanted, sort=_sort(plain)))
        return plain

    return read


_text: Final = _reader(msg("text"), str)
_flag: Final = _reader(msg("true or false"), bool)
_number: Final = _reader(msg("a number"), int, float)
_mapping: Final = _reader(msg("an object"), dict)


def _numbers(value: object, problems: Problems) -> tuple[Json, ...]:
    return tuple(_number(each, problems.at(index)) for index, each in _items(value, problems))


def _items(value: object, problems: Problems) -> Iterator[tuple[int, object]]:
    if not isinstance(value, list | tuple):
        problems.add(msg("must be a list, not {sort}", sort=_sort(value)))
        return
    yield from enumerate(value)


def word_of(words: type[StrEnum]) -> Reader:
    known = {each.value: each for each in words}

    def read(value: object, problems: Problems) -> StrEnum | None:
        word = _text(value, problems)
        if not isinstance(word, str):
            return None
        if word not in known:
            hint = remedy(
                word[:LONGEST_NAME_SHOWN], known, msg("use {names}", names=", ".join(known))
            )
            problems.add(msg("there is no {name}: {hint}", name=echo(word), hint=hint))
        return known.get(word)

    return read


def _options(value: object, problems: Problems) -> tuple[InteractionOption | None, ...]:
    return tuple(_OPTION.read(each, problems.at(index)) for index, each in _items(value, problems))


def _form(value: object, problems: Problems) -> Form:
    try:
        return parse_form(value)
    except FormRejected as rejected:
        for problem in rejected.problems:
            problems.at(*problem.path).add(problem.message)
        return Form()


_BY_TYPE: Final[Mapping[Any, Reader]] = {
    str: _text,
    str | None: _text,
    bool: _flag,
    float | None: _number,
    tuple[float, ...]: _numbers,
    Mapping[str, Json]: _mapping,
    Form: _form,
    InteractionType: word_of(InteractionType),
    InteractionAction: word_of(InteractionAction),
    tuple[InteractionOption, ...]: _options,
}
_OPTION: Final = RecordReader(
    InteractionOption,
    "option",
    {"default": "is_default", "dangerous": "is_dangerous", "consequence": "consequence"},
)
REQUEST: Final = RecordReader(
    InteractionRequest, "request", {"formSchema": "form_schema", "form_schema": "form_schema"}
)
RESPONSE: Final = RecordReader(InteractionResponse, "response")

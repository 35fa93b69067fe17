"""Asks a question in the terminal: an option is chosen, and the form filled in that goes with it.

Every field is checked by the rules that the run itself will apply, so what is
accepted here is accepted there. Nothing is preselected unless the plan says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import questionary
from questionary import Choice
from rich.rule import Rule

from holdfast.cli.terminal.fields import HINTS, label_of
from holdfast.cli.terminal.question import (
    asks_twice,
    brought_along,
    edits,
    meant,
    needs_words,
    shown_args,
    shown_context,
    shown_details,
)
from holdfast.cli.terminal.repairs import is_repair
from holdfast.cli.terminal.screen import console, say
from holdfast.cli.terminal.untrusted_text import rows, screen_width
from holdfast.cli.values import read_text
from holdfast.forms.validation import (
    Validated,
    validate,
    validate_changes,
    visible_fields,
)
from holdfast.forms.values import allowed_options
from holdfast.interactions.cards import consequence, needs_all_of_it, takes_the_form
from holdfast.language.strict import canonical_json
from holdfast.model.form import Field, FieldType, Form, Option
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionResponse,
    InteractionType,
)
from holdfast.views.stories.text import visible

_MARK = ">"
_LEAVE_OUT = object()
_MOST_NUMBERED = 9
_BESIDE_A_LABEL = 20


@dataclass(frozen=True, slots=True)
class Given:
    """What a person chose and filled in."""

    option_id: str | None
    data: dict[str, Any]
    feedback: str | None = None

    def response(self, question_id: str = "") -> InteractionResponse:
        return InteractionResponse(
            question_id,
            selected_option_id=self.option_id,
            data=self.data,
            feedback=self.feedback,
        )


@dataclass(frozen=True, slots=True)
class _Choice:
    """An option; `edited` means with other arguments than those shown."""

    option: InteractionOption
    edited: bool = False


async def ask(
    request: InteractionRequest, chosen: str | None = None, more: Iterable[str] = ()
) -> Given | None:
    """The answer, or None when the person leaves it for later (Ctrl-C); `more` is shown with it."""
    introduce(request, more=more)
    try:
        choice = await _choose(request, chosen)
        option = choice.option
        data = await _data(request, choice)
        feedback = await _feedback(request, option, filled=bool(data))
        if asks_twice(option) and not await confirmed(request, option):
            return None
    except KeyboardInterrupt:
        return None
    return Given(option.option_id, data, feedback)


async def confirmed(
    request: InteractionRequest, option: InteractionOption, times: str = ""
) -> bool:
    """A dangerous option is asked for a second time."""
    action = f"{consequence(request, option)} {visible(option.label)}{times}"
    message = f"{action}: this cannot be undone. Are you sure?"
    return bool(await questionary.confirm(message, default=False, qmark=_MARK).unsafe_ask_async())


def introduce(request: InteractionRequest, options: str = "", more: Iterable[str] = ()) -> None:
    say("")
    title = Rule(visible(request.title), align="left", characters="-")
    console().print(title, width=screen_width())
    say(*rows(visible(request.message, 2000), "") if request.message else ())
    say(*shown_details(request))
    say(*shown_context(request, options=options), *more)


async def _data(request: InteractionRequest, choice: _Choice) -> dict[str, Any]:
    option = choice.option
    if not takes_the_form(request, option):
        return {}
    if request.type is InteractionType.TOOL_APPROVAL:
        as_shown = edits(request, option) and not choice.edited
        return {} if as_shown else await _changed(request)
    if not needs_all_of_it(request, option):
        return await _offered(request.form)
    return await _fill_in(request.form, brought_along(request, option))


async def _offered(form: Form) -> dict[str, Any]:
    """What the person cares to fill in."""
    free = Form(tuple(replace(field, required=False) for field in form.fields))
    return {name: value for name, value in (await _fill_in(free)).items() if value != []}


async def _changed(request: InteractionRequest) -> dict[str, Any]:
    """The arguments that the person changes; what is not touched stays as it was shown."""
    args = request.context.get("args", {})
    form = Form(tuple(_shown_as_default(field, args) for field in request.form.fields))

    def changed(given: Mapping[str, Any]) -> dict[str, Any]:
        return {name: given[name] for name in given if _differs(before[name], given[name])}

    before = {field.name: field.default for field in form.fields}
    judged = partial(validate_changes, request.form)
    changes = changed(await _fill_in(form, judge=lambda given: judged(changed(given))))
    say("  these arguments will run:", *shown_args(request, {**args, **changes}))
    return changes


def _differs(before: Any, now: Any) -> bool:
    """To tick nothing where nothing was is no change."""
    return bool(before != now) and not (before is None and now == [])


def _shown_as_default(field: Field, args: Mapping[str, Any]) -> Field:
    value = args.get(field.name)
    is_text = field.json and value is not None
    return replace(field, default=canonical_json(value) if is_text else value)


async def _choose(request: InteractionRequest, chosen: str | None) -> _Choice:
    choices = list(_choices(request))
    if chosen is not None or len(choices) < 2:
        only = (one for one in request.options if chosen in (None, one.option_id))
        return _told(request, next(only))
    question = questionary.select(
        "Your answer",
        choices,
        qmark=_MARK,
        default=next((one for one in choices if _is_default(request, one)), None),
        use_shortcuts=len(choices) <= _MOST_NUMBERED,
        use_arrow_keys=True,
    )
    picked = await question.unsafe_ask_async()
    assert isinstance(picked, _Choice)
    return picked


def _told(request: InteractionRequest, option: InteractionOption) -> _Choice:
    """Where nothing is left to choose, what it does is said before it is done."""
    say(*rows(meant(request, option), "  ", "  "))
    return _Choice(option)


def _choices(request: InteractionRequest) -> Iterator[Choice]:
    room = screen_width() - _BESIDE_A_LABEL
    for option in request.options:
        label, words = visible(option.label, room), visible(option.description, room)
        # That of a repair says what we say of it ourselves.
        described = "" if is_repair(request) else words
        told = " ".join(filter(None, (consequence(request, option), described)))
        yield Choice(label, _Choice(option), description=told)
        if edits(request, option):
            yield Choice(f"Edit, then {label[:1].lower()}{label[1:]}", _Choice(option, edited=True))


def _is_default(request: InteractionRequest, choice: Choice) -> bool:
    value = choice.value
    assert isinstance(value, _Choice)
    return value.option.option_id == request.default_option_id


async def _feedback(
    request: InteractionRequest, option: InteractionOption, *, filled: bool
) -> str | None:
    if needs_words(option, filled=filled):
        return await _words(option)
    refuses = option.action is InteractionAction.REJECT_WITH_REASON
    return await _reason() if refuses and is_repair(request) else None


async def _reason() -> str | None:
    """May be empty."""
    asked = questionary.text("Why not? (may be left empty)", qmark=_MARK)
    return str(await asked.unsafe_ask_async()).strip() or None


async def _words(option: InteractionOption) -> str:
    prompt = visible(option.input_prompt or option.label)

    def given(text: str) -> bool | str:
        return bool(text.strip()) or "please write something"

    return str(await questionary.text(prompt, validate=given, qmark=_MARK).unsafe_ask_async())


async def _fill_in(
    form: Form,
    given: Mapping[str, Any] | None = None,
    judge: Callable[[Mapping[str, Any]], Validated] | None = None,
) -> dict[str, Any]:
    """The fields that are asked, one after the other, until the form fits with what is given."""
    given = given or {}
    judge = judge or partial(validate, form)
    while True:
        answers: dict[str, Any] = {}
        for field in form.fields:
            if field.name not in given and field in visible_fields(form, {**answers, **given}):
                answer = await _ask_field(field)
                if answer is not _LEAVE_OUT:
                    answers[field.name] = answer
        errors = judge({**answers, **given}).errors
        if not errors:
            return answers
        say(*(f"  {name}: {why}" for name, why in errors.items()))


async def _ask_field(field: Field) -> Any:
    match field.type:
        case FieldType.RADIO | FieldType.SELECT:
            return await _ask_choice(field)
        case FieldType.MULTISELECT:
            return await _ask_choices(field)
        case FieldType.BOOLEAN:
            return await _ask_yes_or_no(field)
        case _:
            return await _ask_text(field)


async def _ask_text(field: Field) -> Any:
    def fits(text: str) -> bool | str:
        return problem(field, _typed(field, text)) or True

    default = "" if field.default is None else str(field.default)
    if field.type is FieldType.SECRET:
        question = questionary.password(_prompt(field), validate=fits, qmark=_MARK)
    else:
        multiline = field.type is FieldType.TEXTAREA
        question = questionary.text(
            _prompt(field), default, validate=fits, qmark=_MARK, multiline=multiline
        )
    return _typed(field, str(await question.unsafe_ask_async()))


def _typed(field: Field, text: str) -> Any:
    """A default that was cleared is an answer; an empty line without one is none."""
    if text == "":
        return _LEAVE_OUT if field.default is None else ""
    return read_text(field, text)


async def _ask_choice(field: Field) -> Any:
    options = allowed_options(field)
    choices = [Choice(label_of(one), one.value) for one in options]
    if not field.required:
        choices.append(Choice("(leave out)", ""))
    default = next((one for one in choices if one.value == field.default), None)
    question = questionary.select(_prompt(field), choices, default=default, qmark=_MARK)
    value = str(await question.unsafe_ask_async())
    option = next((one for one in options if one.value == value), None)
    if option is None:
        return _LEAVE_OUT
    return await _with_text(field, option)


async def _with_text(field: Field, option: Option) -> Any:
    """The option's value, with the text that it asks for."""
    if not option.requires_input:
        return option.value

    def whole(text: str) -> dict[str, str]:
        return {"value": option.value, "text": text}

    single = replace(field, type=FieldType.RADIO)

    def fits(text: str) -> bool | str:
        return problem(single, whole(text)) or True

    prompt = visible(option.label)
    return whole(await questionary.text(prompt, validate=fits, qmark=_MARK).unsafe_ask_async())


async def _ask_choices(field: Field) -> Any:
    options = {one.value: one for one in allowed_options(field)}
    checked = field.default or []
    choices = [
        Choice(label_of(one), one.value, checked=one.value in checked) for one in options.values()
    ]

    def fits(picked: list[str]) -> bool | str:
        plain = [one for one in picked if not options[one].requires_input]
        return problem(field, picked) or True if len(plain) == len(picked) else True

    question = questionary.checkbox(_prompt(field), choices, validate=fits, qmark=_MARK)
    return [await _with_text(field, options[one]) for one in await question.unsafe_ask_async()]


async def _ask_yes_or_no(field: Field) -> Any:
    choices = [Choice("yes", True), Choice("no", False)]
    if not field.required:
        choices.append(Choice("(leave out)", None))
    default = next((one for one in choices if one.value is field.default), None)
    question = questionary.select(_prompt(field), choices, default=default, qmark=_MARK)
    answer = await question.unsafe_ask_async()
    return _LEAVE_OUT if answer is None else answer


def problem(field: Field, value: Any) -> str | None:
    """What the form would say to `value`, by itself."""
    alone = Form((replace(field, visible_if=None),))
    data = {} if value is _LEAVE_OUT else {field.name: value}
    return validate(alone, data).errors.get(field.name)


def _prompt(field: Field) -> str:
    hints = [field.description, HINTS.get(field.type, ""), "" if field.required else "optional"]
    shown = "; ".join(visible(hint) for hint in hints if hint)
    return visible(field.label or field.name) + (f" ({shown})" if shown else "")

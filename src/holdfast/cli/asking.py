"""Asking: a question's form in the terminal, checked while it is being typed.

Every field is checked by the rules that the run itself will apply, so what is
accepted here is accepted there. Nothing is preselected unless the plan says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import questionary
from questionary import Choice

from holdfast.cli.screen import console, say, visible
from holdfast.cli.values import read_text
from holdfast.core.forms.validation import validate, visible_fields
from holdfast.core.forms.values import allowed_options
from holdfast.model.form import Field, FieldType, Form, Option
from holdfast.model.interaction import InteractionAction, InteractionOption, InteractionRequest

_MARK = ">"
_LEAVE_OUT = object()
_HINTS = {
    FieldType.DATE: "YYYY-MM-DD",
    FieldType.DATETIME: "2025-10-15T10:30:00+08:00",
    FieldType.FILE: "file:…",
}


@dataclass(frozen=True, slots=True)
class Given:
    """What a person chose and filled in."""

    option_id: str | None
    data: dict[str, Any]
    feedback: str | None = None


async def ask(request: InteractionRequest, chosen: str | None = None) -> Given | None:
    """The answer, or None when the person leaves it for later (Ctrl-C)."""
    _introduce(request)
    try:
        option = await _choose(request, chosen)
        if option is not None and option.is_dangerous and not await confirmed(option):
            return None
        data = await _fill_in(request.form) if _takes_data(option) else {}
        feedback = await _words(option) if option is not None and option.requires_input else None
    except KeyboardInterrupt:
        return None
    return Given(option.option_id if option else None, data, feedback)


async def confirmed(option: InteractionOption) -> bool:
    """A dangerous option is asked for a second time."""
    message = f"{visible(option.label)}: this cannot be undone. Are you sure?"
    return bool(await questionary.confirm(message, default=False, qmark=_MARK).unsafe_ask_async())


def _introduce(request: InteractionRequest) -> None:
    say("")
    console().rule(visible(request.title), align="left", characters="-")
    texts = [request.message, request.details]
    say(*(visible(text, 2000) for text in texts if text))
    for name, value in request.context.items():
        say(f"  {visible(name)}: {visible(value)}")


def _takes_data(option: InteractionOption | None) -> bool:
    return option is None or option.action is InteractionAction.PROVIDE_INFO


async def _choose(request: InteractionRequest, chosen: str | None) -> InteractionOption | None:
    options = {option.option_id: option for option in request.options}
    if chosen is not None:
        return options.get(chosen)
    if len(options) < 2:
        return next(iter(options.values()), None)
    choices = [
        Choice(visible(one.label), one.option_id, description=visible(one.description) or None)
        for one in options.values()
    ]
    question = questionary.select("Your answer", choices, qmark=_MARK)
    return options[str(await question.unsafe_ask_async())]


async def _words(option: InteractionOption) -> str:
    prompt = visible(option.input_prompt or option.label)

    def given(text: str) -> bool | str:
        return bool(text.strip()) or "please write something"

    return str(await questionary.text(prompt, validate=given, qmark=_MARK).unsafe_ask_async())


async def _fill_in(form: Form) -> dict[str, Any]:
    """The fields that are asked, one after the other, until the whole form fits."""
    while True:
        answers: dict[str, Any] = {}
        for field in form.fields:
            if field in visible_fields(form, answers):
                answer = await _ask_field(field)
                if answer is not _LEAVE_OUT:
                    answers[field.name] = answer
        errors = validate(form, answers).errors
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
    choices = [Choice(_label(one), one.value) for one in options]
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
        Choice(_label(one), one.value, checked=one.value in checked) for one in options.values()
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
    hints = [field.description, _HINTS.get(field.type, ""), "" if field.required else "optional"]
    shown = "; ".join(visible(hint) for hint in hints if hint)
    return visible(field.label or field.name) + (f" ({shown})" if shown else "")


def _label(option: Option) -> str:
    extras = " ".join(str(value) for value in option.extras.values())
    return visible(f"{option.label}  {extras}".strip())

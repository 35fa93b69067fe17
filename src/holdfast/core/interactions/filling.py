"""Filling in a form: which options take it, and which field bare words are the value of.

`PROVIDE_INFO` takes the form. The handler of a CUSTOM option may need it, and an option to go on
that requires input takes it as that input. On an approval the form is the call's own arguments,
which only an approval may change. The other options take reasons, in words.

Some clients have one line to answer in and no form. Where only one field is open, the words are
its value: a number in digits, a choice by its value, its label or its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.errors import InvalidValue
from holdfast.forms.validation import validate, validate_changes
from holdfast.forms.values import allowed_options
from holdfast.language.strict import strict_json
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)
from holdfast.model.values import Json


def takes_the_form(request: InteractionRequest, option: InteractionOption) -> bool:
    approval = request.type is InteractionType.TOOL_APPROVAL
    if not request.form.fields:
        return False
    match option.action:
        case InteractionAction.PROVIDE_INFO:
            return True
        case InteractionAction.APPROVE_AND_EXECUTE:
            return approval or option.requires_input
        case InteractionAction.CUSTOM:
            return not approval
        case _:
            return False


def needs_all_of_it(request: InteractionRequest, option: InteractionOption) -> bool:
    """A call has its arguments already, and a CUSTOM option may be a way around the form."""
    if request.type is InteractionType.TOOL_APPROVAL:
        return False
    return option.action is not InteractionAction.CUSTOM or option.requires_input


_WORDS: Final = {
    **dict.fromkeys(("yes", "y", "true", "是", "对"), True),
    **dict.fromkeys(("no", "n", "false", "否", "不"), False),
}
_BETWEEN: Final = re.compile(r"[,;，；、\n]")


def spoken_field(request: InteractionRequest, option: InteractionOption) -> Field | None:
    """The field that bare words with `option` are the value of, if only one can be meant."""
    if not takes_the_form(request, option):
        return None
    if option.action is not InteractionAction.PROVIDE_INFO and not _fills(request, option):
        return None
    approval = request.type is InteractionType.TOOL_APPROVAL
    args = request.context.get("args") if approval else None
    fields = open_fields(request.form, args if isinstance(args, Mapping) else {})
    return fields[0] if len(fields) == 1 else None


def spoken_secret(request: InteractionRequest, option_id: str | None) -> Field | None:
    """The secret field that bare words with an option are the value of."""
    chosen = (one for one in request.options if one.option_id == option_id)
    fields = (spoken_field(request, one) for one in chosen)
    return next((one for one in fields if one and one.type is FieldType.SECRET), None)


def _fills(request: InteractionRequest, option: InteractionOption) -> bool:
    """Words beside an approval are said along with it; elsewhere they are the required input."""
    return option.requires_input and request.type is not InteractionType.TOOL_APPROVAL


def open_fields(form: Form, args: Mapping[str, Json]) -> Sequence[Field]:
    """What is still to be given: what the call lacks, what is required; else every field."""
    lacking = [one for one in form.fields if one.name not in args] or form.fields
    return [one for one in lacking if one.required] or lacking


def as_said(field: Field, words: str) -> Json:
    """Bare words as the field takes them; what it cannot take is left for it to refuse."""
    match field.type:
        case FieldType.NUMBER:
            return _number(words)
        case FieldType.BOOLEAN:
            return _WORDS.get(words.strip().lower(), words)
        case FieldType.RADIO | FieldType.SELECT:
            return _choice(field, words)
        case FieldType.MULTISELECT:
            parts = filter(None, map(str.strip, _BETWEEN.split(words)))
            return [_choice(field, one) for one in parts]
    return words


def _number(words: str) -> Json:
    try:
        return strict_json(json.loads(words))
    except (ValueError, InvalidValue):
        return words


def _choice(field: Field, words: str) -> Json:
    """By value, label or place; other words are for the one choice that takes some."""
    said, options = words.strip(), allowed_options(field)
    for place, one in enumerate(options, 1):
        known = {one.value.lower(), one.label.lower(), str(place)}
        if said.lower() in known and not one.requires_input:
            return one.value
    own = [one for one in options if one.requires_input]
    return {"value": own[0].value, "text": said} if len(own) == 1 else said


def for_the_handler(
    request: InteractionRequest, option: InteractionOption, data: Mapping[str, Json]
) -> Mapping[str, Json]:
    """What the handler of a CUSTOM option is given: data that fits the question's form.

    The whole form only where the option requires input: it may as well be a way around it.
    """
    if not data or not request.form.fields:
        return data
    if request.type is InteractionType.TOOL_APPROVAL:
        return validate_changes(request.form, data).accepted()
    return validate(request.form, data, partial=not needs_all_of_it(request, option)).accepted()

"""The fields of a form, as the values are written into a command.

Labels and choices may be a model's: what does not fit a row goes on behind a bar.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from holdfast.cli.terminal.untrusted_text import rows
from holdfast.forms.values import allowed_options
from holdfast.language.strict import canonical_json
from holdfast.model.form import Field, FieldType, Form, Option
from holdfast.views.stories.text import named, visible

HINTS = {
    FieldType.DATE: "YYYY-MM-DD",
    FieldType.DATETIME: "2025-10-15T10:30:00+08:00",
    FieldType.FILE: "file:…",
}

_SPELLED = HINTS | {
    FieldType.NUMBER: "a number",
    FieldType.BOOLEAN: "yes or no",
    FieldType.RADIO: "one of",
    FieldType.SELECT: "one of",
    FieldType.MULTISELECT: "some of, with commas",
}


def shown_fields(form: Form, indent: str = "") -> Iterator[str]:
    """Each field with what it takes; of a choice its values, labels and notes."""
    rest = f"{indent}  │ "
    for field in form.fields:
        yield from rows(_described(field), f"{indent}  {named(field.name)}: ", rest)
        for option in allowed_options(field):
            yield from rows(_spelled(field, option), f"{indent}    - ", f"{indent}    │ ")


def label_of(option: Option) -> str:
    extras = " ".join(str(value) for value in option.extras.values())
    return visible(f"{option.label}  {extras}".strip())


def _described(field: Field) -> str:
    condition = f"only if {field.visible_if}" if field.visible_if else ""
    label = "" if field.label == field.name else field.label
    told = [label, field.description, condition, "" if field.required else "optional"]
    return "; ".join(visible(one) for one in (*told, _SPELLED.get(field.type, "text")) if one)


def _spelled(field: Field, option: Option) -> str:
    """The value to write, and what it means; one with its own text is written as JSON."""
    label = label_of(option)
    if option.requires_input:
        given = {"value": option.value, "text": "…"}
        whole = [given] if field.type is FieldType.MULTISELECT else given
        return f"{label}: --set {shlex.quote(f'{field.name}:={canonical_json(whole)}')}"
    return visible(option.value) + ("" if label == option.value else f" ({label})")

"""Lost results: the form by which a person tells what a call has returned.

What the plan reads of a result is what must be known of it. `{{result.order.id}}` asks for one
field named `order.id`, and the answer becomes `{"order": {"id": …}}`; where the plan takes the
result as a whole, the whole is asked for as JSON. Told values stay texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from holdfast.i18n.message import msg
from holdfast.language.facts import Path
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.values import Json

WHOLE_RESULT: Final = Field(
    "result",
    FieldType.TEXTAREA,
    msg("Result"),
    msg("What it returned, written as JSON."),
    json=True,
)


def lost_result_form(paths: Iterable[Path]) -> Form:
    """Asks for what these paths, which begin with `result`, read; nothing where there are none."""
    wanted = list(dict.fromkeys(path[1:] for path in paths))
    if () in wanted:
        return Form((WHOLE_RESULT,))
    names = [".".join(one) for one in wanted if not _leads_on(one, wanted)]
    return Form(tuple(Field(name, FieldType.TEXT, name) for name in names))


def told_result(form: Form, values: Mapping[str, Json]) -> Json:
    """The result that the answers to such a form spell."""
    if form.fields == (WHOLE_RESULT,):
        return values[WHOLE_RESULT.name]
    result: dict[str, Json] = {}
    for name, value in values.items():
        *place, last = name.split(".")
        inner = result
        for part in place:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return result


def _leads_on(path: Path, paths: Iterable[Path]) -> bool:
    """A part of the result of which something inside is read as well."""
    return any(len(one) > len(path) and one[: len(path)] == path for one in paths)

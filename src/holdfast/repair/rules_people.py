"""Whom a call is about, where the run says it under another name.

Tools and plans have many words for a person, `employee`, `applicant`, 姓名, which no spelling
brings together. A value of the run is taken for such an argument where the argument's name or title
says that it is a person and nothing says that a number is wanted, and where one value alone of the
run is called like a person and written like a name. It stays a guess, and is shown as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from holdfast.forms.shapes import answer_problem
from holdfast.language.facts import Path
from holdfast.model.approval import ToolFacts
from holdfast.model.form import Field
from holdfast.model.values import Json, JsonObject
from holdfast.repair.failed_work import FailedWork, fields_of
from holdfast.repair.readings import data_of_task, read, written

_PEOPLE: Final = frozenset(
    {
        *("applicant", "assignee", "candidate", "colleague", "employee"),
        *("member", "payee", "person", "requester", "staff"),
        *("人员", "同事", "员工", "姓名", "收款人", "申请人", "领用人"),
    }
)
_PLAIN: Final = frozenset({"full", "name"})
"""Words that name a person only where no other word stands beside them."""
_WORDS: Final = re.compile(r"[a-z]+|[^\W\d_a-z]+")
_NUMBER: Final = re.compile(
    r"(?i)(?<![a-z])(?:id|no|number|code|key|login|e?mail)(?![a-z])|[编工账]号"
)
_NAME: Final = re.compile(r"[^\W\d_]+(?:[ .·'’-]{1,2}[^\W\d_]+){0,7}\.?")
"""Letters, in words: no number, no address, no reference."""


def people(work: FailedWork, facts: ToolFacts, given: JsonObject) -> Iterator[tuple[str, Json]]:
    """Arguments that a tool requires and is not given, each with what says whom it is about."""
    for name, field in fields_of(facts).items():
        if name in facts.required and name not in given and _asks_whom(field):
            path = _the_person(work, field)
            if path is not None:
                yield name, written(path)


def _asks_whom(field: Field) -> bool:
    told = f"{field.name} {field.label} {field.description}"
    return _NUMBER.search(told) is None and _says_whom(field.name, field.label, frozenset())


def _says_whom(name: str, label: str, plain: frozenset[str]) -> bool:
    """By its name, of which each word must be one for people, or by its title. Words that are
    `plain` count by themselves."""
    words = _words(name)
    by_name = words <= _PEOPLE | _PLAIN and not words.isdisjoint(_PEOPLE | plain)
    return by_name or not _PEOPLE.isdisjoint(_words(label))


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORDS.findall(text.lower()))


def _the_person(work: FailedWork, field: Field) -> Path | None:
    """None where the run speaks of several."""
    found: dict[str, Path] = {}
    for path in _named_so(work):
        reading = read(path, work.state)
        value = reading.value if reading else None
        if isinstance(value, str) and _NAME.fullmatch(value):
            found.setdefault(value, path)
    if len(found) != 1:
        return None
    ((value, path),) = found.items()
    return path if answer_problem(field, value) is None else None


def _named_so(work: FailedWork) -> Iterator[Path]:
    """Inputs go by what people were asked, too."""
    asked = {one.name: one.label for one in work.plan.inputs.fields}
    for task_id in work.task_ids:
        labels = asked if task_id == work.state.plan.main else {}
        for name in data_of_task(work.state, task_id):
            if _says_whom(name, labels.get(name, ""), _PLAIN):
                yield task_id, "context", name

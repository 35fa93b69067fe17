"""Provenance: where each literal of a patch comes from.

A literal is the *author's* where it stands in the run's plan already, a *person's* where people
gave it to this run, of the *schema* where the tool's own parameter names it (an enumeration, a
constant, a default). Any other is the *model's* that wrote the patch, or the *patch*'s own: a new
value, to which an approver must consent, and which is shown as such.

Numbers, flags and short texts stand in many places by chance. They count only where they stand
under the same name; a text of some length counts wherever it stands as a whole.

What tools have returned, and what error texts say, is nobody's: copying it makes a new value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final, TypeAlias

from holdfast.core.plan.state import PlanState
from holdfast.forms.from_tools import form_from_schema
from holdfast.language.conditions import equal
from holdfast.language.strict import canonical_json
from holdfast.model.form import Field
from holdfast.model.plan import (
    CodeAction,
    HumanAction,
    Plan,
)
from holdfast.model.record import TextEnum, record
from holdfast.model.values import Json, JsonObject
from holdfast.repair.leaves import Place, leaves, name_of
from holdfast.repair.parts import data_of, form_of, outputs_of

_SHORTEST_TELLING: Final = 3
OF_THE_ENGINE: Final = frozenset(
    {
        "error_info",
        "failed_listener_id",
        "failed_listener_ids",
        "max_retries",
        "retry_count",
        "retry_times",
    }
)
"""What the main task's context tells of failures: an error's words are no person's."""

_Found: TypeAlias = Iterator[tuple[Place, Json]]


class Source(TextEnum):
    AUTHOR = "author"
    PERSON = "person"
    SCHEMA = "schema"
    MODEL = "model"
    PATCH = "patch"


NEW: Final = frozenset({Source.MODEL, Source.PATCH})
"""Of values that the run has not had before."""


@record
class Literal:
    """A value that a patch writes down; `place` begins with the listener's id."""

    place: str
    value: Json
    source: Source


class Known:
    """Values that stand somewhere, and the names under which they do."""

    def __init__(self, found: Iterable[tuple[Place, Json]]) -> None:
        self.texts: set[str] = set()
        self.named: set[tuple[str, str]] = set()
        self.names: set[str] = set()
        for place, value in found:
            self.names.update(part for part in place if isinstance(part, str))
            self.named.add((name_of(place), canonical_json(value)))
            if isinstance(value, str) and len(value) >= _SHORTEST_TELLING:
                self.texts.add(value)

    def has(self, name: str, value: Json) -> bool:
        if isinstance(value, str) and value in self.texts:
            return True
        return (name, canonical_json(value)) in self.named


class Origins:
    """Where a run's values come from; `new` is whose a value is that it has not had."""

    def __init__(self, state: PlanState, new: Source) -> None:
        self.state = state
        self.new = new

    @cached_property
    def author(self) -> Known:
        return Known(_written(self.state.plan.plan))

    @cached_property
    def people(self) -> Known:
        return Known(_given(self.state))

    def of(self, place: Place, value: Json, parameters: JsonObject) -> Source:
        """Of a literal that would stand at that place of a call with these parameters."""
        name = name_of(place)
        if self.author.has(name, value):
            return Source.AUTHOR
        if self.people.has(name, value):
            return Source.PERSON
        if any(equal(value, one) for one in (*settled(parameters, name), *words(parameters, name))):
            return Source.SCHEMA
        return self.new


def settled(parameters: JsonObject, name: str) -> list[Json]:
    """What the schema has for that parameter where nobody chooses: its constant, its default, or
    the only word of its enumeration."""
    stated = parameters.get("properties", {}).get(name)
    said = stated if isinstance(stated, Mapping) else {}
    found = [said[key] for key in ("const", "default") if key in said]
    only = words(parameters, name)
    return [*found, *only] if len(only) == 1 else found


def words(parameters: JsonObject, name: str) -> list[Json]:
    """The enumeration of that parameter, also one behind references."""
    field = field_of(parameters, name)
    return [*(one.value for one in field.options), *(field.validation.values or ())]


def field_of(parameters: JsonObject, name: str) -> Field:
    """How a form has that parameter; what the schema does not know may be anything."""
    (field,) = form_from_schema(parameters, [name]).fields
    return field


def _written(plan: Plan) -> _Found:
    """The data of a plan: no names of tools, no words to people, no snippets."""
    for one in plan.listeners:
        yield from leaves(data_of(one))
        for output in outputs_of(one):
            yield from leaves(output.context)
        for field in form_of(one).fields:
            yield from _offered(field)
    for check in plan.verify:
        yield from leaves(check.args)
    for field in plan.inputs.fields:
        yield from _offered(field)


def _offered(field: Field) -> _Found:
    """The values that a field proposes."""
    yield from (((field.name,), one.value) for one in field.options)
    if field.default is not None:
        yield from leaves({field.name: field.default})


def _given(state: PlanState) -> _Found:
    """What people have answered, what they changed of calls, and what the run was started with."""
    yield from leaves(state.provided_params)
    for _, question in sorted(state.questions.items()):
        yield from leaves(question.data)
    for _, step in sorted(state.steps.items()):
        yield from leaves(step.provided)
    for name, value in state.main_task.context.items():
        if _by_people(state.plan.plan, name):
            yield from leaves({name: value})


def _by_people(plan: Plan, name: str) -> bool:
    """Whether that part of the main task's context is an input or was given at the start: neither
    tools nor snippets write it there. A snippet could write anything."""
    if name in OF_THE_ENGINE:
        return False
    writing = [
        (one, each)
        for one in plan.listeners
        for each in outputs_of(one)
        if each.task_id == plan.main_task_id and not isinstance(one.action, HumanAction)
    ]
    if any(name in each.context for _, each in writing):
        return False
    is_input = any(one.name == name for one in plan.inputs.fields)
    return is_input or not any(isinstance(one.action, CodeAction) for one, _ in writing)

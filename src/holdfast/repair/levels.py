"""The level of a patch: the highest of what it changes says who must consent.

* *wait*: delays between attempts, within what the author allows;
* *rename*: what is sent stays what it was. The same value stands under another name (the one that
  it had is gone) or in another spelling (`spellings`), an argument goes that the tool does not
  take, one is added for which the run has a value already. An output reads another field of the
  result, an argument another field of the run, where under the one that it read there is nothing;
* *look*: a tool is called in addition that changes nothing, or a person is asked in addition, and
  what comes of it is used;
* *act*: everything else. A call that acts, a tool in place of another, work left out, a value in
  place of another, a new literal, a move of a task that the plan has already.

A choice among the words of an enumeration is a decision, wherever the words stand. What a model
says to people in a question is a new literal as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from holdfast.core.plan.state import PlanState
from holdfast.forms.from_tools import form_from_schema
from holdfast.language.strict import canonical_json
from holdfast.model.form import Form
from holdfast.model.plan import (
    Action,
    HumanAction,
    Listener,
    Output,
    PlanAction,
    ToolAction,
)
from holdfast.model.repair import LEVELS, Level
from holdfast.model.values import Json, JsonObject
from holdfast.repair.changes import Changed, Changes
from holdfast.repair.leaves import Place, spelled
from holdfast.repair.parts import askings_of, data_of, form_of, outputs_of, tools_called
from holdfast.repair.provenance import NEW, Literal, Origins, Source
from holdfast.repair.surroundings import Surroundings
from holdfast.repair.values import Grade, Values


def highest(levels: Iterable[Level]) -> Level:
    return max(levels, key=LEVELS.index, default=Level.WAIT)


class Grading:
    """Grades everything that a patch changes."""

    def __init__(
        self, state: PlanState, changes: Changes, known: Surroundings, *, by_model: bool
    ) -> None:
        self.state = state
        self.changes = changes
        self.known = known
        self.by_model = by_model
        self.origins = Origins(state, Source.MODEL if by_model else Source.PATCH)

    def grades(self) -> Iterator[Grade]:
        if self.changes.tasks:
            yield Grade(Level.LOOK)
        if self.by_model:
            yield from self.tasks()
        for one in self.changes.listeners:
            yield from self.added(one) if one.before is None else self.changed(one, one.before)

    def added(self, one: Changed) -> Iterator[Grade]:
        after, outputs = one.after, outputs_of(one.after)
        looks = isinstance(after.action, HumanAction) or self.only_looks(after.action)
        moved = {output.task_id for output in outputs}
        acts = after.repeat or not looks or not moved <= self.changes.new_tasks
        yield Grade(Level.ACT if acts else Level.LOOK)
        yield from self.arguments(one, {}, data_of(after))
        for output in outputs:
            yield from self.context(one, {}, output.context)
        if self.by_model:
            yield from self.words(one)

    def changed(self, one: Changed, before: Listener) -> Iterator[Grade]:
        after = one.after
        if (after.retry, after.timeout) != (before.retry, before.timeout):
            yield Grade(Level.WAIT if within_bounds(before, after) else Level.ACT)
        if _without_data(before.action) != _without_data(after.action):
            looks = self.only_looks(before.action) and self.only_looks(after.action)
            yield Grade(Level.LOOK if looks else Level.ACT)
        if not _same_effects(before, after, self.changes.new_tasks):
            yield Grade(Level.ACT)
        yield from self.arguments(one, data_of(before), data_of(after))
        contexts = _context(before.success_output), _context(after.success_output)
        yield from self.context(one, *contexts)

    def only_looks(self, action: Action) -> bool:
        return isinstance(action, ToolAction) and self.known.looks(action.tool)

    def arguments(self, one: Changed, before: JsonObject, after: JsonObject) -> Iterator[Grade]:
        parameters = self.known.parameters(one.after)
        return self.values(one, parameters).grades(before, after, parameters.get("properties"))

    def context(self, one: Changed, before: JsonObject, after: JsonObject) -> Iterator[Grade]:
        """What a person answers ahead of a call has the names of its arguments."""
        answers = isinstance(one.after.action, HumanAction)
        parameters = self.known.parameters(one.ahead_of) if answers else {}
        return self.values(one, parameters).grades(before, after)

    def values(self, one: Changed, parameters: JsonObject) -> Values:
        return Values(self.state, self.changes, one.id, self.origins, parameters)

    def words(self, one: Changed) -> Iterator[Grade]:
        """What is said to a person, but for what the tool's own author says of its arguments."""
        parameters = self.known.parameters(one.ahead_of or one.after)
        names = [field.name for field in form_of(one.after).fields]
        usual = _of_fields(form_from_schema(parameters, names))
        told = {(place, canonical_json(said)) for place, said in usual}
        for place, said in _said(one.after):
            source = self.origins.of(place, said, parameters)
            if (place, canonical_json(said)) not in told and source in NEW:
                yield Grade(Level.ACT, Literal(spelled((one.id, *place)), said, source))

    def tasks(self) -> Iterator[Grade]:
        """What new tasks are called stands wherever people look at the run. That of a question is
        called as it, and that of a call may be called as its tool."""
        new = [one.after for one in self.changes.listeners]
        told = {tool for one in new for tool in tools_called(one)}
        told |= {asking.title for one in new for asking in askings_of(one).values()}
        for task in self.changes.tasks:
            for key, text in (("name", task.name), ("prompt", task.prompt)):
                if text and text != task.task_id and text not in told:
                    place = spelled((task.task_id, key))
                    yield Grade(Level.ACT, Literal(place, text, self.origins.new))


def within_bounds(before: Listener, after: Listener) -> bool:
    """Whether it waits no longer, and tries no more often, than its author lets it."""
    new, old = after.retry, before.retry
    kept = (
        new.attempts <= old.attempts
        and max(new.initial, new.maximum) <= old.maximum
        and new.longest_wait <= old.longest_wait
        and new.jitter <= old.jitter
    )
    return kept and after.timeout == before.timeout


def _without_data(action: Action) -> Action:
    match action:
        case ToolAction():
            return replace(action, args={})
        case PlanAction():
            return replace(action, values={})
        case _:
            return action


def _same_effects(before: Listener, after: Listener, new_tasks: frozenset[str]) -> bool:
    """Whether all is as it was but for its work, its values and its delays. To wait for a new task
    holds nothing up that the old trigger let go on."""
    waits = set(after.trigger_task_id) <= new_tasks
    trigger = before if waits else after
    return before == replace(
        after,
        action=before.action,
        retry=before.retry,
        timeout=before.timeout,
        trigger_task_id=trigger.trigger_task_id,
        trigger_condition=trigger.trigger_condition,
        success_output=_with_context(after.success_output, before.success_output),
    )


def _with_context(output: Output | None, of: Output | None) -> Output | None:
    return replace(output, context=of.context) if output and of else output


def _context(output: Output | None) -> JsonObject:
    return output.context if output else {}


def _said(listener: Listener) -> Iterator[tuple[Place, Json]]:
    """Everything that its questions say, where they say anything, and what it waits for."""
    for asking in askings_of(listener).values():
        for key in ("title", "message", "details"):
            if text := getattr(asking, key):
                yield (key,), text
        for option in asking.options:
            for key in ("label", "description", "input_prompt"):
                if text := getattr(option, key):
                    yield (option.option_id, key), text
    yield from _of_fields(form_of(listener))
    if '"' in listener.trigger_condition or "'" in listener.trigger_condition:
        yield ("trigger_condition",), listener.trigger_condition


def _of_fields(form: Form) -> Iterator[tuple[Place, Json]]:
    for field in form.fields:
        texts = ("label", field.label), ("description", field.description)
        for key, text in texts:
            if text and text != field.name:
                yield (field.name, key), text
        if field.default is not None:
            yield (field.name,), field.default
        for option in field.options:
            yield (field.name,), option.value
            yield (field.name, "label"), option.label

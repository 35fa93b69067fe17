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
from holdfast.repair.parts import data_of, outputs_of
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
        if self.by_model and isinstance(after.action, HumanAction):
            yield from self.words(one, after.action)

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
        return self.values(one, {}).grades(before, after)

    def values(self, one: Changed, parameters: JsonObject) -> Values:
        return Values(self.state, self.changes, one.id, self.origins, parameters)

    def words(self, one: Changed, action: HumanAction) -> Iterator[Grade]:
        """What is said to a person, but for what the tool's own author says of its arguments."""
        parameters = self.known.parameters(one.ahead_of)
        names = [field.name for field in action.form.fields]
        usual = HumanAction(form_from_schema(parameters, names))
        told = {(place, canonical_json(said)) for place, said in _said(usual)}
        for place, said in _said(action):
            source = self.origins.of(place, said, parameters)
            if (place, canonical_json(said)) not in told and source in NEW:
                yield Grade(Level.ACT, Literal(spelled((one.id, *place)), said, source))


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


def _said(action: HumanAction) -> Iterator[tuple[Place, Json]]:
    """Everything that a question says, where it says anything."""
    asking = action.asking
    for key in ("title", "message", "details"):
        if text := getattr(asking, key):
            yield (key,), text
    for field in action.form.fields:
        texts = ("label", field.label), ("description", field.description)
        for key, text in texts:
            if text and text != field.name:
                yield (field.name, key), text
        if field.default is not None:
            yield (field.name,), field.default
        for option in field.options:
            yield (field.name,), option.value
            yield (field.name, "label"), option.label

"""What becomes of the values that a listener hands to its tool, or writes into a task.

Values before and after are compared leaf by leaf. One that stands at a new place has moved there
if the place where it stood is gone; else it is fresh. Flags say nothing without their names, so
they do not move. Of a listener that has failed it is known what its templates come to; of one that
has never fired only what it reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from holdfast.core.plan.state import PlanState, TaskFacts
from holdfast.language.conditions import equal
from holdfast.language.facts import Path
from holdfast.model.record import record
from holdfast.model.repair import Level
from holdfast.model.values import Json, JsonObject
from holdfast.repair.changes import Changes
from holdfast.repair.leaves import Place, leaves, name_of, parted, paths_in, spelled
from holdfast.repair.provenance import NEW, Literal, Origins, Source, settled, words
from holdfast.repair.readings import lone_path, read, rendered
from holdfast.repair.spellings import converts

_RESULT: Final = "result"


@record
class Grade:
    """The level of one thing that a patch changes, and the literal that it is, if it is one."""

    level: Level
    literal: Literal | None = None


class Values:
    """Grades the values of one listener; `parameters` are those of the tool that gets them."""

    def __init__(
        self,
        state: PlanState,
        changes: Changes,
        listener_id: str,
        origins: Origins,
        parameters: JsonObject,
    ) -> None:
        self.changes = changes
        self.listener_id = listener_id
        self.origins = origins
        self.parameters = parameters
        step = state.steps.get(listener_id)
        self.failed = step is not None
        carried = step.carried if step else None
        self.facts = TaskFacts(state.tasks, {_RESULT: carried[0]} if carried else {})

    def grades(
        self, before: JsonObject, after: JsonObject, taken: Collection[str] | None = None
    ) -> Iterator[Grade]:
        """`taken` are the names that the tool knows, where it knows them."""
        old, new = dict(leaves(before)), dict(leaves(after))
        gone = {place: value for place, value in old.items() if place not in new}
        for place, value in new.items():
            if place in old:
                if not equal(old[place], value):
                    yield self.replaced(place, old[place], value)
                continue
            yield from self.names(place)
            if (left := self.left(gone, place, value)) is not None:
                del gone[left]
                yield Grade(Level.RENAME)
            else:
                yield self.fresh(place, value)
        for place in gone:
            needless = taken is not None and place[0] not in taken
            yield Grade(Level.RENAME if needless else Level.ACT)

    def replaced(self, place: Place, old: Json, value: Json) -> Grade:
        if self.same(place, old, value) or self.elsewhere(old, value):
            return Grade(Level.RENAME)
        path = lone_path(value)
        if path is not None and path[0] in self.changes.answered:
            return Grade(Level.LOOK)
        return Grade(Level.ACT, self.literal(place, value))

    def left(self, gone: Mapping[Place, Json], place: Place, value: Json) -> Place | None:
        """The place that is gone from where the value has moved."""
        if isinstance(value, bool) or value in (None, ""):
            return None
        candidates = (one for one, old in gone.items() if self.moved(place, old, value))
        return next(candidates, None)

    def moved(self, place: Place, old: Json, value: Json) -> bool:
        return equal(old, value) or self.same(place, old, value)

    def fresh(self, place: Place, value: Json) -> Grade:
        path = lone_path(value)
        if path is not None:
            return Grade(Level.LOOK if path[0] in self.changes.new_tasks else Level.RENAME)
        literal = self.written(place, value)
        decided = literal.source is Source.SCHEMA and not self.is_settled(place, value)
        acts = decided or literal.source in NEW
        return Grade(Level.ACT if acts else Level.RENAME, literal)

    def names(self, place: Place) -> Iterator[Grade]:
        """Names inside of a value say something too, unless the run or the tool has them; so does
        any that a model has made up."""
        for part in place if self.origins.new is Source.MODEL else place[1:]:
            if isinstance(part, str) and not self.is_known(part):
                literal = Literal(self.spelled(place), part, self.origins.new)
                yield Grade(Level.ACT, literal)

    def is_known(self, name: str) -> bool:
        if name in self.origins.author.names or name in self.origins.people.names:
            return True
        return name in _names_in(self.parameters)

    def is_settled(self, place: Place, value: Json) -> bool:
        return any(equal(value, one) for one in settled(self.parameters, name_of(place)))

    def literal(self, place: Place, value: Json) -> Literal | None:
        return None if lone_path(value) is not None else self.written(place, value)

    def written(self, place: Place, value: Json) -> Literal:
        source = self.origins.of(place, value, self.parameters)
        return Literal(self.spelled(place), value, source)

    def spelled(self, place: Place) -> str:
        return spelled((self.listener_id, *place))

    def same(self, place: Place, old: Json, value: Json) -> bool:
        """Whether both are known to come to the same value."""
        before, now = self.value(old), self.value(value)
        if before is None or now is None:
            return False
        return converts(before[0], now[0], words(self.parameters, name_of(place)))

    def value(self, template: Json) -> tuple[Json] | None:
        if self.failed or not paths_in(template):
            return rendered(template, self.facts)
        return None

    def elsewhere(self, old: Json, value: Json) -> bool:
        """Whether it only reads another field, where under the one before there is nothing."""
        was, now = parted(old), parted(value)
        if was is None or now is None or was[0] != now[0]:
            return False
        pairs = zip(was[1], now[1], strict=True)
        return all(before == after or self.instead(before, after) for before, after in pairs)

    def instead(self, before: Path, after: Path) -> bool:
        if read(before, self.facts) is not None:
            return False
        if before[0] == after[0] == _RESULT:
            return True
        return self.failed and (before[0] == after[0] or before[-1] == after[-1])


def _names_in(schema: Json) -> Iterator[str]:
    """The names of everything that a schema describes."""
    if isinstance(schema, dict):
        properties = schema.get("properties")
        yield from properties if isinstance(properties, dict) else ()
        for one in schema.values():
            yield from _names_in(one)
    elif isinstance(schema, list):
        for one in schema:
            yield from _names_in(one)

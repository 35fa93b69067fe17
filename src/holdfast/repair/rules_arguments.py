"""Rules about arguments: what a tool calls otherwise by now, wants in another form, or wants anew.

The tool's schema as it is now says what is wrong, wherever it can; only where it finds nothing does
it count which arguments the error names. One draft mends all of it: what says the same under
another name or through a listed conversion is set, and what only a person can know is asked, with
what is at hand filled in. Where the service itself does not know an argument that its declaration
has, another name of the declaration may be meant; where none is, no patch of the plan helps.

A literal is converted in the plan. What comes from the run's data is not replaced by a literal,
which would be wrong in every other run that learns of the repair: there the converted value is what
the form has already.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from holdfast.forms.secrets import references_in
from holdfast.i18n.message import joined, msg
from holdfast.model.form import Field, FieldType, Validation
from holdfast.model.values import Json
from holdfast.repair.conversions import converted, iso_date
from holdfast.repair.drafts import Draft, Rank, ask_first, set_args
from holdfast.repair.failed_work import FailedWork, with_default
from holdfast.repair.leaves import paths_in
from holdfast.repair.mentions import has_word, only_near, stems
from holdfast.repair.readings import lone_path, written
from holdfast.repair.rules_readings import elsewhere
from holdfast.repair.units import Unit, unit_of

_GUESSES: Final = 4
"""The first sign by which a new name is only guessed."""
_DATES: Final = re.compile(r"(?i)\bdates?\b|yyyy|iso.?8601|日期")


def arguments(work: FailedWork) -> Iterator[Draft]:
    if work.facts is None:
        return
    renames, blamed = renamed(work), list(_blamed(work))
    if undeclared(work):
        return
    mending = _Mending(work)
    for old, (new, guessed) in renames.items():
        # A person decides where only an error's words speak against what is declared.
        mending.rename(old, new, guessed or old in work.disowned)
    for name in work.not_taken:
        mending.drop(name, name in renames)
    for name in blamed:
        mending.mend(name)
    new_names = {new for new, _ in renames.values()}
    for name in _new(work, new_names, blamed):
        mending.fill(name)
    yield from mending.draft()
    yield from elsewhere(work, blamed)
    yield from _asking(mending, blamed)


def _asking(mending: _Mending, blamed: list[str]) -> Iterator[Draft]:
    """The same, but that a person says all that was refused."""
    asking = _Mending(mending.work)
    asking.given = {name: one for name, one in mending.given.items() if name not in blamed}
    asking.dropped, asking.told = mending.dropped, mending.told
    asking.guessed = mending.guessed
    asking.asked = {name: mending.work.asked(name) for name in blamed} | mending.asked
    if asking.asked != mending.asked:
        yield from (replace(one, named=False) for one in asking.draft())


def undeclared(work: FailedWork) -> list[str]:
    """What the service does not know, and for which the tool's declaration has no other name."""
    renames = renamed(work)
    return [one for one in work.disowned if one not in renames]


def renamed(work: FailedWork) -> dict[str, tuple[str, bool]]:
    """What the tool does not take any more, under which name it takes it now, and whether that is
    a guess."""
    found: dict[str, tuple[str, bool]] = {}
    for old in work.not_taken:
        if old in work.required:
            continue  # the kernel would ask for it, however else it is called
        taken = {*work.args, *(new for new, _ in found.values())}
        new = _meant(work, old, [one for one in work.properties if one not in taken])
        if new is not None:
            found[old] = new
    return found


def _meant(work: FailedWork, old: str, names: list[str]) -> tuple[str, bool] | None:
    """By the first sign that leaves one name: that it is written much the same, that it is the
    only one lacking, that the error names it; else, a guess, that they share a word, or that it is
    described so."""
    lacking = [one for one in names if one in work.lacking]
    wanted = lacking or names
    close = only_near(old, names)
    signs = (
        [one for one in names if _plain(one) == _plain(old)],
        [] if close is None else [close],
        lacking if len(work.not_taken) == 1 else [],
        [one for one in work.named(names) if one in wanted],
        [one for one in wanted if stems(one) & stems(old)],
        [one for one in wanted if stems(old) and stems(old) <= _described(work, one)],
    )
    found = ((one[0], at >= _GUESSES) for at, one in enumerate(signs) if len(one) == 1)
    return next(found, None)


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()


def _described(work: FailedWork, name: str) -> frozenset[str]:
    field = work.properties[name]
    return stems(f"{field.label} {field.description}")


def _blamed(work: FailedWork) -> Iterator[str]:
    """Arguments that the schema refuses; where it finds no fault, those that the error is about."""
    meant = [one for one in work.args if one in work.properties and one not in work.disowned]
    known = [one for one in meant if one in work.sent]
    wrong = [
        one for one in known if work.sent[one] is not None and not work.fits(one, work.sent[one])
    ]
    evident = wrong or work.not_taken or [one for one in work.lacking if one not in work.sent]
    yield from wrong
    if not evident and work.step.args is not None:
        yield from (one for one in work.suspects if one in known)


def _new(work: FailedWork, renamed: set[str], blamed: list[str]) -> list[str]:
    """What the call lacks; what no schema requires is lacking only where the error says so."""
    lacking = [one for one in work.lacking if one not in work.sent and one not in renamed]
    if lacking or work.not_taken or blamed or work.step.args is None:
        return lacking
    return [one for one in work.named(work.properties) if one not in work.sent]


class _Mending:
    """One draft in the making: what is set, dropped and asked, and why."""

    def __init__(self, work: FailedWork) -> None:
        self.work = work
        self.given: dict[str, Json] = {}
        self.dropped: list[str] = []
        self.asked: dict[str, Field] = {}
        self.told: list[tuple[str, str, tuple[str, ...]]] = []
        """Which rule says what, and of which arguments."""
        self.guessed = False

    def draft(self) -> Iterator[Draft]:
        work = self.work
        operations = set_args(work.id, self.given, self.dropped)
        operations += ask_first(work.id, self.asked.values())
        if not operations:
            return
        rules, reasons, names = zip(*self.told, strict=True)
        rank = Rank.ASK if self.asked else Rank.SAME_VALUE
        # What was never sent has been refused by the schema itself, by name.
        sure = work.step.args is None or all(work.named(one) for one in names)
        yield Draft(
            rules[0], rank, operations, joined("; ", dict.fromkeys(reasons)), sure, self.guessed
        )

    def rename(self, old: str, new: str, guessed: bool) -> None:
        self.guessed = self.guessed or guessed
        reason = msg("{tool} calls {old} {new} now", tool=self.work.tool, old=old, new=new)
        self.told.append(("renamed_argument", reason, (old, new)))
        self.put(new, self.work.args[old], self.work.sent.get(old), unit_of(old))

    def drop(self, name: str, is_renamed: bool) -> None:
        self.dropped.append(name)
        if not is_renamed:
            reason = msg("{tool} takes no {name}", tool=self.work.tool, name=name)
            self.told.append(("dropped_argument", reason, (name,)))

    def mend(self, name: str) -> None:
        work = self.work
        self.put(name, work.args[name], work.sent[name], refused=True)

    def fill(self, name: str) -> None:
        """With what the run has under the same name, else by a person."""
        work = self.work
        path = work.source(name, work.properties[name])
        if path is None:
            self.asked[name] = work.asked(name)
            reason = msg("{tool} wants {name}, which nobody has said", tool=work.tool, name=name)
        else:
            source = self.given[name] = written(path)
            reason = msg("{tool} wants {name}: {source}", tool=work.tool, name=name, source=source)
        self.told.append(("new_argument", reason, (name,)))

    def put(
        self,
        name: str,
        template: Json,
        value: Json,
        unit: Unit | None = None,
        refused: bool = False,
    ) -> None:
        """The value under that name, as the tool takes it; where it would say something else, or
        was refused as it is, a person is asked."""
        work, field = self.work, self._field(name, value)
        # A secret is a reference: what it stands for is not at hand, and is nobody's to show.
        hidden = bool(references_in(value))
        given = unit or _unit_of_source(work, template)
        other = None if hidden else converted(field, value, given)
        if other is None or (type(other) is type(value) and other == value):
            if not refused and (value is None or work.fits(name, value)):
                self.given[name] = template
                return
            other = None
        self.told.append((*_why(field, value, other, work.tool), (name,)))
        kept = None if other is None else _in_template(template, value, other)
        if kept is None:
            self.asked[name] = self._asked(field, None if hidden else value, other)
        else:
            self.given[name] = kept

    def _field(self, name: str, value: Json) -> Field:
        """As the schema has it; where the error speaks of dates and this is one, a date."""
        field = self.work.properties[name]
        dated = iso_date(value) not in (None, value) and has_word(self.work.words, _DATES)
        return _as_date(field) if dated and field.type is FieldType.TEXT else field

    def _asked(self, field: Field, value: Json, other: Json) -> Field:
        if other is None and _too_long(field, value):
            other = value[: field.validation.max_length].rstrip()
        asked = self.work.asked(field.name)
        if field.type is FieldType.DATE and asked.type is FieldType.TEXT:
            asked = _as_date(asked)
        return with_default(asked, other)


def _as_date(field: Field) -> Field:
    return replace(field, type=FieldType.DATE, validation=Validation())


def _too_long(field: Field, value: Json) -> bool:
    most = field.validation.max_length
    return isinstance(value, str) and most is not None and len(value) > most


def _unit_of_source(work: FailedWork, template: Json) -> Unit | None:
    """The unit in which the run has a number, by its name there and what people were asked."""
    path = lone_path(template)
    if path is None:
        return None
    asked = [one for one in work.plan.inputs.fields if one.name == path[-1]]
    words = [word for one in asked for word in (one.label, one.description)]
    return unit_of(path[-1], *words)


def _in_template(template: Json, value: Json, other: Json) -> Json:
    """What the plan gives so that it comes to the other value, or None where it cannot: templates
    convert nothing, and only a literal may be another."""
    path = lone_path(template)
    if not paths_in(template):
        return None if "{" in str(other) else other
    if other == [value]:
        return [template]
    if path is not None and value == [other]:
        return written((*path, "0"))
    return None


def _why(field: Field, value: Json, other: Json, tool: str) -> tuple[str, str]:
    """The rule by which an argument is given otherwise, and what it says."""
    name, said = field.name, other is not None
    if said and field.type is FieldType.DATE:
        return "date_format", msg("{tool} wants {name} as YYYY-MM-DD", tool=tool, name=name)
    if said and field.options:
        return "nearest_choice", msg("{tool} writes its {name} otherwise", tool=tool, name=name)
    if said and isinstance(value, int | float) and isinstance(other, int | float):
        return "unit", msg("{tool} counts {name} in another unit", tool=tool, name=name)
    if said:
        return "converted_argument", msg(
            "{tool} wants {name} in another form", tool=tool, name=name
        )
    if _too_long(field, value):
        most = field.validation.max_length
        return "too_long", msg(
            "{tool} takes at most {n} characters of {name}", tool=tool, name=name, n=most
        )
    if field.options:
        return "other_choice", msg("{tool} has no such {name}", tool=tool, name=name)
    return "refused_argument", msg("{tool} does not take {name} as it is", tool=tool, name=name)

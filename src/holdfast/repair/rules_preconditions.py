"""Rules about what must be there first: a profile before a badge, an order before it is shipped.

Something may be there under another value (`elsewhere`), a tool may make it, a person may know a
value that is free, or see to it in the world. A tool is only put before the call where there is a
reason to think that it makes what is missing: the error names it, or speaks in the words of its
name, its result has what the call was given, or it is the one acting tool that the author lets
repairs call. A tool that the plan calls by itself is put there only if it may be called twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from holdfast.i18n.message import msg
from holdfast.model.approval import ToolFacts
from holdfast.model.plan import Listener, ToolAction
from holdfast.model.record import record
from holdfast.model.values import Json, JsonObject
from holdfast.repair.drafts import (
    Draft,
    Rank,
    ask_first,
    confirm_first,
    free_id,
    insert_before,
    set_args,
)
from holdfast.repair.failed_work import FailedWork, fields_of
from holdfast.repair.leaves import paths_in
from holdfast.repair.mentions import has_word, likeness, only_near
from holdfast.repair.readings import absent, rendered, written
from holdfast.repair.rules_people import people
from holdfast.repair.rules_readings import elsewhere

_TAKEN: Final = re.compile(
    r"(?i)\b(?:taken|already|exists?|duplicate|in use)\b|已存在|已被|重复|占用"
)
_PASSING: Final = re.compile(
    r"(?i)\b(?:busy|lock(?:ed)?|in progress|concurrent(?:ly)?|try again|retry)\b"
    r"|繁忙|锁定|稍后|进行中"
)
_NUMBER: Final = re.compile(r"(?i)(?:^|_)(?:id|no|number|key|code|ref|reference)$|编号$|单号$")
"""Names of what somebody else gives a thing when it is made."""
_IS_IT_THERE: Final = msg("Is everything there that the next step needs?")
_SEE_TO_IT: Final = msg("See to what is missing, then let the run go on.")
_HALF: Final = 0.5


def preconditions(work: FailedWork) -> Iterator[Draft]:
    if not work.tool:
        return
    if has_word(work.words, _PASSING):
        yield _seen_to(
            work, msg("{tool} is held up: a person says when it may go on", tool=work.tool)
        )
        return
    if not has_word(work.words, _TAKEN):
        yield from elsewhere(work, work.suspects)
        yield from _made_first(work)
    yield from _another_value(work, work.accused)
    yield _seen_to(work, msg("a person sees to what {tool} needs first", tool=work.tool))
    yield from _another_value(work, work.suspects)


def _another_value(work: FailedWork, names: Iterable[str]) -> Iterator[Draft]:
    """A person gives another value; only where the error is about it before anything else."""
    asked = [one for one in names if one in work.properties]
    operations = ask_first(work.id, [work.asked(one) for one in asked])
    if operations:
        reason = msg("{tool} needs another {names}", tool=work.tool, names=", ".join(asked))
        rank = Rank.ASK if work.accused else Rank.CONFIRM
        yield Draft("another_value", rank, operations, reason)


def _seen_to(work: FailedWork, reason: str) -> Draft:
    operations = confirm_first(work.id, _IS_IT_THERE, _SEE_TO_IT)
    return Draft("seen_to_first", Rank.CONFIRM, operations, reason)


@record
class _Maker:
    """A tool that may make what is missing. `own` is the listener of the plan that calls it,
    `makes` has arguments of the failed call and the fields of its result that they would be;
    `only` is the one acting tool that the author lets repairs call."""

    tool: str
    facts: ToolFacts
    own: Listener | None
    is_named: bool
    likeness: float
    makes: Mapping[str, str]
    only: bool

    @property
    def sureness(self) -> tuple[bool, float, bool, bool]:
        return self.is_named, self.likeness, bool(self.makes), self.only


def _made_first(work: FailedWork) -> Iterator[Draft]:
    for maker in sorted(_makers(work), key=lambda one: one.sureness, reverse=True):
        yield _made_by(work, maker)


def _makers(work: FailedWork) -> list[_Maker]:
    acting = {
        name: facts
        for name, facts in work.callable.items()
        if name != work.tool and not work.surroundings.looks(name)
    }
    listed = [name for name in acting if name in work.plan.repair.tools]
    found = [_maker(work, name, facts, listed == [name]) for name, facts in acting.items()]
    return [
        one
        for one in found
        if (one.own is None or one.facts.idempotent) and _is_likely(one, one.tool in listed)
    ]


def _is_likely(maker: _Maker, is_listed: bool) -> bool:
    """Half of a name's words may be everyday ones: that is little for a tool of the plan."""
    by_words = maker.likeness > _HALF or (is_listed and maker.likeness == _HALF)
    return maker.is_named or by_words or bool(maker.makes) or maker.only


def _maker(work: FailedWork, tool: str, facts: ToolFacts, only: bool) -> _Maker:
    calling = (one for one in work.plan.listeners if _calls(one, tool))
    words = work.words
    own = next(calling, None)
    return _Maker(
        tool,
        facts,
        own,
        bool(work.named([tool])),
        likeness(tool, words),
        _made(work, facts, own),
        only,
    )


def _calls(listener: Listener, tool: str) -> bool:
    return isinstance(listener.action, ToolAction) and listener.action.tool == tool


def _made(work: FailedWork, facts: ToolFacts, own: Listener | None) -> dict[str, str]:
    """By each argument that the failure is about, the field of the tool's result that is it: as its
    schema of results says, or as the plan reads them."""
    told = (facts.returns or {}).get("properties", {})
    output = own.success_output if own else None
    read = [path[1] for path in paths_in(dict(output.context) if output else {}) if len(path) == 2]
    fields = dict.fromkeys((*told, *read))
    close = ((name, only_near(name, fields)) for name in work.suspects)
    return {name: field for name, field in close if field is not None}


def _made_by(work: FailedWork, maker: _Maker) -> Draft:
    """The call with what the run has; what it lacks the kernel asks a person for. Where the tool
    chooses itself what the failed call is to be given, that reads it."""
    args = dict(_args(work, maker))
    whom = dict(people(work, maker.facts, args))
    args |= whom
    passes = _passes(work, args)
    guessed = {} if passes or maker.makes else _numbers(work, maker)
    made = {} if passes else (maker.makes or guessed)
    new_id = free_id(work.plan)
    context = {name: written(("result", field)) for name, field in made.items()}
    operations = (
        *insert_before(work.id, new_id, maker.tool, maker.tool, args, context),
        *set_args(work.id, {name: written((new_id, "context", name)) for name in made}),
    )
    whole = maker.facts.required <= args.keys() and (passes or bool(made))
    reason = msg("{tool} makes what {id} lacks", tool=maker.tool, id=work.id)
    rank = Rank.CALL if whole else Rank.ASK
    sure, guesses = maker.is_named and not whom, bool(guessed or whom)
    return Draft("made_first", rank, operations, reason, sure, guesses)


def _numbers(work: FailedWork, maker: _Maker) -> dict[str, str]:
    """A number that the tool is not given it surely gives, under the name by which it is asked for;
    its schema of results does not say otherwise."""
    taken = fields_of(maker.facts)
    numbers = [one for one in work.suspects if _NUMBER.search(one) and one not in taken]
    return {} if maker.facts.returns else {one: one for one in numbers}


def _passes(work: FailedWork, args: JsonObject) -> bool:
    """Whether the call is given what the failed one cites."""
    cited = [work.sent[one] for one in work.suspects if _is_plain(work.sent.get(one))]
    given = (rendered(value, work.state) for value in args.values())
    return any(one is not None and _is_plain(one[0]) and one[0] in cited for one in given)


def _is_plain(value: Json) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _args(work: FailedWork, maker: _Maker) -> Iterator[tuple[str, Json]]:
    """As the plan's own call of the tool has them; else as the failed call has them, by name or
    title, and as the run has them by name."""
    own = maker.own.action if maker.own else None
    given: JsonObject = own.args if isinstance(own, ToolAction) else {}
    for name, field in fields_of(maker.facts).items():
        if name in given and not absent(given[name], work.state):
            yield name, given[name]
        elif (template := _same(work, name, field.label)) is not None:
            yield name, template
        elif (path := work.source(name, field)) is not None:
            yield name, written(path)


def _same(work: FailedWork, name: str, title: str) -> Json:
    """What the failed call is given under the same name, or as what people call the same."""
    if name in work.args:
        return work.args[name]
    fields = ((one, work.properties.get(one)) for one in work.suspects)
    titled = [one for one, field in fields if title and field and field.label == title]
    return work.args[titled[0]] if len(titled) == 1 else None

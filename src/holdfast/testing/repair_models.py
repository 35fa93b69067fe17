"""Models that diagnose and sketch: a good one, a weak one, and one that means harm.

    models = ModelClient(default_model=diagnosing_model({"no employee": "k2"}))
    async with ModelPeer(weak_script(7)) as peer: ...

Each is a `ScriptedModel`, or a script for `ModelPeer`, and needs no network of its own. What it
says follows from its seed and the request alone, so that a run can be played again, in whatever
order its requests come.

The good one chooses the first candidate, or what it was told to for words that stand in the
evidence; it writes patches and sketches from tables. The weak one wants the same and does it badly:
it garbles, truncates, misspells, talks, invents tools and evidence, mistakes types, says nothing,
and is right sometimes. The hostile one keeps to the form and proposes the worst that it can think
of; its patches are those of `forbidden_patches`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from random import Random
from typing import Any, Final, TypeAlias

from holdfast.language.strict import digest
from holdfast.language.written import written_json
from holdfast.model.message import ToolOffer
from holdfast.model.retry import Cause
from holdfast.model.values import Json, JsonObject
from holdfast.repair.contract import DIAGNOSE, NONE_FITS, PERSON, WRITE_PATCH
from holdfast.repair.sketch import SKETCH_PLAN
from holdfast.testing.forbidden_patches import INJECTIONS, dangerous_sketches, forbidden_patches
from holdfast.testing.model_script import (
    Entry,
    ScriptedCall,
    Seen,
    Turn,
    call_badly,
)
from holdfast.testing.scripted_model import ScriptedModel

Choices: TypeAlias = Mapping[str, str]
Patches: TypeAlias = Mapping[str, Sequence[JsonObject]]
Sketches: TypeAlias = Mapping[str, JsonObject]
Script: TypeAlias = Callable[[Seen], Entry]

_NOTHING_TO_SAY: Final = "I have nothing to say about this."


def diagnosing_model(
    choices: Choices | None = None,
    *,
    patches: Patches | None = None,
    sketches: Sketches | None = None,
) -> ScriptedModel:
    return ScriptedModel(
        diagnosing_script(choices, patches=patches, sketches=sketches), name="diagnosing"
    )


def weak_model(seed: int, *, sketches: Sketches | None = None) -> ScriptedModel:
    return ScriptedModel(weak_script(seed, sketches=sketches), name="weak")


def hostile_model(seed: int) -> ScriptedModel:
    return ScriptedModel(hostile_script(seed), name="hostile")


def diagnosing_script(
    choices: Choices | None = None,
    *,
    patches: Patches | None = None,
    sketches: Sketches | None = None,
) -> Script:
    """`choices` and `patches` go by words that stand in the evidence, `sketches` by words of the
    request; where no table has any, it chooses the first candidate, or a person."""
    tables = _Tables(choices or {}, patches or {}, sketches or {})
    return lambda seen: _said(tables.answer(_Request(seen)))


def weak_script(seed: int, *, sketches: Sketches | None = None) -> Script:
    tables = _Tables({}, {}, sketches or {})

    def reply(seen: Seen) -> Entry:
        request = _Request(seen)
        dice = request.dice(seed)
        answer = tables.answer(request) or _guess(request, dice)
        return _said(None) if answer is None else dice.choice(_WAYS)(answer, dice)

    return reply


def hostile_script(seed: int) -> Script:
    return lambda seen: _said(_worst(_Request(seen), seed))


@dataclass(frozen=True, slots=True)
class _Answer:
    """A call as it is meant."""

    tool: str
    args: JsonObject


class _Request:
    """What a model can know of its task: the tools on offer, and the lines of the message."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self.offers: Mapping[str, ToolOffer] = {one.name: one for one in seen.tools}

    def dice(self, seed: int) -> Random:
        """The same for the same request, whichever comes first."""
        asked = digest([self.seen.system, self.seen.asked, sorted(self.offers)])
        return Random(f"{seed}:{asked}")  # noqa: S311

    @cached_property
    def lines(self) -> list[Json]:
        listed = (line[2:] for line in self.seen.asked.split("\n") if line.startswith("- "))
        return [value for line in listed for value in written_json(line)]

    @property
    def evidence(self) -> str:
        said = [one for one in self.lines if isinstance(one, dict) and "event" in one]
        return json.dumps(said, ensure_ascii=False)

    @property
    def cause(self) -> str:
        """The one that rules have found."""
        found = [one["cause"] for one in self.lines if isinstance(one, dict) and "cause" in one]
        return str(found[0]) if found else Cause.UNKNOWN.value

    @property
    def wanted(self) -> str:
        """What a person asked for, of whom a sketch is wanted."""
        return str(self.lines[-1]) if self.lines else self.seen.asked

    @property
    def cited(self) -> list[str]:
        return self._named(DIAGNOSE, "because", "items")

    @property
    def choices(self) -> list[str]:
        return self._named(DIAGNOSE, "choice")

    @property
    def acting(self) -> list[str]:
        """The candidates that do more than wait, look, or name a thing otherwise."""
        found = (one for one in self.lines if isinstance(one, dict) and one.get("level") == "act")
        return [one["id"] for one in found if one.get("id") in self.choices]

    @property
    def listeners(self) -> list[str]:
        return self._named(WRITE_PATCH, "operations", "items", "properties", "listener_id")

    @property
    def tools(self) -> list[str]:
        return self._named(SKETCH_PLAN, "steps", "items", "properties", "tool")

    def _named(self, tool: str, *path: str) -> list[str]:
        """What an enumeration in an offer's parameters allows."""
        offer = self.offers.get(tool)
        found: Json = offer.parameters["properties"] if offer else {}
        for part in path:
            found = found.get(part, {})
        return list(found.get("enum", ()))


@dataclass(frozen=True, slots=True)
class _Tables:
    choices: Choices
    patches: Patches
    sketches: Sketches

    def answer(self, request: _Request) -> _Answer | None:
        """What a good model does; None where it is asked for something else."""
        if SKETCH_PLAN in request.offers:
            sketch = _first(self.sketches, request.wanted)
            return None if sketch is None else _Answer(SKETCH_PLAN, sketch)
        if DIAGNOSE not in request.offers:
            return None
        found = {
            "cause": request.cause,
            "because": request.cited[:1],
            "summary": "The evidence says so.",
        }
        operations = _first(self.patches, request.evidence)
        if operations is not None and WRITE_PATCH in request.offers:
            return _Answer(WRITE_PATCH, {**found, "operations": list(operations)})
        told = _first(self.choices, request.evidence)
        usual = "k1" if operations is None else NONE_FITS
        choice = told or usual
        return _Answer(
            DIAGNOSE, {**found, "choice": choice if choice in request.choices else PERSON}
        )


def _first(table: Mapping[str, Any], text: str) -> Any:
    return next((entry for words, entry in table.items() if words in text), None)


def _said(answer: _Answer | None) -> Entry:
    return _NOTHING_TO_SAY if answer is None else _call(answer.tool, answer.args)


def _call(tool: str, args: Json) -> ScriptedCall:
    return call_badly(tool, _written(args))


def _guess(request: _Request, dice: Random) -> _Answer | None:
    """A sketch of some tools in some order, where no table has one."""
    if SKETCH_PLAN not in request.offers:
        return None
    some = dice.sample(request.tools, min(len(request.tools), 3))
    steps = [{"id": f"s{number}", "tool": tool} for number, tool in enumerate(some, 1)]
    return _Answer(SKETCH_PLAN, {"goal": "What was asked", "steps": steps})


def _worst(request: _Request, seed: int) -> _Answer | None:
    dice = request.dice(seed)
    if SKETCH_PLAN in request.offers:
        return _Answer(SKETCH_PLAN, dice.choice([*dangerous_sketches(request.tools).values()]))
    if DIAGNOSE not in request.offers:
        return None
    found = {
        "cause": dice.choice([cause.value for cause in Cause]),
        "because": request.cited[:1],
        "summary": dice.choice(INJECTIONS),
    }
    if WRITE_PATCH in request.offers:
        patches = forbidden_patches(dice.choice(request.listeners or ["L001"]))
        return _Answer(WRITE_PATCH, {**found, "operations": dice.choice([*patches.values()])})
    return _Answer(DIAGNOSE, {**found, "choice": dice.choice([*request.acting, NONE_FITS])})


def _right(answer: _Answer, dice: Random) -> Entry:
    return _said(answer)


def _fenced(answer: _Answer, dice: Random) -> Entry:
    return f"Let me see.\n```json\n{_written(answer.args)}\n```\nI hope this helps."


def _aloud(answer: _Answer, dice: Random) -> Entry:
    call = {"name": answer.tool, "arguments": answer.args}
    return f"I think that I should call {_written(call)} now."


def _truncated(answer: _Answer, dice: Random) -> Entry:
    written = _written(answer.args)
    return call_badly(answer.tool, written[: dice.randrange(1, len(written))])


def _garbled(answer: _Answer, dice: Random) -> Entry:
    letters = list(_written(answer.args))
    for place in dice.sample(range(len(letters)), len(letters) // 8):
        letters[place] = dice.choice('{}[]",:xé\u0000')
    return call_badly(answer.tool, "".join(letters))


def _misspelt(answer: _Answer, dice: Random) -> Entry:
    return _call(answer.tool, _each_text(answer.args, partial(_slip, dice)))


def _mistyped(answer: _Answer, dice: Random) -> Entry:
    wrong = (lambda one: [one], lambda one: {"value": one}, str, lambda _: 7, lambda _: None)
    mistaken = {key: dice.choice(wrong)(value) for key, value in answer.args.items()}
    return _call(answer.tool, mistaken)


def _talking(answer: _Answer, dice: Random) -> Entry:
    return "The step seems to have failed. Have you tried to switch it off and on again?"


def _inventing(answer: _Answer, dice: Random) -> Entry:
    return _call(dice.choice(("fix_everything", "diagnosis", "bash")), answer.args)


def _citing(answer: _Answer, dice: Random) -> Entry:
    """Evidence, and steps, that do not exist."""
    unseen = [f"E{dice.randrange(41, 99)}"]
    return _call(answer.tool, {**answer.args, "because": unseen, "after": unseen})


def _silent(answer: _Answer, dice: Random) -> Entry:
    return dice.choice(("", " \n"))


def _twice(answer: _Answer, dice: Random) -> Entry:
    one = _call(answer.tool, answer.args)
    return Turn("Both, perhaps.", (one, one))


def _listed(answer: _Answer, dice: Random) -> Entry:
    return _written([answer.args])


def _careless(answer: _Answer, dice: Random) -> Entry:
    """In good form, and without a thought."""
    cause = dice.choice([one.value for one in Cause])
    choice = dice.choice(("k1", "k2", "k5", "wait", PERSON, NONE_FITS))
    return _call(DIAGNOSE, {"cause": cause, "because": [], "choice": choice})


def _endless(answer: _Answer, dice: Random) -> Entry:
    return "and then " * 10_000


def _broken_off(answer: _Answer, dice: Random) -> Entry:
    return Turn("First of all, one has to consider that", finish="length")


_WAYS: Final[Sequence[Callable[[_Answer, Random], Entry]]] = (
    *(_right,) * 4,
    _fenced,
    _aloud,
    _truncated,
    _garbled,
    _misspelt,
    _mistyped,
    _talking,
    _inventing,
    _citing,
    _silent,
    _twice,
    _listed,
    _careless,
    _endless,
    _broken_off,
)


def _each_text(value: Json, change: Callable[[str], str]) -> Json:
    match value:
        case str():
            return change(value)
        case dict():
            return {name: _each_text(one, change) for name, one in value.items()}
        case list():
            return [_each_text(one, change) for one in value]
    return value


def _slip(dice: Random, word: str) -> str:
    """The word with one letter twice, or without it."""
    if not word:
        return word
    place = dice.randrange(len(word))
    return word[:place] + word[place] * dice.choice((0, 2)) + word[place + 1 :]


def _written(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)

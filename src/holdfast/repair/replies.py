"""What a model handed in, or why its reply counts for nothing.

A model hands in its answer by calling a tool that it was offered, once. Small models write the same
as JSON: bare, in a fenced block or among words, as the arguments alone or as the call they are of
(`{"name": "diagnose", "arguments": {…}}`). That counts too, where there is one such answer and
not several.

Findings are written for the model that is asked again. What they quote of its reply is short and
printable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from holdfast.i18n.message import joined, msg
from holdfast.language.display import clip
from holdfast.language.strict import canonical_json
from holdfast.language.written import objects_within, written_json
from holdfast.model.message import ModelReply, ToolCall
from holdfast.model.record import record
from holdfast.model.values import Json, JsonObject

LARGEST_REPLY: Final = 64_000
MOST_FINDINGS: Final = 5
LONGEST_QUOTE: Final = 60

Signs: TypeAlias = Mapping[str, str]
"""The tools that were offered, each with an argument by which words are known to mean it."""

_MOST_NAMES: Final = 3
_ARGUMENTS: Final = ("arguments", "parameters", "args", "input")


@record
class HandedIn:
    """The arguments of the one tool that the model called, or wrote down."""

    tool: str
    args: JsonObject


@record
class Unusable:
    """Why something that was handed in counts for nothing: all that is wrong with it."""

    findings: tuple[str, ...]


def handed_in(reply: ModelReply, signs: Signs) -> HandedIn | Unusable:
    if _size(reply) > LARGEST_REPLY:
        return _unusable(
            msg("the reply is larger than {n:,} characters: be brief", n=LARGEST_REPLY)
        )
    if reply.finish == "length":
        return _unusable(msg("the reply was cut off: be brief"))
    return _called(reply.calls, signs) if reply.calls else _worded(reply.text, signs)


def complaint_of(findings: Iterable[str]) -> str:
    """The first few as one sentence, and how many there are besides."""
    told = tuple(findings)
    more = len(told) - MOST_FINDINGS
    rest = (msg("and {n} more", n=more),) if more > 0 else ()
    return joined("; ", (*told[:MOST_FINDINGS], *rest))


def quoted(value: Json) -> str:
    """As much of what a model wrote as a finding shows, with nothing hidden in it."""
    text = value if isinstance(value, str) else canonical_json(value)
    return clip(text, LONGEST_QUOTE)


def _size(reply: ModelReply) -> int:
    return len(reply.text) + sum(map(_size_of_call, reply.calls))


def _size_of_call(call: ToolCall) -> int:
    given = canonical_json(call.args) if call.malformed is None else call.malformed
    return len(call.tool) + len(given)


def _called(calls: tuple[ToolCall, ...], signs: Signs) -> HandedIn | Unusable:
    if len(calls) > 1 or calls[0].tool not in signs:
        names = ", ".join(quoted(call.tool) for call in calls[:_MOST_NAMES])
        return _unusable(
            msg("call {tool} once and nothing else, not {names}", tool=_any_of(signs), names=names)
        )
    [call] = calls
    if call.malformed is not None:
        return _unusable(msg("the arguments of {tool} are no JSON object", tool=call.tool))
    return HandedIn(call.tool, call.args)


def _worded(text: str, signs: Signs) -> HandedIn | Unusable:
    whole = list(written_json(text))
    if whole and not any(isinstance(one, dict) for one in whole):
        return _unusable(msg("the reply is no JSON object: write one, without a list around it"))
    answers = (one for value in objects_within(text) for one in _as_answer(value, signs))
    found = list(_distinct(answers))
    if not found:
        tools = _any_of(signs)
        return _unusable(msg("call {tool}: the reply has no JSON object for it", tool=tools))
    if len(found) > 1:
        return _unusable(msg("the reply has {n} answers: give one", n=len(found)))
    return found[0]


def _as_answer(value: JsonObject, signs: Signs) -> Iterator[HandedIn]:
    """The object as a call, or as the arguments that one would have."""
    wrapped = next((value[key] for key in _ARGUMENTS if isinstance(value.get(key), dict)), None)
    name = value.get("name")
    if isinstance(name, str) and name in signs and wrapped is not None:
        yield HandedIn(name, wrapped)
        return
    meant = [tool for tool, sign in signs.items() if sign in value]
    if len(meant) == 1:
        yield HandedIn(meant[0], value)


def _distinct(answers: Iterable[HandedIn]) -> Iterator[HandedIn]:
    """Some models say the same twice: thinking aloud, and then once more."""
    seen: list[HandedIn] = []
    for one in answers:
        if one not in seen:
            seen.append(one)
            yield one


def _any_of(signs: Signs) -> str:
    return " / ".join(signs)


def _unusable(finding: str) -> Unusable:
    return Unusable((finding,))

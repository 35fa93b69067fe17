"""What a scripted model says, turn by turn.

    script = [
        say("Let me look.", call("find_person", name="张三"), call("find_stock", item="laptop")),
        fail(429, retry_after=2),
        lambda seen: f"You asked: {seen.asked}",
    ]

An entry is a text, a call, a `Turn` (see `say`), a fault, or a function of the conversation so far
that returns one of these. A script is a list of entries, one for each request, or one such function
for all of them. `rules` makes the latter from pairs of a condition and an entry.

`ScriptedModel` plays a script inside the process, `ModelPeer` over real HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from holdfast.model.message import Message, ModelSaid, ToolOffer, ToolReturned, UserSaid

_SHORTEST_PIECE: Final = 7
_MOST_PIECES: Final = 100


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A call as the model writes it: `arguments` is its text, sound JSON or not."""

    tool: str
    arguments: str
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply. `after` seconds pass first; `cut` breaks it off when all of it but the end is out.

    A quiet cut ends the stream in good form, only without saying why.
    """

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    finish: str | None = None
    after: float = 0.0
    cut: bool = False
    quiet: bool = False

    @property
    def finish_reason(self) -> str:
        return self.finish or ("tool_calls" if self.calls else "stop")


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in place of a reply; a `status` of 200 has a body that is no reply."""

    status: int
    message: str
    code: str | None = None
    retry_after: float | None = None
    body: str | None = None
    cause: Exception | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it reached the model; `number` counts from 1."""

    number: int
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolOffer, ...]
    streamed: bool = False

    @property
    def asked(self) -> str:
        """What a person said last."""
        said = [message.text for message in self.messages if isinstance(message, UserSaid)]
        return said[-1] if said else ""

    @property
    def results(self) -> tuple[ToolReturned, ...]:
        """What the tools returned since the model spoke last."""
        since: list[ToolReturned] = []
        for message in self.messages:
            if isinstance(message, ModelSaid):
                since = []
            elif isinstance(message, ToolReturned):
                since.append(message)
        return tuple(since)

    def result_of(self, tool: str) -> ToolReturned | None:
        """The newest result of `tool` in the whole conversation."""
        found = [m for m in self.messages if isinstance(m, ToolReturned) and m.tool == tool]
        return found[-1] if found else None


Entry: TypeAlias = "str | ScriptedCall | Turn | Fault | Callable[[Seen], Entry]"
Script: TypeAlias = "Sequence[Entry] | Callable[[Seen], Entry]"


def say(text: str, *calls: ScriptedCall) -> Turn:
    return Turn(text, calls)


def call(tool: str, /, **args: Any) -> ScriptedCall:
    return ScriptedCall(tool, json.dumps(args, ensure_ascii=False))


def call_badly(tool: str, arguments: str) -> ScriptedCall:
    """A call whose arguments are `arguments`, letter by letter."""
    return ScriptedCall(tool, arguments)


def fail(
    status: int, message: str = "", *, code: str | None = None, retry_after: float | None = None
) -> Fault:
    return Fault(status, message or f"scripted {status}", code, retry_after)


def garble(body: str = "<html>busy</html>") -> Fault:
    """An answer of status 200 that is no reply at all."""
    return Fault(200, "garbled", body=body)


def cut(entry: str | ScriptedCall | Turn, *, quietly: bool = False) -> Turn:
    """`entry`, broken off before its end."""
    return replace(_turn(entry), cut=True, quiet=quietly)


def slow(seconds: float, entry: str | ScriptedCall | Turn) -> Turn:
    return replace(_turn(entry), after=seconds)


def rules(*pairs: tuple[str | Callable[[Seen], bool], Entry]) -> Callable[[Seen], Entry]:
    """The entry of the first rule that holds; a text holds if a person's last words contain it."""

    def reply(seen: Seen) -> Entry:
        for condition, entry in pairs:
            if condition in seen.asked if isinstance(condition, str) else condition(seen):
                return entry
        return fail(400, f"no rule of the script fits: {seen.asked!r}")

    return reply


class Player:
    """Plays a script and keeps what it was asked."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.seen: list[Seen] = []

    @property
    def next_number(self) -> int:
        return len(self.seen) + 1

    def play(self, seen: Seen) -> Turn | Fault:
        self.seen.append(seen)
        try:
            entry = self._entry(seen)
        except Exception as error:
            return Fault(400, f"the script failed: {error!r}", cause=error)
        return entry if isinstance(entry, Fault) else _numbered(_turn(entry), seen.number)

    def _entry(self, seen: Seen) -> str | ScriptedCall | Turn | Fault:
        entry = self._script if callable(self._script) else self._listed(self._script, seen.number)
        while callable(entry):
            entry = entry(seen)
        return entry

    def _listed(self, entries: Sequence[Entry], number: int) -> Entry:
        if number > len(entries):
            return fail(400, f"the script is over: it has {len(entries)} turns")
        return entries[number - 1]


def pieces(text: str) -> list[str]:
    """The text in the small pieces in which a stream brings it."""
    size = max(_SHORTEST_PIECE, -(-len(text) // _MOST_PIECES))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _turn(entry: str | ScriptedCall | Turn) -> Turn:
    match entry:
        case str():
            return Turn(entry)
        case ScriptedCall():
            return Turn(calls=(entry,))
        case Turn():
            return entry


def _numbered(turn: Turn, number: int) -> Turn:
    """Every call with an id, the same at every run of the script."""
    calls = [
        replace(wanted, call_id=wanted.call_id or f"call_{number}_{index}")
        for index, wanted in enumerate(turn.calls, 1)
    ]
    return replace(turn, calls=tuple(calls))

"""What a lesson does, where no plan has its listener any more: its operations as they are kept.

They name tasks and listeners by what those are to the listener that failed (`@listener`, `@main`).
Values are another author's, and cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from holdfast.i18n.message import joined, msg
from holdfast.language.display import clip
from holdfast.language.strict import canonical_json
from holdfast.model.values import Json, JsonObject

_LONGEST: Final = 200
_ITSELF: Final = "@listener"
_SIGN: Final = re.compile(r"(?<=\{)(\s*)@(?=\w)")
"""Before what a template reads."""


def kept_words(operation: JsonObject) -> str:
    return joined("; ", _told(operation))


def _told(of: Mapping[str, Any]) -> Iterator[str]:
    who = _named(str(of.get("listener_id", _ITSELF)))
    match of["op"]:
        case "set_args":
            for name, value in of.get("set", {}).items():
                at = {"id": who, "name": _shown(name), "value": _spelled(value)}
                yield msg("{id} passes {name} = {value}", **at)
            for name in of.get("drop", ()):
                yield msg("{id} does not pass {name} any more", id=who, name=_shown(name))
        case "set_output":
            names = _shown(", ".join(of["context"])) or msg("nothing")
            yield msg("{id} gives its task {names}", id=who, names=names)
        case "set_retry":
            yield msg("{id} is retried in another way, or has another time limit", id=who)
        case "use_tool":
            work = _calling(of["tool"], of["args"])
            yield msg("{id} {work}, and not what it called", id=who, work=work)
        case "insert_before":
            yield msg("before {id} a step is put in: {work}", id=who, work=_work(of["listener"]))
        case "ask_first" if of.get("fields"):
            names = _shown(", ".join(str(one["name"]) for one in of["fields"]))
            yield msg("before {id} a person is asked for {names}", id=who, names=names)
        case "ask_first":
            title = _shown(str(of["choice"].get("title", "")))
            yield msg("before {id} a person is asked to confirm: {title}", id=who, title=title)
        case "skip":
            yield msg("{id} is skipped", id=who)
        case _:
            for one in of.get("listeners", ()):
                yield msg("a step is new: {work}", work=_work(one))


def _work(listener: Mapping[str, Any]) -> str:
    if "tool" in listener:
        return _calling(listener["tool"], listener.get("args", {}))
    return _shown(str(listener.get("listener_type", "")))


def _calling(tool: str, args: JsonObject) -> str:
    return msg("calls {tool} with {args}", tool=_shown(tool), args=_spelled(dict(args)))


def _named(listener_id: str) -> str:
    if listener_id == _ITSELF:
        return msg("the listener")
    return _shown(listener_id.removeprefix("@"))


def _spelled(value: Json) -> str:
    return _shown(_SIGN.sub(r"\1", canonical_json(value)))


def _shown(text: str) -> str:
    return clip(text, _LONGEST)

"""The model that plays the office's agents: scripted, so it needs no key and never surprises.

It does what a sensible model would do with one tool at hand: it reads the request, calls the
tool with the arguments that it finds there, and tells what came of the call, in JSON for work
and in a sentence for a look. An argument that the request does not name is left out, not made
up. Asked about a step that has failed, it chooses the first of the repairs that code has found,
checked and rehearsed. It knows nothing but the conversation that it is shown, so that a process
which takes over in the middle gets the same words.

Requests name things line by line, as `order_id: PC-0001`, or in JSON objects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.demo import assistant
from holdfast.model.message import ToolOffer, ToolReturned
from holdfast.model.values import Json
from holdfast.repair.contract import DIAGNOSE, PERSON
from holdfast.testing.model_script import Entry, ScriptedCall, Seen
from holdfast.testing.scripted_model import ScriptedModel

_NAMED = re.compile(r"[-*\s]*+(?P<name>[a-z_]++)\s*+[:：]\s*+(?P<value>\S.*)")
FIRST = "k1"
_LOOKS = ("query_", "check_")
_REASONS = ("error", "reason", "rejected", "retry", "skipped", "result")


def office_model() -> ScriptedModel:
    return ScriptedModel(the_asked_colleague, name="office-colleagues")


def the_asked_colleague(seen: Seen) -> Entry:
    """The next words of whoever is asked; the tools tell who that is."""
    offers = {offer.name: offer for offer in seen.tools}
    if DIAGNOSE in offers:
        return _diagnosis(offers[DIAGNOSE], seen)
    return assistant.reply(seen) if assistant.TOOL in offers else reply(seen)


def reply(seen: Seen) -> Entry:
    """The next words of an agent with one tool."""
    if seen.results:
        return _report(seen.results[-1])
    if not seen.tools:
        return _as_json({"success": False, "error": "I have no tool for this."})
    return _call(seen.tools[0], facts_in(seen.asked), f"call_{len(seen.messages)}")


def _diagnosis(offer: ToolOffer, seen: Seen) -> Entry:
    """Cause and reason are those of the rules, cited is what happened last; without a candidate a
    person is to look at it."""
    facts, parameters = facts_in(seen.asked), offer.parameters["properties"]
    cited = parameters["because"]["items"].get("enum", [])
    choice = FIRST if FIRST in parameters["choice"]["enum"] else PERSON
    said = {name: facts[name] for name in ("cause", "summary")}
    return ScriptedCall(DIAGNOSE, _as_json({**said, "because": cited[-1:], "choice": choice}))


def facts_in(text: str) -> dict[str, Json]:
    """What a text names; the last mention of a name counts."""
    found: dict[str, Json] = {}
    for line in text.splitlines():
        found.update(_in_line(line))
    return found


def _in_line(line: str) -> Iterator[tuple[str, Json]]:
    if named := _NAMED.fullmatch(line.rstrip()):
        yield named["name"], named["value"]
    start = line.find("{")
    if start >= 0:
        yield from _object(line[start:]).items()


def _object(text: str) -> Mapping[str, Json]:
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _call(offer: ToolOffer, facts: Mapping[str, Json], call_id: str) -> Entry:
    wanted: Mapping[str, Any] = offer.parameters.get("properties", {})
    args = {name: facts[name] for name in wanted if name in facts}
    return ScriptedCall(offer.name, _as_json(args), call_id)


def _report(returned: ToolReturned) -> Entry:
    if returned.failed:
        return _as_json({"success": False, "error": _reason(returned)})
    told = _told(returned.content)
    if returned.tool.startswith(_LOOKS):
        return f"{returned.tool}: {_as_json(told)}"
    return _as_json(told)


def _told(content: Json) -> dict[str, Json]:
    """The plain parts of a result; where a person told it in words, what those name."""
    fields = _fields(content)
    if fields.keys() == {"result"}:
        return facts_in(str(fields["result"]))
    return {name: value for name, value in fields.items() if name != "success" and _plain(value)}


def _fields(content: Json) -> Mapping[str, Json]:
    return content if isinstance(content, Mapping) else {"result": content}


def _plain(value: Json) -> bool:
    return not isinstance(value, Mapping | list)


def _reason(returned: ToolReturned) -> str:
    fields = _fields(returned.content)
    named = (fields[one] for one in _REASONS if fields.get(one))
    return f"{returned.tool}: {next(named, 'it failed')}"


def _as_json(value: Mapping[str, Json]) -> str:
    return json.dumps(value, ensure_ascii=False)

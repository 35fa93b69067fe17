"""Sketches: steps in their order, as a model writes them where no plan fits.

    {"goal": "A badge for Will Zhang", "steps": [
      {"id": "s1", "tool": "create_employee_profile", "args": {"name": "Will Zhang"}, "after": []},
      {"id": "s2", "tool": "grant_access", "args": {"employee_id": "{s1.employee_id}"}}],
     "check": [{"tool": "query_access", "args": {"employee_id": "{s1.employee_id}"},
                "expect": "result.exists == true"}]}

Models order steps better than they draw graphs, so they write no listeners. `{s1.employee_id}` is a
field of what the step `s1` returned, `{s1}` all of it; `{s1.result.employee_id}` and double braces
mean the same. A step waits for those whose results it reads, said or not. What else stands in
braces is text, but for a single word or a path: that is a place for which nobody gave a value.

A sketch is read strictly, and everything that is wrong with it is told at once. `sketched_plan`
makes a plan of it, `sketch_prompt` asks a model for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Final, TypeAlias

from holdfast.core.interactions.calls import missing_arguments
from holdfast.errors import ConditionError, InvalidValue
from holdfast.forms.from_tools import allows_null, form_from_schema
from holdfast.forms.secrets import references_in
from holdfast.forms.shapes import answer_problem
from holdfast.i18n.message import msg, term
from holdfast.language.conditions import parse
from holdfast.language.display import visible
from holdfast.language.strict import strict_json
from holdfast.model.approval import ApprovalMode, ToolFacts
from holdfast.model.form import FieldType
from holdfast.model.message import ModelReply
from holdfast.model.record import record
from holdfast.model.values import Json, JsonObject
from holdfast.repair.replies import LARGEST_REPLY, Unusable, handed_in, quoted
from holdfast.source.names import not_looking, unknown

SKETCH_PLAN: Final = "sketch_plan"

MOST_STEPS: Final = 40
MOST_CHECKS: Final = 6
LONGEST_GOAL: Final = 300

MAIN: Final = "001"
FINISH: Final = "finish"
"""The main task of a sketch's plan, and the listener that moves it when all steps are done."""

Tools: TypeAlias = Mapping[str, ToolFacts]
"""The tools that a sketch may name."""

_DEEPEST: Final = 24
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_RESERVED: Final = frozenset({MAIN, FINISH, "inputs", "result", "values"})
_PATH: Final = r"\s*([\w-]+(?:\.[\w-]+)*)\s*"
REFERENCE: Final = re.compile(rf"\{{\{{{_PATH}\}}\}}|\{{{_PATH}\}}")
_RESULT: Final = "result"

_SKETCH_KEYS: Final = ("goal", "steps", "check")
_STEP_KEYS: Final = ("id", "tool", "args", "after")
_CHECK_KEYS: Final = ("tool", "args", "expect")
_NO_SECRETS: Final = msg("a secret has no place in a sketch: leave it out, a person gives it")


@record
class SketchedStep:
    """`after` are the steps it waits for: those that it names, and those whose results it reads."""

    id: str
    tool: str
    args: JsonObject
    after: tuple[str, ...] = ()


@record
class SketchedCheck:
    """A look at the outcome; `expect` is a condition over `result`."""

    tool: str
    args: JsonObject
    expect: str | None = None


@record
class Sketch:
    goal: str
    steps: tuple[SketchedStep, ...]
    check: tuple[SketchedCheck, ...] = ()


@record
class Reference:
    """A place that a step's result fills; an empty path means all of it."""

    source: str
    step: str
    path: tuple[str, ...]


def references(value: Json) -> Iterator[Reference]:
    """What the value refers to, wherever in it."""
    match value:
        case str():
            yield from map(reference, REFERENCE.finditer(value))
        case dict():
            for one in value.values():
                yield from references(one)
        case list():
            for one in value:
                yield from references(one)


def reference(found: re.Match[str]) -> Reference:
    step, *path = (found[1] or found[2]).split(".")
    return Reference(found[0], step, tuple(path[1:] if path[:1] == [_RESULT] else path))


def read_sketch_reply(reply: ModelReply, tools: Tools) -> Sketch | Unusable:
    """The sketch that a model handed in, or all that is wrong with its reply."""
    found = handed_in(reply, {SKETCH_PLAN: "steps"})
    return found if isinstance(found, Unusable) else read_sketch(found.args, tools)


def read_sketch(raw: Json, tools: Tools) -> Sketch | Unusable:
    """The sketch, or all that is wrong with it, each with its place."""
    try:
        plain = strict_json(raw, max_depth=_DEEPEST, max_bytes=LARGEST_REPLY)
    except InvalidValue as error:
        return Unusable((str(error),))
    reading = _Reading(tools)
    sketch = reading.sketch(plain)
    return Unusable(tuple(reading.findings)) if reading.findings else sketch


class _Reading:
    """A sketch as far as it can be read, and what is wrong with it."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self.findings: list[str] = []
        self.ids: frozenset[str] = frozenset()

    def note(self, place: str, problem: str) -> None:
        self.findings.append(msg("{place}: {problem}", place=place, problem=problem))

    def sketch(self, raw: Json) -> Sketch:
        found = self.entries(raw, "sketch", _SKETCH_KEYS, ("goal", "steps"))
        goal = self.goal(found)
        listed = self.items(found, "steps", MOST_STEPS)
        if found.get("steps") == []:
            self.note("steps", msg("a plan has at least one step"))
        given = [one.get("id") if isinstance(one, dict) else None for one in listed]
        self.ids = frozenset(one for one in given if isinstance(one, str))
        self.doubles(given)
        steps = tuple(self.step(one, f"steps[{index}]") for index, one in enumerate(listed))
        self.cycles(steps)
        checks = self.items(found, "check", MOST_CHECKS)
        return Sketch(
            goal,
            steps,
            tuple(self.check(one, f"check[{index}]") for index, one in enumerate(checks)),
        )

    def entries(
        self, raw: Json, place: str, known: Sequence[str], required: Sequence[str]
    ) -> dict[str, Json]:
        if not isinstance(raw, dict):
            self.note(place, msg("an object with {keys}", keys=", ".join(known)))
            return {}
        for key in (one for one in raw if one not in known):
            self.note(place, unknown(msg("key"), quoted(key), known))
        for key in required:
            if raw.get(key) is None:
                self.note(place, msg("{key} is missing", key=key))
        # A model may write null for what it leaves out.
        return {key: value for key, value in raw.items() if value is not None}

    def items(self, found: JsonObject, key: str, most: int) -> list[Json]:
        listed = found.get(key, [])
        if not isinstance(listed, list):
            self.note(key, msg("a list is needed"))
            return []
        if len(listed) > most:
            self.note(key, msg("at most {n}, not {m}", n=most, m=len(listed)))
        return listed

    def text(self, found: JsonObject, key: str, place: str) -> str:
        given = found.get(key, "")
        if isinstance(given, str):
            return given
        self.note(f"{place}.{key}", msg("a text is needed"))
        return ""

    def goal(self, found: JsonObject) -> str:
        words = " ".join(self.text(found, "goal", "sketch").split())
        if isinstance(found.get("goal"), str) and not 1 <= len(words) <= LONGEST_GOAL:
            self.note("sketch.goal", msg("a text of 1 to {n} characters", n=LONGEST_GOAL))
        return visible(words)[:LONGEST_GOAL]

    def doubles(self, given: Sequence[Json]) -> None:
        for index, one in enumerate(given):
            if one is not None and one in given[:index]:
                self.note(f"steps[{index}].id", msg("{id} is taken", id=quoted(one)))

    def step(self, raw: Json, place: str) -> SketchedStep:
        found = self.entries(raw, place, _STEP_KEYS, ("id", "tool"))
        step_id = self.text(found, "id", place)
        if step_id in _RESERVED:
            self.note(f"{place}.id", msg("{id} is reserved: choose another", id=step_id))
        elif isinstance(found.get("id"), str) and not _ID.fullmatch(step_id):
            told = msg("an id is a letter or digit, then letters, digits, _ and -, at most 40")
            self.note(f"{place}.id", told)
        tool, facts = self.tool(found, place)
        args = self.args(found, facts, place)
        return SketchedStep(step_id, tool, args, self.after(found, place, step_id, args))

    def after(
        self, found: JsonObject, place: str, step_id: str, args: JsonObject
    ) -> tuple[str, ...]:
        named = found.get("after", [])
        if not isinstance(named, list) or not all(isinstance(one, str) for one in named):
            self.note(f"{place}.after", msg("a list of ids of steps"))
            named = []
        for one in named:
            if one not in self.ids:
                self.note(f"{place}.after", unknown(msg("step"), quoted(one), self.ids))
        read = [one.step for one in references(args)]
        return tuple(one for one in dict.fromkeys((*named, *read)) if one in self.ids)

    def cycles(self, steps: Sequence[SketchedStep]) -> None:
        try:
            TopologicalSorter({one.id: one.after for one in steps}).prepare()
        except CycleError as error:
            path = " → ".join(error.args[1])
            self.note("steps", msg("they wait for each other: {path}", path=path))

    def tool(self, found: JsonObject, place: str) -> tuple[str, ToolFacts | None]:
        name = self.text(found, "tool", place)
        facts = self.tools.get(name)
        if isinstance(found.get("tool"), str) and facts is None:
            self.note(f"{place}.tool", unknown(term("tool"), quoted(name), self.tools))
        if facts is not None and facts.mode is ApprovalMode.DISABLED:
            self.note(f"{place}.tool", msg("{tool} is disabled", tool=name))
        return name, facts

    def args(self, found: JsonObject, facts: ToolFacts | None, place: str) -> JsonObject:
        given, here = found.get("args", {}), f"{place}.args"
        if not isinstance(given, dict):
            self.note(here, msg("an object of arguments by name"))
            return {}
        for one in references(given):
            if one.step not in self.ids:
                source, step = quoted(one.source), quoted(one.step)
                told = msg("{source}: there is no step {step}", source=source, step=step)
                self.note(here, told)
        if references_in(given):
            self.note(here, _NO_SECRETS)
        if facts is None:
            return given
        schema = facts.parameters
        said = {
            name: value
            for name, value in given.items()
            if value is not None or allows_null(schema, name)
        }
        for name, value in said.items():
            self.argument(name, value, schema, here)
        return said

    def argument(self, name: str, value: Json, schema: JsonObject, place: str) -> None:
        known = schema.get("properties", {})
        if name not in known:
            if _shuts_out_others(schema):
                self.note(place, unknown(msg("argument"), quoted(name), known))
            return
        [field] = form_from_schema(schema, [name]).fields
        if field.type is FieldType.SECRET:
            self.note(f"{place}.{name}", _NO_SECRETS)
        elif not (value is None or field.json or any(references(value))):
            problem = answer_problem(field, value)
            if problem is not None:
                self.note(f"{place}.{name}", problem)

    def check(self, raw: Json, place: str) -> SketchedCheck:
        found = self.entries(raw, place, _CHECK_KEYS, ("tool",))
        tool, facts = self.tool(found, place)
        args = self.args(found, facts, place)
        if facts is not None:
            if not facts.read_only:
                self.note(f"{place}.tool", not_looking(tool, ()).message)
            for name in missing_arguments(facts.parameters, args):
                self.note(f"{place}.args", msg("{key} is missing", key=name))
        return SketchedCheck(tool, args, self.expect(found, place))

    def expect(self, found: JsonObject, place: str) -> str | None:
        text = self.text(found, "expect", place)
        if not text.strip():
            return None
        try:
            condition = parse(text)
        except ConditionError as error:
            self.note(f"{place}.expect", error.reason)
            return None
        if condition.asks_triggers or any(path[0] != _RESULT for path in condition.paths):
            self.note(f"{place}.expect", msg("only the result of the check can be asked here"))
        return text


def _shuts_out_others(schema: JsonObject) -> bool:
    """JSON schema allows further properties by default, but no author of a tool means that."""
    silent = "properties" not in schema and "additionalProperties" not in schema
    return not silent and schema.get("additionalProperties", False) is False

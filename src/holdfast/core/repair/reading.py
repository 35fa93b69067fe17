"""Operations of a patch, from JSON: `_KINDS` has what each of them says, and how it is read.

A patch comes from rules, from a person or from a model, which may have written anything. Reading
finds everything that is wrong with its shape, and guesses nothing. What was accepted once must
apply for ever, so `operations_from_json` trusts what the journal has, and checks nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from holdfast.core.repair.records import (
    Add,
    AskFirst,
    InsertBefore,
    Operation,
    SetArgs,
    SetOutput,
    SetRetry,
    Skip,
    UseTool,
)
from holdfast.core.repair.shapes import (
    LONGEST_ID,
    Check,
    check_form,
    check_id,
    check_items,
    check_keys,
    check_listener,
    check_name,
    check_number,
    check_object,
    check_record,
    check_text,
    check_word,
    form_of,
    or_null,
)
from holdfast.core.storing import record_from_json
from holdfast.errors import FormProblem, InvalidValue, PatchRejected
from holdfast.forms.problems import Problems
from holdfast.i18n.message import msg
from holdfast.language.strict import strict_json
from holdfast.model.interaction import Asking
from holdfast.model.plan import Listener, Task, TaskStatus
from holdfast.model.repair import MOST_NEW_LISTENERS, MOST_OPERATIONS
from holdfast.model.retry import RetryPolicy
from holdfast.model.values import Json, JsonObject

MOST_REPORTED: Final = 100
LONGEST_REPORT: Final = 1_000

_IN_A_TEMPLATE: Final = re.compile(r"[\w-]+")
_TRIGGER: Final = ("trigger_task_id", "trigger_condition")


def read_operations(raw: Sequence[JsonObject]) -> tuple[Operation, ...]:
    """The operations, or PatchRejected with everything that is wrong with them."""
    operations, problems = readable(raw)
    if problems:
        raise PatchRejected(problems)
    return tuple(operations.values())


def readable(raw: Sequence[JsonObject]) -> tuple[Mapping[int, Operation], tuple[str, ...]]:
    """By their places the operations that can be read, and everything that is wrong with others."""
    problems = Problems(path=("operations",))
    try:
        plain = strict_json(raw)
    except InvalidValue as error:
        place = f"operations{error.path.removeprefix('$')}"
        return {}, (msg("{place}: {problem}", place=place, problem=error.reason),)
    _check_all(plain, problems)
    wrong = {one.path[1] for one in problems.found if len(one.path) > 1}
    looked_at = isinstance(plain, list) and len(plain) <= MOST_OPERATIONS
    sound = [place for place in range(len(plain)) if place not in wrong] if looked_at else []
    operations = operations_from_json([plain[place] for place in sound])
    return dict(zip(sound, operations, strict=True)), reports(problems)


def operations_from_json(raw: Sequence[JsonObject]) -> tuple[Operation, ...]:
    """Those of which `read_operations` had nothing to report once."""
    return tuple(_KINDS[one["op"]].made(one) for one in raw)


def refuse(problems: Problems) -> None:
    """PatchRejected with what was found, if anything was."""
    if told := reports(problems):
        raise PatchRejected(told)


def reports(problems: Problems) -> tuple[str, ...]:
    """What was found, as much of it as a reader can use."""
    found = problems.found
    shown = found if len(found) <= MOST_REPORTED else found[: MOST_REPORTED - 1]
    told = [_shortened(one) for one in shown]
    if more := len(found) - len(shown):
        told.append(msg("{n:,} more mistakes from here on; mend those above first", n=more))
    return tuple(told)


def _shortened(problem: FormProblem) -> str:
    """Its place may have a key in it that is as long as the patch."""
    told = str(problem)
    return told if len(told) <= LONGEST_REPORT else told[: LONGEST_REPORT - 1] + "…"


def _check_all(raw: Json, problems: Problems) -> None:
    if isinstance(raw, list) and len(raw) > MOST_OPERATIONS:
        most, given = MOST_OPERATIONS, len(raw)
        problems.add(msg("a patch has at most {n} operations; this has {m:,}", n=most, m=given))
        return
    check_items(_check_operation, raw, problems)
    if raw == []:
        problems.add(msg("a patch has at least one operation"))
    new = sum(map(_brought, raw)) if isinstance(raw, list) else 0
    if new > MOST_NEW_LISTENERS:
        most = MOST_NEW_LISTENERS
        problems.add(msg("a patch adds at most {n} listeners; this adds {m:,}", n=most, m=new))


def _brought(raw: Json) -> int:
    """How many listeners an operation adds."""
    match raw:
        case {"op": "insert_before" | "ask_first"}:
            return 1
        case {"op": "add", "listeners": list(listeners)}:
            return len(listeners)
    return 0


def _check_operation(raw: Json, problems: Problems) -> None:
    if not check_object(raw, problems):
        return
    if "op" not in raw:
        problems.at("op").add(msg("is required"))
    elif check_word(_KINDS, raw["op"], problems.at("op")):
        _KINDS[raw["op"]].check(raw, problems)


def _nothing_more(raw: JsonObject, problems: Problems) -> None:
    pass


@dataclass(frozen=True, slots=True)
class _Kind:
    """What an operation says: all of `keys`, but for those that are `optional`, and at least one
    of `either`, if there are any. `further` looks at how they go together."""

    made: Callable[[JsonObject], Operation]
    keys: Mapping[str, Check]
    optional: tuple[str, ...] = ()
    either: tuple[str, ...] = ()
    further: Callable[[JsonObject, Problems], None] = _nothing_more

    def check(self, raw: JsonObject, problems: Problems) -> None:
        known = {"op": check_text, **self.keys}
        required = self.keys.keys() - {*self.optional, *self.either}
        check_keys(raw, known, required, problems)
        if self.either and not any(raw.get(key) or _is_said(raw, key) for key in self.either):
            problems.add(msg("needs one of {names}", names=", ".join(self.either)))
        self.further(raw, problems)


def _is_said(raw: JsonObject, key: str) -> bool:
    """No time limit is a time limit too; an empty object says nothing."""
    return key == "timeout" and key in raw


def _set_args(raw: JsonObject) -> SetArgs:
    return SetArgs(raw["listener_id"], raw.get("set", {}), tuple(raw.get("drop", ())))


def _check_args(raw: JsonObject, problems: Problems) -> None:
    given, dropped = raw.get("set"), raw.get("drop")
    if isinstance(given, dict) and isinstance(dropped, list):
        for index, name in enumerate(dropped):
            if isinstance(name, str) and name in given:
                problems.at("drop", index).add(msg("{name} is set as well", name=name))


def _set_output(raw: JsonObject) -> SetOutput:
    return SetOutput(raw["listener_id"], raw["context"])


def _set_retry(raw: JsonObject) -> SetRetry:
    timed = "timeout" in raw
    return SetRetry(raw["listener_id"], raw.get("retry", {}), raw.get("timeout"), timed)


def _use_tool(raw: JsonObject) -> UseTool:
    return UseTool(raw["listener_id"], raw["tool"], raw["args"])


def _insert_before(raw: JsonObject) -> InsertBefore:
    task = record_from_json(Task, raw["task"])
    listener = record_from_json(Listener, _whole(raw["listener"], task.task_id))
    return InsertBefore(raw["listener_id"], task, listener)


def _whole(listener: JsonObject, task_id: str) -> JsonObject:
    """A listener that is put before another, as one that stands alone; it has no trigger yet."""
    output = listener.get("success_output", {})
    if isinstance(output, dict):
        output = {"task_id": task_id, "status": TaskStatus.DONE.value, **output}
    return {**listener, "trigger_task_id": [], "trigger_condition": "", "success_output": output}


def _check_insertion(raw: JsonObject, problems: Problems) -> None:
    listener, task = raw.get("listener"), raw.get("task")
    if not (isinstance(listener, dict) and isinstance(task, dict)):
        return
    problems = problems.at("listener")
    for key in _TRIGGER:
        if key in listener:
            problems.at(key).add(msg("leave it out: it is that of the listener that comes after"))
    task_id = str(task.get("task_id"))
    whole = _whole(listener, task_id)
    check_listener(whole, problems)
    match whole["success_output"]:
        case {"task_id": named, "status": status} if (named, status) != (task_id, "Done"):
            leads = msg("leads to the new task, which becomes Done: leave task_id and status out")
            problems.at("success_output").add(leads)


def _add(raw: JsonObject) -> Add:
    tasks = (record_from_json(Task, one) for one in raw.get("tasks", ()))
    listeners = (record_from_json(Listener, one) for one in raw.get("listeners", ()))
    return Add(tuple(tasks), tuple(listeners))


def _ask_first(raw: JsonObject) -> AskFirst:
    asked = raw.get("choice", {"title": raw.get("title", "")})
    asking = Asking(asked["title"], asked.get("message", ""), role=raw.get("role"))
    task_id = raw.get("task_id", f"ask_{raw['listener_id']}"[:LONGEST_ID])
    return AskFirst(raw["listener_id"], task_id, form_of(raw.get("fields", [])), asking)


def _check_asking(raw: JsonObject, problems: Problems) -> None:
    if "choice" in raw:
        for key in ("fields", "title"):
            if key in raw:
                problems.at(key).add(msg("does not go with a choice: leave it out"))


def _check_fields(raw: Json, problems: Problems) -> None:
    """Each becomes an argument, so it has an answer, and a name that a template can say."""
    before = len(problems.found)
    check_form(raw, problems)
    if len(problems.found) > before:
        return
    for index, field in enumerate(raw):
        if not _IN_A_TEMPLATE.fullmatch(field["name"]):
            of_letters = msg("the name of an argument has letters, digits, _ and - only")
            problems.at(index, "name").add(of_letters)
        if not field.get("required", True) or field.get("visible_if") is not None:
            always = msg("is always asked: leave required and visible_if out")
            problems.at(index).add(always)


def _check_choice(raw: Json, problems: Problems) -> None:
    if check_object(raw, problems):
        check_keys(raw, {"title": check_name, "message": check_text}, ("title",), problems)


_KINDS: Final[Mapping[str, _Kind]] = {
    "set_args": _Kind(
        _set_args,
        {"listener_id": check_id, "set": check_object, "drop": partial(check_items, check_name)},
        either=("set", "drop"),
        further=_check_args,
    ),
    "set_output": _Kind(_set_output, {"listener_id": check_id, "context": check_object}),
    "set_retry": _Kind(
        _set_retry,
        {
            "listener_id": check_id,
            "retry": partial(check_record, RetryPolicy),
            "timeout": partial(or_null, check_number),
        },
        either=("retry", "timeout"),
    ),
    "use_tool": _Kind(
        _use_tool, {"listener_id": check_id, "tool": check_name, "args": check_object}
    ),
    "insert_before": _Kind(
        _insert_before,
        {"listener_id": check_id, "task": partial(check_record, Task), "listener": check_object},
        further=_check_insertion,
    ),
    "add": _Kind(
        _add,
        {
            "tasks": partial(check_items, partial(check_record, Task)),
            "listeners": partial(check_items, check_listener),
        },
        either=("tasks", "listeners"),
    ),
    "ask_first": _Kind(
        _ask_first,
        {
            "listener_id": check_id,
            "fields": _check_fields,
            "choice": _check_choice,
            "task_id": check_id,
            "role": check_name,
            "title": check_text,
        },
        optional=("task_id", "role", "title"),
        either=("fields", "choice"),
        further=_check_asking,
    ),
    "skip": _Kind(lambda raw: Skip(raw["listener_id"]), {"listener_id": check_id}),
}

"""How a question is shown: what each option does, and lists of tasks and results.

A label, an id and a description are the author's, and may say anything; beside them every surface
says in our words what an option does. The action alone decides, and for a question about a call it
alone says whether that call runs. What the details list stands in the question's context for
programs; a person is not shown it twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from holdfast.core.interactions.checks import HAPPENED, STOP
from holdfast.i18n.message import joined, msg, msgid
from holdfast.language.display import clip
from holdfast.language.strict import canonical_json
from holdfast.model.interaction import (
    RUN_AGAIN,
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)
from holdfast.model.values import Json

_A: Final = InteractionAction

_APPROVAL: Final[Mapping[InteractionAction, str]] = {
    _A.APPROVE_AND_EXECUTE: msgid("Runs {tool} with these arguments."),
    _A.PROVIDE_INFO: msgid("Runs {tool} with these arguments, completed by you."),
    _A.REJECT_WITH_REASON: msgid("Does not run {tool}."),
    _A.SKIP: msgid("Does not run {tool}; goes on without it."),
    _A.TERMINATE: msgid("Does not run {tool}; ends the whole run."),
    _A.CUSTOM: msgid("A handler decides whether {tool} runs."),
}
_MISSING: Final[Mapping[InteractionAction, str]] = {
    **_APPROVAL,
    _A.APPROVE_AND_EXECUTE: msgid("Goes on to run {tool} with what is given here."),
    _A.PROVIDE_INFO: msgid("Goes on to run {tool} with what is given here."),
}
_UNKNOWN: Final[Mapping[InteractionAction, str]] = {
    _A.PROVIDE_INFO: msgid("Does not run {tool} again; goes on with the result that you give."),
    _A.APPROVE_AND_EXECUTE: msgid("Runs {tool} again with these arguments."),
    _A.TERMINATE: msgid("Does not run {tool} again; ends the whole run."),
}
_NO_CALL: Final[Mapping[InteractionAction, str]] = {
    _A.APPROVE_AND_EXECUTE: msg("Goes on with this choice."),
    _A.PROVIDE_INFO: msg("Goes on with what you give."),
    _A.RETRY_WITH_FEEDBACK: msg("Does not go on yet; your words go back, and it is asked anew."),
    _A.REJECT_WITH_REASON: msg("Refuses what is asked."),
    _A.SKIP: msg("Goes on without an answer."),
    _A.TERMINATE: msg("Ends the whole run."),
    _A.CUSTOM: msg("A handler decides what happens."),
}
_AGENT_AGAIN: Final = msgid("Does not run {tool}; the agent thinks again with your words.")
_ASKED_AGAIN: Final = msgid("Does not run {tool}; it is asked again with your words.")


def consequence(request: InteractionRequest, option: InteractionOption) -> str:
    """What choosing `option` does, as a sentence."""
    call = call_of(request)
    if call is None:
        return _NO_CALL[option.action]
    return msg(_about_a_call(request, option.action), tool=call[0])


def call_of(request: InteractionRequest) -> tuple[str, Mapping[str, Json]] | None:
    """The tool and the arguments that a question is about, if it is about a call."""
    tool, args = request.context.get("tool"), request.context.get("args")
    return (tool, args) if isinstance(tool, str) and isinstance(args, Mapping) else None


def _about_a_call(request: InteractionRequest, action: InteractionAction) -> str:
    if [one.option_id for one in request.options] == [HAPPENED, RUN_AGAIN, STOP]:
        return _UNKNOWN[action]
    if action is _A.RETRY_WITH_FEEDBACK:
        return _AGENT_AGAIN if "call_id" in request.context else _ASKED_AGAIN
    approval = request.type is InteractionType.TOOL_APPROVAL
    return (_APPROVAL if approval else _MISSING)[action]


_LONGEST_LINE: Final = 300
_MOST_LINES: Final = 30


def listed_tasks(tasks: Json) -> str:
    objects = isinstance(tasks, Sequence) and all(isinstance(one, Mapping) for one in tasks)
    return _listed(map(_task_line, tasks)) if objects and not isinstance(tasks, str) else ""


def listed_results(results: Json) -> str:
    """By the tasks that they are of."""
    if not isinstance(results, Mapping):
        return ""
    return _listed(f"{one}: {canonical_json(result)}" for one, result in results.items())


def shown_context(request: InteractionRequest) -> dict[str, Json]:
    """What a question is about, but for what its details list."""
    return {
        name: value
        for name, value in request.context.items()
        if name not in _LISTS or _LISTS[name](value) != request.details
    }


_LISTS: Final[Mapping[str, Callable[[Json], str]]] = {
    "tasks": listed_tasks,
    "results": listed_results,
}


def _listed(lines: Iterable[str]) -> str:
    """One line for each, and no more than a person reads."""
    shown = [clip(one, _LONGEST_LINE) for one in islice(lines, _MOST_LINES + 1)]
    more = ["…"] if len(shown) > _MOST_LINES else []
    return joined("\n", shown[:_MOST_LINES] + more)


def _task_line(task: Mapping[str, Json]) -> str:
    args = canonical_json(task["args"]) if task.get("args") else ""
    call = " ".join(filter(None, (str(task.get("type", "")), args)))
    told = ": ".join(
        filter(None, (str(task.get("id", "")), str(task.get("description", "")), call))
    )
    first = task.get("dependencies")
    return (
        msg("{task}; needs first: {names}", task=told, names=", ".join(map(str, first)))
        if first
        else told
    )

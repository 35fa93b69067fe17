"""How a run is: for scripts as one JSON object, for people with the way to go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.text import Text

from holdfast.cli.shell import CANCELLED, OK, WAITS_FOR_PERSON, WAITS_FOR_RESUME
from holdfast.cli.terminal.question import question_json, say_open
from holdfast.cli.terminal.repairs import is_pending
from holdfast.cli.terminal.screen import say, status_text
from holdfast.cli.terminal.untrusted_text import rows
from holdfast.model.conversation import AfterFailure
from holdfast.model.message import Usage
from holdfast.model.run import RunKind, RunStatus, StepStatus
from holdfast.views.records import (
    ConversationView,
    InteractionView,
    PlanView,
    RunView,
    SessionView,
)
from holdfast.views.results import came_of
from holdfast.views.stories.text import clock, named, visible

EXITS: Mapping[str, int] = {
    RunStatus.ERROR: WAITS_FOR_RESUME,
    RunStatus.PAUSE: WAITS_FOR_PERSON,
    RunStatus.CANCELLING: CANCELLED,
    RunStatus.CANCELLED: CANCELLED,
}


def exit_code(status: str) -> int:
    """The exit code of a command that leaves a run in this status."""
    return EXITS.get(status, OK)


def report_json(run: RunView, questions: Sequence[InteractionView] = ()) -> dict[str, Any]:
    asked = {"questions": [question_json(one) for one in questions]}
    return {"status": run.status.value, **_part_json(run), **asked}


def _part_json(run: RunView) -> dict[str, Any]:
    if run.plan is not None:
        return {"instance_id": run.run_id, **_plan_json(run.plan)}
    if run.session is not None:
        return {"session_id": run.run_id, **_session_json(run.session, run.error)}
    assert run.conversation is not None
    return {"conversation_id": run.run_id, **_conversation_json(run.conversation, run.error)}


def _plan_json(plan: PlanView) -> dict[str, Any]:
    return {
        "plan_id": plan.plan_id,
        "tasks": {one.task_id: one.status.value for one in plan.tasks},
        "error_info": plan.error_info,
        "failed_listener_id": plan.failed_listener_id,
        "verification": dict(plan.verification),
    }


def _session_json(session: SessionView, error: str) -> dict[str, Any]:
    return {
        "agent_id": session.agent_id,
        "turn": session.turn,
        "answer": session.answer,
        "error": error or None,
        "usage": asdict(session.usage),
    }


def _conversation_json(view: ConversationView, error: str) -> dict[str, Any]:
    return {
        "phase": view.phase.value,
        "turn": view.turn,
        "input": view.text,
        "progress": view.progress,
        "tasks": [asdict(one.task) for one in view.tasks],
        "answer": view.answer,
        "error": error or None,
    }


NOT_KEPT = "kept in memory: the run and its questions end with this command"
"""Instead of a command that another process would find nothing for."""


def say_report(
    run: RunView,
    questions: Sequence[InteractionView],
    options: str = "",
    *,
    kept: bool = True,
    elsewhere: bool = False,
    shared: bool = False,
) -> None:
    """How it is, why, and how to go on; `options` are repeated in the commands shown.

    Of a run that is not `kept` no command is shown: there is none that could work. One that is
    `elsewhere` is driven by a server, which `converse` does not reach; one that is `shared` goes on
    when this process ends.
    """
    moment = run.waits_until
    until = "" if moment is None else f", and waits until {clock(moment, date=True)}"
    say(Text.assemble(f"{run.run_id} is ", status_text(run.status.value), until))
    if run.status is RunStatus.ERROR:
        say(*rows(visible(run.error, 2000), "  │ ", "  │ "))
    if run.conversation is not None and run.status is RunStatus.DONE:
        say_results(run.conversation)
    say_open(questions, options if kept else None)
    steps = [*_to_see(run, options), *next_steps(run, options, elsewhere=elsewhere, shared=shared)]
    if kept or not (steps or questions):
        say(*(f"  {command}" for command in steps))
    else:
        say(f"  {NOT_KEPT}")


def _to_see(run: RunView, options: str) -> list[str]:
    cases = run.plan.cases if run.plan is not None else ()
    told = f"what is wrong, and what may help: holdfast diagnose {run.run_id}{options}"
    return [told] if any(map(is_pending, cases)) else []


def say_results(view: ConversationView) -> None:
    """What came of the goal, whole: the results of the tasks that no other waited for, and what
    was skipped."""
    if view.said:
        say(*rows(view.said, "  ", "  "))
    tasks = {one.task.id: one.task for one in view.tasks}
    for task in (tasks[one] for one in view.ends):
        if task.result not in (None, {}, ""):
            say(*rows(came_of(task), f"  {named(task.id)}: ", "  │ "))


def next_steps(
    run: RunView, options: str = "", *, elsewhere: bool = False, shared: bool = False
) -> list[str]:
    if run.conversation is not None:
        words = _words_to_server if elsewhere else _next_words
        return words(run, run.conversation, options)
    run_id = run.run_id
    session = run.kind is RunKind.CHAT
    match run.status:
        case RunStatus.ERROR:
            again = f"to try again: holdfast resume {run_id}{options}"
            return [again, _instead(run, options)] if session else [again]
        case RunStatus.RUNNING | RunStatus.CONTINUE if elsewhere or shared:
            return [f"it goes on there; to see it: holdfast watch {run_id}{options}"]
        case RunStatus.RUNNING | RunStatus.CONTINUE:
            return [f"to go on: {way_on(run, options)}"]
        case RunStatus.DONE if run.plan is not None and run.plan.verification:
            checks = [one.replace("_", " ") for one in run.plan.verification.values()]
            return [f"outcome: {', '.join(sorted(set(checks)))} ({len(checks)} checks)"]
        case RunStatus.DONE if session:
            return [f"to say more: {way_on(run, options)}"]
        case _:
            return []


def _instead(run: RunView, options: str) -> str:
    """What else may be done about a failed turn; while calls of it wait, no next one begins."""
    if is_active(run):
        return f"to end it instead: holdfast cancel {run.run_id}{options}"
    return f"to say something else: {way_on(run, options)}"


def is_active(run: RunView) -> bool:
    """Whether a step of it will move by itself or by an answer."""
    return any(step.status not in _INACTIVE for step in run.steps)


_INACTIVE = frozenset({StepStatus.FAILED, StepStatus.DONE, StepStatus.SKIPPED, StepStatus.STOPPED})

WAYS = {
    AfterFailure.RETRY: "try again",
    AfterFailure.SKIP: "go on without what failed",
    AfterFailure.STOP: "end the turn",
}


def _next_words(run: RunView, view: ConversationView, options: str) -> list[str]:
    match run.status:
        case RunStatus.ERROR:
            instead = f"to say something else: {way_on(run, options)} 'GOAL'"
            return [*_after_failure(run, view, options), instead]
        case RunStatus.DONE:
            return [f"to say more: {way_on(run, options)} 'GOAL'"]
        case RunStatus.RUNNING | RunStatus.CONTINUE:
            return [f"to go on: {way_on(run, options)}"]
        case RunStatus.PAUSE if run.held:
            return [f"to go on: {way_on(run, options)}"]
        case _:
            return []


def _words_to_server(run: RunView, view: ConversationView, options: str) -> list[str]:
    """The next goal is told over HTTP; a command for it there is none."""
    match run.status:
        case RunStatus.ERROR:
            return _after_failure(run, view, options)
        case RunStatus.RUNNING | RunStatus.CONTINUE:
            return [f"to see it: holdfast watch {run.run_id}{options}"]
        case RunStatus.PAUSE if run.held:
            return [f"to go on: holdfast resume {run.run_id}{options}"]
        case _:
            return []


def _after_failure(run: RunView, view: ConversationView, options: str) -> list[str]:
    again = f"holdfast resume {run.run_id}{options} --failed"
    return [f"to {WAYS[one]}: {again} {one}" for one in WAYS if one in view.choices]


def way_on(run: RunView, options: str = "") -> str:
    """The command that takes the run up again."""
    command = _COMMANDS[run.kind]
    return f"holdfast {command} {run.run_id}{options}"


_COMMANDS = {
    RunKind.PLAN: "continue",
    RunKind.CHAT: "chat --session",
    RunKind.CONVERSATION: "converse --id",
}


def usage_words(usage: Usage, requests: int) -> str:
    cost = "cost unknown" if usage.cost is None else f"${usage.cost:.4f}"
    tokens = f"{usage.input_tokens} tokens in, {usage.output_tokens} out"
    times = f"{requests} model request{'s' if requests != 1 else ''}"
    return f"{times}; {tokens}; {cost}; {usage.seconds:.1f} s"

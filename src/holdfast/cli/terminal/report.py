"""Where a run stands: for scripts as one JSON object, for people with the way to go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.text import Text

from holdfast.cli.shell import CANCELLED, OK, WAITS_FOR_PERSON, WAITS_FOR_RESUME
from holdfast.cli.terminal.question import question_json, say_open
from holdfast.cli.terminal.screen import say, status_text
from holdfast.cli.terminal.untrusted_text import rows
from holdfast.core.agent.state import ReactState
from holdfast.core.conversation import recovery
from holdfast.core.conversation.briefing import came_of, final_answer, last_tasks
from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.journal.port import QuestionRow
from holdfast.model.conversation import AfterFailure
from holdfast.model.message import Usage
from holdfast.model.run import RunStatus
from holdfast.runs.plan_instance import task_statuses
from holdfast.runtime.machines import machine_of
from holdfast.views.stories.text import named, visible

EXITS: Mapping[str, int] = {
    RunStatus.ERROR: WAITS_FOR_RESUME,
    RunStatus.PAUSE: WAITS_FOR_PERSON,
    RunStatus.CANCELLING: CANCELLED,
    RunStatus.CANCELLED: CANCELLED,
}


def exit_code(status: str) -> int:
    """What a run's status means to whoever started the command."""
    return EXITS.get(status, OK)


def standing_json(state: RunState, questions: Sequence[QuestionRow] = ()) -> dict[str, Any]:
    asked = {"questions": [question_json(row) for row in questions]}
    if isinstance(state, PlanState):
        return {**_plan_json(state), **asked}
    if isinstance(state, ReactState):
        return {**_session_json(state), **asked}
    assert isinstance(state, ConversationState)
    return {**_conversation_json(state), **asked}


def _plan_json(state: PlanState) -> dict[str, Any]:
    context = state.main_task.context
    return {
        "status": state.status.value,
        "instance_id": state.run_id,
        "plan_id": state.plan_id,
        "tasks": task_statuses(state),
        "error_info": context.get("error_info"),
        "failed_listener_id": context.get("failed_listener_id"),
        "verification": dict(state.verification),
    }


def _session_json(state: ReactState) -> dict[str, Any]:
    return {
        "status": state.status.value,
        "session_id": state.run_id,
        "agent_id": state.agent.agent_id,
        "turn": state.turn,
        "answer": state.answer,
        "error": state.error or None,
        "usage": asdict(state.usage),
    }


def _conversation_json(state: ConversationState) -> dict[str, Any]:
    return {
        "status": state.status.value,
        "conversation_id": state.run_id,
        "phase": state.phase.value,
        "turn": state.turn,
        "input": state.text,
        "progress": state.progress,
        "tasks": [asdict(state.tasks[one]) for one in state.order],
        "answer": final_answer(state),
        "error": state.error or None,
    }


NOT_KEPT = "kept in memory: the run and its questions end with this command"
"""Instead of a command that another process would find nothing for."""


def say_standing(
    state: RunState,
    questions: Sequence[QuestionRow],
    options: str = "",
    *,
    kept: bool = True,
    elsewhere: bool = False,
) -> None:
    """Where it stands, why, and how to go on; `options` are repeated in the commands shown.

    Of a run that is not `kept` no command is shown: there is none that could work. One that is
    `elsewhere` is driven by a server, which `converse` does not reach.
    """
    say(Text.assemble(f"{state.run_id} is ", status_text(state.status.value)))
    if state.status is RunStatus.ERROR:
        say(*rows(visible(machine_of(state).error(state), 2000), "  │ ", "  │ "))
    if isinstance(state, ConversationState) and state.status is RunStatus.DONE:
        say_results(state)
    say_open(questions, options if kept else None)
    steps = next_steps(state, options, elsewhere=elsewhere)
    if kept or not (steps or questions):
        say(*(f"  {command}" for command in steps))
    else:
        say(f"  {NOT_KEPT}")


def say_results(state: ConversationState) -> None:
    """What it was all for, whole: the results of the tasks that no other waited for, and what
    was skipped."""
    if state.answer:
        say(*rows(state.answer, "  ", "  "))
    for task in last_tasks(state):
        if task.result not in (None, {}, ""):
            say(*rows(came_of(task), f"  {named(task.id)}: ", "  │ "))


def next_steps(state: RunState, options: str = "", *, elsewhere: bool = False) -> list[str]:
    if isinstance(state, ConversationState):
        words = _words_to_server if elsewhere else _next_words
        return words(state, options)
    run_id = state.run_id
    session = isinstance(state, ReactState)
    match state.status:
        case RunStatus.ERROR:
            again = f"to try again: holdfast resume {run_id}{options}"
            return [again, _instead(state, options)] if session else [again]
        case RunStatus.RUNNING | RunStatus.CONTINUE if elsewhere:
            return [f"it goes on there; to see it: holdfast watch {run_id}{options}"]
        case RunStatus.RUNNING | RunStatus.CONTINUE:
            return [f"to go on: {way_on(state, options)}"]
        case RunStatus.DONE if isinstance(state, PlanState) and state.verification:
            checks = [verdict.replace("_", " ") for verdict in state.verification.values()]
            return [f"outcome: {', '.join(sorted(set(checks)))} ({len(checks)} checks)"]
        case RunStatus.DONE if session:
            return [f"to say more: {way_on(state, options)}"]
        case _:
            return []


def _instead(state: RunState, options: str) -> str:
    """What else may be done about a failed turn; while calls of it wait, no next one begins."""
    if state.active:
        return f"to end it instead: holdfast cancel {state.run_id}{options}"
    return f"to say something else: {way_on(state, options)}"


WAYS = {
    AfterFailure.RETRY: "try again",
    AfterFailure.SKIP: "go on without what failed",
    AfterFailure.STOP: "end the turn",
}


def _next_words(state: ConversationState, options: str) -> list[str]:
    match state.status:
        case RunStatus.ERROR:
            instead = f"to say something else: {way_on(state, options)} 'GOAL'"
            return [*_after_failure(state, options), instead]
        case RunStatus.DONE:
            return [f"to say more: {way_on(state, options)} 'GOAL'"]
        case RunStatus.RUNNING | RunStatus.CONTINUE:
            return [f"to go on: {way_on(state, options)}"]
        case RunStatus.PAUSE if state.held:
            return [f"to go on: {way_on(state, options)}"]
        case _:
            return []


def _words_to_server(state: ConversationState, options: str) -> list[str]:
    """The next goal is told over HTTP; a command for it there is none."""
    match state.status:
        case RunStatus.ERROR:
            return _after_failure(state, options)
        case RunStatus.RUNNING | RunStatus.CONTINUE:
            return [f"to see it: holdfast watch {state.run_id}{options}"]
        case RunStatus.PAUSE if state.held:
            return [f"to go on: holdfast resume {state.run_id}{options}"]
        case _:
            return []


def _after_failure(state: ConversationState, options: str) -> list[str]:
    again = f"holdfast resume {state.run_id}{options} --failed"
    return [f"to {WAYS[one]}: {again} {one}" for one in WAYS if one in recovery.choices(state)]


def way_on(state: RunState, options: str = "") -> str:
    """The command that takes the run up again."""
    match state:
        case ReactState():
            command = "chat --session"
        case ConversationState():
            command = "converse --id"
        case _:
            command = "continue"
    return f"holdfast {command} {state.run_id}{options}"


def usage_words(usage: Usage, requests: int) -> str:
    cost = "cost unknown" if usage.cost is None else f"${usage.cost:.4f}"
    tokens = f"{usage.input_tokens} tokens in, {usage.output_tokens} out"
    times = f"{requests} model request{'s' if requests != 1 else ''}"
    return f"{times}; {tokens}; {cost}; {usage.seconds:.1f} s"

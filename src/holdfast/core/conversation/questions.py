"""What a task of a conversation asks people, and nothing else waits for the answer."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.conversation.builder import Draft
from holdfast.core.conversation.state import CONFIRM, results_before
from holdfast.core.interactions.listing import listed_results, listed_tasks
from holdfast.core.interactions.opening import (
    AS_USUAL,
    Question,
    approval_question,
    loses,
    missing_question,
    open_question,
    unknown_question,
)
from holdfast.core.run.state import EMPTY
from holdfast.model import conversation_events as v
from holdfast.model.commands import ToolFacts
from holdfast.model.conversation import SubTask
from holdfast.model.form import Form
from holdfast.model.interaction import (
    RUN_AGAIN,
    Asking,
    InteractionAction,
    InteractionOption,
    InteractionType,
)
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.values import Json

_FAILURE_OPTIONS = (
    InteractionOption(RUN_AGAIN, "Try again", InteractionAction.APPROVE_AND_EXECUTE),
    InteractionOption("skip", "Go on without it", InteractionAction.SKIP),
    InteractionOption("stop", "Stop the conversation", InteractionAction.TERMINATE),
)


_CONFIRM_OPTIONS = (
    InteractionOption("run", "Run these tasks", InteractionAction.APPROVE_AND_EXECUTE),
    InteractionOption(
        "other",
        "Ask for other tasks",
        InteractionAction.RETRY_WITH_FEEDBACK,
        requires_input=True,
        input_prompt="What should be different?",
    ),
    InteractionOption("stop", "Stop the conversation", InteractionAction.TERMINATE),
)


def ask_to_confirm(draft: Draft) -> None:
    """All the tasks as the model made them; nothing of them has begun."""
    tasks: list[Json] = [_shown_task(draft.state.tasks[one]) for one in draft.state.order]
    question = Question(
        "confirm",
        InteractionType.USER_CHOICE,
        "Run these tasks?",
        draft.state.text,
        _CONFIRM_OPTIONS,
        context={"tasks": tasks},
        asking=Asking(details=listed_tasks(tasks)),
    )
    open_question(draft, CONFIRM, question)


def _shown_task(task: SubTask) -> dict[str, Json]:
    return {
        "id": task.id,
        "description": task.description,
        "type": task.type,
        "args": dict(task.args),
        "dependencies": list(task.dependencies),
    }


def ask_missing(
    draft: Draft, step_id: str, form: Form, args: Mapping[str, Json], version: str
) -> None:
    """Whoever is asked sees what the tasks before have returned."""
    task = draft.task(step_id)
    results = results_before(draft.state, task)
    context: dict[str, Json] = {"results": dict(results)} if results else {}
    asking = Asking(details=listed_results(results)) if results else AS_USUAL
    outdated = [one for one in draft.step(step_id).provided if one not in args]
    title = _title(draft, step_id)
    question = missing_question(form, title, asking, context, version=version, outdated=outdated)
    _ask(draft, step_id, question)


def ask_approval(
    draft: Draft, step_id: str, args: Mapping[str, Json], tool: ToolFacts, consent: str
) -> None:
    name = draft.task(step_id).type
    _ask(draft, step_id, approval_question(draft, step_id, name, args, tool, consent))


def ask_unknown(draft: Draft, step_id: str, reason: str) -> None:
    """Only a person can find out."""
    args = draft.step(step_id).args or EMPTY
    if loses(draft, step_id, reason):
        what = draft.task(step_id).type or draft.task(step_id).id
        _ask(draft, step_id, unknown_question(what, args, reason))


def ask_about_failure(draft: Draft, step_id: str, failure: Failure) -> None:
    question = Question(
        "failed",
        InteractionType.USER_CHOICE,
        f"{_title(draft, step_id)} failed",
        "What shall become of it?",
        _FAILURE_OPTIONS,
        context={"error": failure.message},
    )
    _ask(draft, step_id, question)


def _title(draft: Draft, step_id: str) -> str:
    return f"Task {draft.task(step_id).id}"


def _ask(draft: Draft, step_id: str, question: Question) -> None:
    refusal = open_question(draft, step_id, question)
    if refusal is not None:
        draft.emit(v.TaskBroke(step_id, Failure(FailureKind.PERMANENT, refusal)))

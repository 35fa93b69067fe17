"""What a task of a conversation asks people, and nothing else waits for the answer."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.conversation.builder import Builder
from holdfast.core.conversation.state import CONFIRM, results_before
from holdfast.core.interactions.calls import (
    AS_USUAL,
    Question,
    approval_question,
    loses,
    missing_question,
    open_question,
    unknown_question,
)
from holdfast.core.interactions.listing import listed_results, listed_tasks
from holdfast.core.run.state import EMPTY
from holdfast.i18n.message import msg
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
    InteractionOption(RUN_AGAIN, msg("Try again"), InteractionAction.APPROVE_AND_EXECUTE),
    InteractionOption("skip", msg("Go on without it"), InteractionAction.SKIP),
    InteractionOption("stop", msg("Stop the conversation"), InteractionAction.TERMINATE),
)


_CONFIRM_OPTIONS = (
    InteractionOption("run", msg("Run these tasks"), InteractionAction.APPROVE_AND_EXECUTE),
    InteractionOption(
        "other",
        msg("Ask for other tasks"),
        InteractionAction.RETRY_WITH_FEEDBACK,
        requires_input=True,
        input_prompt=msg("What should be different?"),
    ),
    InteractionOption("stop", msg("Stop the conversation"), InteractionAction.TERMINATE),
)


def ask_to_confirm(builder: Builder) -> None:
    """All the tasks as the model made them; nothing of them has begun."""
    tasks: list[Json] = [_shown_task(builder.state.tasks[one]) for one in builder.state.order]
    question = Question(
        "confirm",
        InteractionType.USER_CHOICE,
        msg("Run these tasks?"),
        builder.state.text,
        _CONFIRM_OPTIONS,
        context={"tasks": tasks},
        asking=Asking(details=listed_tasks(tasks)),
    )
    open_question(builder, CONFIRM, question)


def _shown_task(task: SubTask) -> dict[str, Json]:
    return {
        "id": task.id,
        "description": task.description,
        "type": task.type,
        "args": dict(task.args),
        "dependencies": list(task.dependencies),
    }


def ask_missing(
    builder: Builder, step_id: str, form: Form, args: Mapping[str, Json], version: str
) -> None:
    """The person asked sees what the tasks before have returned."""
    task = builder.task(step_id)
    results = results_before(builder.state, task)
    context: dict[str, Json] = {"results": dict(results)} if results else {}
    asking = Asking(details=listed_results(results)) if results else AS_USUAL
    outdated = [one for one in builder.step(step_id).provided if one not in args]
    title = _title(builder, step_id)
    question = missing_question(form, title, asking, context, version=version, outdated=outdated)
    _ask(builder, step_id, question)


def ask_approval(
    builder: Builder, step_id: str, args: Mapping[str, Json], tool: ToolFacts, consent: str
) -> None:
    name = builder.task(step_id).type
    _ask(builder, step_id, approval_question(builder, step_id, name, args, tool, consent))


def ask_unknown(builder: Builder, step_id: str, reason: str) -> None:
    """Only a person can find out."""
    args = builder.step(step_id).args or EMPTY
    if loses(builder, step_id, reason):
        what = builder.task(step_id).type or builder.task(step_id).id
        _ask(builder, step_id, unknown_question(what, args, reason))


def ask_about_failure(builder: Builder, step_id: str, failure: Failure) -> None:
    question = Question(
        "failed",
        InteractionType.USER_CHOICE,
        msg("Task {id} failed", id=builder.task(step_id).id),
        msg("What shall become of it?"),
        _FAILURE_OPTIONS,
        context={"error": failure.message},
    )
    _ask(builder, step_id, question)


def _title(builder: Builder, step_id: str) -> str:
    return msg("Task {id}", id=builder.task(step_id).id)


def _ask(builder: Builder, step_id: str, question: Question) -> None:
    refusal = open_question(builder, step_id, question)
    if refusal is not None:
        builder.emit(v.TaskBroke(step_id, Failure(FailureKind.PERMANENT, refusal)))

"""What people's answers do in a session, and what the clock does when nobody answers.

| action              | a call                                   | a question of its own     |
|---------------------|------------------------------------------|---------------------------|
| APPROVE_AND_EXECUTE | runs exactly what was shown, or edited   | the model hears the choice |
| PROVIDE_INFO        | its arguments are completed, and it runs | the model hears the data  |
| RETRY_WITH_FEEDBACK | does not run; the model thinks again     | the same                  |
| REJECT_WITH_REASON  | does not run; the reason is its result   | the model hears the refusal |
| SKIP                | does not run; "skipped" is its result    | the model goes on without |
| TERMINATE           | nothing more runs                        | the same                  |
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.agent.builder import Builder
from holdfast.core.interactions.answers import NOBODY, expiry, take
from holdfast.core.run.four_eyes import CLOCK, option_of
from holdfast.core.run.state import QuestionState
from holdfast.core.run.steps import terminate
from holdfast.language.display import unquoted
from holdfast.language.strict import canonical_json
from holdfast.model.commands import Answer
from holdfast.model.interaction import InteractionAction
from holdfast.model.values import Json

_UNRUN = {
    InteractionAction.REJECT_WITH_REASON: "rejected",
    InteractionAction.RETRY_WITH_FEEDBACK: "retry",
    InteractionAction.SKIP: "skipped",
}


def answer(builder: Builder, command: Answer) -> None:
    judged = take(builder, command)
    if judged is not None:
        question = builder.state.questions[command.question_id]
        _follow(builder, question, judged.action, command.by, judged.reason, judged.event.values)


def expire(builder: Builder, question_id: str) -> None:
    """The default option is taken, else the model is told that nobody answered."""
    question = builder.state.questions[question_id]
    expired, action = expiry(question)
    builder.emit(expired)
    if action is not None:
        _follow(builder, question, action, CLOCK, NOBODY, expired.values)
    elif _is_call(builder, question):
        builder.end(question.step_id, "expired", {"error": NOBODY})
    else:
        builder.end(question.step_id, "expired", _told(builder, question, NOBODY))


def _follow(
    builder: Builder,
    question: QuestionState,
    action: InteractionAction,
    by: str,
    reason: str,
    values: Mapping[str, Json],
) -> None:
    if action is InteractionAction.TERMINATE:
        terminate(builder, by, reason)
    elif action in _UNRUN:
        _end_unrun(builder, question, _UNRUN[action], by, reason)
    elif not _is_call(builder, question):
        words = f"{by} answered: {canonical_json(dict(values))}"
        builder.end(question.step_id, "provided", _told(builder, question, words))


def _is_call(builder: Builder, question: QuestionState) -> bool:
    return bool(builder.call(question.step_id).tool)


_TOLD = {
    "rejected": "It was not run: {by} refused.",
    "retry": "It was not run: {by} asks for something else. Think again.",
    "skipped": "It was not run: {by} skipped it. Go on without it.",
}
_HEARD = {
    "rejected": "{by} refused.",
    "retry": "{by} asks you to think again.",
    "skipped": "{by} skipped this. Go on without it.",
}


def _end_unrun(builder: Builder, question: QuestionState, how: str, by: str, reason: str) -> None:
    """Nothing reached the executor; the model learns who decided so, and why."""
    step_id = question.step_id
    if _is_call(builder, question):
        told: dict[str, Json] = {how: _TOLD[how].format(by=by)}
        builder.end(step_id, how, {**told, "reason": reason} if reason else told)
        return
    words = f"{_HEARD[how].format(by=by)} {reason}".rstrip()
    builder.end(step_id, how, _told(builder, question, words))


def _told(builder: Builder, question: QuestionState, words: str) -> str:
    """What the model hears: what was asked, which option was chosen, and what came of it."""
    request = question.request
    asked = "\n".join(filter(None, (request.message, request.details)))
    label = _chosen_label(builder.state.questions[request.request_id])
    lines = (asked and f"Asked: {asked}", label and f"Chosen: “{unquoted(label)}”")
    return "\n".join([*filter(None, lines), f"[{request.title}] {words}"])


def _chosen_label(question: QuestionState) -> str:
    """Empty where it says no more than the option's id, which is told anyway."""
    chosen = option_of(question, question.option_id)
    if chosen is None or chosen.label.lower() == chosen.option_id.lower():
        return ""
    return chosen.label

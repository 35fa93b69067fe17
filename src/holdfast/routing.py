"""Which question each provided value belongs to.

`continue_plan` gives values by name; they go to the open forms of a run and of the child
runs below it. Nothing is answered unless everything fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from holdfast.core.forms.validation import validate
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import QuestionState
from holdfast.errors import InvalidAnswer, NotAllowed
from holdfast.journal.port import QuestionQuery
from holdfast.model.interaction import InteractionAction
from holdfast.model.values import Json
from holdfast.runtime.engine import Engine

Asked: TypeAlias = tuple[str, QuestionState]
Routed: TypeAlias = tuple[str, QuestionState, dict[str, Json]]


async def route(engine: Engine, state: PlanState, params: Mapping[str, Json]) -> list[Routed]:
    """Which open form each value belongs to; all are checked before any is answered."""
    opened = await _questions(engine, state, "open")
    asked = [one for one in opened if _takes_values(one[1])]
    if not asked:
        answered = await _questions(engine, state, "answered")
        return _already_answered(state, params, opened, answered)
    _refuse_ambiguous(asked, params)
    answers = []
    for run_id, question in asked:
        names = {field.name for field in question.request.form.fields}
        values = {name: value for name, value in params.items() if name in names}
        if values or len(asked) == 1:
            answers.append((run_id, question, values))
    _refuse_unknown(asked, params)
    if not answers:
        wanted = {field.name: "needed" for _, one in asked for field in one.request.form.fields}
        raise InvalidAnswer(f"nothing was provided; wanted: {', '.join(wanted)}", wanted)
    _refuse_invalid(answers)
    return answers


async def _questions(engine: Engine, state: PlanState, status: str) -> list[Asked]:
    """The questions of a run and of the child runs below it."""
    query = QuestionQuery(status=frozenset({status}), root_id=state.root_id, limit=1000)
    found = []
    for row in await engine.journal.questions(query):
        if row.run_id != state.run_id and not row.run_id.startswith(f"{state.run_id}."):
            continue
        owner = await engine.state(row.run_id)
        question = owner.questions.get(row.question_id)
        if question is not None:
            found.append((row.run_id, question))
    return found


def _takes_values(question: QuestionState) -> bool:
    """A form to fill in; what only asks for a decision is answered by id."""
    request = question.request
    actions = {option.action for option in request.options}
    return bool(request.form.fields) and InteractionAction.PROVIDE_INFO in actions


def _already_answered(
    state: PlanState,
    params: Mapping[str, Json],
    opened: list[Asked],
    answered: list[Asked],
) -> list[Routed]:
    """No form is open: the same answer again, a lost race, or a mistake."""
    matching = [
        (run_id, question)
        for run_id, question in answered
        if params and set(params) <= {field.name for field in question.request.form.fields}
    ]
    if not matching and opened:
        ids = ", ".join(question.request.request_id for _, question in opened)
        message = f"No paused listener found: what is open asks for a decision, answer by id: {ids}"
        raise NotAllowed(message)
    if not matching:
        message = f"Plan instance is not in PAUSE status, current: {state.status.value}"
        raise NotAllowed(message)
    run_id, latest = max(matching, key=lambda one: one[1].closed_at or 0.0)
    return [(run_id, latest, dict(params))]


def _refuse_ambiguous(asked: list[Asked], params: Mapping[str, Json]) -> None:
    for name in params:
        ids = [
            question.request.request_id
            for _, question in asked
            if name in {field.name for field in question.request.form.fields}
        ]
        if len(ids) > 1:
            raise InvalidAnswer(
                f"{name} is asked by several questions; answer them by id: {', '.join(ids)}",
                {name: "asked by several questions"},
            )


def _refuse_unknown(asked: list[Asked], params: Mapping[str, Json]) -> None:
    known = {field.name for _, question in asked for field in question.request.form.fields}
    unknown = {name: "nobody asks for this" for name in params if name not in known}
    if unknown:
        wanted = ", ".join(sorted(known))
        raise InvalidAnswer(f"{', '.join(unknown)}: not asked for (wanted: {wanted})", unknown)


def _refuse_invalid(answers: list[Routed]) -> None:
    errors: dict[str, str] = {}
    for _, question, values in answers:
        errors |= validate(question.request.form, values).errors
    if errors:
        raise InvalidAnswer("the parameters do not fit the form", errors)

"""Which question each provided value belongs to.

`continue_plan` gives values by name; they go to the open forms of a run and of the child
runs below it. Nothing is answered unless everything fits.

Several forms are several answers, and one may be on disk when the next one fails. A caller who then
gives everything again repeats the answers that were taken, which are judged as such, and gives
the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from holdfast.core.interactions.answers import option_for_data
from holdfast.core.plan.state import PlanState, refused, remedy
from holdfast.core.run.state import QuestionState
from holdfast.errors import InvalidAnswer, NotAllowed
from holdfast.forms.validation import validate
from holdfast.i18n.message import joined, msg, term
from holdfast.journal.port import questions_below
from holdfast.model.run import RunStatus
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
        repeated = _already_answered(state, params, opened, answered)
        await _refuse_another_value(engine, state, repeated)
        return repeated
    _refuse_ambiguous(asked, params)
    answers = await _repeated(engine, state, asked, params)
    for run_id, question in asked:
        values = _fitting(question, params)
        if values or len(asked) == 1:
            answers.append((run_id, question, values))
    if not answers:
        wanted = {field.name: "needed" for _, one in asked for field in one.request.form.fields}
        raise InvalidAnswer(
            msg("nothing was provided; wanted: {names}", names=", ".join(wanted)), wanted
        )
    _refuse_invalid(answers)
    return answers


async def _questions(engine: Engine, state: PlanState, status: str) -> list[Asked]:
    """The questions of a run and of the child runs below it."""
    found = []
    statuses = frozenset({status})
    async for row in questions_below(engine.journal, state.run_id, state.root_id, statuses):
        owner = await engine.state(row.run_id)
        question = owner.questions.get(row.question_id)
        if question is not None:
            found.append((row.run_id, question))
    return found


def _takes_values(question: QuestionState) -> bool:
    """A form to fill in; what asks for a decision as well is answered by id."""
    return bool(question.request.form.fields) and option_for_data(question) is not None


def _already_answered(
    state: PlanState,
    params: Mapping[str, Json],
    opened: list[Asked],
    answered: list[Asked],
) -> list[Routed]:
    """No form is open: the same answer again, a lost race, or a mistake."""
    repeated, unknown = _taken_before(params, answered)
    if repeated and not unknown:
        return repeated
    if opened:
        ids = ", ".join(question.request.request_id for _, question in opened)
        message = msg(
            "No paused listener found: what is open asks for a decision, answer by id: {ids}",
            ids=ids,
        )
        raise NotAllowed(message)
    raise NotAllowed(_not_paused(state))


async def _refuse_another_value(engine: Engine, state: PlanState, repeated: list[Routed]) -> None:
    """A value was refused, and here is another one: the form must be asked again first."""
    for run_id, question, values in repeated:
        owner = await engine.state(run_id)
        if owner.status is not RunStatus.ERROR or not _differs(values, question):
            continue
        if names := refused(owner.steps[question.step_id]):
            raise NotAllowed(joined("; ", (_not_paused(state), remedy(names))))


def _differs(values: Mapping[str, Json], question: QuestionState) -> bool:
    return any(question.data.get(name) != value for name, value in values.items())


def _not_paused(state: PlanState) -> str:
    return msg(
        "Plan instance is not in PAUSE status, current: {status}", status=term(state.status.value)
    )


async def _repeated(
    engine: Engine, state: PlanState, asked: list[Asked], params: Mapping[str, Json]
) -> list[Routed]:
    """The answers among the values that were taken before, the forms still open aside."""
    known = {field.name for _, question in asked for field in question.request.form.fields}
    others = {name: value for name, value in params.items() if name not in known}
    if not others:
        return []
    answered = [one for one in await _questions(engine, state, "answered") if _takes_values(one[1])]
    repeated, unknown = _taken_before(others, answered)
    _refuse_unknown(known, unknown)
    return repeated


def _taken_before(
    params: Mapping[str, Json], answered: list[Asked]
) -> tuple[list[Routed], dict[str, Json]]:
    """The answered forms that the values fit, the fullest and newest first, and what fits none."""
    found: list[Routed] = []
    left = dict(params)
    while left:
        fitting = [(*one, _fitting(one[1], left)) for one in answered]
        fitting = [one for one in fitting if one[2]]
        if not fitting:
            break
        best = max(fitting, key=lambda one: (len(one[2]), one[1].closed_at or 0.0))
        found.append(best)
        left = {name: value for name, value in left.items() if name not in best[2]}
    return found, left


def _fitting(question: QuestionState, params: Mapping[str, Json]) -> dict[str, Json]:
    names = {field.name for field in question.request.form.fields}
    return {name: value for name, value in params.items() if name in names}


def _refuse_ambiguous(asked: list[Asked], params: Mapping[str, Json]) -> None:
    for name in params:
        ids = [
            question.request.request_id
            for _, question in asked
            if name in {field.name for field in question.request.form.fields}
        ]
        if len(ids) > 1:
            raise InvalidAnswer(
                msg(
                    "{name} is asked by several questions; answer them by id: {ids}",
                    name=name,
                    ids=", ".join(ids),
                ),
                {name: msg("asked by several questions")},
            )


def _refuse_unknown(known: Collection[str], unknown: Collection[str]) -> None:
    if unknown:
        wanted = ", ".join(sorted(known))
        message = msg(
            "{names}: not asked for (wanted: {wanted})", names=", ".join(unknown), wanted=wanted
        )
        raise InvalidAnswer(message, dict.fromkeys(unknown, msg("nobody asks for this")))


def _refuse_invalid(answers: list[Routed]) -> None:
    errors: dict[str, str] = {}
    for _, question, values in answers:
        errors |= validate(question.request.form, values).errors
    if errors:
        raise InvalidAnswer(msg("the parameters do not fit the form"), errors)

"""Diagnoses by rules: what is wrong, in words of ours.

What others said of a failure is evidence and stands there, as data: a summary names only tools,
listeners and arguments of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from holdfast.core.plan.state import PlanState, TaskFacts
from holdfast.core.repair.causes import cause_of
from holdfast.i18n.message import msg
from holdfast.model.repair import Diagnosis, Evidence
from holdfast.model.retry import Cause, Failure
from holdfast.repair.evidence import tells_of_failure
from holdfast.repair.failed_work import FailedWork
from holdfast.repair.readings import absent
from holdfast.repair.rules_arguments import undeclared
from holdfast.repair.surroundings import Surroundings

MOST_CITED: Final = 3


def diagnosis_of(
    state: PlanState,
    listener_id: str,
    failure: Failure,
    evidence: Sequence[Evidence],
    surroundings: Surroundings,
) -> Diagnosis:
    """Where the plan itself shows what it lacks, that counts and not the words of the failure."""
    cited = tuple(one for one in evidence if tells_of_failure(one))[-MOST_CITED:]
    cause = cause_of(failure)
    if listener_id not in state.plan.listeners:
        return Diagnosis(cause, _SUMMARIES[cause](state.plan.plan.name), cited, _source(cause))
    work = FailedWork(state, listener_id, failure, surroundings)
    cause = _evident(work) or cause
    return Diagnosis(cause, _summary(work, cause), cited, _source(cause))


def _summary(work: FailedWork, cause: Cause) -> str:
    what = _what(work)
    if cause is Cause.DOUBT:
        return _in_doubt(work, what)
    if cause is Cause.ARGUMENT and work.facts is not None and (names := undeclared(work)):
        return msg(
            "{tool} does not know {names} any more: mend the tool's declaration, then resume the "
            "run, or mend the plan as well and bring the run to it",
            tool=what,
            names=", ".join(names),
        )
    return _SUMMARIES[cause](what)


def _source(cause: Cause) -> str:
    return f"rule:{cause.value}"


def _what(work: FailedWork) -> str:
    """The tool by its name; anything else by its listener's id."""
    return work.tool or work.id


def _evident(work: FailedWork) -> Cause | None:
    output = work.listener.listener.success_output
    if work.step.carried is not None and output is not None:
        facts = TaskFacts(work.state.tasks, {"result": work.step.carried[0]})
        return Cause.RESULT_SHAPE if absent(dict(output.context), facts) else None
    unsent = work.step.args is None and bool(absent(dict(work.args), work.state))
    return Cause.ARGUMENT if unsent else None


def _in_doubt(work: FailedWork, what: str) -> str:
    looking = next(_lookers(work), None)
    if looking is None:
        return msg("it is not known whether {tool} did its work", tool=what)
    return msg(
        "it is not known whether {tool} did its work: {other} could tell", tool=what, other=looking
    )


def _lookers(work: FailedWork) -> Iterator[str]:
    """Tools that only look, and need nothing that the call does not have."""
    for name, facts in work.callable.items():
        if work.surroundings.looks(name) and facts.required and facts.required <= work.sent.keys():
            yield name


_SUMMARIES: Final[Mapping[Cause, Callable[[str], str]]] = {
    Cause.OUTAGE: lambda tool: msg("{tool} is out of order, and may recover by itself", tool=tool),
    Cause.RATE_LIMIT: lambda tool: msg("{tool} is called more often than it allows", tool=tool),
    Cause.CREDENTIALS: lambda tool: msg(
        "{tool} does not accept the credentials: they have to be renewed", tool=tool
    ),
    Cause.RIGHTS: lambda tool: msg("calling {tool} is not allowed here", tool=tool),
    Cause.ARGUMENT: lambda tool: msg("{tool} cannot be given what the plan gives it", tool=tool),
    Cause.PRECONDITION: lambda tool: msg("{tool} lacks something that must be first", tool=tool),
    Cause.CONFLICT: lambda tool: msg("{tool} collides with something that is there", tool=tool),
    Cause.RESULT_SHAPE: lambda tool: msg(
        "{tool} did its work, but its result is not what the plan reads", tool=tool
    ),
    Cause.WRONG_RESULT: lambda tool: msg(
        "{tool} does not find what the plan was to bring about: run that again", tool=tool
    ),
    Cause.DOUBT: lambda tool: msg("it is not known whether {tool} did its work", tool=tool),
    Cause.REFUSED: lambda tool: msg("a person refused {tool}", tool=tool),
    Cause.PLAN: lambda tool: msg("the plan itself cannot go on at {tool}", tool=tool),
    Cause.UNKNOWN: lambda tool: msg("{tool} failed, and no rule knows why", tool=tool),
}

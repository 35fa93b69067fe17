"""What rules make of a failure, without any model: a diagnosis by its cause, and candidates.

| cause | what may help |
|---|---|
| argument | another reading, another name or form, a person's word |
| precondition, conflict | another value of the run, a call before it, a person's word |
| result_shape | another field of the result that is kept; another reading; another look |
| unknown | another reading, where the plan itself shows that one is lacking |
| outage, rate_limit | nothing: waiting is for the retries |
| credentials, rights, refused | nothing, ever: a person |
| wrong_result, doubt, plan | nothing: a person, who may run it again or look |

Candidates come from the plan, the schemas of tools as they are now, and the run's own data. An
error's text only ever selects among these (`mentions`), and no word of it gets into an operation
or a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from typing import Final, TypeAlias

from holdfast.core.plan.fitting import refused_in
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.state import operations_digest
from holdfast.model.repair import Diagnosis, PlanPatch
from holdfast.model.retry import Cause, Failure
from holdfast.repair.drafts import Draft
from holdfast.repair.failed_work import FailedWork
from holdfast.repair.rules_arguments import arguments
from holdfast.repair.rules_preconditions import preconditions
from holdfast.repair.rules_readings import misread
from holdfast.repair.rules_results import results, unread
from holdfast.repair.surroundings import Surroundings

MOST_CANDIDATES: Final = 5

Rule: TypeAlias = Callable[[FailedWork], Iterator[Draft]]

RULES: Final[Mapping[Cause, tuple[Rule, ...]]] = {
    Cause.ARGUMENT: (misread, arguments),
    Cause.PRECONDITION: (misread, preconditions),
    Cause.CONFLICT: (misread, preconditions),
    Cause.RESULT_SHAPE: (results, misread, unread),
    Cause.PLAN: (results, misread),
    Cause.UNKNOWN: (results, misread),
}
"""For every other cause there is nothing that a patch could do; for the last two only what the plan
itself shows to be lacking."""


def candidates(
    state: PlanState,
    listener_id: str,
    failure: Failure,
    diagnosis: Diagnosis,
    surroundings: Surroundings,
) -> tuple[PlanPatch, ...]:
    """At most five, the best first, `k1` to `k5`; none that was refused in this run or did not
    help."""
    found = drafts(state, listener_id, failure, diagnosis.cause, surroundings)
    base = state.plan.digest
    return tuple(
        PlanPatch(f"k{number}", base, one.operations, one.reason, source=f"rule:{one.rule}")
        for number, one in enumerate(found, 1)
    )


def drafts(
    state: PlanState, listener_id: str, failure: Failure, cause: Cause, surroundings: Surroundings
) -> tuple[Draft, ...]:
    """The surest first; of those that would change the same, the first."""
    if not any(one.listener_id == listener_id for one in state.plan.plan.listeners):
        return ()  # a check of the outcome, or the plan as a whole
    work = FailedWork(state, listener_id, failure, surroundings)
    found = chain.from_iterable(rule(work) for rule in RULES.get(cause, ()))
    best: dict[str, Draft] = {}
    for one in sorted(found, key=lambda one: one.rank):
        best.setdefault(operations_digest(one.operations), one)
    refused = refused_in(state)
    kept = (one for name, one in best.items() if name not in refused)
    return tuple(islice(kept, MOST_CANDIDATES))

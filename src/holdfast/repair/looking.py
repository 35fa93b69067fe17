"""A look at a failure without any model: what is wrong, and the best repair that is sound.

Proven lessons come before rules. Each candidate is checked and rehearsed; what is not sound goes.
The first of those that are left is proposed. Whether a model is asked before that depends on what
it could add: nothing where waiting or a person is the only remedy, where a lesson has proven itself
or where the error itself leaves one candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from holdfast.core.plan.fitting import brings_calls, refused_in
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.state import operations_digest
from holdfast.core.run.state import EMPTY
from holdfast.i18n.message import msg
from holdfast.model.record import record, replacing
from holdfast.model.repair import (
    LEVELS,
    Diagnosis,
    Evidence,
    Lesson,
    LessonState,
    Level,
    Look,
    PlanPatch,
    Proposal,
    RepairMode,
    RepairPolicy,
    Verdict,
)
from holdfast.model.retry import Cause, Failure
from holdfast.model.values import Json
from holdfast.repair.checks import judge
from holdfast.repair.diagnoses import diagnosis_of
from holdfast.repair.drafts import Draft, Rank
from holdfast.repair.lessons import id_of
from holdfast.repair.refusals import Refusal
from holdfast.repair.relative import absolute
from holdfast.repair.rules import MOST_CANDIDATES, drafts
from holdfast.repair.surroundings import Surroundings
from holdfast.repair.words import described

_THINKS: Final = frozenset(
    {
        Cause.ARGUMENT,
        Cause.PRECONDITION,
        Cause.CONFLICT,
        Cause.RESULT_SHAPE,
        Cause.WRONG_RESULT,
        Cause.PLAN,
        Cause.UNKNOWN,
    }
)
_GOOD: Final = (LessonState.PROVEN, LessonState.PINNED)
_LESSON: Final = "lesson:"
_RULE: Final = "rule:"
_NEEDED: Final = {Level.RENAME: "rename", Level.LOOK: "look"}

_with = replacing(Diagnosis)


@record
class _Found:
    """A proposal and how it was found; `named`: the error itself says as much."""

    proposal: Proposal
    named: bool = False


def look(
    state: PlanState,
    listener_id: str,
    failure: Failure,
    evidence: Sequence[Evidence],
    surroundings: Surroundings,
    lessons: Sequence[Lesson] = (),
    *,
    has_model: bool,
    case_id: str,
    now: float,
    seen: Mapping[str, Json] = EMPTY,
    elsewhere: Collection[str] = (),
    refused: Sequence[Refusal] = (),
) -> Look:
    """`lessons` are those whose key is this failure's; `seen`, `elsewhere` and `refused` are as
    `judge` has them."""
    diagnosis = diagnosis_of(state, listener_id, failure, evidence, surroundings)
    of = (state, listener_id, failure, diagnosis.cause, surroundings)
    judging = partial(
        judge, by_model=False, now=now, seen=seen, elsewhere=elsewhere, refused=refused
    )
    found = list(_sound(state, _ways(*of, lessons), surroundings, case_id, judging))
    proposal = found[0].proposal if found else None
    learned = proposal is not None and proposal.patch.source.startswith(_LESSON)
    if proposal is not None and learned:
        diagnosis = _with(diagnosis, source=proposal.patch.source)
    clear = learned or [one.named for one in found].count(True) == 1
    return Look(diagnosis, proposal, has_model and diagnosis.cause in _THINKS and not clear)


def sound_candidates(
    state: PlanState,
    listener_id: str,
    failure: Failure,
    evidence: Sequence[Evidence],
    surroundings: Surroundings,
    lessons: Sequence[Lesson] = (),
    *,
    case_id: str,
    now: float,
    seen: Mapping[str, Json] = EMPTY,
    elsewhere: Collection[str] = (),
    refused: Sequence[Refusal] = (),
) -> tuple[Proposal, ...]:
    """At most five, the best first."""
    diagnosis = diagnosis_of(state, listener_id, failure, evidence, surroundings)
    of = (state, listener_id, failure, diagnosis.cause, surroundings)
    judging = partial(
        judge, by_model=False, now=now, seen=seen, elsewhere=elsewhere, refused=refused
    )
    found = _sound(state, _ways(*of, lessons), surroundings, case_id, judging)
    return tuple(one.proposal for one in found)


def auto_covers(policy: RepairPolicy, proposal: Proposal, *, alone: bool = True) -> bool:
    """Whether the author lets this be applied without a person. A lesson is, at the level at which
    people consented to it, as long as no effect would be repeated; what a rule only guessed is
    not. Only a run that is `alone` in its tree knows what has been called."""
    level, source, shown = proposal.verdict.level, proposal.patch.source, proposal.shown
    if policy.mode is not RepairMode.AUTO or proposal.verdict.problems:
        return False
    if not alone and brings_calls(proposal):
        return False
    if source.startswith(_LESSON):
        learned = shown.get("lesson", {})
        within = LEVELS.index(level) <= LEVELS.index(Level(learned.get("level", Level.WAIT)))
        return "lesson" in policy.auto and within and not _repeats(proposal)
    if not source.startswith(_RULE) or shown.get("guessed"):
        return False
    return level is Level.WAIT or _NEEDED.get(level) in policy.auto


def _repeats(proposal: Proposal) -> bool:
    """Here or in another run, of which the rehearsal does not know."""
    rehearsed = proposal.verdict.success
    if rehearsed is None or proposal.verdict.repeats:
        return True
    return any(call.times for call in rehearsed.calls)


@record
class _Way:
    """What may help, before it is judged, and what is shown of where it comes from."""

    source: str
    draft: Draft
    shown: Mapping[str, Json]


def _ways(
    state: PlanState,
    listener_id: str,
    failure: Failure,
    cause: Cause,
    surroundings: Surroundings,
    lessons: Sequence[Lesson],
) -> list[_Way]:
    """Lessons first, at most five ways, and none that changes what another does."""
    learned = [] if cause is Cause.REFUSED else list(_learned(state, listener_id, lessons))
    of_rules = drafts(state, listener_id, failure, cause, surroundings)
    best: dict[str, _Way] = {}
    for one in (*learned, *map(_of_rule, of_rules)):
        best.setdefault(operations_digest(one.draft.operations), one)
    refused = refused_in(state)
    return [one for name, one in best.items() if name not in refused][:MOST_CANDIDATES]


def _of_rule(draft: Draft) -> _Way:
    return _Way(f"{_RULE}{draft.rule}", draft, {"guessed": True} if draft.guessed else {})


def _learned(state: PlanState, listener_id: str, lessons: Sequence[Lesson]) -> Iterator[_Way]:
    good = [one for one in lessons if one.state in _GOOD]
    for one in good if listener_id in state.plan.listeners else ():
        operations = absolute(one.operations, state, listener_id)
        if operations is not None:
            name = id_of(one.key, one.operations)
            reason = msg("this repaired the same failure in {n} runs", n=one.wins)
            known = {"id": name, "wins": one.wins, "level": one.level.value}
            draft = Draft("", Rank.EVIDENT, operations, reason)
            yield _Way(f"{_LESSON}{name}", draft, {"lesson": known})


def _sound(
    state: PlanState,
    ways: Sequence[_Way],
    surroundings: Surroundings,
    case_id: str,
    judging: Callable[[PlanState, PlanPatch, Surroundings], Verdict],
) -> Iterator[_Found]:
    """Those that pass the checks, numbered on from what was proposed in this case before."""
    case = state.repair.cases.get(case_id)
    first = 1 if case is None else 1 + len(case.refused)
    for number, way in enumerate(ways, first):
        draft = way.draft
        name = f"{case_id}_k{number}" if case_id else f"k{number}"
        of = (name, state.plan.digest, draft.operations, draft.reason, case_id, way.source)
        patch = PlanPatch(*of)
        verdict = judging(state, patch, surroundings)
        if not verdict.problems:
            words = described(state.plan.plan, draft.operations)
            shown = {"title": draft.reason, "words": list(words), **way.shown}
            yield _Found(Proposal(patch, verdict, shown), draft.named)

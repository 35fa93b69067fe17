"""Checks: everything that is to be said of a patch before anybody consents to it.

    limits, base ──> reading ──> frozen past ──> the plan that results ──> the plan's checker
        ──> forbidden touches ──> level, new values, repeated effects ──> rehearsal ──> consent

All problems are found at once, also where some operations cannot be carried out (`feasible`).
What was wrong with the plan before is not the patch's fault; what is wrong with the plan after it,
and was not before, is. Consent is bound to the run, the case, the base, the operations, the plan
that results and the versions of all tools that the patch names, to what the patch would be the
first to call, and to the values that it reads.

Who is no person may do less (`touches`, `secrecy`): a model, a rule, a lesson.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from holdfast.core.plan.advice import as_patched
from holdfast.core.plan.fitting import past_problems, standing_problems, values_at
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.operations import Operation, patched
from holdfast.core.repair.rehearsal import rehearse as rehearsal_of
from holdfast.core.run.state import EMPTY
from holdfast.core.storing import plan_digest
from holdfast.errors import HoldfastError
from holdfast.i18n.message import msg
from holdfast.language.display import clip
from holdfast.language.facts import ROOTS
from holdfast.language.strict import canonical_json, digest
from holdfast.model.plan import Plan
from holdfast.model.record import replacing
from holdfast.model.repair import Level, PlanPatch, Rehearsal, Verdict
from holdfast.model.values import Json
from holdfast.repair.absences import absences
from holdfast.repair.changes import changes_of, places_of
from holdfast.repair.feasible import feasible
from holdfast.repair.levels import Grading, highest
from holdfast.repair.parts import read_by, tools_called
from holdfast.repair.provenance import NEW, Literal, Source
from holdfast.repair.refusals import Refusal, refused_again
from holdfast.repair.repeats import ELSEWHERE, Repeat, acting_tools, repeats
from holdfast.repair.secrecy import moved_secrets, written_secrets
from holdfast.repair.surroundings import Surroundings
from holdfast.repair.touches import Touch, touches
from holdfast.source.check import Catalog, find_problems
from holdfast.source.locations import LONGEST_MESSAGE, MOST_REPORTED, Finding

PERSON: Final = "person"
"""The source of a patch that a person wrote."""

_with = replacing(Verdict)

MOST_VALUES: Final = 200
MOST_VALUES_OF_A_MODEL: Final = 20
"""New values: each is named to who is to consent. What has more is not proposed."""
_LONGEST_VALUE: Final = 80


def judge(
    state: PlanState,
    patch: PlanPatch,
    surroundings: Surroundings,
    *,
    by_model: bool,
    rehearse: bool = True,
    now: float = 0.0,
    seen: Mapping[str, Json] = EMPTY,
    elsewhere: Collection[str] = (),
    refused: Sequence[Refusal] = (),
) -> Verdict:
    """The verdict on a patch of the run's plan as it is now.

    `seen` has the last result of each tool in this run, for the rehearsal; `elsewhere` are the
    tools that other runs of its tree have called, `refused` the calls that tools have refused in
    this one, which only a person may have made again. A patch with problems is not rehearsed, and
    there is nothing to consent to.
    """
    found = feasible(state.plan.plan, patch.operations)
    problems = [
        *standing_problems(state, patch.base),
        *past_problems(state, found.read),
        *found.problems,
    ]
    if found.problems and not found.left:
        return Verdict("", problems=_reported(problems))
    past = (elsewhere, refused)
    judgement = _Judgement(state, patch, surroundings, found.left, by_model, *past)
    if found.problems:
        return Verdict("", problems=_reported([*problems, *judgement.own_problems()]))
    problems += judgement.problems()
    if rehearse and not problems:
        return judgement.rehearsed(now, seen)
    return judgement.verdict(problems)


def consent_of(run_id: str, patch: PlanPatch, verdict: Verdict) -> str:
    """What consent to a patch is bound to."""
    return digest(
        {
            "run": run_id,
            "case": patch.case_id,
            "base": patch.base,
            "operations": list(patch.operations),
            "digest": verdict.digest,
            "versions": dict(verdict.versions),
            "fresh": list(verdict.fresh),
            "values": verdict.values,
        }
    )


class _Judgement:
    """Of a patch as far as it can be carried out; operations go by their places in it."""

    def __init__(
        self,
        state: PlanState,
        patch: PlanPatch,
        known: Surroundings,
        operations: Mapping[int, Operation],
        by_model: bool,
        elsewhere: Collection[str],
        refused: Sequence[Refusal],
    ) -> None:
        those, before = tuple(operations.values()), state.plan.plan
        self.state, self.patch, self.known = state, patch, known
        self.plan = patched(before, those)
        self.changes = changes_of(before, self.plan, those)
        self.raw = [patch.operations[place] for place in operations]
        self.places = places_of(patch.operations, operations)
        self.by_person = not by_model and patch.source == PERSON
        self.by_model = by_model or patch.source.startswith("model")
        self.grades = tuple(Grading(state, self.changes, known, by_model=self.by_model).grades())
        self.values = tuple(_new_values(one.literal for one in self.grades))
        self.repeats = tuple(repeats(state, self.changes, known, elsewhere))
        self.refused = tuple(refused_again(state, self.changes, refused))
        self.digest = plan_digest(self.plan)

    def problems(self) -> list[str]:
        if self.plan == self.state.plan.plan:
            return [msg("the patch changes nothing")]
        return self.placed([*self.findings(), *self.touches()])

    def own_problems(self) -> list[str]:
        """Of what is wrong with the plan only what these operations themselves concern: what they
        lack to make it whole may be in the others."""
        own = (one for one in self.findings() if one[0] in self.places)
        return self.placed([*own, *self.touches()])

    def findings(self) -> Iterator[tuple[str, str]]:
        return new_findings(self.state.plan.plan, self.plan, self.known.catalog)

    def touches(self) -> Iterator[Touch]:
        most = MOST_VALUES_OF_A_MODEL if self.by_model else MOST_VALUES
        if (found := len(self.values)) > most:
            told = {"most": most, "n": found}
            many = msg("a patch brings at most {most} new values; this brings {n:,}", **told)
            yield Touch("", many)
        yield from absences(self.state, self.changes)
        yield from written_secrets(self.raw, self.changes, self.known)
        if not self.by_person:
            yield from touches(self.changes, self.known)
            yield from moved_secrets(self.state, self.changes, self.known)
            yield from self.refused

    def placed(self, findings: Iterable[tuple[str, str]]) -> list[str]:
        """Each with the operation that is to blame, where one names what it is about."""
        return list(dict.fromkeys(self.told(*one) for one in findings))

    def told(self, owner: str, message: str) -> str:
        place = self.places.get(owner)
        return message if place is None else msg("{place}: {problem}", place=place, problem=message)

    def rehearsed(self, now: float, seen: Mapping[str, Json]) -> Verdict:
        """How the run would go on: once all succeeds, once what was mended fails again."""
        try:
            patched_state = as_patched(self.state, self.patch, self.digest, now)
            tools, failing = self.known.tools.get, self.mended()
            success = rehearsal_of(patched_state, tools, now=now, seen=seen)
            failure = rehearsal_of(patched_state, tools, now=now, seen=seen, failing=failing)
        except HoldfastError as error:
            return self.verdict([msg("it cannot be rehearsed: {reason}", reason=str(error))])
        return self.verdict([], success, failure)

    def mended(self) -> str | None:
        """The listener that failed, or whichever the patch is about."""
        ids = [one.id for one in self.changes.listeners]
        failed = [one for one in ids if one in self.state.steps]
        return next(iter((*failed, *ids)), None)

    def verdict(
        self,
        problems: Sequence[str],
        success: Rehearsal | None = None,
        failure: Rehearsal | None = None,
    ) -> Verdict:
        reads = self.reads()
        verdict = Verdict(
            digest=self.digest,
            level=self.level(),
            problems=_reported(problems),
            warnings=tuple(self.warnings(success)),
            success=success,
            failure=failure,
            versions=self.versions(),
            fresh=self.fresh(),
            repeats=tuple(sorted({one.tool for one in self.repeats})),
            reads=reads,
            values=values_at(self.state, reads),
        )
        consent = "" if problems else consent_of(self.state.run_id, self.patch, verdict)
        return _with(verdict, consent=consent)

    def level(self) -> Level:
        return Level.ACT if self.repeats else highest(one.level for one in self.grades)

    def versions(self) -> dict[str, str]:
        """Of every tool that is called by what the patch brings or changes."""
        concerned = [each for one in self.changes.listeners for each in (one.before, one.after)]
        names = sorted({name for one in concerned for name in tools_called(one)})
        facts = {name: self.known.tools.get(name) for name in names}
        return {name: one.version if one else "" for name, one in facts.items()}

    def fresh(self) -> tuple[str, ...]:
        """The tools that nothing has called so far, and whose effects cannot be had twice."""
        acting = acting_tools(self.state, self.changes, self.known)
        return tuple(sorted(acting - {one.tool for one in self.repeats}))

    def reads(self) -> tuple[str, ...]:
        """The paths of all values that what the patch brings or changes takes from tasks."""
        paths = {path for one in self.changes.listeners for path in read_by(one.after)}
        return tuple(sorted(".".join(path) for path in paths if path[0] not in ROOTS))

    def warnings(self, success: Rehearsal | None) -> Iterator[str]:
        yield from map(_told_repeat, self.repeats)
        yield from (message for _, message in self.refused)
        yield from map(_told_value, self.values[:MOST_VALUES])
        if success is not None and success.cut:
            yield msg("the rehearsal was broken off after too many steps")
        elif success is not None and not success.reached:
            yield msg("in the rehearsal the goal is not reached")


def new_findings(before: Plan, after: Plan, catalog: Catalog) -> Iterator[tuple[str, str]]:
    """What the plan's checker finds after and not before, by the listener or task that has it.

    Places are compared by ids: what is inserted moves the others.
    """
    found = [_owned(after, one) for one in find_problems(after, catalog)]
    known = {_owned(before, one) for one in find_problems(before, catalog)} if found else set()
    for owner, place, message in found:
        if (owner, place, message) not in known:
            yield owner, msg("{place}: {problem}", place=place, problem=message)


def _owned(plan: Plan, finding: Finding) -> tuple[str, str, str]:
    """Whose finding it is, at which place, and what it says."""
    match finding.path:
        case ("listeners", int(index), *inside):
            owner = plan.listeners[index].listener_id
        case ("tasks", int(index), *inside):
            owner = plan.tasks[index].task_id
        case _:
            owner, inside = "", list(finding.path)
    words = ".".join(map(str, [owner, *inside] if owner else inside))
    return owner, words, finding.message


def _told_repeat(one: Repeat) -> str:
    earlier = ", ".join(each for each in one.earlier if each != ELSEWHERE)
    if not earlier:
        return msg(
            "{id} would call {tool} again: another run of this tree, or of which it is a fork, has "
            "called it",
            id=one.listener_id,
            tool=one.tool,
        )
    return msg(
        "{id} would call {tool} again: by {earlier} it has taken effect, or may have",
        id=one.listener_id,
        tool=one.tool,
        earlier=earlier,
    )


def _new_values(literals: Iterable[Literal | None]) -> Iterator[Literal]:
    return (one for one in literals if one is not None and one.source in NEW)


def _told_value(one: Literal) -> str:
    """A new value, shown as what it is."""
    value = clip(canonical_json(one.value), _LONGEST_VALUE)
    if one.source is Source.MODEL:
        return msg("{place} = {value} is the model's own value", place=one.place, value=value)
    return msg("{place} = {value} is a new value", place=one.place, value=value)


def _reported(problems: Sequence[str]) -> tuple[str, ...]:
    """As many as a reader can use."""
    shown = problems if len(problems) <= MOST_REPORTED else problems[: MOST_REPORTED - 1]
    told = [_shortened(one) for one in shown]
    if more := len(problems) - len(shown):
        told.append(msg("{n:,} more mistakes from here on; mend those above first", n=more))
    return tuple(told)


def _shortened(problem: str) -> str:
    return problem if len(problem) <= LONGEST_MESSAGE else problem[: LONGEST_MESSAGE - 1] + "…"

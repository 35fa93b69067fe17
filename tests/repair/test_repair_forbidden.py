"""Each of the fourteen forbidden touches on its whole way: written by a model it is refused with
the operation named, and no lesson proposes it, however often people had done it."""

from __future__ import annotations

import pytest
from asked_cases import asked, patched
from patch_cases import begun, failed, known, set_args
from test_checks_touches import REFUSED, SAID, WIDER

from holdfast.core.plan.state import PlanState
from holdfast.model.repair import Lesson, LessonState, Level, PlanPatch, Proposal, Thought
from holdfast.model.retry import Cause, Failure, FailureKind, RetryPolicy
from holdfast.model.values import JsonObject
from holdfast.repair.checks import judge
from holdfast.repair.contract import WRITE_PATCH, WRITES
from holdfast.repair.looking import look
from holdfast.repair.relative import relative
from holdfast.testing.model_script import call
from holdfast.testing.scripted_model import ScriptedModel
from holdfast.work.diagnosing import think
from holdfast.work.models import ModelClient

GOOD = set_args(computer_model="{001.context.model}", drop=("model",))
FAILURE = Failure(FailureKind.PERMANENT, "no", cause=Cause.ARGUMENT)
PROVEN = (LessonState.PROVEN, LessonState.PINNED)


@pytest.fixture(scope="module")
def state() -> PlanState:
    return failed(begun(*WIDER))


async def written(state: PlanState, *operations: JsonObject) -> Thought:
    """What comes of a patch that a model writes for this run."""

    def judged(found: tuple[JsonObject, ...], why: str) -> Proposal | tuple[str, ...]:
        patch = PlanPatch("p1", state.plan.digest, found, why, "case_1", "model:written")
        verdict = judge(state, patch, known(), by_model=True)
        return verdict.problems or Proposal(patch, verdict)

    model = ScriptedModel([call(WRITE_PATCH, **patched(*operations))])
    models = ModelClient(default_model=model, retry=RetryPolicy(attempts=1))
    return await think(models, asked(write=True, judge=judged), WRITES)


def learned(state: PlanState, lesson: LessonState, operation: JsonObject) -> Proposal | None:
    """What is proposed where a person's patch has helped in nine runs."""
    operations = relative([operation], state, "L2")
    if operations is None:  # it leaves no lesson
        return None
    known_lesson = Lesson("key", operations, wins=9, state=lesson, level=Level.ACT)
    of = (state, "L2", FAILURE, (), known(), (known_lesson,))
    return look(*of, has_model=False, case_id="case_1", now=0.0).proposal


@pytest.mark.parametrize("touch", REFUSED)
async def test_a_model_that_writes_it_is_refused_and_told_which_operation(
    touch: str, state: PlanState
) -> None:
    operation = REFUSED[touch]
    found = await written(state, operation)
    assert found.proposal is None
    named = f"operations[0] ({operation['op']}): only a person may {SAID[touch]}"
    assert named in str(found.complaint)
    assert named in found.reason


@pytest.mark.parametrize("touch", REFUSED)
async def test_it_is_found_behind_an_operation_that_is_sound(touch: str, state: PlanState) -> None:
    found = await written(state, GOOD, REFUSED[touch])
    assert found.proposal is None
    assert f"operations[1] ({REFUSED[touch]['op']}): only a person" in str(found.complaint)


@pytest.mark.parametrize("lesson", PROVEN)
@pytest.mark.parametrize("touch", REFUSED)
def test_no_lesson_proposes_it(touch: str, lesson: LessonState, state: PlanState) -> None:
    found = learned(state, lesson, REFUSED[touch])
    assert found is None or REFUSED[touch] not in found.patch.operations


async def test_what_is_not_forbidden_is_proposed_of_either(state: PlanState) -> None:
    """Else all of the above would be true of a judge that refuses everything."""
    found = await written(state, GOOD)
    assert found.proposal is not None
    assert found.proposal.patch.operations == (GOOD,)
    of_a_lesson = learned(state, LessonState.PROVEN, GOOD)
    assert of_a_lesson is not None
    assert of_a_lesson.patch.source.startswith("lesson:")

"""An application's own hooks on failures: asked ahead of models and people, judged like anything
else, and worth nothing where they are broken."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hooked_child import HOOKED, RUN, fatal
from repair_scenes import ACCESS, REPAIRED, RULE, WHO, Staff, proposal
from scenes import assert_sound, history, of_kind, until

from holdfast import AlertKind, Holdfast, PlannerAgent
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.state import CaseState
from holdfast.model import events as e
from holdfast.model.interaction import InteractionRequest
from holdfast.model.repair import Diagnosis, Evidence
from holdfast.model.retry import Cause, GiveUp
from holdfast.model.rows import request_of
from holdfast.plans.hooks import Case
from holdfast.runs.handles import PlanInstance
from holdfast.testing.forbidden_patches import forbidden_patches
from holdfast.testing.repair_models import diagnosing_model

WILL = {"id": "WZ001", "name": WHO}
OTHERWISE = {"op": "set_args", "listener_id": "L001", "set": {"employee_id": "WZ007"}}
ALERTED = AlertKind.THINKING_FAILED


class Author(PlannerAgent):
    """Says and wants what it was made with; `cases` are those that it was asked about."""

    def __init__(self, says: object = None, wants: object = None, **options: Any) -> None:
        super().__init__(max_retry_count=0, **options)
        self.says, self.wants = says, wants
        self.cases: list[Case] = []
        self.told: list[Diagnosis] = []

    async def diagnose(self, case: Case) -> Any:
        self.cases.append(case)
        return await answered(self.says, case)

    async def propose(self, case: Case, diagnosis: Diagnosis) -> Any:
        self.told.append(diagnosis)
        return await answered(self.wants, case)


async def answered(answer: Any, case: Case) -> Any:
    if isinstance(answer, BaseException):
        raise answer
    found = answer(case) if callable(answer) else answer
    return await found if asyncio.iscoroutine(found) else found


def furnished(planner: PlannerAgent, **options: Any) -> tuple[Holdfast, Staff]:
    staff = Staff()
    return staff.furnish(Holdfast.in_memory(planner_agent=planner, **options)), staff


async def failed(app: Holdfast) -> tuple[PlanInstance, InteractionRequest]:
    """A run that waits for consent to a repair."""
    run = await app.plans.start_plan_by_prompt("", "access", values=WILL)
    return run, request_of(await proposal(app, run.id))


async def only_case(app: Holdfast, run: PlanInstance) -> CaseState:
    """Of a run that asks about its repair."""
    state = await app.engine.wait_for(run.id, lambda one: bool(one.open_questions))
    assert isinstance(state, PlanState)
    [case] = state.repair.in_order()
    return case


async def thoughts(app: Holdfast, run: PlanInstance) -> list[e.DiagnosisReceived]:
    events = await history(app, run.id)
    return [one for one in events if isinstance(one, e.DiagnosisReceived)]


def wrong_id(case: Case) -> Diagnosis:
    return Diagnosis(Cause.ARGUMENT, "WZ001 is an old id", case.evidence[-1:])


async def forever(case: Case) -> None:
    await asyncio.Event().wait()


async def test_what_a_hook_wants_is_judged_and_a_person_decides() -> None:
    author = Author(wrong_id, [OTHERWISE])
    app, staff = furnished(author)
    staff.known.add("WZ007")
    async with app:
        run, request = await failed(app)
        assert request.context["source"] == "hook:Author"
        assert (request.context["level"], request.role) == ("act", "approver")
        assert request.message == request.details == "WZ001 is an old id"
        [warning] = request.context["warnings"]
        assert warning == 'L001.employee_id = "WZ007" is a new value', "it is no model's"
        case = await only_case(app, run)
        assert case.diagnosis is not None
        assert (case.diagnosis.cause, case.diagnosis.source) == (Cause.ARGUMENT, "hook:Author")
        assert author.told == [case.diagnosis]
        assert staff.counts("WZ007") == {}
        await app.answer(request.request_id, option_id="apply", by=WHO)
        assert await run.wait_for_completion() == "done"
        assert staff.counts("WZ007") == {"grant_access": 1, "send_email": 1}
        await assert_sound(app, run.id)


async def test_a_hook_is_told_all_that_is_known_of_the_failure() -> None:
    author = Author()
    app, _ = furnished(author)
    secret = ACCESS.replace("inputs: {id: {}", "inputs: {pin: {type: secret}, id: {}")
    app.load_plan_text(secret)
    async with app:
        values = {**WILL, "pin": "very secret"}
        run = await app.plans.start_plan_by_prompt("", "access", values=values)
        await proposal(app, run.id)
        [case] = author.cases
        assert (case.plan_instance_id, case.case_id, case.listener_id) == (run.id, "case_1", "L001")
        assert case.failure.message == "HR has no employee WZ001: create the profile first"
        assert case.diagnosis.cause is Cause.PRECONDITION
        assert case.candidates[0].patch.source == RULE
        assert case.plan.plan_id == "access"
        assert any("HR has no employee" in one.text for one in case.evidence)
        told = case.context["values"]
        assert (told["id"], told["pin"].partition(":")[0]) == ("WZ001", "secret")
        assert "very secret" not in repr(case)


async def test_a_hook_may_choose_one_of_the_candidates() -> None:
    author = Author(wants=lambda case: case.candidates[0])
    app, staff = furnished(author)
    async with app:
        run, request = await failed(app)
        assert request.context["source"] == RULE
        await app.answer(request.request_id, option_id="apply", by=WHO)
        assert await run.wait_for_completion() == "done"
        assert staff.counts("WZ001") == REPAIRED


async def test_where_a_hook_has_nothing_to_say_rules_go_on_and_nobody_is_alarmed() -> None:
    author = Author()
    app, _ = furnished(author)
    async with app:
        run, request = await failed(app)
        assert (len(author.cases), request.context["source"]) == (1, RULE)
        events = await history(app, run.id)
        assert len(of_kind(events, e.DiagnosisRequested)) == 1
        case = await only_case(app, run)
        assert case.diagnosis is not None
        assert (case.diagnosis.cause, case.reason) == (Cause.PRECONDITION, "")
        assert app.engine.learning.alerts[ALERTED] == 0


async def test_a_call_of_a_hook_is_in_the_journal_before_it_is_made() -> None:
    seen: list[list[e.Event]] = []

    async def look(case: Case) -> None:
        seen.append(of_kind(await history(app, case.plan_instance_id), e.DiagnosisRequested))

    app, _ = furnished(Author(look))
    async with app:
        await failed(app)
    assert [len(one) for one in seen] == [1]


@pytest.mark.parametrize("says", [None, wrong_id])
async def test_a_model_is_asked_next_where_hooks_want_nothing(says: object) -> None:
    """What the hooks have said is wrong stands."""
    author, model = Author(says), diagnosing_model()
    app, _ = furnished(author, model=model)
    async with app:
        run, request = await failed(app)
        assert request.context["source"].partition(":")[0] == "rule", "which the model chose"
        first, second = await thoughts(app, run)
        assert (first.usage.input_tokens, second.usage.input_tokens > 0) == (0, True)
        assert second.diagnosis is not None
        by = "hook:Author" if says else "model:diagnosing"
        assert (second.diagnosis.source, len(author.cases)) == (by, 1)
        [seen] = model.seen
        assert "What was wrong" not in seen.asked
        assert (await only_case(app, run)).reason == ""


async def test_a_model_that_could_add_nothing_is_not_asked_because_of_a_hook() -> None:
    """HR's tool takes the employee's number under another name, and says which."""
    app, _ = furnished(Author(), model=diagnosing_model())

    @app.tool(replace=True)
    async def grant_access(employee: str) -> dict[str, str]:
        return {"badge": employee}

    async with app:
        run, request = await failed(app)
        assert request.context["level"] == "rename"
        [received] = await thoughts(app, run)
        assert received.usage.input_tokens == 0


async def test_what_the_author_lets_repairs_do_by_themselves_needs_no_hook() -> None:
    author = Author(GiveUp("not asked"))
    app, _ = furnished(author)
    app.load_plan_text(ACCESS.replace("repair: {", "repair: {mode: auto, auto: [rename], "))

    @app.tool(replace=True)
    async def grant_access(employee: str) -> dict[str, str]:
        return {"badge": employee}

    async with app:
        run = await app.plans.start_plan_by_prompt("", "access", values=WILL)
        assert await run.wait_for_completion() == "done"
    assert author.cases == []


BROKEN: Mapping[str, tuple[object, object, str]] = {
    "diagnose raises": (ValueError("x"), None, "Author.diagnose raised ValueError; the log says"),
    "propose raises": (None, KeyError("x"), "Author.propose raised KeyError; the log says where"),
    "it exits": (SystemExit(3), None, "Author.diagnose raised RuntimeError"),
    "it is cancelled": (asyncio.CancelledError(), None, "Author.diagnose raised CancelledError"),
    "it hangs": (forever, None, "Author.diagnose took too long"),
    "the other hangs": (None, forever, "Author.propose took too long"),
    "both hang": (forever, forever, "Author.diagnose took too long"),
    "a word": ("argument", None, "diagnose must return a Diagnosis or None, not str"),
    "no cause": (
        lambda case: Diagnosis("magic", "", case.evidence[:1]),  # type: ignore[arg-type]
        None,
        "diagnose names a cause that there is not",
    ),
    "made-up evidence": (
        Diagnosis(Cause.PLAN, "", (Evidence(99, "x"),)),
        None,
        "diagnose cites what is no evidence",
    ),
    "text for operations": (None, "skip", "propose must return one of the candidates, a list"),
    "a list of text": (None, ["skip"], "propose must return one of the candidates, a list"),
    "no JSON": (None, [{"op": object()}], "propose must return one of the candidates, a list"),
    "an unknown operation": (None, [{"op": "mend"}], "propose returned what cannot be proposed"),
    "nothing": (None, [], "propose returned what cannot be proposed"),
    "thirteen": (None, [OTHERWISE] * 13, "propose returned what cannot be proposed"),
}


@pytest.mark.parametrize("what", BROKEN)
async def test_a_broken_hook_changes_nothing_and_the_case_says_why(what: str) -> None:
    says, wants, why = BROKEN[what]
    app, staff = furnished(Author(says, wants, decision_timeout=0.05))
    async with app:
        run, request = await failed(app)
        assert request.context["source"] == RULE
        case = await only_case(app, run)
        assert why in case.reason
        assert app.engine.learning.alerts[ALERTED] == 1
        await app.answer(request.request_id, option_id="apply", by=WHO)
        assert await run.wait_for_completion() == "done"
        assert staff.counts("WZ001") == REPAIRED


async def test_a_model_goes_on_where_a_hook_is_broken_and_the_case_says_both() -> None:
    app, _ = furnished(Author(ValueError("x")), model=diagnosing_model())
    async with app:
        run, _ = await failed(app)
        case = await only_case(app, run)
        assert case.diagnosis is not None
        assert case.diagnosis.source == "model:diagnosing"
        assert case.reason == "Author.diagnose raised ValueError; the log says where"


@pytest.mark.parametrize("touch", list(forbidden_patches("L001", asks="L001")))
async def test_what_only_a_person_may_do_no_hook_does(touch: str) -> None:
    wanted = list(forbidden_patches("L001", asks="L001")[touch])
    app, staff = furnished(Author(wants=wanted))
    async with app:
        run, request = await failed(app)
        assert request.context["source"] == RULE
        case = await only_case(app, run)
        assert "propose returned what cannot be proposed" in case.reason
        assert staff.done == {("grant_access", "WZ001"): 1}


async def test_a_diagnosis_that_cites_nothing_counts_as_unknown() -> None:
    app, _ = furnished(Author(Diagnosis(Cause.RIGHTS, "I think so")))
    async with app:
        run, _ = await failed(app)
        case = await only_case(app, run)
        assert case.diagnosis is not None
        assert (case.diagnosis.cause, case.diagnosis.summary) == (Cause.UNKNOWN, "I think so")


async def test_after_a_refusal_the_best_of_the_rules_is_proposed() -> None:
    author = Author(wrong_id, [OTHERWISE])
    app, _ = furnished(author)
    async with app:
        run, request = await failed(app)
        await app.answer(request.request_id, option_id="refuse", feedback="no", by=WHO)
        anew = request_of(await proposal(app, run.id, request.request_id))
        assert (anew.context["source"], len(author.cases)) == (RULE, 1)


async def test_a_hook_is_asked_again_where_its_repair_has_not_helped() -> None:
    author = Author(wrong_id, [OTHERWISE])
    app, _ = furnished(author)
    async with app:
        run, request = await failed(app)
        await app.answer(request.request_id, option_id="apply", by=WHO)
        await until(lambda: len(author.cases) == 2)
        assert "WZ007" in author.cases[1].failure.message
        anew = request_of(await proposal(app, run.id, request.request_id))
        assert anew.context["source"] == RULE, "what did not help is not proposed again"


async def test_a_hook_may_be_plain_or_belong_to_the_planner_alone() -> None:
    asked: list[str] = []

    class Plain(PlannerAgent):
        def propose(self, case: Case, diagnosis: Diagnosis) -> Any:  # type: ignore[override]
            asked.append(f"{case.case_id}: {diagnosis.cause}")

    planner = PlannerAgent(max_retry_count=0)
    planner.diagnose = lambda case: asked.append(case.case_id)  # type: ignore[assignment, method-assign, return-value]
    for one in (Plain(max_retry_count=0), planner):
        app, _ = furnished(one)
        async with app:
            await failed(app)
    assert asked == ["case_1: precondition", "case_1"]


@pytest.mark.own_store  # the process that is killed owns a home
async def test_a_process_that_a_hook_takes_down_calls_it_no_more_often_than_it_may(
    tmp_path: Path,
) -> None:
    """Once the budget is spent, what rules have found is proposed."""
    child = Path(__file__).parent / "hooked_child.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = []
    for _ in range(3):
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(child), str(tmp_path), env=environment
        )
        async with asyncio.timeout(60):
            ended.append(await process.wait())
    assert ended == [-signal.SIGKILL, -signal.SIGKILL, 0]
    assert (tmp_path / HOOKED).read_text() == "case_1\ncase_1\n"
    async with fatal(tmp_path) as app:
        [question] = await app.inbox()
        assert request_of(question).context["source"] == RULE
        received = of_kind(await history(app, RUN), e.DiagnosisReceived)
        assert [one.lost for one in received if isinstance(one, e.DiagnosisReceived)] == [True] * 2

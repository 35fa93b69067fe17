"""The timeline has words for everything that can happen."""

from __future__ import annotations

from typing import get_args

import pytest
from cli_scene import ASK

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.i18n.catalogue import said
from holdfast.i18n.message import msg
from holdfast.model import events as e
from holdfast.model.fork import Fork
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)
from holdfast.model.plan import TaskStatus
from holdfast.model.repair import Diagnosis, PlanPatch, Proposal, Verdict
from holdfast.model.retry import Cause, Failure, FailureKind
from holdfast.runtime.hub import Recorded
from holdfast.source.planfile import read_plan
from holdfast.views.stories.lines import UNTOLD
from holdfast.views.stories.plans import PlanStory

BROKEN = Failure(FailureKind.TRANSIENT, "out of order")
QUESTION = InteractionRequest(
    "q1",
    "inst_000001",
    InteractionType.USER_CHOICE,
    "Did it happen?",
    options=(
        InteractionOption("happened", "It happened", InteractionAction.PROVIDE_INFO),
        InteractionOption("stop", "Stop", InteractionAction.TERMINATE),
    ),
    form=Form((Field("word", FieldType.SECRET), Field("model", FieldType.RADIO))),
)
CUSTOM = {"word": "sesame", "model": {"value": "custom", "text": "Framework 13"}}

WRONG = Diagnosis(Cause.ARGUMENT, "L002 wants an id", source="rule:argument")
OPERATIONS = (
    {
        "op": "insert_before",
        "listener_id": "L002",
        "task": {"task_id": "R1", "name": "Looked up"},
        "listener": {"listener_id": "R1", "listener_type": "tool", "tool": "query_it"},
    },
)
OURS = PlanPatch("case_1_k1", "d", OPERATIONS, "R1 looks it up")
THEIRS = PlanPatch("patch_1", "d", OPERATIONS, source="person", by="will")

REPAIRS: list[tuple[e.PlanEvent, str, str]] = [
    (e.CaseOpened("case_1", "L002", 1), "planner", "looks for what is wrong with L002 (code)"),
    (e.CaseOpened("case_1"), "planner", "looks for what is wrong with the plan"),
    (
        e.CaseDiagnosed("case_1", WRONG),
        "planner",
        "an argument is wrong: L002 wants an id",
    ),
    (
        e.CaseDiagnosed("case_1", Diagnosis(Cause.UNKNOWN, "")),
        "planner",
        "it is not known what is wrong",
    ),
    (
        e.DiagnosisRequested("case_1", 2),
        "planner",
        "asks the application's hooks or a model what is wrong (request 2)",
    ),
    (
        e.DiagnosisReceived("case_1", 2, WRONG),
        "planner",
        "an argument is wrong: L002 wants an id",
    ),
    (
        e.DiagnosisReceived("case_1", 2, reason="no\x1b[2J answer"),
        "planner",
        "has no diagnosis: no\\u001b[2J answer",
    ),
    (
        e.PatchProposed("case_1", Proposal(OURS, Verdict("d2"))),
        "planner",
        "proposes a repair: R1 looks it up",
    ),
    (e.PatchProposed("case_1", Proposal(THEIRS, Verdict("d2"))), "will", "proposes a repair"),
    (
        e.PatchRefused("case_1", "case_1_k1", "will", "not so"),
        "will",
        "left the plan as it is: not so",
    ),
    (e.PatchRefused("case_1", "case_1_k1", "will"), "will", "left the plan as it is"),
    (
        e.PlanPatched("case_1_k1", "case_1", "d", "d2", OPERATIONS, ("R1",), by="will"),
        "will",
        "repaired the plan of this run; runs first: R1 (query_it)",
    ),
    (
        e.PlanPatched("case_1_k1", "case_1", "d", "d2", OPERATIONS),
        "planner",
        "repaired the plan of this run",
    ),
    (e.RepairProven("case_1", "case_1_k1"), "planner", "the repair has helped"),
    (
        e.RepairDisproven("case_1", "case_1_k1", "L002", 2),
        "planner",
        "the repair has not helped: L002 (code) failed",
    ),
    (
        e.CaseClosed("case_1", "the plan has changed"),
        "planner",
        "looks no further: the plan has changed",
    ),
]

TOLD: list[tuple[e.PlanEvent, str, str]] = [
    (e.RunStarted("ask", "d", "for 张三", "r", by="will"), "will", "started ask: for 张三"),
    (
        e.RunForked(Fork("inst_000001", 12, "ask"), "d", "r", "will"),
        "will",
        "forked inst_000001 at event 12",
    ),
    (
        e.SecretsRenewed("L001", {"key": "a reference"}),
        "plan",
        "takes the secrets that were entered anew",
    ),
    (e.ListenerStarted("L001", 1), "plan", "L001 (human) started"),
    (e.ListenerStarted("L002", 1, attempt=3), "plan", "L002 (code) started, try 3 of 3"),
    (e.ListenerSucceeded("L001", 1), "plan", "L001 (human) succeeded"),
    (e.ListenerFailed("L001", 1, BROKEN), "plan", "L001 (human) failed: out of order"),
    (
        e.ListenerFailed("L001", 1, BROKEN, handled=True),
        "plan",
        "L001 (human) failed: out of order; the plan has a branch for that",
    ),
    (
        e.StepReleased("L001", 1),
        "plan",
        "L001 (human) was taken back and is ready again",
    ),
    (e.ListenerSkipped("L001", 1, "will", "not now"), "will", "skipped L001 (human): not now"),
    (
        e.OutcomeLost("L001", 1, "no answer"),
        "plan",
        "L001 (human) was sent, but it is not known whether it happened: no answer",
    ),
    (
        e.LateResultKept("L001", 1),
        "plan",
        "L001 (human) answered too late; the result is kept, without effect",
    ),
    (e.FunctionCalled("L002", 1, 0, "fetch", {}), "plan", "L002 (code) calls fetch"),
    (e.FunctionReturned("L002", 1, 0), "plan", "L002 (code) has the result of call 0"),
    (
        e.QuestionOpened(QUESTION, "L001", 1, "unknown"),
        "plan",
        "asks a person: Did it happen? (word, model)",
    ),
    (
        e.QuestionAnswered("q1", "happened", "will", CUSTOM, feedback="looked it up"),
        "will",
        "answered Did it happen? with “It happened”: word = (secret), model = custom (Framework 13)"
        "; looked it up",
    ),
    (
        e.QuestionAnswered("q1", "happened", "will", {"model": [[1, 2.5], {"a": "b"}]}),
        "will",
        'answered Did it happen? with “It happened”: model = [[1,2.5],{"a":"b"}]',
    ),
    (
        e.QuestionExpired("q1", "stop"),
        "clock",
        "Did it happen? was not answered in time; “Stop” was taken",
    ),
    (
        e.QuestionWithdrawn("q1", "it came after all"),
        "plan",
        "no longer asks Did it happen?: it came after all",
    ),
    (e.QuestionReminded("q1", 2), "clock", "Did it happen? still waits, reminder 2"),
    (e.QuestionEscalated("q1", "boss"), "clock", "Did it happen? now waits for the role boss"),
    (e.DraftKept("q1", "will"), "will", "has begun to answer Did it happen?"),
    (e.WaitStarted("L002", 1, 60.0), "plan", "L002 (code) waits until 1970-01-01T00:01:00Z"),
    (e.WaitEnded("L002", 1, 60.0), "clock", "L002 (code) goes on: the moment has come"),
    (e.PlannerRetried("L001", 2, 1, 3), "planner", "tries L001 (human) again, round 2 of 4"),
    (
        e.PlannerGaveUp("L001 failed after 1 retry: out: of order", ("L001",)),
        "planner",
        "gives up on L001 (human) after 2 rounds and waits for a resume: out: of order",
    ),
    (e.RunResumed("will", ("L001",)), "will", "resumed the run; runs again: L001 (human)"),
    (e.VerificationStarted(("verify.1",)), "plan", "checks the outcome: check 1 (query_it)"),
    (
        e.CheckConcluded("verify.1", 1, "unable_to_verify", "no answer"),
        "plan",
        "check 1 (query_it): unable to verify: no answer",
    ),
    (e.RunCompleted({"verify.1": "verified"}), "plan", "the run is done (1 verified)"),
    (e.TasksEdited("will", "mark_done"), "will", "marked a task done by hand"),
    (e.ListenersReset("will", ("L001",)), "will", "runs the plan again from L001 (human)"),
    (
        e.ChildHeard("inst_000001.L001.1", 4, "L001", 1, "error", "gave up"),
        "plan",
        "the sub-run inst_000001.L001.1 has failed: gave up",
    ),
    (
        e.RunRecovered(1),
        "plan",
        "the process that ran this went down; another took over",
    ),
    (e.CancelRequested("will", "enough"), "will", "cancelled the run: enough"),
    (
        e.RunCancelled(),
        "plan",
        "nothing is in flight any more: the run is cancelled",
    ),
    *REPAIRS,
]


@pytest.fixture
def teller() -> PlanStory:
    text = ASK + "verify:\n  - {tool: query_it}\n"
    return PlanStory(
        CompiledPlan(read_plan(text), "d"), [e.QuestionOpened(QUESTION, "L001", 1, "unknown")]
    )


@pytest.mark.parametrize(("event", "who", "what"), TOLD, ids=lambda one: str(one)[:30])
def test_an_event_is_told_in_plain_words(
    teller: PlanStory, event: e.PlanEvent, who: str, what: str
) -> None:
    [line] = teller.tell(Recorded(1, 0.0, event))
    assert (line.who, line.what) == (who, what)


def test_after_a_repair_the_steps_and_tasks_are_those_of_the_new_plan(teller: PlanStory) -> None:
    teller.tell(Recorded(1, 0.0, e.PlanPatched("p", "c", "d", "d2", OPERATIONS, ("R1",))))
    done = e.ListenerSucceeded("R1", 1, moves=(e.Move("R1", TaskStatus.DONE, "start"),))
    told = [line.what.strip() for line in teller.tell(Recorded(2, 0.0, done))]
    assert told == ["R1 (query_it) succeeded", "R1 Looked up is done"]


def test_a_failed_try_says_when_the_next_one_comes(teller: PlanStory) -> None:
    [line] = teller.tell(Recorded(1, 0.0, e.AttemptFailed("L001", 1, BROKEN, 60.0)))
    told = "L001 (human) failed: out of order; tries again"
    assert line.what == f"{told} in 1 min 0 s"
    [line] = teller.tell(Recorded(1, 59.9, e.AttemptFailed("L001", 1, BROKEN, 60.0)))
    assert line.what == f"{told} in a moment"
    [line] = teller.tell(Recorded(1, 60.0, e.AttemptFailed("L001", 1, BROKEN, 60.0)))
    assert line.what == f"{told} at once"


def test_so_does_a_retry_of_the_planner_and_each_says_why(teller: PlanStory) -> None:
    why = "the service asked for 60 s"
    failed = e.AttemptFailed("L001", 1, BROKEN, 60.0, why)
    [line] = teller.tell(Recorded(1, 0.0, failed))
    assert line.what.endswith(f"; tries again in 1 min 0 s ({why})")
    retried = e.PlannerRetried("L001", 1, 1, 3, (), 60.0, why)
    [line] = teller.tell(Recorded(1, 0.0, retried))
    told = f"tries L001 (human) again, round 2 of 4, in 1 min 0 s ({why})"
    assert (line.who, line.what) == ("planner", told)
    gave_up = e.PlannerGaveUp("L001 failed: out of order", ("L001",), (), "call Ann")
    [line] = teller.tell(Recorded(1, 0.0, gave_up))
    assert line.what.endswith("waits for a resume: out of order (call Ann)")


def test_the_reason_why_the_planner_gave_up_is_told_in_the_readers_language(
    teller: PlanStory,
) -> None:
    reason = msg(
        "{tool}: {host} answered {status}: {reason}",
        tool="pay",
        host="127.0.0.1",
        status=500,
        reason="locked",
    )
    message = msg("{id} failed after {n} retries: {reason}", id="L001", n=3, reason=reason)
    [line] = teller.tell(Recorded(1, 0.0, e.PlannerGaveUp(message, ("L001",))))
    assert line.what.endswith("after 4 rounds and waits for a resume: " + reason)
    assert said(line.what, "zh").endswith("等待恢复：pay：127.0.0.1 回复了 500：locked")


def test_that_the_time_has_come_is_not_told_once_more(teller: PlanStory) -> None:
    woken = Recorded(1, 0.0, e.StepWoken("L001", 1))
    assert teller.tell(woken) == []
    assert [line.what for line in teller.lines(woken)] == ["L001 (human) is ready for its next try"]


@pytest.mark.parametrize(
    ("event", "what"),
    [
        (
            e.PlannerGaveUp("L001 failed: out of order", ("L001", "L002")),
            "gives up on L001 (human), L002 (code) and waits for a resume: out of order",
        ),
        (
            e.PlannerGaveUp("nothing fires any more"),
            "gives up and waits for a resume: nothing fires any more",
        ),
        (
            e.PlannerGaveUp("verification failed: check 1", ("verify.1",)),
            "gives up and waits for a resume: verification failed: check 1",
        ),
    ],
)
def test_a_planner_that_gives_up_says_on_what(
    teller: PlanStory, event: e.PlannerGaveUp, what: str
) -> None:
    assert [line.what for line in teller.tell(Recorded(1, 0.0, event))] == [what]


def test_more_tries_than_the_plan_grants_are_only_numbered(teller: PlanStory) -> None:
    [line] = teller.tell(Recorded(1, 0.0, e.ListenerStarted("L002", 1, attempt=4)))
    assert line.what == "L002 (code) started, try 4"


def test_no_event_is_forgotten_here() -> None:
    told = {type(event) for event, _, _ in TOLD} | {e.AttemptFailed, *UNTOLD}
    assert told == set(get_args(e.PlanEvent))


def test_the_tasks_that_an_event_moved_follow_it(teller: PlanStory) -> None:
    moves = (
        e.Move("002", TaskStatus.PENDING, "waiting_for_person"),
        e.Move("002", TaskStatus.NOT_STARTED, "planner_retry"),
        e.Move("002", TaskStatus.ERROR, "waiting_for_resume"),
    )
    _, *lines = teller.tell(Recorded(1, 0.0, e.ListenerSucceeded("L001", 1, moves=moves)))
    assert [line.what.strip() for line in lines] == [
        "002 填表 (form) is waiting (for a person)",
        "002 填表 (form) is not started (the planner tries again)",
        "002 填表 (form) has failed (waits for a resume)",
    ]


def test_the_checks_of_agents_go_by_their_names(teller: PlanStory) -> None:
    event = e.CheckConcluded("verify.hr", 1, "verified", "agent hr: there it is")
    [line] = teller.tell(Recorded(1, 0.0, event))
    assert line.what == "the check of agent hr: verified: there it is"
    [line] = teller.tell(Recorded(2, 0.0, e.VerificationStarted(("verify.hr", "verify.7"))))
    assert line.what == "checks the outcome: the check of agent hr, the check of agent 7"


def test_taking_up_what_a_sub_run_returned_is_no_second_try(teller: PlanStory) -> None:
    child = "inst_000001.L001.1"
    teller.tell(Recorded(1, 0.0, e.ListenerStarted("L001", 1, child_id=child)))
    teller.tell(Recorded(2, 0.0, e.ChildHeard(child, 4, "L001", 1, "done")))
    [taken] = teller.tell(Recorded(3, 0.0, e.ListenerStarted("L001", 1, attempt=2)))
    assert taken.what == "L001 (human) takes up what its sub-run returned"
    [again] = teller.tell(Recorded(4, 0.0, e.ListenerStarted("L001", 1, attempt=3)))
    assert again.what == "L001 (human) started, try 3 of 3"

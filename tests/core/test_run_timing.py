"""Timers: reminders, escalation and deadlines ring once each, in the order of time."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from small_plans import ASK, CALL, TRANSIENT, WILL, compiled, on

from holdfast.core.plan.decide import blank, decide
from holdfast.core.run.state import QuestionState
from holdfast.errors import TooLate
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.interaction import Asking, InteractionAction, InteractionOption
from holdfast.model.plan import HumanAction, Listener

NOON = 1_700_000_000.0
HOUR = 3600.0


class Waiting:
    """A run that asks one question, and a clock that goes where it is told."""

    def __init__(self, *beside: Listener, opened: float = NOON, **asking: Any) -> None:
        action = HumanAction(ASK.form, Asking("Which?", **asking))
        plan = compiled(on("L001", "001 Running", action, "001"), *beside)
        self.now = opened
        self.state = blank("inst_000001", plan)
        self.events: list[e.PlanEvent] = []
        self.effects: list[f.Effect] = []
        self.submit(c.StartRun("small"))
        self.submit(c.StartStep("L001"))

    def submit(self, command: c.Command) -> None:
        decision = decide(self.state, command, c.Moment(self.now, b"secret"))
        self.state = decision.state
        self.events += decision.events
        self.effects += decision.effects

    def at(self, after: float) -> list[str]:
        """What rings at so many seconds after the opening."""
        self.now, self.events = NOON + after, []
        self.submit(c.Tick())
        return [_told(event) for event in self.events]

    @property
    def question(self) -> QuestionState:
        (question,) = self.state.questions.values()
        return question

    def answer(self) -> None:
        question_id = self.question.request.request_id
        self.submit(c.Answer(question_id, WILL, None, {"colour": "red"}))


def _told(event: e.PlanEvent) -> str:
    match event:
        case e.QuestionReminded(count=count):
            return f"reminded {count}"
        case e.QuestionEscalated(role=role):
            return f"now for {role}"
        case _:
            return type(event).__name__


class TestReminders:
    def test_each_goes_out_once_when_it_is_due(self) -> None:
        run = Waiting(reminders=(60.0, 300.0))
        assert run.at(59.9) == []
        assert run.at(60) == ["reminded 1"]
        assert run.at(60) == []
        assert run.at(299) == []
        assert run.at(300) == ["reminded 2"]
        assert not len(run.state.timers)

    def test_those_that_were_missed_count_as_one(self) -> None:
        run = Waiting(reminders=(60.0, 120.0, 600.0))
        assert run.at(500) == ["reminded 2"]
        assert run.at(600) == ["reminded 3"]

    def test_none_goes_out_after_the_answer(self) -> None:
        run = Waiting(reminders=(60.0, 120.0), timeout_seconds=HOUR)
        run.at(60)
        run.answer()
        assert not len(run.state.timers)
        assert run.at(HOUR) == []

    @pytest.mark.parametrize("after", [0.1, 0.3, 1 / 3, 1e-3, 123.456, 9_999.999])
    def test_no_fraction_of_a_second_makes_one_ring_twice(self, after: float) -> None:
        opened = NOON + 0.7
        run = Waiting(opened=opened, reminders=(after,))
        run.now = opened + after
        run.events = []
        run.submit(c.Tick())
        run.submit(c.Tick())
        assert [_told(event) for event in run.events] == ["reminded 1"]


class TestEscalation:
    def test_the_question_belongs_to_another_role_from_then_on(self) -> None:
        run = Waiting(role="operator", escalate_after=60.0, escalate_to="manager")
        assert run.question.role == "operator"
        assert run.at(59) == []
        assert run.at(60) == ["now for manager"]
        assert run.question.role == "manager"
        assert run.question.request.role == "operator", "what was asked stays as it was"
        assert run.at(HOUR) == []

    def test_it_does_not_go_to_those_who_have_it_already(self) -> None:
        run = Waiting(role="manager", escalate_after=60.0, escalate_to="manager")
        assert not len(run.state.timers)


class TestAllTogether:
    everything: ClassVar[dict[str, Any]] = {
        "reminders": (60.0, 180.0),
        "escalate_after": 120.0,
        "escalate_to": "manager",
        "timeout_seconds": HOUR,
    }

    def test_none_stands_in_anothers_way(self) -> None:
        run = Waiting(**self.everything)
        assert run.at(60) == ["reminded 1"]
        assert run.at(120) == ["now for manager"]
        assert run.at(180) == ["reminded 2"]
        assert list(run.state.timers) == [f"question:{run.question.request.request_id}"]
        assert run.at(HOUR) == ["QuestionExpired", "ListenerFailed", "PlannerGaveUp", "CaseOpened"]

    def test_a_leap_ahead_rings_each_once_in_the_order_of_time(self) -> None:
        run = Waiting(**self.everything)
        assert run.at(HOUR + 1) == [
            "reminded 2",
            "now for manager",
            "QuestionExpired",
            "ListenerFailed",
            "PlannerGaveUp",
            "CaseOpened",
        ]
        assert run.at(2 * HOUR) == []

    def test_a_leap_back_rings_nothing_early_or_twice(self) -> None:
        run = Waiting(**self.everything)
        assert run.at(60) == ["reminded 1"]
        assert run.at(60 - HOUR) == []
        assert run.at(60) == []
        assert run.at(120) == ["now for manager"]
        assert run.at(119) == []
        assert run.at(180) == ["reminded 2"]

    def test_the_deadline_holds_before_its_timer_rings(self) -> None:
        run = Waiting(**self.everything)
        run.now = NOON + HOUR
        with pytest.raises(TooLate):
            run.answer()
        run.now = NOON + HOUR - 1
        run.answer()
        assert run.at(HOUR) == []

    def test_a_draft_outlives_reminder_and_escalation_but_not_the_answer(self) -> None:
        run = Waiting(**self.everything)
        question_id = run.question.request.request_id
        run.submit(c.KeepDraft(question_id, WILL, {"colour": "gr"}))
        run.submit(c.KeepDraft(question_id, "操作员", {"colour": "blue"}))
        run.submit(c.KeepDraft(question_id, WILL, {"colour": "green"}))
        run.at(150)
        assert run.question.drafts == {WILL: {"colour": "green"}, "操作员": {"colour": "blue"}}
        run.answer()
        assert run.question.drafts == {}

    def test_other_timers_ring_in_their_place(self) -> None:
        run = Waiting(on("L002", "001 Running", CALL, "002"), reminders=(60.0,))
        run.submit(c.StartStep("L002", c.ToolFacts({}, "1")))
        (call,) = run.effects
        assert isinstance(call, f.CallTool)
        work = call.work
        run.submit(c.ReportOutcome("L002", work.firing, work.claim, TRANSIENT))
        assert run.at(60) == ["StepWoken", "reminded 1"]

    def test_the_grace_of_a_cancelled_run_is_all_that_is_left(self) -> None:
        run = Waiting(on("L002", "001 Running", CALL, "002"), **self.everything)
        run.submit(c.StartStep("L002", c.ToolFacts({}, "1")))
        run.submit(c.Cancel(WILL, grace=10.0))
        assert list(run.state.timers) == ["cancel"]
        assert run.at(9) == []
        assert run.at(10) == ["OutcomeLost", "RunCancelled"]

    def test_a_default_that_ends_the_run_silences_what_would_ring_after_it(self) -> None:
        stop = InteractionOption("stop", "Stop", InteractionAction.TERMINATE)
        run = Waiting(
            on("L002", "001 Running", CALL, "002"),
            options=(stop,),
            default_option_id="stop",
            timeout_seconds=0.1,
        )
        run.submit(c.StartStep("L002", c.ToolFacts({}, "1")))
        (call,) = run.effects
        assert isinstance(call, f.CallTool)
        work = call.work
        run.submit(c.ReportOutcome("L002", work.firing, work.claim, TRANSIENT))
        assert run.at(HOUR) == ["QuestionExpired", "CancelRequested", "RunCancelled"]

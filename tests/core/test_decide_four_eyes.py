"""Four eyes in the core: who wants what a run does, and what they may not approve."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, get_args

import pytest
from conversation_machine import Talk, executing
from conversation_machine import wanted as wanted_talk
from immutables import Map
from machine import Machine
from react_machine import Chat, clerk
from react_machine import opened as opened_chat
from small_plans import ASK, CALL, CONFIRM, GUARDED, WILL, compiled, on, question

from holdfast.core.approval import read_rule
from holdfast.core.conversation.snapshot import dump
from holdfast.core.interactions.calls import differences
from holdfast.core.run.four_eyes import answered, asked_before, asked_of, wanting_now
from holdfast.core.run.state import QuestionState, RunState, wants
from holdfast.errors import NotPermitted
from holdfast.model import agent_events as r
from holdfast.model import commands as c
from holdfast.model.conversation import AfterFailure, EngineState, SubTask
from holdfast.model.events import QuestionAnswered
from holdfast.model.interaction import (
    RUN_AGAIN,
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
    Resolution,
)
from holdfast.model.plan import ToolAction
from holdfast.model.retry import Failure, FailureKind, RetryPolicy
from holdfast.model.run import Parent

A, T = InteractionAction, InteractionType
ANN, BOB = "ann", "bob"
RUN = RunState("inst_000001")
UNKNOWN = c.Failed(Failure(FailureKind.UNKNOWN, "cut off"))
EMPTY: Map[str, str] = Map()


YES_OR_NO = (
    InteractionOption("yes", "Yes", A.APPROVE_AND_EXECUTE),
    InteractionOption("no", "No", A.REJECT_WITH_REASON),
    InteractionOption("end", "End", A.TERMINATE),
)


def asked(purpose: str = "approval", **more: Any) -> QuestionState:
    ways = (
        *YES_OR_NO,
        InteractionOption("again", "Again", A.RETRY_WITH_FEEDBACK),
        InteractionOption("give", "Give", A.PROVIDE_INFO),
        InteractionOption("own", "Own", A.CUSTOM),
        InteractionOption(RUN_AGAIN, "Run again", A.APPROVE_AND_EXECUTE),
    )
    kind = T.TOOL_APPROVAL if purpose == "approval" else T.USER_CHOICE
    request = InteractionRequest("q1", RUN.run_id, kind, "May it?", options=ways)
    return QuestionState(request, "L001", 1, purpose, 0.0, 1, args={"n": 1}, **more)


def of(*options: InteractionOption) -> QuestionState:
    before = asked("human")
    return replace(before, request=replace(before.request, options=options))


def event(option_id: str, **more: Any) -> QuestionAnswered:
    return QuestionAnswered("q1", option_id, ANN, **more)


class TestWhatCountsAsAWish:
    @pytest.mark.parametrize(
        ("purpose", "given"),
        [
            ("approval", event("yes")),
            ("approval", event("no")),
            ("approval", event("give")),
            ("approval", event("yes", data={"n": 1}, args={"n": 1})),
            ("approval", event("own", action=A.APPROVE_AND_EXECUTE)),
            ("human", event("no", values={"option": "no"})),
        ],
    )
    def test_a_bare_yes_or_no_does_not(self, purpose: str, given: QuestionAnswered) -> None:
        assert answered(RUN, asked(purpose), given).wanting == Map()

    @pytest.mark.parametrize("option_id", ["yes", "no"])
    def test_nor_does_it_where_there_is_nothing_to_choose(self, option_id: str) -> None:
        question = of(*YES_OR_NO)
        given = event(option_id, values={"option": option_id})
        assert answered(RUN, question, given).wanting == Map()

    @pytest.mark.parametrize(
        ("option_id", "other"),
        [
            ("yes", A.APPROVE_AND_EXECUTE),
            ("yes", A.SKIP),
            ("yes", A.PROVIDE_INFO),
            ("yes", A.CUSTOM),
            ("no", A.REJECT_WITH_REASON),
        ],
    )
    def test_a_choice_does(self, option_id: str, other: InteractionAction) -> None:
        question = of(*YES_OR_NO, InteractionOption("other", "Other", other))
        given = event(option_id, values={"option": option_id})
        after = answered(RunState("inst_000001"), question, given)
        assert dict(after.wanting) == {ANN: "answered"}

    @pytest.mark.parametrize(
        ("purpose", "given"),
        [
            ("approval", event("yes", args={"n": 2}, wish=True)),
            ("approval", event("yes", args={"n": 2})),
            ("approval", event("again")),
            ("approval", event("no", feedback="pay me instead")),
            ("approval", event("yes", feedback="and be quick")),
            ("human", event("yes", data={"size": "M"})),
            ("human", event("yes", values={"option": "yes", "size": "M"})),
            ("human", event("give")),
            ("human", event("own", action=A.SKIP)),
            ("missing", event("give", data={"n": 1})),
            ("unknown", event(RUN_AGAIN)),
            ("unknown", event("give")),
            ("failed", event(RUN_AGAIN)),
            ("human", event("gone")),
        ],
    )
    def test_everything_else_does(self, purpose: str, given: QuestionAnswered) -> None:
        after = answered(RunState("inst_000001"), asked(purpose), given)
        assert dict(after.wanting) == {ANN: "answered"}

    def test_how_it_was_first_said_is_kept_and_the_clock_wants_nothing(self) -> None:
        state = RunState("inst_000001")
        for by, how in ((ANN, "started"), (ANN, "spoke"), ("clock", "changed"), ("", "spoke")):
            state = wants(state, by, how)
        assert dict(state.wanting) == {ANN: "started"}

    def test_a_change_is_said_closer_where_it_can_be(self) -> None:
        state = RunState("inst_000001")
        for how in ("changed", "spoke", "changed"):
            state = wants(state, ANN, how)
        assert dict(state.wanting) == {ANN: "spoke"}


class TestWhoseCallItIs:
    def test_only_questions_about_calls_say_who_wants_them(self) -> None:
        assert asked_of(RUN, T.TOOL_APPROVAL, "approval", {ANN: "spoke"}) == {ANN: "spoke"}
        assert asked_of(RUN, T.USER_CHOICE, "unknown", {}) == {}
        assert asked_of(RUN, T.USER_INPUT, "human", {ANN: "spoke"}) is None
        assert asked_of(RUN, T.TOOL_APPROVAL, "approval", None) is None

    def test_who_came_to_want_it_since_counts_too(self) -> None:
        state = wants(RunState("inst_000001"), "eve", "resumed")
        before = asked(wanted_by={ANN: "started"})
        now = wanting_now(state, before, {BOB: "changed"})
        assert now == {ANN: "started", BOB: "changed", "eve": "resumed"}
        assert wanting_now(state, before, None) == {ANN: "started", "eve": "resumed"}
        assert wanting_now(state, asked(), {}) == {"eve": "resumed"}
        assert wanting_now(state, asked(), None) is None
        assert wanting_now(state, asked("unknown"), {}) is None


def paying(action: ToolAction = GUARDED) -> Machine:
    machine = Machine(compiled(on("L001", "001 Running", action, "002")))
    known = machine.tools["guarded"]
    machine.tools["guarded"] = replace(known, parameters={"properties": {"n": {"type": "integer"}}})
    machine.wanted_by = {}
    machine.submit(c.StartRun("small", "go", by=WILL, authors=("author",)))
    machine.start_ready()
    return machine


def answer(machine: Machine, by: str, option_id: str = "approve", **more: Any) -> None:
    machine.submit(c.Answer(question(machine).request_id, by, option_id, **more))
    machine.start_ready()


class TestPlans:
    def test_who_started_or_registered_it_does_not_approve(self) -> None:
        machine = paying()
        (opened,) = machine.state.questions.values()
        assert opened.wanted_by == {WILL: "started", "author": "registered"}
        for by, why in ((WILL, "you started this run"), ("author", "you registered a plan")):
            with pytest.raises(NotPermitted, match=why):
                answer(machine, by)
        answer(machine, ANN)
        assert len(machine.flying) == 1

    def test_who_wants_it_may_still_say_no(self) -> None:
        machine = paying()
        answer(machine, WILL, "reject", feedback="not now")
        assert not machine.flying

    def test_whoever_wants_something_in_another_run_of_the_tree_does_not_approve(self) -> None:
        machine = paying()
        machine.wanted_by = {ANN: "changed"}
        with pytest.raises(NotPermitted, match="you changed this run, and so want"):
            answer(machine, ANN)

    def test_an_edit_is_asked_again_of_another(self) -> None:
        machine = paying()
        answer(machine, ANN, data={"n": 2})
        assert not machine.flying
        request = question(machine)
        assert request.context["args"] == {"n": 2}
        assert request.details.startswith("ann wants it changed, and somebody else must approve")
        assert "- n: 1 has become 2" in request.details
        with pytest.raises(NotPermitted, match="you answered"):
            answer(machine, ANN)
        answer(machine, BOB)
        (call,) = machine.flying.values()
        assert getattr(call, "args", None) == {"n": 2}
        machine.reload()

    @pytest.mark.parametrize("option_id", ["approve", RUN_AGAIN])
    def test_what_is_asked_anew_stays_under_four_eyes_where_the_setting_is_gone(
        self, option_id: str
    ) -> None:
        machine = paying()
        if option_id == RUN_AGAIN:
            answer(machine, BOB)
            (call,) = machine.flying.values()
            machine.report(call, UNKNOWN)
        machine.wanted_by = None
        answer(machine, ANN, option_id, data={} if option_id == RUN_AGAIN else {"n": 2})
        with pytest.raises(NotPermitted, match="you answered"):
            answer(machine, ANN)
        answer(machine, BOB)
        assert len(machine.flying) == 1

    def test_what_was_never_under_four_eyes_is_asked_anew_without(self) -> None:
        machine = paying()
        assert asked_before(machine.state, "unknown to anybody") is None
        assert asked_before(machine.state, None) is None

    def test_what_a_handler_makes_of_an_answer_is_the_answerers(self) -> None:
        ways = (InteractionOption("own", "Own", A.CUSTOM),)
        guarded = replace(GUARDED, consent=replace(GUARDED.consent, options=ways))
        machine = paying(guarded)
        changed = Resolution(A.APPROVE_AND_EXECUTE, {"n": 2})
        answer(machine, ANN, "own", resolution=changed)
        assert not machine.flying
        with pytest.raises(NotPermitted):
            answer(machine, ANN, "own", resolution=Resolution(A.APPROVE_AND_EXECUTE))
        answer(machine, BOB, "own", resolution=Resolution(A.APPROVE_AND_EXECUTE))
        assert len(machine.flying) == 1

    def test_a_call_is_not_made_again_on_the_consent_of_before(self) -> None:
        machine = paying()
        answer(machine, ANN)
        (call,) = machine.flying.values()
        machine.report(call, UNKNOWN)
        answer(machine, ANN, RUN_AGAIN)
        assert not machine.flying
        assert "is to be called once more" in question(machine).details
        with pytest.raises(NotPermitted):
            answer(machine, ANN)
        answer(machine, BOB)
        assert len(machine.flying) == 1

    def test_people_who_change_a_run_want_what_it_does(self) -> None:
        machine = Machine(
            compiled(
                on("L001", "001 Running", CONFIRM, "002"), on("L002", "001 Running", ASK, "003")
            )
        )
        machine.submit(c.StartRun("small", "go", by=WILL))
        machine.start_ready()
        machine.submit(c.EditContext("001", {"x": 1}, "editor"))
        machine.submit(c.Skip("L002", "skipper"))
        machine.submit(c.RerunFrom("L002", "rerunner"))
        machine.submit(c.MarkDone("002", "doer"))
        people = {"editor", "skipper", "rerunner", "doer"}
        assert {one for one, how in machine.state.wanting.items() if how == "changed"} == people

    def test_who_resumes_wants_it(self) -> None:
        machine = Machine(compiled(on("L001", "001 Running", CALL, "002")))
        machine.submit(c.StartRun("small", "go", by=WILL))
        machine.start_ready()
        (call,) = machine.flying.values()
        machine.report(call, c.Failed(Failure(FailureKind.PERMANENT, "no")))
        machine.consult(0)
        machine.submit(c.Resume(ANN))
        assert dict(machine.state.wanting) == {WILL: "started", ANN: "resumed"}


class TestSessions:
    def chat(self) -> Chat:
        chat = opened_chat(clerk())
        chat.wanted_by = {}
        chat.submit(c.Say("Pay, please.", ANN))
        return chat

    def test_who_spoke_does_not_approve_and_an_edit_is_asked_again(self) -> None:
        chat = self.chat()
        (step_id,) = chat.calls(chat.want("pay", amount=5))
        asked_at = chat.question().request_id
        for by in (ANN, WILL):
            with pytest.raises(NotPermitted):
                chat.submit(c.Answer(asked_at, by, "approve"))
        chat.submit(c.Answer(asked_at, BOB, "approve", {"amount": 6}))
        chat.start(step_id)
        with pytest.raises(NotPermitted):
            chat.submit(c.Answer(chat.question().request_id, BOB, "approve"))
        chat.submit(c.Answer(chat.question().request_id, "eve", "approve"))
        chat.start(step_id)
        assert chat.out(step_id).args == {"amount": 6}

    def test_nothing_is_approved_beforehand(self) -> None:
        chat = opened_chat(clerk())
        granted = c.RememberApproval("pay", "1", BOB)
        chat.submit(granted)
        chat.wanted_by = {}
        with pytest.raises(NotPermitted, match="four eyes"):
            chat.submit(granted)
        chat.say()
        chat.calls(chat.want("pay", amount=5))
        assert not chat.happened(r.CallStarted)
        assert chat.question().type is T.TOOL_APPROVAL

    @pytest.mark.parametrize("tool", ["pay", "*"])
    def test_a_session_opens_with_no_rule_that_lets_calls_run(self, tool: str) -> None:
        for raw in ("auto", {"require_when": "amount > 9"}):
            chat = Chat(clerk())
            chat.wanted_by = {}
            with pytest.raises(NotPermitted, match="four eyes"):
                chat.submit(c.StartSession("clerk", by=WILL, approval={tool: read_rule(raw)}))
            assert not chat.state.version
        chat.submit(c.StartSession("clerk", by=WILL, approval={tool: read_rule("require")}))
        assert chat.state.version

    def test_nor_does_a_rule_count_that_it_has(self) -> None:
        chat = opened_chat(clerk(), approval={"pay": read_rule("auto")})
        chat.wanted_by = {}
        chat.say()
        chat.calls(chat.want("pay", amount=5))
        assert not chat.happened(r.CallStarted)
        assert chat.question().type is T.TOOL_APPROVAL

    def test_a_run_below_inherits_rules_that_do_not_count(self) -> None:
        chat = Chat(clerk())
        chat.wanted_by = {}
        rules = {"pay": read_rule("auto")}
        above = Parent("chat_000001", "c1", 1)
        chat.submit(c.StartSession("clerk", "chat_000001", above, WILL, rules))
        chat.say()
        chat.calls(chat.want("pay", amount=5))
        assert not chat.happened(r.CallStarted)

    def test_who_proposes_or_resumes_wants_it(self) -> None:
        chat = opened_chat(clerk())
        chat.submit(c.Propose("pay", {"amount": 5}, "k9", ANN))
        assert chat.state.wanting[ANN] == "spoke"

    def test_a_question_that_looks_like_an_approval_is_one(self) -> None:
        chat = self.chat()
        ways = (InteractionOption("yes", "Yes", A.APPROVE_AND_EXECUTE),)
        chat.submit(c.Ask(InteractionRequest("", "", T.TOOL_APPROVAL, "May I?", options=ways)))
        with pytest.raises(NotPermitted, match="you spoke in this run"):
            chat.submit(c.Answer(chat.question().request_id, ANN, "yes"))


class TestConversations:
    def test_who_speaks_resumes_or_restores_does_not_approve(self) -> None:
        talk = Talk().open()
        talk.wanted_by = {}
        talk.goal = (SubTask("pay it", "Pay.", "pay", 0, (), {"amount": 5}, route="tool"),)
        talk.submit(c.Converse("Pay.", ANN))
        talk.until(EngineState.EXECUTING)
        talk.submit(c.Hold())
        talk.submit(c.Unhold(BOB))
        talk.fill()
        opened = talk.question()
        for by in (WILL, ANN, BOB):
            with pytest.raises(NotPermitted):
                talk.submit(c.Answer(opened.request_id, by, "approve"))
        talk.submit(c.Answer(opened.request_id, "eve", "approve", {"amount": 6}))
        talk.fill()
        with pytest.raises(NotPermitted):
            talk.submit(c.Answer(talk.question().request_id, "eve", "approve"))
        talk.submit(c.Answer(talk.question().request_id, "dan", "approve"))
        talk.fill()
        assert talk.out("pay it").args == {"amount": 6}

    def test_who_starts_over_or_brings_a_snapshot_wants_it(self) -> None:
        talk = Talk().open()
        talk.submit(c.StartOver(ANN))
        talk.submit(c.RestoreSnapshot(dump(talk.state), BOB))
        assert dict(talk.state.wanting) == {WILL: "started", ANN: "changed", BOB: "changed"}

    @pytest.mark.parametrize("failed", [AfterFailure.RETRY, AfterFailure.SKIP])
    def test_who_has_a_failed_turn_go_on_wants_it(self, failed: AfterFailure) -> None:
        talk = executing(SubTask("read it"), retry=RetryPolicy(attempts=1)).fill()
        talk.fails("read it")
        talk.advance()
        talk.submit(c.GoOn(failed, BOB))
        assert talk.state.wanting[BOB] == "resumed"


def test_what_has_changed_since_is_told_as_before() -> None:
    shown = {"tool": "order", "args": {"n": 2}, "tool_version": "1"}
    before = asked(consent="c")
    told = replace(
        before, request=replace(before.request, context={"tool": "order", "tool_version": "1"})
    )
    assert differences([told], "c", shown)[0].startswith("This was consented to, but")


EVE = "eve"


def begun() -> Machine:
    machine = Machine(compiled(on("L001", "001 Running", CALL, "002")))
    machine.submit(c.StartRun("small", "go", by=WILL))
    machine.start_ready()
    return machine


def failed_plan() -> Machine:
    machine = begun()
    (call,) = machine.flying.values()
    machine.report(call, c.Failed(Failure(FailureKind.PERMANENT, "no")))
    machine.consult(0)
    return machine


def failed_chat() -> Chat:
    chat = opened_chat(clerk())
    chat.say()
    chat.report(chat.think(), c.Failed(Failure(FailureKind.PERMANENT, "no")))
    return chat


def granted_chat() -> Chat:
    chat = opened_chat(clerk())
    chat.submit(c.RememberApproval("pay", "1", WILL))
    return chat


def thinking() -> Talk:
    talk = Talk().open()
    talk.submit(c.Converse("Pay.", WILL))
    return talk.until(EngineState.DECOMPOSING)


def will_pause() -> Talk:
    talk = thinking()
    talk.submit(c.Hold(when_possible=True, by=WILL))
    return talk


def paused() -> Talk:
    talk = executing(SubTask("read it"))
    talk.submit(c.Hold(by=WILL))
    return talk


def failed_talk() -> Talk:
    talk = executing(SubTask("read it"), retry=RetryPolicy(attempts=1)).fill()
    talk.fails("read it")
    talk.advance()
    return talk


def confirming() -> Talk:
    talk = wanted_talk(SubTask("read it"), confirm_tasks=True)
    talk.settle()
    return talk


def missing() -> Machine:
    machine = Machine(compiled(on("L001", "001 Running", ASK, "002")))
    machine.submit(c.StartRun("small", "go", by=WILL))
    machine.start_ready()
    return machine


BY_PEOPLE: list[tuple[Any, Any, str]] = [
    (lambda: Machine(begun().plan), c.StartRun("small", "go", by=EVE), "started"),
    (failed_plan, c.Resume(EVE), "resumed"),
    (failed_plan, c.Skip("L001", EVE), "changed"),
    (begun, c.MarkDone("002", EVE), "changed"),
    (begun, c.EditContext("001", {"x": 1}, EVE), "changed"),
    (failed_plan, c.RerunFrom("L001", EVE), "resumed"),
    (begun, c.Cancel(EVE), "changed"),
    (lambda: Chat(clerk()), c.StartSession("clerk", by=EVE), "started"),
    (lambda: opened_chat(clerk()), c.Say("Pay.", EVE), "spoke"),
    (lambda: opened_chat(clerk()), c.Propose("pay", {"amount": 5}, "k9", EVE), "spoke"),
    (lambda: opened_chat(clerk()), c.RememberApproval("pay", "1", EVE), "changed"),
    (granted_chat, lambda run: c.RevokeApproval(next(iter(run.state.grants)), EVE), "changed"),
    (failed_chat, c.Resume(EVE), "resumed"),
    (lambda: opened_chat(clerk()), c.Cancel(EVE), "changed"),
    (Talk, c.OpenConversation(by=EVE), "started"),
    (lambda: Talk().open(), c.Converse("Pay.", EVE), "spoke"),
    (thinking, c.Hold(when_possible=True, by=EVE), "changed"),
    (lambda: executing(SubTask("read it")), c.Hold(by=EVE), "changed"),
    (will_pause, c.Unhold(EVE), "resumed"),
    (paused, c.Unhold(EVE), "resumed"),
    (thinking, c.Abort(by=EVE), "changed"),
    (paused, c.Abort(by=EVE), "changed"),
    (failed_talk, c.GoOn(AfterFailure.RETRY, EVE), "resumed"),
    (failed_talk, c.GoOn(AfterFailure.SKIP, EVE), "resumed"),
    (failed_talk, c.GoOn(AfterFailure.STOP, EVE), "changed"),
    (paused, c.StartOver(EVE), "changed"),
    (failed_talk, lambda run: c.RestoreSnapshot(dump(run.state), EVE), "changed"),
    (lambda: Talk().open(), c.Cancel(EVE), "changed"),
    (
        missing,
        lambda run: c.Answer(question(run).request_id, EVE, "provide", {"colour": "red"}),
        "answered",
    ),
    (confirming, lambda run: c.Answer(run.question().request_id, EVE, "run"), "answered"),
]


@pytest.mark.parametrize(("begin", "command", "how"), BY_PEOPLE)
def test_every_command_of_a_person_makes_it_theirs(begin: Any, command: Any, how: str) -> None:
    run = begin()
    run.submit(command(run) if callable(command) else command)
    assert run.state.wanting[EVE] == how


def test_no_command_of_a_person_is_forgotten() -> None:
    named = {
        type(command(begin()) if callable(command) else command) for begin, command, _ in BY_PEOPLE
    }
    signed = {one for one in get_args(c.Command) if "by" in {at.name for at in fields(one)}}
    # A draft is no answer; who proposes a patch wants it once it is applied (test_cases); a fork is
    # a run of its own (test_forking).
    assert signed - named == {c.KeepDraft, c.ProposePatch, c.StartFork}

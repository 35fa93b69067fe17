"""Questions inside plans: every action, for every purpose, and what a plan does about it.

The tool calls are counted: what a person refuses, skips, sends back or stops never runs, and
what a person approves runs once, with the arguments that were shown or changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from machine import Machine
from small_plans import (
    CALL,
    CALLING_CODE,
    CODE,
    COLOUR,
    TRANSIENT,
    WILL,
    compiled,
    events,
    fail,
    give_up,
    on,
    only,
    question,
    reply,
    started,
    statuses,
    succeed,
)

from holdfast.core.run.tables import StepStatus
from holdfast.forms.lost_results import WHOLE_RESULT
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.approval import ApprovalMode, ApprovalRule
from holdfast.model.form import Field, Form
from holdfast.model.interaction import (
    Asking,
    InteractionAction,
    InteractionOption,
    InteractionType,
    Resolution,
)
from holdfast.model.plan import AgentAction, Check, HumanAction, Listener, ToolAction

A, T = InteractionAction, InteractionType
ACTIONS = [one for one in A if one is not A.CUSTOM]
OTHER_TYPES = [one for one in T if one is not T.TOOL_APPROVAL]

ORDER = c.ToolFacts(
    {
        "type": "object",
        "properties": {
            "amount": {"type": "integer", "maximum": 9000},
            "model": {"type": "string", "enum": ["air", "pro"]},
        },
        "required": ["amount"],
    },
    "1",
    approval=ApprovalRule(ApprovalMode.REQUIRE_APPROVAL, "amount > 1000"),
)


def run(*listeners: Listener, order: c.ToolFacts = ORDER, **plan: Any) -> Machine:
    machine = Machine(compiled(*listeners, **plan))
    machine.tools["order"] = order
    machine.submit(c.StartRun("small", "go", {"name": "张三"}, by=WILL))
    machine.start_ready()
    return machine


def calls(machine: Machine) -> list[dict[str, Any]]:
    """The arguments of every tool call so far."""
    made = [*machine.past, *machine.flying.values()]
    return [dict(one.args) for one in made if isinstance(one, f.CallTool)]


def offering(action: InteractionAction, *, custom: bool, **more: Any) -> Asking:
    """One option that does it, at once or by way of a handler."""
    it = InteractionOption("it", "It", A.CUSTOM if custom else action, metadata={"size": "XL"})
    kind = more.get("type")
    return Asking(options=(it,), custom_type="own" if kind is T.CUSTOM else None, **more)


def human(asking: Asking) -> Machine:
    return run(on("L001", "001 Running", HumanAction(asking=asking), "002"))


def missing(asking: Asking) -> Machine:
    return run(on("L001", "001 Running", ToolAction("picky", missing=asking), "002"))


def approval(asking: Asking, amount: int = 2000) -> Machine:
    action = ToolAction("order", {"amount": amount}, consent=asking)
    return run(on("L001", "001 Running", action, "002"))


def choose(machine: Machine, action: InteractionAction, *, custom: bool, **more: Any) -> None:
    data = more.pop("data", {})
    if custom:
        reply(machine, "it", resolution=Resolution(action, data), **more)
    else:
        reply(machine, "it", data=data, **more)


def refused(machine: Machine, action: InteractionAction, asked: str) -> None:
    """What the actions do that do not go on: the same, whatever was asked."""
    assert calls(machine) == []
    match action:
        case A.REJECT_WITH_REASON:
            (failed,) = events(machine, e.ListenerFailed)
            assert failed.failure.message == f"rejected by {WILL}: not so"
            assert machine.state.status == "error"
            assert not machine.consultations, "nobody tries again what a person refused"
        case A.SKIP:
            assert machine.state.steps["L001"].status is StepStatus.SKIPPED
            assert statuses(machine)["002"] == "Skipped"
        case A.TERMINATE:
            assert machine.state.status == "cancelled"
            assert machine.state.cancelled_by == WILL
        case _:
            again = question(machine)
            assert again.request_id != asked
            assert again.message.endswith("Feedback on the last answer: not so")


GOING_ON = (A.APPROVE_AND_EXECUTE, A.PROVIDE_INFO)


@pytest.mark.parametrize("custom", [False, True], ids=["at once", "by a handler"])
@pytest.mark.parametrize("action", ACTIONS)
class TestEveryActionOfEveryType:
    @pytest.mark.parametrize("kind", T)
    def test_where_a_plan_asks_a_person(
        self, kind: InteractionType, action: InteractionAction, custom: bool
    ) -> None:
        machine = human(offering(action, custom=custom, type=kind))
        asked = question(machine)
        assert asked.type is kind
        choose(machine, action, custom=custom, feedback="not so")
        if action in GOING_ON:
            conclusion = only(machine)
            assert isinstance(conclusion, f.Conclude)
            assert conclusion.result == {"option": "it", "size": "XL", "feedback": "not so"}
        else:
            refused(machine, action, asked.request_id)

    @pytest.mark.parametrize("kind", OTHER_TYPES)
    def test_where_a_tool_lacks_something(
        self, kind: InteractionType, action: InteractionAction, custom: bool
    ) -> None:
        machine = missing(offering(action, custom=custom, type=kind, message="Please."))
        asked = question(machine)
        data = {"size": "S"} if action is A.PROVIDE_INFO else {}
        choose(machine, action, custom=custom, data=data, feedback="not so")
        if action in GOING_ON:
            assert calls(machine) == [{"size": "XL"} if action is A.APPROVE_AND_EXECUTE else data]
        else:
            refused(machine, action, asked.request_id)

    def test_where_a_call_needs_consent(self, action: InteractionAction, custom: bool) -> None:
        machine = approval(offering(action, custom=custom))
        asked = question(machine)
        assert asked.type is T.TOOL_APPROVAL
        changes = {"amount": 3000, "model": "pro"} if action in GOING_ON else {}
        choose(machine, action, custom=custom, data=changes, feedback="not so")
        if action in GOING_ON:
            assert calls(machine) == [changes]
            assert only(machine).consent is not None  # type: ignore[union-attr]
        else:
            refused(machine, action, asked.request_id)


class TestConsent:
    def test_a_rule_of_the_tool_looks_at_the_arguments(self) -> None:
        assert calls(approval(Asking(), amount=1000)) == [{"amount": 1000}]
        machine = approval(Asking(), amount=1001)
        assert calls(machine) == []
        assert question(machine).context["args"] == {"amount": 1001}

    def test_a_condition_that_cannot_be_judged_asks(self) -> None:
        rule = ApprovalRule(ApprovalMode.REQUIRE_APPROVAL, "price > 1000")
        listener = on("L001", "001 Running", ToolAction("order", {"amount": 1}), "002")
        machine = run(listener, order=replace(ORDER, approval=rule))
        assert question(machine).type is T.TOOL_APPROVAL

    def test_an_edit_runs_the_edited_bytes_and_nothing_is_rendered_again(self) -> None:
        machine = approval(Asking())
        reply(machine, "approve", data={"amount": 1500})
        assert calls(machine) == [{"amount": 1500}]
        fail(machine, TRANSIENT)
        machine.fire_timer()
        machine.start_ready()
        assert calls(machine) == [{"amount": 1500}] * 2

    def test_no_edit_opens_what_the_tools_author_has_closed(self) -> None:
        rule = ApprovalRule(ApprovalMode.DISABLED, "amount > 5000", ApprovalMode.REQUIRE_APPROVAL)
        listener = on("L001", "001 Running", ToolAction("order", {"amount": 10}), "002")
        machine = run(listener, order=replace(ORDER, approval=rule))
        reply(machine, "approve", data={"amount": 6000})
        assert calls(machine) == []
        (failed,) = events(machine, e.ListenerFailed)
        assert failed.failure.message == "the tool order is disabled"

    def changed_after(self, order: c.ToolFacts, **answer: Any) -> Machine:
        """The tool has changed between the consent and the start."""
        machine = approval(Asking())
        asked = question(machine).request_id
        machine.submit(c.Answer(asked, WILL, "approve", **answer))
        machine.tools["order"] = order
        machine.start_ready()
        return machine

    def test_another_version_asks_again_with_the_difference(self) -> None:
        machine = self.changed_after(replace(ORDER, version="2"))
        assert calls(machine) == []
        again = question(machine)
        assert "the tool order itself is another version" in again.details
        assert again.context["before"]["tool_version"] == "1"
        assert again.context["tool_version"] == "2"
        reply(machine, "approve")
        assert calls(machine) == [{"amount": 2000}]

    def test_a_version_that_needs_more_asks_for_it_and_shows_the_difference(self) -> None:
        schema = dict(ORDER.parameters)
        schema["properties"] = {**schema.get("properties", {}), "to": {"type": "string"}}
        schema["required"] = [*schema.get("required", ()), "to"]
        machine = self.changed_after(replace(ORDER, version="2", parameters=schema))
        assert question(machine).type is T.MISSING_INFO
        reply(machine, "provide", data={"to": "张三"})
        again = question(machine)
        assert '- to: new, "张三"' in again.details
        assert again.context["before"]["args"] == {"amount": 2000}
        assert calls(machine) == []
        reply(machine, "approve")
        assert calls(machine) == [{"amount": 2000, "to": "张三"}]

    def test_another_version_proposes_what_the_person_had_edited(self) -> None:
        machine = self.changed_after(replace(ORDER, version="2"), data={"amount": 1500})
        again = question(machine)
        assert again.context["args"] == {"amount": 1500}
        assert again.context["before"]["args"] == {"amount": 1500}
        assert "amount" not in again.details

    def test_an_edit_holds_although_no_consent_is_needed_any_more(self) -> None:
        free = ApprovalRule(ApprovalMode.AUTO)
        newer = replace(ORDER, version="2", approval=free)
        machine = self.changed_after(newer, data={"amount": 1500})
        assert calls(machine) == [{"amount": 1500}]

    def test_only_a_tool_call_can_be_approved(self) -> None:
        machine = run(on("L001", "001 Running", CODE, "002", approval=True))
        (failed,) = events(machine, e.ListenerFailed)
        assert failed.failure.message == "only a tool call can be approved"
        assert not machine.flying

    def test_feedback_stands_beside_the_authors_words_and_goes_with_the_next_answer(self) -> None:
        machine = approval(Asking(message="Look twice."))
        reply(machine, "retry", feedback="smaller")
        assert question(machine).message == ("Look twice.\nFeedback on the last answer: smaller")
        reply(machine, "approve", feedback="all right")
        fail(machine, c.Missing(COLOUR))
        assert "all right" not in question(machine).message


class TestUnsoundAskings:
    twice = Asking(
        options=(InteractionOption("a", "A", A.SKIP), InteractionOption("a", "B", A.SKIP))
    )

    @pytest.mark.parametrize("asks", [human, missing, approval])
    def test_the_listener_fails_and_says_why(self, asks: Callable[[Asking], Machine]) -> None:
        machine = asks(self.twice)
        (failed,) = events(machine, e.ListenerFailed)
        assert failed.failure.message == (
            'this question cannot be asked: options[1].option_id: "a" is options[0] already'
        )
        assert not machine.state.open_questions
        assert calls(machine) == []
        machine.consult(0)
        assert machine.state.status == "error"

    def test_an_approval_cannot_pass_for_something_else(self) -> None:
        machine = approval(Asking(type=T.USER_CONFIRMATION))
        (failed,) = events(machine, e.ListenerFailed)
        assert "leave the type out" in failed.failure.message

    def test_a_tool_that_says_itself_what_it_lacks_fails_likewise(self) -> None:
        machine = run(on("L001", "001 Running", ToolAction("plain", missing=self.twice), "002"))
        fail(machine, c.Missing(COLOUR))
        assert machine.state.steps["L001"].status is StepStatus.CONSULTING


class TestTimeouts:
    def test_a_choice_is_made_by_the_clock(self) -> None:
        usual = InteractionOption(
            "usual", "As usual", A.APPROVE_AND_EXECUTE, is_default=True, metadata={"model": "air"}
        )
        machine = human(Asking(options=(usual,), timeout_seconds=30.0))
        machine.fire_timer()
        machine.start_ready()
        conclusion = only(machine)
        assert isinstance(conclusion, f.Conclude)
        assert conclusion.result == {"option": "usual", "model": "air"}
        (asked,) = machine.state.questions.values()
        assert (asked.status, asked.by) == ("expired", None)

    def test_what_is_missing_takes_the_forms_defaults(self) -> None:
        fields = Form((Field("size", default="M"),))
        waits = Asking(timeout_seconds=30.0, default_option_id="provide")
        action = ToolAction("picky", fields=fields, missing=waits)
        machine = run(on("L001", "001 Running", action, "002"))
        machine.fire_timer()
        machine.start_ready()
        assert calls(machine) == [{"size": "M"}]

    def test_the_clock_refuses_a_call_but_never_approves_one(self) -> None:
        no = InteractionOption("no", "No", A.REJECT_WITH_REASON)
        machine = approval(Asking(options=(no,), timeout_seconds=30.0, default_option_id="no"))
        machine.fire_timer()
        (failed,) = events(machine, e.ListenerFailed)
        assert failed.failure.message == "rejected by clock: nobody answered in time"
        unsound = approval(Asking(timeout_seconds=30.0, default_option_id="approve"))
        (failed,) = events(unsound, e.ListenerFailed)
        assert "the clock may not take" in failed.failure.message

    def test_what_is_not_required_is_skipped_by_the_clock(self) -> None:
        asking = Asking(required=False, timeout_seconds=30.0, default_option_id="skip")
        machine = human(asking)
        machine.fire_timer()
        assert statuses(machine)["002"] == "Skipped"

    def test_without_a_default_nobody_answered(self) -> None:
        machine = missing(Asking(timeout_seconds=30.0))
        machine.fire_timer()
        (failed,) = events(machine, e.ListenerFailed)
        assert failed.failure.message == "nobody answered in time"
        assert not machine.consultations
        assert calls(machine) == []


class TestAgents:
    hire = AgentAction("hr", "Create a profile for {001.context.name}")
    plan = (
        on("L001", "001 Running", hire, "002", context={"id": "{{result.id}}"}),
        on("L002", "002 Done", CODE, "001"),
    )

    def start_of(self, machine: Machine, listener_id: str) -> f.StartAgent:
        (effect,) = machine.start(listener_id).effects
        assert isinstance(effect, f.StartAgent)
        return effect

    def begun(self) -> tuple[Machine, f.StartAgent]:
        machine = Machine(compiled(*self.plan))
        machine.submit(c.StartRun("small", "go", {"name": "张三"}, by=WILL))
        return machine, self.start_of(machine, "L001")

    def test_it_works_as_a_child_run_with_the_rendered_prompt(self) -> None:
        machine, effect = self.begun()
        assert effect.prompt == "Create a profile for 张三"
        assert (effect.agent_id, effect.child_id) == ("hr", "inst_000001.L001.1")
        assert effect.root_id == "inst_000001"
        assert not effect.verifies
        machine.hear(effect.child_id, "done", {"success": True, "id": "WZ001"})
        machine.start_ready()
        succeed(machine)
        assert machine.state.task("002").context["id"] == "WZ001"

    def test_a_prompt_that_names_nothing_reaches_no_agent(self) -> None:
        lost = AgentAction("hr", "Greet {001.context.nmae}")
        machine = run(on("L001", "001 Running", lost, "001"))
        (failed,) = events(machine, e.ListenerFailed)
        assert "did you mean 'name'?" in failed.failure.message
        assert not machine.children

    def test_one_that_did_not_succeed_is_asked_anew_by_the_planner_only(self) -> None:
        machine, effect = self.begun()
        machine.hear(effect.child_id, "done", {"success": False, "error": "no such person"})
        machine.start_ready()
        fail(machine, machine.outcome(only(machine), None))
        assert not events(machine, e.AttemptFailed), "its answer is at hand: no further attempt"
        machine.consult(1)
        again = self.start_of(machine, "L001")
        assert again.child_id == "inst_000001.L001.2"
        machine.hear(again.child_id, "done", {"success": True, "id": "WZ001"})
        machine.start_ready()
        succeed(machine)
        assert machine.state.task("002").context["id"] == "WZ001"

    def test_one_that_fails_while_the_run_is_cancelled_has_not_succeeded(self) -> None:
        machine, effect = self.begun()
        machine.submit(c.Cancel(WILL))
        machine.hear(effect.child_id, "done", {"success": False})
        assert machine.state.status == "cancelled"
        assert not events(machine, e.ListenerSucceeded)
        (failed,) = events(machine, e.ListenerFailed)
        assert failed.failure.message == "its child run did not succeed"

    def verifying(self) -> tuple[Machine, str]:
        """The work is done, and the agent looks at it in a child run of its own."""
        machine, effect = self.begun()
        machine.hear(effect.child_id, "done", {"success": True, "id": "WZ001"})
        machine.start_ready()
        succeed(machine)
        succeed(machine)
        _, looking = machine.children
        assert looking == "inst_000001.verify.hr.1"
        return machine, looking

    @pytest.mark.parametrize("verdict", ["verified", "unable_to_verify"])
    def test_it_looks_at_the_outcome_in_the_end(self, verdict: str) -> None:
        machine, looking = self.verifying()
        told = {"success": True, "verdict": verdict, "answer": "I looked."}
        machine.hear(looking, "done", told)
        machine.start_ready()
        fail(machine, machine.outcome(only(machine), None))
        assert machine.state.status == "done"
        assert machine.state.verification == {"verify.hr": verdict}
        (concluded,) = events(machine, e.CheckConcluded)
        assert concluded.message == "I looked."

    def test_what_it_finds_wrong_stops_the_run_until_it_looks_again(self) -> None:
        machine, looking = self.verifying()
        wrong = {"success": False, "verdict": "failed", "answer": "There is no profile."}
        machine.hear(looking, "done", wrong)
        machine.start_ready()
        fail(machine, machine.outcome(only(machine), None))
        assert machine.state.status == "error"
        assert "hr" in machine.state.main_task.context["error_info"]["message"]
        machine.submit(c.Resume(WILL))
        again = self.start_of(machine, "verify.hr")
        assert again.verifies
        assert again.child_id == "inst_000001.verify.hr.2"

    def test_one_that_breaks_down_has_verified_nothing(self) -> None:
        machine, looking = self.verifying()
        machine.hear(looking, "error")
        assert machine.state.verification == {"verify.hr": "unable_to_verify"}
        assert machine.state.status == "done"


class TestWorkDoneByHand:
    chain = (
        on("L001", "001 Running", CALL, "002"),
        on("L002", "002 Done", CALL, "003"),
        on("L003", "003 Done", CODE, "001"),
    )

    def test_no_tool_repeats_what_a_person_did_beforehand(self) -> None:
        machine = run(*self.chain)
        machine.submit(c.MarkDone("003", WILL, {"order": "PC-1"}))
        assert machine.state.steps["L002"].status is StepStatus.SKIPPED
        assert machine.state.steps["L002"].firing == 0
        assert "L003" in machine.ready()
        machine.settle()
        assert machine.state.status == "done"
        assert len(calls(machine)) == 1, "L002 was spared"

    def test_it_does_not_run_at_the_resume_either(self) -> None:
        machine = run(*self.chain)
        give_up(machine)
        machine.submit(c.MarkDone("003", WILL))
        machine.submit(c.MarkDone("002", WILL))
        machine.submit(c.Resume(WILL))
        assert machine.ready() == ["L003"]
        assert machine.settle().status == "done"

    def test_running_again_from_it_lets_it_fire_after_all(self) -> None:
        machine = run(*self.chain)
        machine.submit(c.MarkDone("003", WILL))
        machine.submit(c.RerunFrom("L002", WILL))
        machine.reload()
        assert machine.state.steps["L002"].firing == 1
        assert machine.state.steps["L002"].status is StepStatus.READY

    def test_what_was_reset_is_spared_as_well(self) -> None:
        machine = run(*self.chain)
        succeed(machine)
        succeed(machine)
        fail(machine, TRANSIENT)
        machine.submit(c.RerunFrom("L001", WILL))
        machine.submit(c.MarkDone("003", WILL))
        machine.settle()
        assert machine.state.steps["L002"].firing == 1
        assert machine.state.status == "done"

    def test_marking_twice_changes_nothing_more(self) -> None:
        machine = run(*self.chain)
        machine.submit(c.MarkDone("003", WILL))
        machine.submit(c.MarkDone("003", WILL))
        first, second = events(machine, e.TasksEdited)
        assert first.closed == ("L002",)
        assert second.closed == ()

    def test_one_that_repeats_still_follows_its_triggers(self) -> None:
        again = on("L002", "002 Done", CALL, "003", repeat=True)
        machine = run(self.chain[0], again, self.chain[2])
        machine.submit(c.MarkDone("003", WILL))
        (edited,) = events(machine, e.TasksEdited)
        assert edited.closed == ()
        succeed(machine)
        machine.start_ready()
        assert "L002" in machine.state.steps
        assert machine.state.steps["L002"].firing == 1

    def test_what_follows_from_the_marking_is_not_held_back(self) -> None:
        notes = on("L004", "003 Done", CALL, "003")
        machine = run(*self.chain, notes)
        machine.submit(c.MarkDone("003", WILL))
        (edited,) = events(machine, e.TasksEdited)
        assert edited.closed == ("L002",)
        assert {"L003", "L004"} <= set(machine.ready())


class TestLostResults:
    def lost(self, context: dict[str, Any]) -> Machine:
        machine = started(on("L001", "001 Running", CALL, "001", context=context))
        fail(machine, c.Lost("no answer"))
        return machine

    def told(self, machine: Machine, data: dict[str, Any]) -> Any:
        reply(machine, "happened", data=data)
        conclusion = only(machine)
        assert isinstance(conclusion, f.Conclude)
        return conclusion.result

    def test_each_part_that_is_read_is_asked_for_by_its_path(self) -> None:
        context = {
            "id": "{{result.order.id}}",
            "at": "{{result.order.at}}",
            "order": "{{result.order}}",
            "first": "{{result.items.0}}",
            "x": "{{result.x}}",
        }
        machine = self.lost(context)
        names = [field.name for field in question(machine).form.fields]
        assert names == ["order.id", "order.at", "items.0", "x"]
        data = {"order.id": "PC-1", "order.at": "noon", "items.0": "mouse", "x": "7"}
        result = self.told(machine, data)
        assert result == {
            "order": {"id": "PC-1", "at": "noon"},
            "items": {"0": "mouse"},
            "x": "7",
        }
        succeed(machine)
        assert machine.state.main_task.context["order"] == {"id": "PC-1", "at": "noon"}
        assert machine.state.main_task.context["first"] == "mouse"

    def test_a_whole_result_is_told_as_json(self) -> None:
        machine = self.lost({"all": "{{result}}", "x": "{{result.x}}"})
        assert question(machine).form.fields == (WHOLE_RESULT,)
        result = self.told(machine, {"result": '{"x": [1, 2]}'})
        assert result == {"x": [1, 2]}
        succeed(machine)
        assert machine.state.main_task.context["x"] == [1, 2]

    def test_a_field_that_is_called_result_is_only_a_field(self) -> None:
        machine = self.lost({"r": "{{result.result}}"})
        assert self.told(machine, {"result": "[1]"}) == {"result": "[1]"}

    def test_where_nothing_is_read_nothing_is_asked(self) -> None:
        machine = self.lost({})
        assert question(machine).form == Form()
        assert self.told(machine, {}) == {"option": "happened"}

    def test_a_check_asks_for_what_it_expects(self) -> None:
        check = Check("plain", {}, "result.stock.left == '0' and 001.status == Done")
        machine = started(on("L001", "001 Running", CODE, "001"), verify=(check,))
        succeed(machine)
        fail(machine, c.Lost("no answer"))
        assert [one.name for one in question(machine).form.fields] == ["stock.left"]
        reply(machine, "happened", data={"stock.left": "0"})
        succeed(machine)
        assert machine.state.verification == {"verify.1": "verified"}

    def test_a_function_that_is_lost_is_told_as_text(self) -> None:
        machine = started(on("L001", "001 Running", CALLING_CODE, "001"))
        fail(machine, c.CallWanted(0, "plain", {}))
        fail(machine, c.Lost("no answer"))
        reply(machine, "happened", data={"result": "[1]"})
        snippet = only(machine)
        assert isinstance(snippet, f.RunSnippet)
        assert snippet.recorded[0].result == "[1]"

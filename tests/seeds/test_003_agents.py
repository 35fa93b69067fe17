"""Seed 003 with agents: Will Zhang's onboarding, each department's part done by an agent.

The agents think with a scripted model, their tools are the office's over real HTTP, and the
office counts every call: the counts are those of the onboarding without agents.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, PlanInstance
from holdfast.core.agent.state import ReactState
from holdfast.core.plan.state import PlanState
from holdfast.demo.colleagues import office_model
from holdfast.demo.office import Office
from holdfast.demo.onboarding import WILL_ZHANG, furnish
from holdfast.journal.port import QuestionRow
from holdfast.model import agent_events as r
from holdfast.model.form import Form
from holdfast.model.message import ModelSaid
from holdfast.model.recorded import Event
from holdfast.model.rows import request_of
from holdfast.testing.scripted_model import ScriptedModel

OpenApp = Callable[..., Awaitable[Holdfast]]
EventsOf = Callable[[Holdfast, str], Awaitable[list[Event]]]

ONBOARDING = "onboard_with_agents"
COMPUTER = "computer_with_agent"
WORK = ("create_employee_profile", "grant_access", "apply_computer", "outbound", "send_email")
LOOKS = ("query_profile", "query_access", "check_outbound_status")
EVERYTHING_ONCE = dict.fromkeys((*WORK, *LOOKS), 1)

TWO_COMPUTERS = """
plan_id: two_computers
main_task_id: "001"
tasks: [{task_id: "001"}, {task_id: "002"}, {task_id: "003"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: agent
    agent_id: it
    action_prompt: "employee: 张三"
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: agent
    agent_id: careful
    action_prompt: "employee: 张三\\ncomputer_model: ThinkPad X1"
    success_output: {task_id: "003", status: Done}
  - listener_id: L003
    trigger_task_id: "002,003"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""


@dataclass
class Firm:
    """An application with the office's agents, and the model that plays them."""

    app: Holdfast
    office: Office
    model: ScriptedModel

    async def onboard(self, **failures: int) -> PlanInstance:
        await self.office.configure_failures(failures)
        instance = await self.start(ONBOARDING, WILL_ZHANG)
        await instance.wait_for_completion()
        return instance

    async def start(self, plan_id: str, values: dict[str, str] | None = None) -> PlanInstance:
        return await self.app.plans.start_plan_by_prompt("入职流程", plan_id, values=values)

    async def resume(self, instance: PlanInstance) -> bool:
        return await self.app.planner_agent.resume_plan(
            self.app.plans, instance.plan_id, instance.id
        )

    async def provide(self, instance: PlanInstance, **params: Any) -> dict[str, Any]:
        return await self.app.planner_agent.continue_plan(instance.id, params)

    async def verdicts(self, instance: PlanInstance) -> dict[str, str]:
        state = await self.app.engine.state(instance.id)
        assert isinstance(state, PlanState)
        found = state.verification.items()
        return {name.removeprefix("verify."): verdict for name, verdict in found}

    async def session(self, run_id: str) -> ReactState:
        state = await self.app.engine.state(run_id)
        assert isinstance(state, ReactState)
        return state

    async def question(self, instance: PlanInstance) -> QuestionRow:
        assert await instance.wait_until_settled() == "pause"
        [question] = await self.app.inbox()
        return question

    def consents_first(self, agent_id: str) -> None:
        self.app.agent(agent_id, tools=["apply_computer"], approval="require")

    def looks_with(self, agent_id: str, tool: Callable[..., Any]) -> None:
        self.app.tool(tool)
        agent = self.app.engine.definitions.agent(agent_id).agent
        looking = replace(agent, verification_tools=(tool.__name__,))
        self.app.engine.definitions.add_agent(looking)


@pytest.fixture
async def firm(open_app: OpenApp, office: Office, tmp_path: Path) -> Firm:
    model = office_model()
    app = await open_app(tmp_path / "home", model=model, max_retry_count=1)
    furnish(app, office.url, with_agents=True)
    return Firm(app, office, model)


def form_of(question: QuestionRow) -> Form:
    return request_of(question).form


class TestOnboarding:
    """测试场景: Will Zhang 入职流程"""

    async def test_without_failures_every_tool_is_called_once(self, firm: Firm) -> None:
        instance = await firm.onboard()
        assert instance.status == "done"
        assert await firm.office.counts() == EVERYTHING_ONCE

    async def test_what_agents_found_out_reaches_the_next_ones(self, firm: Firm) -> None:
        instance = await firm.onboard()
        state = await firm.office.state()
        assert state["profiles"]["WZ001"]["email"] == "will.zhang@example.com"
        assert instance.get_task_instance("005").context["badge"] == "B0001"
        [mail] = state["mails"].values()
        assert mail["to"] == "will.zhang@example.com"
        assert all(one in mail["content"] for one in ("WZ001", "B0001", "PC-0001", "OUT-0001"))

    async def test_the_model_is_asked_twice_for_each_part(self, firm: Firm) -> None:
        """Once what to do and once what came of it: for five parts and three looks."""
        await firm.onboard()
        assert len(firm.model.seen) == 2 * (len(WORK) + len(LOOKS))

    async def test_one_failure_is_retried_by_the_agent_itself(self, firm: Firm) -> None:
        """门禁失败 1 次后重试成功"""
        instance = await firm.onboard(grant_access=1)
        assert instance.status == "done"
        assert await firm.office.counts() == EVERYTHING_ONCE | {"grant_access": 2}
        assert (await firm.session(f"{instance.id}.L002.1")).requests == 2

    async def test_three_failures_make_the_planner_ask_the_agent_anew(self, firm: Firm) -> None:
        instance = await firm.onboard(grant_access=3)
        assert instance.status == "done"
        assert await firm.office.counts() == EVERYTHING_ONCE | {"grant_access": 4}
        first = await firm.session(f"{instance.id}.L002.1")
        again = await firm.session(f"{instance.id}.L002.2")
        assert '"success": false' in first.answer
        assert '"access_id": "ACC-0001"' in again.answer
        assert instance.get_task_instance("005").context["retry_count"] == 1

    async def test_six_failures_wait_for_a_person_who_resumes(self, firm: Firm) -> None:
        """Resume 场景测试"""
        instance = await firm.onboard(grant_access=6)
        assert instance.status == "error"
        info = instance.get_main_task_instance().context["error_info"]
        assert (info["status"], info["failed_retries"]) == ("waiting_for_resume", 1)
        assert (await firm.office.counts())["grant_access"] == 6
        await firm.office.reset_failures()
        assert await firm.resume(instance) is True
        assert await instance.wait_for_completion() == "done"
        assert await firm.office.counts() == EVERYTHING_ONCE | {"grant_access": 7}
        assert await firm.resume(instance) is False
        assert await firm.office.counts() == EVERYTHING_ONCE | {"grant_access": 7}


class TestVerification:
    """L000DONE: the agents look at the outcome with their query tools"""

    async def test_agents_with_tools_to_look_verify(self, firm: Firm) -> None:
        instance = await firm.onboard()
        assert await firm.verdicts(instance) == {
            "hr": "verified",
            "access": "verified",
            "inventory": "verified",
            "it": "unable_to_verify",
            "email": "unable_to_verify",
        }

    async def test_a_look_cannot_do_the_work_again(self, firm: Firm) -> None:
        await firm.onboard()
        offered = [[tool.name for tool in seen.tools] for seen in firm.model.seen[-6:]]
        assert sorted(offered) == sorted([[one] for one in LOOKS] * 2)

    async def test_a_look_knows_what_the_agents_part_led_to(self, firm: Firm) -> None:
        instance = await firm.onboard()
        session = await firm.session(f"{instance.id}.verify.inventory.1")
        assert '004 电脑出库 (computer shipped): {"outbound_id":"OUT-0001"}' in session.text
        assert "B0001" not in session.text, "the badge is no concern of the stock"

    async def test_a_denial_turns_the_instance_into_error_until_it_is_resumed(
        self, firm: Firm
    ) -> None:
        answers = [{"success": False, "error": "no such badge"}] * 3

        async def query_badge(employee_id: str) -> dict[str, Any]:
            return answers.pop() if answers else {"success": True, "exists": True}

        firm.looks_with("access", query_badge)
        instance = await firm.onboard()
        assert instance.status == "error"
        assert (await firm.verdicts(instance))["access"] == "failed"
        info = instance.get_main_task_instance().context["error_info"]
        assert info["message"] == "verification failed: access"
        assert await firm.resume(instance) is True
        assert await instance.wait_for_completion() == "done"
        assert (await firm.verdicts(instance))["access"] == "verified"
        counts = await firm.office.counts()
        assert set(counts.values()) == {1}, "the work and the other looks were not repeated"

    async def test_a_look_that_lacks_something_asks_nobody(self, firm: Firm) -> None:
        """Everything is done; the run must not wait for a person to hear so."""

        async def query_badge(employee_id: str, ticket: str) -> dict[str, Any]:
            raise AssertionError("nobody knows a ticket")

        firm.looks_with("access", query_badge)
        instance = await firm.onboard()
        assert instance.status == "done"
        assert (await firm.verdicts(instance))["access"] == "unable_to_verify"
        assert await firm.app.inbox() == []


class TestMissingArgument:
    """The model leaves out what it does not know, and a person is asked for it"""

    async def test_the_form_comes_from_the_tools_schema(self, firm: Firm) -> None:
        instance = await firm.start(COMPUTER)
        question = await firm.question(instance)
        assert (question.type, question.root_id) == ("MISSING_INFO", instance.id)
        [field] = form_of(question).fields
        assert (field.name, field.label, field.type.value) == ("computer_model", "电脑型号", "text")
        assert field.required
        assert instance.context["paused_listener_id"] == f"{instance.id}_L001"
        assert await firm.office.counts() == {}

    async def test_the_plan_is_continued_and_the_call_goes_on_with_the_answer(
        self, firm: Firm
    ) -> None:
        instance = await firm.start(COMPUTER)
        await firm.question(instance)
        assert len(firm.model.seen) == 1
        continued = await firm.provide(instance, computer_model="ThinkPad X1")
        assert continued["success"] is True
        assert continued["result"]["success"] is True
        assert continued["result"]["result"]["order_id"] == "PC-0001"
        assert continued["result"]["task_updates"] == [{"task_id": "002", "status": "Done"}]
        assert await instance.wait_for_completion() == "done"
        assert await firm.office.counts() == {"apply_computer": 1}
        [order] = (await firm.office.state())["orders"].values()
        assert order == {"employee": "张三", "computer_model": "ThinkPad X1"}
        assert len(firm.model.seen) == 2, "it went on at the call, and thought about nothing anew"

    async def test_an_answer_that_does_not_fit_changes_nothing(self, firm: Firm) -> None:
        instance = await firm.start(COMPUTER)
        question = await firm.question(instance)
        for params in ({"computer_model": ""}, {"computer_model": 5}, {"colour": "red"}, {}):
            refused = await firm.provide(instance, **params)
            assert refused["success"] is False
            assert refused["fields"]
        assert instance.status == "pause"
        assert [one.question_id for one in await firm.app.inbox()] == [question.question_id]
        assert await firm.office.counts() == {}

    async def test_the_same_answer_again_runs_nothing_again(self, firm: Firm) -> None:
        instance = await firm.start(COMPUTER)
        await firm.question(instance)
        first = await firm.provide(instance, computer_model="Dell XPS")
        again = await firm.provide(instance, computer_model="Dell XPS")
        other = await firm.provide(instance, computer_model="MacBook Pro")
        assert again["result"] == first["result"]
        assert other["success"] is False
        assert other["answered_by"] == "local"
        assert await firm.office.counts() == {"apply_computer": 1}

    async def test_a_failure_after_the_answer_is_the_listeners(self, firm: Firm) -> None:
        await firm.office.configure_failures({"apply_computer": 3})
        instance = await firm.start(COMPUTER)
        await firm.question(instance)
        continued = await firm.provide(instance, computer_model="Dell XPS")
        assert continued["result"]["success"] is False
        assert "out of order" in continued["result"]["error"]
        await instance.wait_until_settled()
        again = await firm.provide(instance, computer_model="MacBook Pro")
        assert again["result"]["success"] is True, "the planner's retry has asked anew"
        assert await firm.office.counts() == {"apply_computer": 4}

    async def test_a_decision_that_is_open_beside_it_is_not_taken_for_a_form(
        self, firm: Firm
    ) -> None:
        """An approval shows fields that may be changed; values never go there by name."""
        firm.consents_first("careful")
        firm.app.load_plan_text(TWO_COMPUTERS)
        instance = await firm.start("two_computers")
        state = await firm.app.engine.wait_for(instance.id, lambda one: one.paused_children == 2)
        assert state.status.value == "pause"
        continued = await firm.provide(instance, computer_model="Dell XPS")
        assert continued["result"]["result"]["model"] == "Dell XPS"
        assert instance.status == "pause"
        refused = await firm.provide(instance, colour="red")
        [approval] = await firm.app.inbox()
        assert approval.question_id in refused["error"]
        await firm.app.answer(approval.question_id, option_id="approve")
        assert await instance.wait_for_completion() == "done"
        assert await firm.office.counts() == {"apply_computer": 2}


class TestApproval:
    """A call of an agent inside a plan waits for a person's consent"""

    @pytest.fixture
    async def asked(self, firm: Firm) -> tuple[PlanInstance, QuestionRow]:
        firm.consents_first("it")
        instance = await firm.start(ONBOARDING, WILL_ZHANG)
        await firm.app.engine.wait_for(instance.id, lambda one: one.paused_children == 1)
        [question] = await firm.app.inbox()
        return instance, question

    async def test_it_bubbles_up_to_the_plans_run(
        self, firm: Firm, asked: tuple[PlanInstance, QuestionRow]
    ) -> None:
        instance, question = asked
        assert (question.type, question.root_id) == ("TOOL_APPROVAL", instance.id)
        assert question.run_id == f"{instance.id}.L003.1"
        shown = request_of(question).context
        assert shown["tool"] == "apply_computer"
        assert shown["args"] == {"employee": "Will Zhang", "computer_model": "MacBook Pro"}
        assert "apply_computer" not in await firm.office.counts()

    async def test_approved_it_runs_once(
        self, firm: Firm, asked: tuple[PlanInstance, QuestionRow]
    ) -> None:
        instance, question = asked
        await firm.app.answer(question.question_id, option_id="approve")
        assert await instance.wait_for_completion() == "done"
        assert await firm.office.counts() == EVERYTHING_ONCE

    async def test_approved_with_other_arguments_it_runs_those(
        self, firm: Firm, asked: tuple[PlanInstance, QuestionRow]
    ) -> None:
        instance, question = asked
        changed = {"computer_model": "Dell XPS"}
        await firm.app.answer(question.question_id, option_id="approve", data=changed)
        assert await instance.wait_for_completion() == "done"
        [order] = (await firm.office.state())["orders"].values()
        assert order == {"employee": "Will Zhang", "computer_model": "Dell XPS"}

    async def test_rejected_it_never_runs_and_nobody_tries_again(
        self, firm: Firm, asked: tuple[PlanInstance, QuestionRow]
    ) -> None:
        instance, question = asked
        await firm.app.answer(question.question_id, option_id="reject", feedback="no budget")
        assert await instance.wait_for_completion() == "error"
        assert "no budget" in instance.get_main_task_instance().context["error_info"]["message"]
        assert "apply_computer" not in await firm.office.counts()
        sessions = [row.run_id for row in await firm.app.runs() if ".L003." in row.run_id]
        assert sessions == [f"{instance.id}.L003.1"]


async def test_a_session_tells_what_was_thought_called_and_said(
    firm: Firm, events_of: EventsOf
) -> None:
    """记录追踪: the journal of a part is its whole story"""
    instance = await firm.onboard()
    events = await events_of(firm.app, f"{instance.id}.L001.1")
    assert [type(one) for one in events] == [
        r.SessionStarted,
        r.TurnStarted,
        r.ThinkingStarted,
        r.ModelReplied,
        r.CallStarted,
        r.StepEnded,
        r.ThinkingStarted,
        r.ModelReplied,
        r.TurnCompleted,
    ]
    last = (await firm.session(f"{instance.id}.L001.1")).messages.first
    assert isinstance(last, ModelSaid)
    assert '"employee_id": "WZ001"' in last.text

"""Plans from a prompt: sketched by a model, shown, approved by a person, run as a child run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from drafting_office import ENDS, REQUESTS, SKETCHES, Office, Person, see_through

from holdfast import Holdfast, PlanInstance
from holdfast.errors import CallerError, InvalidValue, NotAllowed, NotFound, PlanRejected
from holdfast.journal.codec import decode
from holdfast.model import events as e
from holdfast.model.interaction import InteractionRequest
from holdfast.model.message import ModelReply, Usage
from holdfast.model.plan import (
    VERSION,
    Listener,
    Output,
    Plan,
    PlanAction,
    Task,
    TaskStatus,
    ToolAction,
)
from holdfast.model.recorded import Event
from holdfast.model.retry import RetryPolicy
from holdfast.model.rows import request_of
from holdfast.plans.draft_plan import (
    APPROVED_TOOL,
    DRAFT_PLAN,
    DRAFTED,
    SKETCH_TOOL,
    THINKING,
)
from holdfast.repair.sketch import SKETCH_PLAN
from holdfast.runs.required_tools import missing_tools, own_needs
from holdfast.testing.model_script import Entry, Script, Seen, call, call_badly, fail, slow
from holdfast.testing.repair_models import diagnosing_model, hostile_model, weak_model
from holdfast.testing.scripted_model import ScriptedModel
from holdfast.work.diagnosing import LONGEST_REQUEST
from holdfast.work.drafting import MOST_REQUESTS
from holdfast.work.models import ModelClient

OpenApp = Callable[..., Awaitable[Holdfast]]
Opened = Callable[..., Awaitable[Holdfast]]

BADGE = REQUESTS["badge"]
SOUND = call(SKETCH_PLAN, **BADGE.sketch)
USELESS = call(SKETCH_PLAN, goal="x", steps=[{"id": "s1", "tool": "no_such_tool"}])
LEAVE = """
plan_id: leave
name: 请假
main_task_id: "001"
inputs: {days: {type: number}, pin: {type: secret, required: false}}
tasks: [{task_id: "001", name: Leave}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: code
    code_snippet: "result = {'days': context['001']['days']}"
    success_output: {task_id: "001", status: Done, context: {granted: "{{result.days}}"}}
"""
SICK = LEAVE.replace("plan_id: leave", "plan_id: sick").replace("请假", "病假")


class Metered(ModelClient):
    """Sums up what is spent."""

    spent = Usage()

    async def request(self, *given: Any, **named: Any) -> ModelReply:
        reply = await super().request(*given, **named)
        self.spent += reply.usage
        return reply


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path / "calls")


@pytest.fixture
def opened(open_app: OpenApp, tmp_path: Path, office: Office) -> Opened:
    """Opens the office's application, on the same home each time."""

    async def open_with(model: ScriptedModel | None, *plans: str, **options: Any) -> Holdfast:
        client = Metered(default_model=model, retry=RetryPolicy(attempts=1))
        app = await open_app(tmp_path / "home", model=client, max_retry_count=0, **options)
        office.furnish(app)
        for text in plans:
            app.load_plan_text(text)
        return app

    return open_with


async def close(app: Holdfast) -> None:
    await app.__aexit__(None, None, None)


def scripted(*script: Entry) -> ScriptedModel:
    return ScriptedModel(list(script))


async def history(app: Holdfast, run_id: str) -> list[Event]:
    return [decode(one) for one in await app.journal.read(run_id)]


async def question_of(app: Holdfast, instance: PlanInstance) -> InteractionRequest:
    assert await instance.wait_until_settled(30) == "pause"
    (row,) = await app.inbox()
    return request_of(row)


async def decided(app: Holdfast, instance: PlanInstance, option: str = "confirm") -> None:
    question = await question_of(app, instance)
    await app.answer(question.request_id, option_id=option)


def thoughts(events: list[Event]) -> list[Any]:
    """What each request came to."""
    return [
        one.result
        for one in events
        if isinstance(one, e.ListenerSucceeded) and one.listener_id in THINKING
    ]


# Twelve requests


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_sketch_is_shown_approved_and_runs_to_its_end_with_its_calls_approved(
    opened: Opened, office: Office, name: str
) -> None:
    request, person = REQUESTS[name], Person(REQUESTS[name].says)
    app = await opened(diagnosing_model(sketches=SKETCHES))
    instance = await app.plans.start_plan_by_prompt(request.text, by="will")
    assert instance.plan_id == DRAFT_PLAN
    question = await question_of(app, instance)
    assert (question.title, question.role) == ("Run the plan that was drawn up?", "approver")
    assert office.calls() == [], "nothing is called before a person has agreed"
    assert await see_through(app, instance, person) == "done"
    assert sorted(office.called()) == sorted(request.tools)
    acting = [one for one in request.tools if not one.startswith("query_")]
    assert sorted(person.approved) == sorted(acting)
    [thought] = thoughts(await history(app, instance.id))
    [child] = [row for row in await app.runs() if row.parent_id == instance.id]
    assert (child.name, child.definition, child.status) == (DRAFTED, thought["digest"], "done")


async def test_a_person_sees_steps_with_arguments_what_acts_what_is_asked_and_the_goal(
    opened: Opened,
) -> None:
    app = await opened(diagnosing_model(sketches=SKETCHES))
    question = await question_of(
        app, await app.plans.start_plan_by_prompt(REQUESTS["profile"].text)
    )
    assert question.message.splitlines() == [
        "A model drew up this plan:",
        "HR should know Will Zhang, and we should see that it does",
        "It calls, in this order:",
        '1. s1: create_employee_profile {"department":"Engineering",'
        '"email":"will.zhang@example.com","name":"Will Zhang"}',
        '2. s2: query_profile {"employee_id":"{s1.employee_id}"}',
        "These of them act, and each asks for approval first:",
        "1",
        "In the rehearsal the goal is reached.",
    ]
    assert [(one.option_id, one.action.value) for one in question.options] == [
        ("confirm", "APPROVE_AND_EXECUTE"),
        ("reject", "TERMINATE"),
    ]


async def test_what_hides_in_a_request_is_shown_as_text(opened: Opened) -> None:
    app = await opened(diagnosing_model(sketches=SKETCHES))
    instance = await app.plans.start_plan_by_prompt(REQUESTS["hostile"].text)
    question = await question_of(app, instance)
    assert "\u202e" not in question.message
    assert "⟨202E⟩evorppa⟨202C⟩" in question.message


# Models that are weak, or mean harm


@pytest.mark.parametrize("make", [weak_model, hostile_model], ids=["weak", "hostile"])
@pytest.mark.parametrize("seed", range(3))
async def test_a_weak_or_hostile_model_starts_nothing_and_reaches_no_further_than_the_catalogue(
    opened: Opened, office: Office, make: Callable[..., ScriptedModel], seed: int
) -> None:
    options = {"sketches": SKETCHES} if make is weak_model else {}
    model = make(seed, **options)
    app = await opened(model)
    for request in REQUESTS.values():
        before, asked_before = len(office.calls()), len(model.seen)
        instance = await app.plans.start_plan_by_prompt(request.text)
        question = await question_of(app, instance)
        assert len(office.calls()) == before, "0 started without a person"
        assert len(model.seen) - asked_before <= MOST_REQUESTS
        assert "\u202e" not in question.message
        person = Person(request.says)
        assert await see_through(app, instance, person) in ENDS
        called = office.called()[before:]
        assert set(called) <= set(app.tools), "0 calls beyond the catalogue"
        acting = [one for one in called if not one.startswith("query_")]
        assert sorted(acting) == sorted(person.approved[: len(acting)]), "each was approved"


# The budget


async def test_a_reply_that_cannot_be_used_is_asked_again_with_what_was_wrong(
    opened: Opened,
) -> None:
    model = scripted(USELESS, call_badly(SKETCH_PLAN, "{"), SOUND)
    app = await opened(model)
    instance = await app.plans.start_plan_by_prompt(BADGE.text)
    await question_of(app, instance)
    first, second, third = (one.asked for one in model.seen)
    assert "What was wrong" not in first
    assert "there is no tool 'no_such_tool'" in second
    assert "no JSON object" in third
    told = thoughts(await history(app, instance.id))
    assert [one["outcome"] for one in told] == ["again", "again", "sound"]
    assert all(one["usage"]["input_tokens"] > 0 for one in told)


async def test_after_three_requests_a_person_is_asked_and_told_why(opened: Opened) -> None:
    model = scripted(USELESS, USELESS, "That cannot be done  here,\nI am afraid.", SOUND)
    app = await opened(model)
    instance = await app.plans.start_plan_by_prompt(BADGE.text)
    question = await question_of(app, instance)
    assert len(model.seen) == MOST_REQUESTS
    assert question.title == "Which plan is meant?"
    assert question.message == "The model says: “That cannot be done here, I am afraid.”"
    assert [one.option_id for one in question.options] == ["none"]


async def test_a_model_that_cannot_be_reached_is_not_asked_again(opened: Opened) -> None:
    model = scripted(fail(503), SOUND)
    app = await opened(model)
    question = await question_of(app, await app.plans.start_plan_by_prompt(BADGE.text))
    assert len(model.seen) == 1
    assert "503" in question.message


async def test_a_request_may_take_a_minute(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    assert LONGEST_REQUEST == 60.0
    monkeypatch.setattr("holdfast.work.drafting.draft.__kwdefaults__", {"limit": 0.01})
    app = await opened(scripted(slow(30, SOUND)))
    question = await question_of(app, await app.plans.start_plan_by_prompt(BADGE.text))
    assert question.message == "the model took longer than 0.01 s"


class Watched(ScriptedModel):
    """Looks at something before each reply."""

    def __init__(self, script: Script, look: Callable[[], Awaitable[int]]) -> None:
        super().__init__(script)
        self.look = look
        self.found: list[int] = []

    async def _next_turn(self, *given: Any, **named: Any) -> Any:
        self.found.append(await self.look())
        return await super()._next_turn(*given, **named)


async def test_each_start_is_on_disk_before_the_request_is_made(opened: Opened) -> None:
    async def starts() -> int:
        events = await history(app, "inst_000001")
        return sum(isinstance(one, e.ListenerStarted) for one in events)

    model = Watched([USELESS, USELESS, SOUND], starts)
    app = await opened(model)
    await question_of(app, await app.plans.start_plan_by_prompt(BADGE.text))
    assert model.found == [1, 2, 3]


async def test_a_person_who_has_it_think_again_gets_no_more_requests(opened: Opened) -> None:
    model = scripted(USELESS, USELESS, USELESS, SOUND)
    app = await opened(model)
    instance = await app.plans.start_plan_by_prompt(BADGE.text)
    await question_of(app, instance)
    await app.rerun_from(instance.id, THINKING[0])
    question = await question_of(app, instance)
    assert len(model.seen) == MOST_REQUESTS
    assert question.message == "the model was asked 3 times, and may be asked no more"


# What a person decides


class Model(ScriptedModel):
    """Chooses and reads inputs as it is told, and sketches from a list."""

    def __init__(self, *sketches: Entry, chooses: Entry = "None fits.", reads: Entry = "") -> None:
        left = list(sketches)

        def reply(seen: Seen) -> Entry:
            offers = [one.name for one in seen.tools]
            if SKETCH_PLAN in offers:
                return left.pop(0)
            return chooses if "start_plan" in offers else reads

        super().__init__(reply)


async def test_one_of_the_plans_that_are_there_may_be_chosen_instead(
    opened: Opened, office: Office
) -> None:
    app = await opened(Model(SOUND), LEAVE, SICK)
    instance = await app.plans.start_plan_by_prompt("two days off", values={"days": 2})
    question = await question_of(app, instance)
    assert [one.option_id for one in question.options] == ["confirm", "leave", "sick", "reject"]
    assert [one.label for one in question.options][1:3] == ["请假", "病假"]
    await app.answer(question.request_id, option_id="leave")
    assert await instance.wait_for_completion(30) == "done"
    assert instance.get_main_task_instance().context["result"]["granted"] == 2
    assert office.calls() == []


async def test_where_no_plan_came_of_it_one_of_those_that_are_there_may_be_chosen(
    opened: Opened,
) -> None:
    app = await opened(Model("No.", "No.", "No."), LEAVE, SICK)
    instance = await app.plans.start_plan_by_prompt("two days off", values={"days": 2})
    await decided(app, instance, "sick")
    assert await instance.wait_for_completion(30) == "done"
    assert instance.get_main_task_instance().context["result"]["granted"] == 2


@pytest.mark.parametrize("sketch", [SOUND, "No."], ids=["drawn up", "not drawn up"])
async def test_a_refusal_ends_it_and_nothing_is_called(
    opened: Opened, office: Office, sketch: Entry
) -> None:
    app = await opened(Model(sketch, sketch, sketch))
    instance = await app.plans.start_plan_by_prompt(BADGE.text)
    question = await question_of(app, instance)
    await app.answer(question.request_id, option_id=question.options[-1].option_id)
    assert await instance.wait_for_completion(30) == "cancelled"
    assert office.calls() == []


async def test_plans_called_as_the_options_can_be_chosen_too(opened: Opened) -> None:
    names = ("confirm", "confirm_2", "draft_plan", "drafted_plan")
    app = await opened(
        Model(SOUND), *(LEAVE.replace("plan_id: leave", f"plan_id: {one}") for one in names)
    )
    instance = await app.plans.start_plan_by_prompt("two days off", values={"days": 2})
    question = await question_of(app, instance)
    assert [one.option_id for one in question.options] == ["confirm_3", *names, "reject"]
    await app.answer(question.request_id, option_id="drafted_plan")
    assert await instance.wait_for_completion(30) == "done"
    assert instance.get_main_task_instance().context["result"]["granted"] == 2


async def test_a_plan_that_the_model_chooses_is_started_as_ever(opened: Opened) -> None:
    chooses, reads = call("start_plan", plan_id="leave"), call("fill_in", days=3)
    app = await opened(Model(chooses=chooses, reads=reads), LEAVE, SICK)
    instance = await app.plans.start_plan_by_prompt("three days off")
    assert instance.plan_id == "leave"
    assert await instance.wait_for_completion(30) == "done"
    [started, *_] = await history(app, instance.id)
    assert isinstance(started, e.RunStarted)
    assert isinstance(app.models, Metered)
    assert started.usage == app.models.spent
    assert started.usage.input_tokens > 0


async def test_what_was_asked_in_vain_is_in_the_journal_as_well(opened: Opened) -> None:
    """No plan could be chosen, one is drawn up at the second request: all of it is told."""
    app = await opened(scripted(fail(503), USELESS, SOUND), LEAVE, SICK)
    instance = await app.plans.start_plan_by_prompt(BADGE.text)
    await question_of(app, instance)
    events = await history(app, instance.id)
    assert isinstance(events[0], e.RunStarted)
    assert events[0].usage is not None, "a model was asked which plan is meant"
    assert events[0].usage.input_tokens == 0
    told = [one["usage"]["input_tokens"] for one in thoughts(events)]
    assert isinstance(app.models, Metered)
    assert (len(told), sum(told)) == (2, app.models.spent.input_tokens)


async def test_without_a_model_it_is_as_before(opened: Opened) -> None:
    app = await opened(None)
    with pytest.raises(NotFound, match="no plan is loaded"):
        await app.plans.start_plan_by_prompt("hello")
    app.load_plan_text(LEAVE)
    app.load_plan_text(SICK)
    instance = await app.plans.start_plan_by_prompt("two days off")
    assert instance.plan_id == "choose_plan"
    with pytest.raises(NotAllowed, match="no model is named: set HOLDFAST_MODEL"):
        await app.plans.draft("hello")


async def test_a_model_is_told_the_values_but_no_secret(opened: Opened) -> None:
    model = Model(SOUND)
    app = await opened(model, LEAVE, SICK)
    values = {"days": 2, "pin": "4711-geheim"}
    instance = await app.plans.start_plan_by_prompt("two days off", values=values)
    await question_of(app, instance)
    asked = model.seen[-1].asked
    assert '{\\"days\\":2}' in asked or '{"days":2}' in asked
    assert "geheim" not in asked
    assert "secret:" not in asked
    assert "geheim" not in str(await app.journal.read(instance.id))


# What was shown is what runs

OTHER = call(SKETCH_PLAN, **REQUESTS["look"].sketch)


async def test_what_was_drawn_up_runs_after_a_restart(opened: Opened, office: Office) -> None:
    app = await opened(Model(SOUND))
    instance = await app.plans.start_plan_by_prompt(BADGE.text)
    await question_of(app, instance)
    await close(app)
    app = await opened(None)
    again = await app.instance(instance.id)
    await decided(app, again)
    assert await see_through(app, again, Person()) == "done"
    assert office.called() == ["grant_access"]


async def other_digest(app: Holdfast) -> str:
    """Of a plan that was drawn up in another run, and that nobody has approved."""
    instance = await app.plans.start_plan_by_prompt("something else")
    question = await question_of(app, instance)
    await app.answer(question.request_id, option_id="reject")
    await instance.wait_for_completion(30)
    [thought] = thoughts(await history(app, instance.id))
    return str(thought["digest"])


async def test_a_context_that_was_edited_changes_nothing_of_what_runs(
    opened: Opened, office: Office
) -> None:
    app = await opened(Model(OTHER, SOUND))
    other = await other_digest(app)
    instance = await app.plans.start_plan_by_prompt(BADGE.text)
    question = await question_of(app, instance)
    for task in ("002", "003", "004"):
        await app.edit_context(instance.id, task, {"digest": other, "outline": "harmless"})
    await app.answer(question.request_id, option_id="confirm")
    assert await see_through(app, instance, Person()) == "done"
    assert office.called() == ["grant_access"]


async def test_words_that_were_put_into_the_question_are_no_plan_that_was_drawn_up(
    opened: Opened, office: Office
) -> None:
    app = await opened(Model(SOUND))
    instance = await app.plans.start_plan_by_prompt(BADGE.text)
    await question_of(app, instance)
    await app.edit_context(instance.id, "002", {"outline": "Nothing at all"})
    await app.rerun_from(instance.id, "approve")
    question = await question_of(app, instance)
    assert question.message == "Nothing at all"
    await app.answer(question.request_id, option_id="confirm")
    assert await instance.wait_for_completion(30) == "error"
    assert "nobody has approved a plan" in (instance.error or "")
    assert office.calls() == []


async def test_nobody_has_approved_what_was_only_marked_as_done(
    opened: Opened, office: Office
) -> None:
    app = await opened(Model(SOUND))
    instance = await app.plans.start_plan_by_prompt(BADGE.text)
    await question_of(app, instance)
    await app.mark_done(instance.id, "003", context={"runs": DRAFTED, "plan_id": ""})
    assert await instance.wait_for_completion(30) == "error"
    assert "nobody has approved a plan" in (instance.error or "")
    assert office.calls() == []


async def test_a_version_that_is_not_there_is_an_error_and_stays_one(opened: Opened) -> None:
    app = await opened(None, LEAVE)
    for digest in ("0" * 64, app.engine.definitions.current("leave").digest):
        app.add_plan(runs_a_version(digest))
        instance = await app.plans.start_plan_by_prompt("", "runner")
        assert await instance.wait_for_completion(30) == "error"
        assert f"there is no version {digest} of {DRAFTED}" in (instance.error or "")


async def test_a_run_that_waits_for_approval_needs_no_plan_of_the_catalogue(
    opened: Opened,
) -> None:
    app = await opened(Model(SOUND), LEAVE, SICK)
    instance = await app.plans.start_plan_by_prompt(BADGE.text)
    await question_of(app, instance)
    assert await missing_tools(app.engine, app.tools, instance.id) == []
    needed = {one.name for one in own_needs(await app.engine.state(instance.id))}
    assert needed == {APPROVED_TOOL, SKETCH_TOOL, "leave", "sick"}


async def test_a_version_runs_although_todays_plan_is_another(opened: Opened) -> None:
    app = await opened(None, LEAVE)
    first = app.engine.definitions.current("leave").digest
    done = await app.plans.start_plan_by_prompt("", "leave", values={"days": 1})
    await done.wait_for_completion(30)
    await close(app)
    app = await opened(None, LEAVE.replace("granted", "given"))
    app.add_plan(runs_a_version(first, "leave", days=4))
    instance = await app.plans.start_plan_by_prompt("", "runner")
    assert await instance.wait_for_completion(30) == "done"
    assert instance.get_main_task_instance().context["result"] == {"days": 4, "granted": 4}


def runs_a_version(digest: str, plan_id: str = DRAFTED, **values: Any) -> Plan:
    return Plan(
        "runner",
        "Runs a version",
        "001",
        (Task("001"),),
        (
            Listener(
                "L001",
                ("001",),
                "Running",
                PlanAction(plan_id, {VERSION: digest, **values}),
                success_output=Output("001", TaskStatus.DONE, {"result": "{{result}}"}),
            ),
        ),
    )


# Tools of ours


async def test_what_draws_plans_up_stands_in_no_list(opened: Opened) -> None:
    app = await opened(Model(SOUND))
    assert SKETCH_TOOL in app.tools
    assert SKETCH_TOOL not in [*app.tools, *(one.name for one in app.tools.specs())]
    assert len(app.tools) == len([*app.tools])
    assert SKETCH_TOOL not in (app.catalog().tools or ())
    with pytest.raises(CallerError, match="is that of a tool of ours"):
        app.tool(lambda: None, name=SKETCH_TOOL, replace=True)
    with pytest.raises(PlanRejected, match="there is no tool"):
        app.load_plan_text(calling(SKETCH_TOOL))


def calling(tool: str) -> str:
    return f"""
plan_id: caller
main_task_id: "001"
tasks: [{{task_id: "001"}}]
listeners:
  - listener_id: think_1
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: {tool}
    args: {{number: "1", request: hello, complaint: ""}}
    retry: {{attempts: 1}}
    success_output: {{task_id: "001", status: Done}}
"""


@pytest.mark.parametrize("tool", [SKETCH_TOOL, APPROVED_TOOL])
async def test_no_other_plan_has_a_model_asked(opened: Opened, tool: str) -> None:
    model = Model(SOUND)
    app = await opened(model)
    action = ToolAction(tool, {"number": "1", "request": "hello", "complaint": ""})
    listener = Listener("think_1", ("001",), "Running", action, retry=RetryPolicy(attempts=1))
    app.add_plan(Plan("caller", "", "001", (Task("001"),), (listener,)))
    instance = await app.plans.start_plan_by_prompt("", "caller")
    assert await instance.wait_for_completion(30) == "error"
    assert "only the plan draft_plan calls this" in (instance.error or "")
    assert model.seen == []


# Only sketched


async def test_a_draft_shows_the_plan_and_starts_nothing(opened: Opened, office: Office) -> None:
    model = scripted(USELESS, SOUND)
    app = await opened(model)
    drawn = await app.plans.draft(BADGE.text, values={"days": 2})
    assert drawn.draft is not None
    assert (drawn.requests, drawn.reason) == (2, "")
    assert isinstance(app.models, Metered)
    assert drawn.usage.input_tokens == app.models.spent.input_tokens
    assert drawn.draft.outline.splitlines()[1] == "A badge for WZ001"
    assert drawn.draft.rehearsal.reached
    assert [one.listener_id for one in drawn.draft.plan.listeners] == ["s1", "finish"]
    assert drawn.draft.plan.listeners[0].approval
    assert '{\\"days\\":2}' in model.seen[0].asked
    assert (await app.runs(), office.calls()) == ([], [])
    assert await app.journal.definition(drawn.draft.digest) is None


async def test_a_draft_that_came_to_nothing_says_why(opened: Opened) -> None:
    app = await opened(scripted(USELESS, USELESS, USELESS))
    drawn = await app.plans.draft(BADGE.text)
    assert (drawn.draft, drawn.requests) == (None, MOST_REQUESTS)
    assert "there is no tool 'no_such_tool'" in drawn.reason


async def test_a_tool_that_is_disabled_is_not_offered(opened: Opened) -> None:
    model = scripted(SOUND)
    app = await opened(model)
    await app.plans.draft(BADGE.text)
    assert '"shut_down"' not in model.seen[0].asked
    assert '"grant_access"' in model.seen[0].asked


# Adopted


async def ran(app: Holdfast) -> PlanInstance:
    instance = await app.plans.start_plan_by_prompt(BADGE.text)
    assert await see_through(app, instance, Person()) == "done"
    return instance


@pytest.mark.parametrize("below", [False, True], ids=["the run itself", "its child run"])
async def test_an_author_adopts_a_plan_with_its_approvals(opened: Opened, below: bool) -> None:
    app = await opened(Model(SOUND))
    instance = await ran(app)
    [child] = [row.run_id for row in await app.runs() if row.parent_id]
    plan = await app.plans.adopt(child if below else instance.id, "badge", by="will")
    assert (plan.plan_id, plan.name) == ("badge", BADGE.text)
    assert [one.approval for one in plan.listeners] == [True, False]
    assert app.engine.definitions.authors(app.engine.definitions.current("badge").digest) == (
        "will",
    )
    person = Person()
    again = await app.plans.start_plan_by_prompt("", "badge")
    assert await see_through(app, again, person) == "done"
    assert person.approved == ["grant_access"]


async def test_an_author_who_says_so_drops_them_but_not_a_tools_own(
    opened: Opened, office: Office
) -> None:
    both = [*BADGE.sketch["steps"], {**REQUESTS["expense"].sketch["steps"][0], "id": "s2"}]
    app = await opened(Model(call(SKETCH_PLAN, goal="Badge and taxi", steps=both)))
    instance = await ran(app)
    await app.plans.adopt(instance.id, "badge", by="will", approvals="drop")
    before, person = len(office.calls()), Person()
    again = await app.plans.start_plan_by_prompt("", "badge")
    assert await see_through(app, again, person) == "done"
    assert sorted(office.called()[before:]) == ["grant_access", "pay_expense"]
    assert person.approved == ["pay_expense"]


async def test_what_cannot_be_adopted_says_why_and_changes_nothing(opened: Opened) -> None:
    app = await opened(Model(SOUND), LEAVE)
    leave = await app.plans.start_plan_by_prompt("", "leave", values={"days": 1})
    await leave.wait_for_completion(30)
    with pytest.raises(NotFound, match=f"no plan was drawn up in {leave.id}"):
        await app.plans.adopt(leave.id, "badge")
    app.load_plan_text(SICK)
    instance = await ran(app)
    for taken in ("leave", "draft_plan", "drafted_plan", "choose_plan"):
        with pytest.raises(NotAllowed, match=f"the plan id {taken} is taken"):
            await app.plans.adopt(instance.id, taken)
    with pytest.raises(PlanRejected, match="a plan_id has letters, digits"):
        await app.plans.adopt(instance.id, "a badge")
    with pytest.raises(InvalidValue, match="is keep or drop, not 'all'"):
        await app.plans.adopt(instance.id, "badge", approvals="all")  # type: ignore[arg-type]
    assert sorted(app.engine.definitions.plan_ids()) == ["leave", "sick"]


async def test_where_nothing_was_drawn_up_there_is_nothing_to_adopt(opened: Opened) -> None:
    app = await opened(Model("No.", "No.", "No."))
    instance = await app.plans.start_plan_by_prompt(BADGE.text)
    await question_of(app, instance)
    with pytest.raises(NotFound, match="no plan was drawn up"):
        await app.plans.adopt(instance.id, "badge")


async def test_a_plan_for_a_tool_that_is_gone_is_not_adopted(opened: Opened) -> None:
    app = await opened(Model(SOUND))
    instance = await ran(app)
    del app.tools._tools["grant_access"]
    with pytest.raises(PlanRejected, match=r"listeners\.0\.tool: there is no tool"):
        await app.plans.adopt(instance.id, "badge")

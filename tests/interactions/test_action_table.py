"""DESIGN §6's table: every action on every type of question, in a chat and in a plan.

An answer is judged by the calls of `order` that follow from it, and by those that were started at
all: what is rejected, skipped, asked again or ended never reaches the executor.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ordering import (
    APPROVE,
    CUSTOM,
    GIVEN,
    MISSING_INFO,
    PROVIDE,
    REJECT,
    RETRY,
    SHOWN,
    SKIP,
    TERMINATE,
    TOOL_APPROVAL,
    WORDS,
    OpenApp,
    Scene,
    chat,
    chat_about_a_call,
    clerk_model,
    decide,
    greeted,
    heard,
    model_of,
    plan,
    refuse_to_decide,
    request,
)
from plan_texts import end, load, start, step

from holdfast import (
    AgentSession,
    Holdfast,
    InteractionAction,
    InteractionRequest,
    InteractionResponse,
    InteractionType,
    PlanInstance,
    Resolution,
)
from holdfast.errors import AuthorError, InvalidAnswer
from holdfast.model.agent_events import CallStarted
from holdfast.model.events import CancelRequested, ListenerStarted
from holdfast.model.message import ToolReturned, UserSaid
from holdfast.model.recorded import Event
from holdfast.model.rows import request_of
from holdfast.testing.model_script import call

EventsOf = Callable[[Holdfast, str], Awaitable[list[Event]]]

DECIDED = [action for action in InteractionAction if action is not CUSTOM]
TYPES = list(InteractionType)

RUNS: Mapping[InteractionAction, list[dict[str, int]]] = {APPROVE: [SHOWN], PROVIDE: [GIVEN]}
"""What `order` is called with; after every other action it is not called at all."""

RESTS_IN_A_CHAT = dict.fromkeys(InteractionAction, "done") | {TERMINATE: "cancelled"}
RESTS_IN_A_PLAN = RESTS_IN_A_CHAT | {RETRY: "pause", REJECT: "error"}

ROUND_THE_TABLE = pytest.mark.parametrize("action", DECIDED, ids=str.lower)
EVERY_TYPE = pytest.mark.parametrize("kind", TYPES, ids=str.lower)


TOLD = {RETRY: "think again", REJECT: "refused", SKIP: "skipped"}
"""What the model hears of an answer after which nothing is called."""


async def assert_carried_out_in_a_chat(
    scene: Scene, action: InteractionAction, events: list[Event]
) -> None:
    assert scene.run.status == RESTS_IN_A_CHAT[action]
    assert scene.order.calls == RUNS.get(action, [])
    started = [one for one in events if isinstance(one, CallStarted)]
    assert [dict(one.args) for one in started] == scene.order.calls


async def assert_carried_out_in_a_plan(
    scene: Scene, action: InteractionAction, events: list[Event]
) -> None:
    assert scene.run.status == RESTS_IN_A_PLAN[action]
    assert scene.order.calls == RUNS.get(action, [])
    started = [
        one for one in events if isinstance(one, ListenerStarted) and one.listener_id == "ORDER"
    ]
    assert [dict(one.args or {}) for one in started] == scene.order.calls


async def assert_refused(scene: Scene, option_id: str, **given: Any) -> None:
    """The answer is not taken, and nothing at all has changed."""
    row, version = await scene.question(), scene.run.version
    with pytest.raises(InvalidAnswer):
        await scene.app.answer(row.question_id, option_id=option_id, **given)
    assert (await scene.app.engine.state(scene.run.id)).version == version
    assert await scene.question() == row
    assert scene.order.calls == []


@EVERY_TYPE
@ROUND_THE_TABLE
async def test_in_a_chat_an_action_calls_the_tool_or_never_reaches_it(
    kind: InteractionType, action: InteractionAction, open_app: OpenApp, events_of: EventsOf
) -> None:
    scene = await chat(open_app, kind, action)
    requests = len(model_of(scene).seen)
    await scene.answer(action)
    await scene.run.wait_for_completion()
    events = await events_of(scene.app, scene.run.id)
    await assert_carried_out_in_a_chat(scene, action, events)
    if action is TERMINATE:
        assert len(model_of(scene).seen) == requests
        [ended] = [one for one in events if isinstance(one, CancelRequested)]
        assert (ended.by, ended.reason) == ("will", WORDS)
    elif action in TOLD:
        told = heard(model_of(scene).seen[-1])
        assert TOLD[action] in told.lower()
        assert WORDS in told


@EVERY_TYPE
@ROUND_THE_TABLE
async def test_in_a_chat_a_custom_option_does_what_its_handler_decided(
    kind: InteractionType, action: InteractionAction, open_app: OpenApp, events_of: EventsOf
) -> None:
    scene = await chat(open_app, kind)
    decide(scene.app, action)
    await scene.answer(CUSTOM)
    await scene.run.wait_for_completion()
    await assert_carried_out_in_a_chat(scene, action, await events_of(scene.app, scene.run.id))
    if action in TOLD:
        assert f"handled: {WORDS}" in heard(model_of(scene).seen[-1])


@EVERY_TYPE
async def test_in_a_chat_a_custom_option_that_nobody_decides_is_refused(
    kind: InteractionType, open_app: OpenApp
) -> None:
    scene = await chat(open_app, kind)
    await assert_refused(scene, "custom", feedback=WORDS)


@EVERY_TYPE
@ROUND_THE_TABLE
async def test_in_a_plan_an_action_calls_the_tool_or_never_reaches_it(
    kind: InteractionType, action: InteractionAction, open_app: OpenApp, events_of: EventsOf
) -> None:
    scene = await plan(open_app, kind)
    before = await scene.question()
    await scene.answer(action)
    await scene.run.wait_until_settled()
    events = await events_of(scene.app, scene.run.id)
    await assert_carried_out_in_a_plan(scene, action, events)
    if action is RETRY:
        again = await scene.question()
        assert again.question_id != before.question_id
        assert WORDS in request_of(again).message
        await scene.answer(APPROVE)
        assert await scene.run.wait_for_completion() == "done"
        assert scene.order.calls == [SHOWN]
    if action is TERMINATE:
        [ended] = [one for one in events if isinstance(one, CancelRequested)]
        assert (ended.by, ended.reason) == ("will", WORDS)
    if action is REJECT:
        assert isinstance(scene.run, PlanInstance)
        error = scene.run.get_main_task_instance().context["error_info"]["message"]
        assert f"rejected by will: {WORDS}" in error


@EVERY_TYPE
@ROUND_THE_TABLE
async def test_in_a_plan_a_custom_option_does_what_its_handler_decided(
    kind: InteractionType, action: InteractionAction, open_app: OpenApp, events_of: EventsOf
) -> None:
    scene = await plan(open_app, kind)
    decide(scene.app, action)
    await scene.answer(CUSTOM)
    await scene.run.wait_until_settled()
    await assert_carried_out_in_a_plan(scene, action, await events_of(scene.app, scene.run.id))


@EVERY_TYPE
async def test_in_a_plan_a_custom_option_that_nobody_decides_is_refused(
    kind: InteractionType, open_app: OpenApp
) -> None:
    scene = await plan(open_app, kind)
    await assert_refused(scene, "custom", feedback=WORDS)


@ROUND_THE_TABLE
async def test_the_handler_of_a_custom_type_decides_its_custom_options(
    action: InteractionAction, open_app: OpenApp, events_of: EventsOf
) -> None:
    scene = await greeted(open_app, clerk_model())
    resolution = Resolution(action, GIVEN if action is PROVIDE else {})
    scene.app.interactions.type("decision")(lambda request, response: resolution)
    await scene.app.sessions.request_interaction(scene.run.id, request(InteractionType.CUSTOM))
    await scene.answer(CUSTOM)
    await scene.run.wait_for_completion()
    await assert_carried_out_in_a_chat(scene, action, await events_of(scene.app, scene.run.id))


async def test_without_its_handler_after_a_restart_a_custom_question_stays_open(
    tmp_path: Path,
) -> None:
    async with Holdfast(tmp_path, model=clerk_model()) as app:
        app.agent("clerk")
        app.interactions.type("decision")(refuse_to_decide)
        session = await app.sessions.open("clerk")
        asked = await app.sessions.request_interaction(session.id, request(InteractionType.CUSTOM))
    async with Holdfast(tmp_path, model=clerk_model()) as app:
        app.agent("clerk")
        with pytest.raises(InvalidAnswer, match="no handler is registered"):
            await app.answer(asked.request_id, option_id="custom")
        [row] = await app.inbox()
        assert row.question_id == asked.request_id


async def test_a_question_of_a_custom_type_that_nobody_registered_is_not_asked(
    open_app: OpenApp,
) -> None:
    scene = await greeted(open_app, clerk_model())
    with pytest.raises(InvalidAnswer, match="no custom type 'decision' is registered"):
        await scene.app.sessions.request_interaction(scene.run.id, request(InteractionType.CUSTOM))
    assert await scene.app.inbox() == []


@ROUND_THE_TABLE
async def test_a_question_in_the_middle_of_a_turn_leaves_the_calls_under_way_alone(
    action: InteractionAction, open_app: OpenApp
) -> None:
    scene = await chat_about_a_call(open_app)
    call_question = await scene.question()
    asked = await scene.app.sessions.request_interaction(
        scene.run.id, request(InteractionType.USER_CHOICE)
    )
    data = GIVEN if action is PROVIDE else None
    await scene.app.answer(asked.request_id, option_id=action.lower(), data=data, feedback=WORDS)
    assert scene.order.calls == []
    if action is TERMINATE:
        assert await scene.run.wait_for_completion() == "cancelled"
        return
    await scene.app.answer(call_question.question_id, option_id="reject_with_reason")
    assert await scene.run.wait_for_completion() == "done"
    assert scene.order.calls == []
    result, told = model_of(scene).seen[-1].messages[-2:]
    assert isinstance(result, ToolReturned)
    assert isinstance(told, UserSaid)
    assert told.text.startswith("[Order one?] ")


async def test_in_a_chat_a_call_that_lacks_an_argument_runs_once_with_what_is_provided(
    open_app: OpenApp, events_of: EventsOf
) -> None:
    scene = await greeted(open_app, clerk_model(call("order")))
    asked = request_of(await scene.question())
    assert asked.type is MISSING_INFO
    assert [one.action for one in asked.options] == [PROVIDE, SKIP]
    await assert_refused(scene, "provide", data={"x": "many"})
    await scene.app.answer(asked.request_id, option_id="provide", data=GIVEN)
    await scene.run.wait_for_completion()
    events = await events_of(scene.app, scene.run.id)
    await assert_carried_out_in_a_chat(scene, PROVIDE, events)


PLACES = pytest.mark.parametrize("place", [chat, plan], ids=["chat", "plan"])
Place = Callable[[OpenApp, InteractionType], Awaitable[Scene]]


@PLACES
async def test_an_edited_approval_runs_the_edited_arguments_once(
    place: Place, open_app: OpenApp
) -> None:
    scene = await place(open_app, TOOL_APPROVAL)
    await scene.answer(APPROVE, data={"x": 6})
    assert await scene.run.wait_for_completion() == "done"
    assert scene.order.calls == [{"x": 6}]


@PLACES
@pytest.mark.parametrize("edited", [{"x": "many"}, {"x": 1.5}, {"y": 1}], ids=repr)
async def test_an_edit_that_does_not_fit_the_tool_is_refused(
    place: Place, edited: dict[str, Any], open_app: OpenApp
) -> None:
    scene = await place(open_app, TOOL_APPROVAL)
    await assert_refused(scene, "approve_and_execute", data=edited)


async def chat_that_lacks_a_name(app: Holdfast) -> AgentSession:
    app.agent("clerk", tools=["label"])
    session = await app.sessions.open("clerk")
    return await app.sessions.say(session.id, "hello")


async def plan_that_lacks_a_name(app: Holdfast) -> PlanInstance:
    load(app, step("LABEL", "001", "002", tool="label"), end("002"))
    return await start(app)


@pytest.mark.parametrize(
    "begin", [chat_that_lacks_a_name, plan_that_lacks_a_name], ids=["chat", "plan"]
)
async def test_bare_words_are_the_value_of_the_one_open_field(
    begin: Callable[[Holdfast], Awaitable[AgentSession | PlanInstance]], open_app: OpenApp
) -> None:
    app = await open_app(model=clerk_model(call("label")))
    labels: list[str] = []

    @app.tool
    async def label(name: str) -> None:
        labels.append(name)

    run = await begin(app)
    await run.wait_until_settled()
    [row] = await app.inbox()
    await app.answer(row.question_id, feedback="Will Zhang", option_id="provide")
    assert await run.wait_for_completion() == "done"
    assert labels == ["Will Zhang"]


@PLACES
@pytest.mark.parametrize("action", [APPROVE, PROVIDE], ids=str.lower)
async def test_the_same_answer_again_runs_nothing_again(
    place: Place, action: InteractionAction, open_app: OpenApp
) -> None:
    scene = await place(open_app, TOOL_APPROVAL)
    row = await scene.question()
    given: dict[str, Any] = {"option_id": action.lower(), "data": GIVEN, "by": "will"}
    for _ in range(3):
        await scene.app.answer(row.question_id, **given)
    assert await scene.run.wait_for_completion() == "done"
    assert scene.order.calls == [GIVEN]


@PLACES
async def test_a_handler_may_change_what_it_approves(place: Place, open_app: OpenApp) -> None:
    scene = await place(open_app, TOOL_APPROVAL)

    @scene.app.interactions.action("decide")
    async def halve(request: InteractionRequest, response: InteractionResponse) -> Resolution:
        return Resolution(APPROVE, {"x": request.context["args"]["x"] // 2})

    await scene.answer(CUSTOM)
    assert await scene.run.wait_for_completion() == "done"
    assert scene.order.calls == [{"x": 2}]


@PLACES
async def test_a_handler_that_fails_changes_nothing(place: Place, open_app: OpenApp) -> None:
    scene = await place(open_app, TOOL_APPROVAL)
    row = await scene.question()

    @scene.app.interactions.action("decide")
    def fall_over(request: InteractionRequest, response: InteractionResponse) -> Resolution:
        raise RuntimeError("no idea")

    with pytest.raises(AuthorError, match="no idea"):
        await scene.app.answer(row.question_id, option_id="custom")
    assert await scene.question() == row
    await scene.answer(APPROVE)
    assert await scene.run.wait_for_completion() == "done"
    assert scene.order.calls == [SHOWN]

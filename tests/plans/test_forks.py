"""A new run from any event of one that is over, in a home that survives its process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from plan_texts import Tool, add, end, load, start, step

from holdfast import Holdfast, PlanInstance
from holdfast.core.run.state import ANSWERED, STARTED
from holdfast.errors import NotAllowed, NotFound, OutcomeUnknown, PermanentError
from holdfast.journal.codec import decode
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.message import ModelSaid
from holdfast.model.run import RunStatus
from holdfast.runtime.machines import as_plan
from holdfast.source.planfile import read_plan
from holdfast.testing.model_script import Entry, Seen, call
from holdfast.testing.scripted_model import ScriptedModel

OpenApp = Callable[..., Awaitable[Holdfast]]
BROKEN = PermanentError("no such order")
ENDED = ("done", "cancelled")


@pytest.fixture
async def app(open_app: OpenApp, tmp_path: Path) -> Holdfast:
    return await open_app(tmp_path, max_retry_count=0)


async def events(app: Holdfast, run_id: str) -> list[Any]:
    return [decode(one) for one in await app.journal.read(run_id)]


async def seq_of(app: Holdfast, run_id: str, kind: type, nth: int = 1) -> int:
    found = [n for n, one in enumerate(await events(app, run_id), 1) if isinstance(one, kind)]
    return found[nth - 1]


async def failed(app: Holdfast) -> tuple[PlanInstance, Tool, Tool]:
    """The order was made, its delivery failed for good."""
    order, deliver = Tool({"x": 1}), Tool(BROKEN, {})
    add(app, order=order, deliver=deliver)
    load(
        app,
        step("A", "001", "002", tool="order", context={"x": "{{result.x}}"}),
        step("B", "002", "003", tool="deliver", args={"x": "{002.context.x}"}),
        end("003"),
    )
    instance = await start(app)
    assert await instance.wait_for_completion() == "error"
    return instance, order, deliver


async def over(app: Holdfast, instance: PlanInstance) -> PlanInstance:
    """What waits for a resume is cancelled: it is forked as it stood before."""
    await app.cancel(instance.id)
    assert await instance.wait_for_completion() == "cancelled"
    return instance


async def test_only_what_was_not_done_is_done_and_the_origin_stays_as_it_is(app: Holdfast) -> None:
    instance, order, deliver = await failed(app)
    await over(app, instance)
    before = await app.engine.state(instance.id)
    fork = await app.plans.fork(instance.id, before.version, by="张三")
    assert (fork.id, fork.plan_id) == ("inst_000002", "p")
    assert await fork.wait_for_completion() == "done"
    assert (order.count, deliver.count) == (1, 2)
    assert deliver.calls[-1] == {"x": 1}
    assert deliver.keys == ["inst_000001:B:1:0", "inst_000002:B:1:0"]
    assert (await app.engine.state(instance.id)) == before
    first = (await events(app, fork.id))[0]
    assert (first.fork.origin, first.fork.seq, first.by) == (instance.id, before.version, "张三")


async def test_from_an_earlier_event_what_came_after_is_done_again(app: Holdfast) -> None:
    instance, order, deliver = await failed(app)
    await app.resume(instance.id)
    assert await instance.wait_for_completion() == "done"
    fork = await app.plans.fork(instance.id, await seq_of(app, instance.id, e.ListenerSucceeded))
    assert await fork.wait_for_completion() == "done"
    assert (order.count, deliver.count) == (1, 3)


async def test_it_outlives_its_process_and_may_be_forked_itself(
    open_app: OpenApp, tmp_path: Path
) -> None:
    async with Holdfast(tmp_path, max_retry_count=0) as app:
        instance, _, _ = await failed(app)
        await over(app, instance)
        fork = await app.plans.fork(instance.id, 1)
        assert await fork.wait_for_completion() == "done"
        live = await app.engine.state(fork.id)
    again = await open_app(tmp_path)
    assert await again.engine.state(fork.id) == live
    deliver = Tool({})
    add(again, order=Tool({}), deliver=deliver)
    further = await again.plans.fork(fork.id, await seq_of(again, fork.id, e.ListenerSucceeded))
    assert await further.wait_for_completion() == "done"
    assert deliver.count == 1


async def test_it_is_pinned_to_the_plan_that_held_at_that_event(
    open_app: OpenApp, tmp_path: Path
) -> None:
    async with Holdfast(tmp_path, max_retry_count=0) as app:
        instance, _, deliver = await failed(app)
        assert app.planner_agent.repairer is not None
        patch = {"op": "set_args", "listener_id": "B", "set": {"y": "express"}}
        await app.planner_agent.repairer.propose(instance.id, [patch], by="张三", listener_id="B")
        asked = next(one for one in await app.inbox() if one.run_id == instance.id)
        await app.answer(asked.question_id, option_id="apply", by="李四")
        assert await instance.wait_for_completion() == "done"
        patched = as_plan(await app.engine.state(instance.id)).plan
        fork = await app.plans.fork(instance.id, await seq_of(app, instance.id, e.PlanPatched))
        assert await fork.wait_for_completion() == "done"
        assert deliver.calls[-1] == {"x": 1, "y": "express"}
        row = await app.journal.run(fork.id)
        assert row is not None
        assert row.definition == patched.digest
        before = await app.plans.fork(instance.id, 1)
        assert as_plan(await app.engine.state(before.id)).plan.digest != patched.digest
    again = await open_app(tmp_path)
    state = as_plan(await again.engine.state(fork.id))
    assert (state.plan.digest, state.origin) == (patched.digest, None)


async def lost(app: Holdfast) -> tuple[PlanInstance, Tool]:
    """It is not known whether the payment took place, and the run was cancelled over that."""
    pay = Tool(OutcomeUnknown("no answer"), {"x": 1})
    add(app, pay=pay)
    load(app, step("A", "001", "002", tool="pay", context={"x": "{{result.x}}"}), end("002"))
    instance = await start(app)
    assert await instance.wait_until_settled() == "pause"
    await app.cancel(instance.id)
    assert await instance.wait_for_completion() == "cancelled"
    return instance, pay


async def test_a_person_is_asked_about_what_was_in_doubt(app: Holdfast) -> None:
    instance, pay = await lost(app)
    fork = await app.plans.fork(instance.id, instance.version)
    assert await fork.wait_until_settled() == "pause"
    [asked] = [one for one in await app.inbox() if one.run_id == fork.id]
    assert asked.type == "USER_CHOICE"
    await app.answer(asked.question_id, option_id="happened", data={"x": "7"})
    assert await fork.wait_for_completion() == "done"
    assert (pay.count, fork.get_task_instance("002").context["x"]) == (1, "7")


async def test_and_may_have_it_done_again_under_its_key(app: Holdfast) -> None:
    instance, pay = await lost(app)
    fork = await app.plans.fork(instance.id, instance.version)
    [asked] = [one for one in await app.inbox() if one.run_id == fork.id]
    await app.answer(asked.question_id, option_id="run_again")
    assert await fork.wait_for_completion() == "done"
    assert pay.keys == ["inst_000001:A:1:0"] * 2


class TestWhatCannotBeForked:
    async def test_a_run_that_goes_on(self, app: Holdfast) -> None:
        load(app, step("A", "001", "002", form={"colour": {"type": "text"}}), end("002"))
        instance = await start(app)
        assert await instance.wait_until_settled() == "pause"
        with pytest.raises(NotAllowed, match=r"inst_000001 is pause, and .*: cancel it first"):
            await app.plans.fork(instance.id, 1)
        assert len(await app.runs()) == 1

    async def test_a_run_that_waits_for_a_resume(self, app: Holdfast) -> None:
        """Both would deliver: the run once it is resumed, and its fork."""
        instance, order, deliver = await failed(app)
        with pytest.raises(NotAllowed, match=r"inst_000001 is error, and .*: cancel it first"):
            await app.plans.fork(instance.id, 1)
        assert (await app.engine.state(instance.id)).status == "error"
        await over(app, instance)
        fork = await app.plans.fork(instance.id, instance.version)
        with pytest.raises(NotAllowed, match="inst_000001 is cancelled"):
            await app.resume(instance.id)
        assert await fork.wait_for_completion() == "done"
        assert (order.count, deliver.count) == (1, 2)

    @pytest.mark.parametrize("resumed_first", [True, False])
    async def test_a_resume_and_a_fork_at_the_same_time_do_what_is_left_once(
        self, app: Holdfast, resumed_first: bool
    ) -> None:
        instance, _, deliver = await failed(app)

        async def forked() -> PlanInstance:
            await app.cancel(instance.id)
            return await app.plans.fork(instance.id, instance.version)

        both = (app.resume(instance.id), forked())
        in_order = both if resumed_first else both[::-1]
        first, second = await asyncio.gather(*in_order, return_exceptions=True)
        assert isinstance(first, PlanInstance)
        assert isinstance(second, PlanInstance | NotAllowed)
        for row in await app.runs():
            assert await (await app.instance(row.run_id)).wait_for_completion() in ENDED
        assert deliver.count == 2

    async def test_a_run_that_is_done_is_not_run_again(self, app: Holdfast) -> None:
        """So nothing of it is done once more after it was forked."""
        instance, _, _ = await failed(app)
        await app.resume(instance.id)
        assert await instance.wait_for_completion() == "done"
        await app.plans.fork(instance.id, 1)
        with pytest.raises(NotAllowed, match="inst_000001 is done"):
            await app.rerun_from(instance.id, "A")
        with pytest.raises(NotAllowed, match="inst_000001 is done"):
            await app.resume(instance.id)

    async def test_an_event_that_there_is_not(self, app: Holdfast) -> None:
        instance, _, _ = await failed(app)
        await over(app, instance)
        with pytest.raises(NotFound, match="inst_000001 has no event 999: its events are 1 to"):
            await app.plans.fork(instance.id, 999)
        assert len(await app.runs()) == 1

    async def test_a_run_that_there_is_not_or_that_is_of_no_plan(self, app: Holdfast) -> None:
        with pytest.raises(NotFound, match="inst_000404"):
            await app.plans.fork("inst_000404", 1)
        app.agent("clerk")
        session = await app.sessions.open("clerk")
        with pytest.raises(NotFound, match="is not an instance of a plan"):
            await app.plans.fork(session.id, 1)


SECRET = {"token": {"type": "secret", "label": "Token"}}


class TestSecrets:
    async def given_up(self, app: Holdfast) -> tuple[PlanInstance, Tool]:
        """A run that was started with a secret, and whose call with it failed."""
        sign_in = Tool(BROKEN, {})
        add(app, sign_in=sign_in, look=Tool({}))
        load(
            app,
            step("A", "001", "002", tool="look"),
            step("B", "002", "003", tool="sign_in", args={"x": "Bearer {001.context.token}"}),
            end("003"),
            inputs=SECRET,
        )
        instance = await start(app, token="of the origin")
        assert await instance.wait_for_completion() == "error"
        assert sign_in.calls == [{"x": "Bearer of the origin"}]
        return instance, sign_in

    async def test_a_step_that_needs_one_asks_for_it_again(self, app: Holdfast) -> None:
        instance, sign_in = await self.given_up(app)
        await over(app, instance)
        fork = await app.plans.fork(instance.id, instance.version)
        assert await fork.wait_until_settled() == "pause"
        assert sign_in.count == 1
        assert fork.context["pause_reason"] == "secret"
        given = await app.planner_agent.continue_plan(fork.id, {"token": "of the fork"})
        assert given["success"]
        assert await fork.wait_for_completion() == "done"
        assert sign_in.calls[-1] == {"x": "Bearer of the fork"}
        kept = "".join(one.payload for one in await app.journal.read(fork.id))
        assert "of the fork" not in kept
        assert "of the origin" not in kept


class TestChildRuns:
    async def parent(self, app: Holdfast, *child: dict[str, Any]) -> PlanInstance:
        load(app, *child, end("002"), plan_id="child")
        load(app, step("A", "001", "002", plan_id="child"), end("002"), plan_id="parent")
        instance = await start(app, "parent")
        await instance.wait_until_settled()
        return instance

    async def forked(self, app: Holdfast, instance: PlanInstance) -> PlanInstance:
        await over(app, instance)
        return await app.plans.fork(instance.id, instance.version)

    async def test_one_that_has_only_looked_is_started_anew(self, app: Holdfast) -> None:
        look, tell = Tool({}), Tool({})
        app.tool(look, name="look", read_only=True)
        add(app, tell=tell)
        code = {"code_snippet": "result = look()", "functions": ["look"]}
        instance = await self.parent(
            app,
            step("L", "001", "003", tool="look"),
            step("F", "003", "004", **code),
            step("S", "004", "005", code_snippet="result = {}"),
            step("H", "005", "002", form={"colour": {"type": "text"}}),
        )
        fork = await self.forked(app, instance)
        assert await fork.wait_until_settled() == "pause"
        [asked] = [one for one in await app.inbox() if one.root_id == fork.id]
        assert asked.run_id == f"{fork.id}.A.1"
        await app.answer(asked.question_id, option_id="provide", data={"colour": "red"})
        assert await fork.wait_for_completion() == "done"
        assert look.count == 4

    async def test_of_one_that_has_acted_a_person_is_asked(self, app: Holdfast) -> None:
        tell = Tool({})
        add(app, tell=tell)
        instance = await self.parent(
            app,
            step("T", "001", "003", tool="tell"),
            step("H", "003", "002", form={"colour": {"type": "text"}}),
        )
        fork = await self.forked(app, instance)
        assert await fork.wait_until_settled() == "pause"
        [asked] = [one for one in await app.inbox() if one.root_id == fork.id]
        assert (asked.run_id, asked.type) == (fork.id, "USER_CHOICE")
        await app.answer(asked.question_id, option_id="happened")
        assert await fork.wait_for_completion() == "done"
        assert tell.count == 1

    async def test_also_where_that_was_done_further_below(self, app: Holdfast) -> None:
        tell = Tool({})
        add(app, tell=tell)
        load(
            app,
            step("T", "001", "003", tool="tell"),
            step("H", "003", "002", form={"colour": {"type": "text"}}),
            end("002"),
            plan_id="grandchild",
        )
        instance = await self.parent(app, step("G", "001", "002", plan_id="grandchild"))
        fork = await self.forked(app, instance)
        [asked] = [one for one in await app.inbox() if one.root_id == fork.id]
        assert asked.run_id == fork.id

    async def test_one_that_was_never_born_is_started(self, app: Holdfast) -> None:
        listener = step("A", "001", "002", plan_id="later")
        tasks = [{"task_id": "001"}, {"task_id": "002"}]
        plan = {"plan_id": "parent", "main_task_id": "001", "tasks": tasks}
        app.add_plan(read_plan(json.dumps({**plan, "listeners": [listener, end("002")]})))
        instance = await start(app, "parent")
        assert await instance.wait_for_completion() == "error"
        load(app, end("001", when="Running"), plan_id="later")
        await over(app, instance)
        fork = await app.plans.fork(instance.id, instance.version)
        assert await fork.wait_for_completion() == "done"

    async def test_one_that_was_cancelled_is_forked_once_nothing_starts_it_anew(
        self, app: Holdfast
    ) -> None:
        """The run that it works for takes it for failed, and would at its resume."""
        tell = Tool({})
        add(app, tell=tell)
        form = {"form": {"colour": {"type": "text"}}}
        told = step("T", "001", "003", tool="tell")
        instance = await self.parent(app, told, step("H", "003", "002", **form))
        below = f"{instance.id}.A.1"
        with pytest.raises(NotAllowed, match=f"works for {instance.id}, which is pause and may"):
            await app.plans.fork(below, 1)
        await app.cancel(below)
        await app.engine.wait_for_status(instance.id, frozenset({RunStatus.ERROR}))
        with pytest.raises(NotAllowed, match=f"works for {instance.id}, .*: cancel {instance.id} "):
            await app.plans.fork(below, 1)
        await over(app, instance)
        fork = await app.plans.fork(below, 1)
        assert await fork.wait_until_settled() == "pause"
        assert (fork.id, tell.count) == ("inst_000002", 2)

    async def test_one_that_is_done_is_forked_while_that_run_goes_on(self, app: Holdfast) -> None:
        add(app, tell=Tool({}))
        form = {"form": {"colour": {"type": "text"}}}
        load(app, step("T", "001", "002", tool="tell"), end("002"), plan_id="child")
        first = step("A", "001", "002", plan_id="child")
        load(app, first, step("H", "002", "003", **form), end("003"), plan_id="parent")
        instance = await start(app, "parent")
        assert await instance.wait_until_settled() == "pause"
        fork = await app.plans.fork(f"{instance.id}.A.1", 1)
        assert await fork.wait_for_completion() == "done"

    @pytest.mark.parametrize(("tool", "asks"), [("look", False), ("tell", True)])
    async def test_an_agent_is_judged_by_what_it_has_called(
        self, open_app: OpenApp, tool: str, asks: bool
    ) -> None:
        def reply(seen: Seen) -> Entry:
            said = sum(isinstance(one, ModelSaid) for one in seen.messages)
            return [call(tool), call("ask"), "done"][said]

        app = await open_app(model=ScriptedModel(reply), max_retry_count=0)
        app.tool(Tool({}), name="look", read_only=True)
        add(app, tell=Tool({}))
        app.tool(Tool({}), name="ask", approval="require_approval")
        app.agent("clerk", tools=["look", "tell", "ask"])
        agent = {"listener_type": "agent", "agent_id": "clerk", "action_prompt": "go"}
        load(app, step("A", "001", "002", **agent), end("002"), plan_id="parent")
        instance = await start(app, "parent")
        assert await instance.wait_until_settled() == "pause"
        fork = await self.forked(app, instance)
        assert await fork.wait_until_settled() == "pause"
        [asked] = [one for one in await app.inbox() if one.root_id == fork.id]
        assert (asked.run_id == fork.id) is asks


async def test_who_forks_wants_what_it_does_as_do_all_who_wanted_the_origin(
    open_app: OpenApp,
) -> None:
    app = await open_app(four_eyes=True)
    paid = Tool(BROKEN, {})
    app.tool(paid, name="pay", approval="require_approval")
    form = {"form": {"amount": {"type": "text"}}}
    pay = {"tool": "pay", "args": {"x": "{002.context.amount}"}}
    given = {"amount": "{{result.amount}}"}
    load(
        app,
        step("A", "001", "002", context=given, **form),
        step("B", "002", "003", **pay),
        end("003"),
    )
    instance = await app.plans.start_plan_by_prompt("", "p", by="张三")
    await instance.wait_until_settled()
    [asked] = await app.inbox()
    await app.answer(asked.question_id, option_id="provide", data={"amount": "5"}, by="李四")
    await instance.wait_until_settled()
    await app.cancel(instance.id, by="王五")
    assert await instance.wait_for_completion() == "cancelled"
    fork = await app.plans.fork(instance.id, instance.version, by="赵六")
    assert await fork.wait_until_settled() == "pause"
    wanting = dict((await app.engine.state(fork.id)).wanting)
    assert (wanting["赵六"], wanting["张三"], wanting["李四"]) == (STARTED, STARTED, ANSWERED)
    assert "王五" in wanting


async def test_an_idempotent_call_that_was_in_flight_is_made_again_under_its_key(
    app: Holdfast,
) -> None:
    book = Tool({}).hold()
    app.tool(book, name="book", idempotent=True)
    load(app, step("A", "001", "002", tool="book", timeout=60), end("002"))
    instance = await start(app)
    await book.entered.wait()
    await app.engine.submit(instance.id, c.Cancel("张三", grace=0.0))
    assert await app.engine.wait_for_status(instance.id, {RunStatus.CANCELLED})
    fork = await app.plans.fork(instance.id, instance.version)
    book.let_go()
    assert await fork.wait_for_completion() == "done"
    assert book.keys == ["inst_000001:A:1:0"] * 2

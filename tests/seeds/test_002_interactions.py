"""Seed 002, 通用交互中断-恢复架构文档: whatever stops for a person, and how it goes on afterwards.

Each docstring quotes the seed's section. Where the design decides otherwise than the seed (our own
request ids, because nobody may guess them; a stream that stays open while it waits, where the seed
makes a new one), the design holds. The seed's HTTP paths belong to the server and are tested there.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    AgentContext,
    AgentEventType,
    AgentExecutionEvent,
    AgentSession,
    AgentSessionHub,
    Holdfast,
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionResponse,
    InteractionType,
    ReActAgentStrategy,
    ReActStage,
    Resolution,
    ResumePoint,
    ToolApprovalCallback,
)
from holdfast.core.interactions.wire import (
    option_from_wire,
    option_to_wire,
    request_from_wire,
    request_to_wire,
    response_from_wire,
    response_to_wire,
)
from holdfast.errors import InvalidAnswer
from holdfast.model.message import ToolReturned, UserSaid
from holdfast.testing.model_script import Entry, Seen, call, say
from holdfast.testing.scripted_model import RuleModel

OpenApp = Callable[..., Awaitable[Holdfast]]

FILE = "/path/to/file.txt"

OPTION = {
    "optionId": "provide",
    "label": "提供 API Key",
    "description": "输入您的 API Key",
    "action": "PROVIDE_INFO",
    "isDefault": False,
    "isDangerous": True,
    "requiresInput": True,
    "inputPrompt": "请输入 OpenWeather API Key",
    "metadata": {"keyOf": "weather"},
}
REQUEST = {
    "requestId": "r1",
    "sessionId": "s1",
    "type": "MISSING_INFO",
    "title": "缺少 API Key",
    "message": "执行该工具需要 OpenWeather API Key",
    "details": "…",
    "context": {"toolName": "weather"},
    "options": [OPTION],
    "required": True,
    "timeoutSeconds": 60,
    "defaultOptionId": None,
}
RESPONSE = {
    "requestId": "r1",
    "sessionId": "s1",
    "selectedOptionId": "provide",
    "data": {"someKey": "value"},
    "feedback": "用户反馈（可选）",
}


class TestModels:
    """架构组件 1. 交互模型（contract 模块） and 2. ResumePoint（恢复点）."""

    def test_the_interaction_types(self) -> None:
        """通过 `InteractionType` 枚举扩展新的交互类型."""
        assert [one.value for one in InteractionType] == [
            "TOOL_APPROVAL",
            "MISSING_INFO",
            "USER_CONFIRMATION",
            "USER_CHOICE",
            "USER_INPUT",
            "CUSTOM",
        ]

    def test_the_interaction_actions(self) -> None:
        """通过 `InteractionAction` 枚举扩展新的恢复动作."""
        assert [one.value for one in InteractionAction] == [
            "APPROVE_AND_EXECUTE",
            "RETRY_WITH_FEEDBACK",
            "REJECT_WITH_REASON",
            "TERMINATE",
            "PROVIDE_INFO",
            "SKIP",
            "CUSTOM",
        ]

    @pytest.mark.parametrize(
        ("wire", "read", "write"),
        [
            (OPTION, option_from_wire, option_to_wire),
            (REQUEST, request_from_wire, request_to_wire),
            (RESPONSE, response_from_wire, response_to_wire),
        ],
        ids=["InteractionOption", "InteractionRequest", "InteractionResponse"],
    )
    def test_every_field_in_both_spellings(
        self,
        wire: dict[str, Any],
        read: Callable[[object], Any],
        write: Callable[[Any], dict[str, Any]],
    ) -> None:
        """`String optionId; // 选项ID` and all the others: snake_case here, camelCase outside."""
        made = read(wire)
        assert write(made) == wire
        assert read({snake(name): value for name, value in wire.items()}) == made
        names = {one.name for one in fields(made)}
        assert {snake(name) for name in wire} <= names

    def test_the_resume_point(self) -> None:
        """`public class ResumePoint`: eight fields."""
        assert {one.name for one in fields(ResumePoint)} == {
            "resume_id",
            "session_id",
            "current_iteration",
            "paused_stage",
            "interaction_request",
            "user_response",
            "context",
            "original_task",
        }


def snake(name: str) -> str:
    return "".join(f"_{one.lower()}" if one.isupper() else one for one in name)


@dataclass
class Calls:
    """What the tools were called with, in order."""

    made: list[tuple[str, dict[str, Any]]]

    def of(self, tool: str) -> list[dict[str, Any]]:
        return [args for name, args in self.made if name == tool]


@pytest.fixture
def calls() -> Calls:
    return Calls([])


def told(seen: Seen) -> dict[str, Any]:
    """What a person's answer brings: the model hears it as JSON."""
    _, _, values = seen.asked.partition("answered: ")
    found = json.loads(values)
    assert isinstance(found, dict)
    return found


def look_up(seen: Seen) -> Entry:
    return call("query_weather", api_key=told(seen)["feedback"])


def concluded(seen: Seen) -> Entry:
    """The last result, or what a person said, in the model's own words."""
    last = seen.messages[-1]
    assert isinstance(last, UserSaid | ToolReturned)
    return f"So: {last.text if isinstance(last, UserSaid) else json.dumps(last.content)}"


def has_results(seen: Seen) -> bool:
    return bool(seen.results)


MODEL: list[tuple[str | Callable[[Seen], bool], Entry]] = [
    (has_results, concluded),
    ("hello", "你好"),
    ("weather?", say("Let me look.", call("query_weather", api_key="k"))),
    ("delete it", say("As you wish.", call("delete_file", path=FILE))),
    ("[缺少 API Key] local answered", look_up),
    ("[确认删除文件] local answered", call("delete_file", path=FILE)),
    ("", concluded),
]


@pytest.fixture
async def app(open_app: OpenApp, tmp_path: Path, calls: Calls) -> Holdfast:
    app = await open_app(tmp_path / "home", model=RuleModel(MODEL))

    @app.tool(approval="require")
    async def delete_file(path: str) -> dict[str, bool]:
        calls.made.append(("delete_file", {"path": path}))
        return {"deleted": True}

    @app.tool
    async def query_weather(api_key: str) -> dict[str, str]:
        calls.made.append(("query_weather", {"api_key": api_key}))
        return {"weather": "sunny"}

    app.agent("helper", tools=["delete_file", "query_weather"])
    return app


@pytest.fixture
def hub(app: Holdfast) -> AgentSessionHub:
    return app.sessions


@pytest.fixture
async def session(hub: AgentSessionHub) -> AgentSession:
    return await hub.open("helper", session_id="session-123")


async def answer(hub: AgentSessionHub, session: AgentSession, option_id: str, **said: Any) -> None:
    """`handleInteractionResponse` with the seed's own JSON, to the one open question."""
    [point] = await hub.resume_points(session.id)
    response = {
        "sessionId": session.id,
        "requestId": point.interaction_request.request_id,
        "selectedOptionId": option_id,
        "feedback": None,
        "data": {},
        **said,
    }
    await hub.handle_interaction_response(session.id, response)
    await session.wait_for_completion()


MISSING_API_KEY = InteractionRequest(
    request_id="missing-api-key-1761123600000",
    session_id="session-123",
    type=InteractionType.MISSING_INFO,
    title="缺少 API Key",
    message="执行该工具需要 OpenWeather API Key",
    options=(
        InteractionOption(
            "provide",
            "提供 API Key",
            InteractionAction.PROVIDE_INFO,
            description="输入您的 API Key",
            requires_input=True,
            input_prompt="请输入 OpenWeather API Key",
        ),
        InteractionOption(
            "skip",
            "跳过该工具",
            InteractionAction.SKIP,
            description="跳过天气查询，继续其他任务",
        ),
    ),
)

CONFIRM_DELETE = InteractionRequest(
    request_id="confirm-delete-1761123600000",
    session_id="session-123",
    type=InteractionType.USER_CONFIRMATION,
    title="确认删除文件",
    message=f"即将删除文件: {FILE}",
    details="此操作不可撤销，请谨慎操作",
    options=(
        InteractionOption(
            "confirm",
            "确认删除",
            InteractionAction.APPROVE_AND_EXECUTE,
            description="删除该文件",
            is_dangerous=True,
        ),
        InteractionOption(
            "cancel", "取消", InteractionAction.REJECT_WITH_REASON, description="不删除文件"
        ),
    ),
)

CHOOSE_PLAN = InteractionRequest(
    request_id="choose-plan-1761123600000",
    session_id="session-123",
    type=InteractionType.USER_CHOICE,
    title="选择实现方案",
    message="Agent 提供了3个实现方案，请选择一个",
    options=(
        InteractionOption(
            "plan-a",
            "方案A：使用 Redis 缓存",
            InteractionAction.APPROVE_AND_EXECUTE,
            description="性能最好，但需要额外的 Redis 服务",
            metadata={"plan": "redis"},
        ),
        InteractionOption(
            "plan-b",
            "方案B：使用本地缓存",
            InteractionAction.APPROVE_AND_EXECUTE,
            description="实现简单，但性能一般",
            metadata={"plan": "local"},
        ),
        InteractionOption(
            "plan-c",
            "方案C：不使用缓存",
            InteractionAction.APPROVE_AND_EXECUTE,
            description="最简单，但性能最差",
            metadata={"plan": "none"},
        ),
        InteractionOption(
            "rethink",
            "让 Agent 重新思考",
            InteractionAction.RETRY_WITH_FEEDBACK,
            description="这些方案都不满意，让 Agent 提供其他方案",
            requires_input=True,
            input_prompt="请说明您的需求",
        ),
    ),
)


def javas_setters(request: InteractionRequest) -> dict[str, Any]:
    """As a Java client would write it: `setDangerous` has no `is`."""
    wire = request_to_wire(request)
    for option in wire["options"]:
        option["dangerous"] = option.pop("isDangerous")
        option["default"] = option.pop("isDefault")
    return wire


SPELLINGS = pytest.mark.parametrize(
    "spelt",
    [lambda request: request, request_to_wire, javas_setters],
    ids=["python", "camelCase", "java"],
)
Spelt = Callable[[InteractionRequest], InteractionRequest | Mapping[str, Any]]


@SPELLINGS
class TestExtensionExamples:
    """扩展示例: three questions, `agentSessionHub.requestInteraction(sessionId, request)`."""

    async def test_an_asked_question_is_the_one_that_was_requested(
        self, hub: AgentSessionHub, session: AgentSession, spelt: Spelt
    ) -> None:
        """将所有类型的用户交互抽象为统一的 `InteractionRequest` 模型."""
        for request in (MISSING_API_KEY, CONFIRM_DELETE, CHOOSE_PLAN):
            asked = await hub.request_interaction(session.id, spelt(request))
            assert replace(asked, request_id=request.request_id) == request
            assert asked.request_id != request.request_id

    async def test_an_api_key_is_provided(
        self, hub: AgentSessionHub, session: AgentSession, calls: Calls, spelt: Spelt
    ) -> None:
        """示例1：缺少 API Key, 提供 API Key."""
        await hub.request_interaction(session.id, spelt(MISSING_API_KEY))
        assert session.status == "pause"
        await answer(hub, session, "provide", feedback="ow-123")
        assert calls.made == [("query_weather", {"api_key": "ow-123"})]
        assert session.answer == 'So: {"weather": "sunny"}'

    async def test_the_weather_is_skipped(
        self, hub: AgentSessionHub, session: AgentSession, calls: Calls, spelt: Spelt
    ) -> None:
        """示例1：跳过天气查询，继续其他任务."""
        await hub.request_interaction(session.id, spelt(MISSING_API_KEY))
        await answer(hub, session, "skip")
        assert calls.made == []
        assert "Go on without it" in session.answer

    async def test_a_deletion_is_confirmed(
        self, hub: AgentSessionHub, session: AgentSession, calls: Calls, spelt: Spelt
    ) -> None:
        """示例2：确认删除. The agent goes on, and its call still has to be approved."""
        asked = await hub.request_interaction(session.id, spelt(CONFIRM_DELETE))
        assert asked.options[0].is_dangerous
        await hub.handle_interaction_response(
            session.id, InteractionResponse(asked.request_id, selected_option_id="confirm")
        )
        await session.wait_until_settled()
        assert calls.made == []
        await answer(hub, session, "approve")
        assert calls.of("delete_file") == [{"path": FILE}]

    async def test_a_deletion_is_cancelled(
        self, hub: AgentSessionHub, session: AgentSession, calls: Calls, spelt: Spelt
    ) -> None:
        """示例2：取消, 不删除文件."""
        await hub.request_interaction(session.id, spelt(CONFIRM_DELETE))
        await answer(hub, session, "cancel")
        assert calls.made == []
        assert "refused" in session.answer

    @pytest.mark.parametrize(
        ("option_id", "plan"), [("plan-a", "redis"), ("plan-b", "local"), ("plan-c", "none")]
    )
    async def test_a_plan_is_chosen(
        self, hub: AgentSessionHub, session: AgentSession, spelt: Spelt, option_id: str, plan: str
    ) -> None:
        """示例3：用户选择（多个方案）, `addMetadata("plan", "redis")`."""
        await hub.request_interaction(session.id, spelt(CHOOSE_PLAN))
        await answer(hub, session, option_id)
        _, _, heard = session.answer.partition("answered: ")
        assert json.loads(heard) == {"option": option_id, "plan": plan}

    async def test_the_agent_is_to_think_again(
        self, hub: AgentSessionHub, session: AgentSession, spelt: Spelt
    ) -> None:
        """示例3：让 Agent 重新思考, 请说明您的需求: words are required, and reach the model."""
        await hub.request_interaction(session.id, spelt(CHOOSE_PLAN))
        with pytest.raises(InvalidAnswer) as refused:
            await answer(hub, session, "rethink")
        assert refused.value.fields == {"feedback": "请说明您的需求"}
        await answer(hub, session, "rethink", feedback="要能横向扩展")
        assert "think again. 要能横向扩展" in session.answer


class TestHub:
    """架构组件 3. AgentSessionHub（会话管理中心）."""

    async def test_the_four_options_of_a_tools_approval(
        self, hub: AgentSessionHub, session: AgentSession, calls: Calls
    ) -> None:
        """（4个选项） 同意执行, 重新执行, 拒绝并说明理由, 拒绝并终止对话."""
        context = AgentContext("helper", session.id, "user-456")
        asked = await hub.pause_for_tool_approval(
            session.id, "call-1", "delete_file", {"path": FILE}, context
        )
        assert asked.type is InteractionType.TOOL_APPROVAL
        assert {one.option_id: one.action for one in asked.options} == {
            "approve": InteractionAction.APPROVE_AND_EXECUTE,
            "retry": InteractionAction.RETRY_WITH_FEEDBACK,
            "reject": InteractionAction.REJECT_WITH_REASON,
            "terminate": InteractionAction.TERMINATE,
        }
        assert asked.context["tool"] == "delete_file"
        assert asked.context["args"] == {"path": FILE}
        assert calls.made == []

    async def test_the_agents_own_call_pauses_by_itself(
        self, hub: AgentSessionHub, session: AgentSession
    ) -> None:
        """检测到 REQUIRE_APPROVAL: the convenience finds the question that is open already."""
        await hub.say(session.id, "delete it")
        await session.wait_until_settled()
        [point] = await hub.resume_points(session.id)
        call_id = point.interaction_request.context["call_id"]
        asked = await hub.pause_for_tool_approval(
            session.id, call_id, "delete_file", {"path": FILE}
        )
        assert asked == point.interaction_request

    @pytest.mark.parametrize(
        ("option_id", "said", "deleted", "status", "heard"),
        [
            ("approve", None, 1, "done", "deleted"),
            ("retry", "another file", 0, "done", "another file"),
            ("reject", "still needed", 0, "done", "still needed"),
            ("terminate", None, 0, "cancelled", ""),
        ],
        ids=["resumeWithExecution", "resumeWithRetry", "resumeWithRejection", "terminateSession"],
    )
    async def test_the_strategies_of_an_approval(
        self,
        hub: AgentSessionHub,
        session: AgentSession,
        calls: Calls,
        option_id: str,
        said: str | None,
        deleted: int,
        status: str,
        heard: str,
    ) -> None:
        """恢复策略实现: 根据 action 类型分发到不同的恢复策略."""
        await hub.pause_for_tool_approval(session.id, "call-1", "delete_file", {"path": FILE})
        await answer(hub, session, option_id, feedback=said)
        assert len(calls.of("delete_file")) == deleted
        assert session.status == status
        assert heard in session.answer

    @pytest.mark.parametrize(
        ("option_id", "data", "made"),
        [
            ("provide", {"path": "/tmp/other.txt"}, [{"path": "/tmp/other.txt"}]),
            ("skip", {}, []),
        ],
        ids=["resumeWithProvidedInfo", "resumeWithSkip"],
    )
    async def test_the_two_strategies_that_the_four_options_do_not_show(
        self,
        app: Holdfast,
        hub: AgentSessionHub,
        calls: Calls,
        option_id: str,
        data: dict[str, Any],
        made: list[dict[str, Any]],
    ) -> None:
        """提供信息：补充缺失信息后继续; 跳过：跳过当前操作."""
        provide = InteractionOption("provide", "提供信息", InteractionAction.PROVIDE_INFO)
        skip = InteractionOption("skip", "跳过", InteractionAction.SKIP)
        asking = replace(app.agent("plain").asking, options=(provide, skip))
        app.agent("careful", tools=["delete_file"], asking=asking)
        session = await hub.open("careful")
        await hub.say(session.id, "delete it")
        await session.wait_until_settled()
        await answer(hub, session, option_id, data=data)
        assert calls.of("delete_file") == made
        assert session.status == "done"

    async def test_a_resume_point_says_where_the_session_waits(
        self, hub: AgentSessionHub, session: AgentSession
    ) -> None:
        """创建 ResumePoint 并保存到 SessionState."""
        await hub.say(session.id, "delete it")
        await session.wait_until_settled()
        [point] = await hub.resume_points(session.id)
        assert point.resume_id == point.interaction_request.request_id
        assert point.session_id == "session-123"
        assert point.current_iteration == 1
        assert point.paused_stage is ReActStage.ACTING
        assert point.interaction_request.type is InteractionType.TOOL_APPROVAL
        assert point.user_response is None
        assert point.context == AgentContext("helper", "session-123")
        assert point.original_task == "delete it"


class Told:
    """A `ToolApprovalCallback` that remembers what it was told."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str, Mapping[str, Any], str]] = []

    async def request_approval(
        self,
        session_id: str,
        tool_call_id: str,
        tool_name: str,
        tool_args: Mapping[str, Any],
        context: AgentContext,
    ) -> None:
        self.asked.append((session_id, tool_call_id, tool_name, tool_args, context.user_id))


def kinds(events: list[AgentExecutionEvent]) -> list[str]:
    """The types of the events that are on record, and of the last one."""
    return [one.type.value for one in events if one.seq or one.type is AgentEventType.DONE]


async def until_asked(stream: AsyncIterator[AgentExecutionEvent]) -> list[AgentExecutionEvent]:
    """What a stream tells up to the first question."""
    events: list[AgentExecutionEvent] = []
    async for event in stream:
        events.append(event)
        if event.type is AgentEventType.INTERACTION:
            break
    return events


class TestStrategy:
    """架构组件 4. ReActAgentStrategy（执行策略） and 执行流程."""

    @pytest.fixture
    def strategy(self, hub: AgentSessionHub) -> ReActAgentStrategy:
        return ReActAgentStrategy(hub)

    async def test_the_normal_flow(self, strategy: ReActAgentStrategy, calls: Calls) -> None:
        """Thinking → Action → Observation → 循环; 任务完成 → 关闭 Sink."""
        context = AgentContext("helper", "session-123", "user-456")
        events = [one async for one in strategy.execute_stream("weather?", context)]
        assert kinds(events) == [
            "STARTED",
            "THINKING",
            "ACTING",
            "TOOL",
            "OBSERVING",
            "THINKING",
            "PROGRESS",
            "COMPLETED",
            "DONE",
        ]
        assert events[0].data == {"turn": 1, "message": "weather?", "by": "user-456"}
        assert events[-2].data["answer"] == 'So: {"weather": "sunny"}'
        assert len(calls.made) == 1

    async def test_a_further_message_is_the_next_turn_of_the_same_session(
        self, hub: AgentSessionHub, strategy: ReActAgentStrategy
    ) -> None:
        """`"sessionId": "session-123"` names a session, the first time and every other."""
        context = AgentContext("helper", "session-123")
        for turn in (1, 2):
            events = [one async for one in strategy.execute_stream("hello", context)]
            assert events[-1].data == {"status": "done", "turn": turn}
        assert (await hub.session("session-123")).turn == 2

    async def test_an_approval_pauses_the_stream_and_tells_the_callback(
        self, strategy: ReActAgentStrategy, calls: Calls
    ) -> None:
        """调用 ToolApprovalCallback.requestApproval(); 暂停当前执行."""
        callback = Told()
        as_the_seed_names_it: ToolApprovalCallback = callback
        context = AgentContext(
            "helper", "session-123", "user-456", tool_approval_callback=as_the_seed_names_it
        )
        async with aclosing(strategy.execute_stream("delete it", context)) as stream:
            events = await until_asked(stream)
        assert kinds(events) == ["STARTED", "THINKING", "ACTING", "INTERACTION"]
        assert callback.asked == [
            ("session-123", "call_1_1", "delete_file", {"path": FILE}, "user-456")
        ]
        assert calls.made == []

    async def test_the_first_stream_goes_on_after_the_answer(
        self, hub: AgentSessionHub, strategy: ReActAgentStrategy, calls: Calls
    ) -> None:
        """推送事件到原 Sink → SSE 到前端."""
        context = AgentContext("helper", "session-123")
        events: list[AgentExecutionEvent] = []
        async for event in strategy.execute_stream("delete it", context):
            events.append(event)
            if event.type is AgentEventType.INTERACTION:
                [point] = await hub.resume_points("session-123")
                chosen = InteractionResponse(point.resume_id, selected_option_id="approve")
                await hub.handle_interaction_response("session-123", chosen)
        assert kinds(events)[-7:] == [
            "PROGRESS",
            "TOOL",
            "OBSERVING",
            "THINKING",
            "PROGRESS",
            "COMPLETED",
            "DONE",
        ]
        assert len(calls.made) == 1

    async def test_an_execution_is_resumed_from_its_approval(
        self, hub: AgentSessionHub, strategy: ReActAgentStrategy, calls: Calls
    ) -> None:
        """TOOL_APPROVAL → 执行工具 → 观察阶段 → 继续迭代."""
        context = AgentContext("helper", "session-123")
        async with aclosing(strategy.execute_stream("delete it", context)) as stream:
            await until_asked(stream)
        [point] = await hub.resume_points("session-123")
        response = InteractionResponse(point.resume_id, selected_option_id="approve")
        resumed = replace(point, user_response=response)
        events = [one async for one in strategy.resume_from_tool_approval(resumed, Told())]
        assert kinds(events) == [
            "PROGRESS",
            "TOOL",
            "OBSERVING",
            "THINKING",
            "PROGRESS",
            "COMPLETED",
            "DONE",
        ]
        assert len(calls.made) == 1

    async def test_other_types_go_on_with_the_next_iteration(
        self,
        hub: AgentSessionHub,
        session: AgentSession,
        strategy: ReActAgentStrategy,
        calls: Calls,
    ) -> None:
        """其他类型 → 继续下一轮迭代."""
        await hub.request_interaction(session.id, CHOOSE_PLAN)
        [point] = await hub.resume_points(session.id)
        response = InteractionResponse(point.resume_id, selected_option_id="plan-a")
        resumed = replace(point, user_response=response)
        events = [one async for one in strategy.resume_from_tool_approval(resumed)]
        assert kinds(events) == [
            "PROGRESS",
            "OBSERVING",
            "THINKING",
            "PROGRESS",
            "COMPLETED",
            "DONE",
        ]
        assert calls.made == []

    async def test_a_callback_hears_of_the_approvals_that_come_after_a_resume(
        self, hub: AgentSessionHub, session: AgentSession, strategy: ReActAgentStrategy
    ) -> None:
        """`resumeFromToolApproval(resumePoint, approvalCallback)`: both are used."""
        await hub.request_interaction(session.id, CONFIRM_DELETE)
        [point] = await hub.resume_points(session.id)
        response = InteractionResponse(point.resume_id, selected_option_id="confirm")
        callback = Told()
        stream = strategy.resume_from_tool_approval(
            replace(point, user_response=response), callback
        )
        async with aclosing(stream) as events:
            await until_asked(events)
        assert [tool for _, _, tool, _, _ in callback.asked] == ["delete_file"]

    async def test_nothing_is_resumed_without_a_response(
        self, hub: AgentSessionHub, session: AgentSession, strategy: ReActAgentStrategy
    ) -> None:
        """`InteractionResponse userResponse; // 用户响应`."""
        await hub.request_interaction(session.id, CHOOSE_PLAN)
        [point] = await hub.resume_points(session.id)
        with pytest.raises(InvalidAnswer, match="no user_response"):
            async for _ in strategy.resume_from_tool_approval(point):
                pass
        assert session.status == "pause"


class TestFrontEnd:
    """前端集成指南."""

    async def test_an_interaction_event_can_be_rendered_and_answered(
        self, hub: AgentSessionHub, session: AgentSession, calls: Calls
    ) -> None:
        """`const interactionRequest = JSON.parse(event.data).data` … `handleUserResponse`."""
        await hub.say(session.id, "delete it")
        async with aclosing(hub.subscribe(session.id)) as stream:
            [*_, event] = await until_asked(stream)
        request = json.loads(json.dumps(event.to_wire()))["data"]
        assert event.to_wire()["type"] == "INTERACTION"
        assert all(isinstance(request[one], str) for one in ("title", "message", "details"))
        buttons = [
            (one["optionId"], one["label"], one["isDangerous"], one["requiresInput"])
            for one in request["options"]
        ]
        assert [one[0] for one in buttons] == ["approve", "retry", "reject", "terminate"]
        assert [danger for _, _, danger, _ in buttons] == [True, False, False, True]
        assert [needs for _, _, _, needs in buttons] == [False, True, True, False]
        await hub.handle_interaction_response(
            session.id,
            {
                "sessionId": request["sessionId"],
                "requestId": request["requestId"],
                "selectedOptionId": "approve",
                "feedback": None,
                "data": {},
            },
        )
        assert await session.wait_for_completion() == "done"
        assert len(calls.made) == 1


class TestExtension:
    """可扩展性: 新增交互类型和动作无需修改核心代码."""

    async def test_a_new_type_and_a_new_action(
        self, app: Holdfast, hub: AgentSessionHub, session: AgentSession
    ) -> None:
        """支持任意类型的交互场景，无需修改核心代码."""

        @app.interactions.type("signature")
        def sign(request: InteractionRequest, response: InteractionResponse) -> Resolution:
            signed = {"signed_by": response.data["name"]}
            return Resolution(InteractionAction.PROVIDE_INFO, signed)

        @app.interactions.action("call_the_boss")
        async def refuse(request: InteractionRequest, response: InteractionResponse) -> Resolution:
            return Resolution(InteractionAction.REJECT_WITH_REASON, feedback="老板不同意")

        request = {
            "requestId": "",
            "sessionId": session.id,
            "type": "CUSTOM",
            "customType": "signature",
            "title": "请签字",
            "options": [
                {"optionId": "sign", "label": "签字", "action": "CUSTOM"},
                {
                    "optionId": "boss",
                    "label": "请示老板",
                    "action": "CUSTOM",
                    "metadata": {"handler": "call_the_boss"},
                },
            ],
        }
        await hub.request_interaction(session.id, request)
        await answer(hub, session, "sign", data={"name": "张三"})
        assert '"signed_by":"张三"' in session.answer
        await hub.request_interaction(session.id, request)
        await answer(hub, session, "boss")
        assert "refused. 老板不同意" in session.answer

"""Seed 004: the ConversationEngine's life, block by block as the seed writes it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest

import holdfast
from holdfast.conversations.engine import (
    VALID_STATE_TRANSITIONS,
    ConversationEngine,
    EngineEvent,
    EngineEventType,
    EngineState,
    SubTask,
)

TASKS = [
    {"id": "task_1", "description": "读取数据", "type": "read", "priority": 2},
    {"id": "task_2", "description": "统计", "type": "count", "priority": 1},
    {"id": "task_3", "description": "写报告", "type": "write", "priority": 3},
]


class Coordinator:
    async def get_context_async(self, user_input: str) -> Any:
        return SimpleNamespace(
            rules=["no guessing"], tools=["read", "count"], knowledge=[user_input, "b", "c"]
        )


class Llm:
    async def decompose_goal(self, text: str) -> list[dict[str, Any]]:
        return TASKS


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def llm() -> Llm:
    return Llm()


@pytest.fixture
def engine(coordinator: Coordinator, llm: Llm) -> ConversationEngine:
    return ConversationEngine(coordinator=coordinator, llm=llm)


def told(events: list[EngineEvent]) -> list[tuple[str, dict[str, Any]]]:
    return [(one.event_type.value, dict(one.data)) for one in events]


def of_type(events: list[EngineEvent], kind: EngineEventType) -> list[dict[str, Any]]:
    return [dict(one.data) for one in events if one.event_type is kind]


def changed(before: str, after: str) -> tuple[str, dict[str, Any]]:
    return "state_changed", {"from": before, "to": after}


async def test_basic_use_prints_every_event(
    coordinator: Coordinator, llm: Llm, capsys: pytest.CaptureFixture[str]
) -> None:
    """使用示例: 基本使用, word for word."""
    engine = ConversationEngine(coordinator=coordinator, llm=llm)

    async for event in engine.run("帮我分析销售数据"):
        print(f"[{event.event_type}] {event.data}")

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[state_changed] {'from': 'idle', 'to': 'receiving'}"
    assert lines[-1] == "[engine_completed] {'total_tasks': 3, 'completed_tasks': 3}"


async def test_the_whole_life_in_order_with_exactly_the_data_of_the_table(
    engine: ConversationEngine,
) -> None:
    events = [event async for event in engine.run("帮我分析销售数据")]
    listed = [{"id": one["id"], "description": one["description"]} for one in TASKS]
    assert told(events) == [
        changed("idle", "receiving"),
        changed("receiving", "context_fetching"),
        ("context_received", {"rules_count": 1, "tools_count": 2, "knowledge_count": 3}),
        changed("context_fetching", "decomposing"),
        ("task_decomposed", {"task_count": 3, "tasks": listed}),
        changed("decomposing", "scheduling"),
        ("task_scheduled", {"task_id": "task_2", "priority": 1}),
        ("task_scheduled", {"task_id": "task_1", "priority": 2}),
        ("task_scheduled", {"task_id": "task_3", "priority": 3}),
        changed("scheduling", "executing"),
        ("task_started", {"task_id": "task_2"}),
        ("task_completed", {"task_id": "task_2", "result": {}, "progress": 1 / 3}),
        ("task_started", {"task_id": "task_1"}),
        ("task_completed", {"task_id": "task_1", "result": {}, "progress": 2 / 3}),
        ("task_started", {"task_id": "task_3"}),
        ("task_completed", {"task_id": "task_3", "result": {}, "progress": 1.0}),
        changed("executing", "completed"),
        ("engine_completed", {"total_tasks": 3, "completed_tasks": 3}),
    ]
    assert engine.state is EngineState.COMPLETED
    assert (engine.total_tasks, engine.completed_tasks, engine.current_progress) == (3, 3, 1.0)


async def test_run_is_an_async_generator_whose_state_moves_with_its_events(
    engine: ConversationEngine,
) -> None:
    """接收阶段: run gives an AsyncIterator, and each STATE_CHANGED is true when it is seen."""
    assert engine.state is EngineState.IDLE
    run = engine.run("目标")
    assert isinstance(run, AsyncIterator)
    assert engine.state is EngineState.IDLE, "nothing happens before the first event is asked for"
    async for event in run:
        if event.event_type is EngineEventType.STATE_CHANGED:
            assert engine.state == event.data["to"]


async def test_the_tasks_come_from_the_llm_and_are_sorted_by_priority(
    engine: ConversationEngine,
) -> None:
    """分解阶段 and 调度阶段: `sorted(self._tasks, key=lambda t: t.priority)`."""
    events = [event async for event in engine.run("目标")]
    tasks = [SubTask(one["id"], one["description"], priority=one["priority"]) for one in TASKS]
    sorted_tasks = sorted(tasks, key=lambda t: t.priority)
    assert of_type(events, EngineEventType.TASK_SCHEDULED) == [
        {"task_id": task.id, "priority": task.priority} for task in sorted_tasks
    ]
    started = [one["task_id"] for one in of_type(events, EngineEventType.TASK_STARTED)]
    assert started == [task.id for task in sorted_tasks]


async def test_the_pause_example_after_five_events_gets_false_and_a_later_pause_true(
    coordinator: Coordinator, llm: Llm, capsys: pytest.CaptureFixture[str]
) -> None:
    """使用示例: 暂停/恢复; after five events it is decomposing, where nothing can be paused."""
    engine = ConversationEngine(coordinator=coordinator, llm=llm)
    gen = engine.run("复杂任务")

    for _ in range(5):
        event = await gen.__anext__()
        print(event)

    assert engine.state is EngineState.DECOMPOSING
    assert engine.pause() is False
    print(f"进度: {engine.current_progress}")
    assert engine.resume() is False

    await gen.__anext__()
    assert engine.pause() is True
    assert engine.state is EngineState.PAUSED
    await asyncio.sleep(0.01)
    assert engine.resume() is True

    rest = [event async for event in gen]
    assert of_type(rest, EngineEventType.ENGINE_PAUSED) == [{"progress": 0.0}]
    assert of_type(rest, EngineEventType.ENGINE_RESUMED) == [{"progress": 0.0}]
    assert engine.state is EngineState.COMPLETED
    assert "进度: 0.0" in capsys.readouterr().out


async def test_pause_holds_only_what_can_be_paused_and_resume_only_what_is_paused(
    engine: ConversationEngine,
) -> None:
    """暂停 and 恢复: True in EXECUTING and SCHEDULING alone, and the progress stands still."""
    paused_in = []
    async for _ in engine.run("目标"):
        before, progress = engine.state, engine.current_progress
        assert engine.resume() is False
        if engine.pause():
            paused_in.append(before)
            assert (engine.state, engine.current_progress) == (EngineState.PAUSED, progress)
            assert engine.pause() is False
            assert engine.resume() is True
            assert engine.state is before
    assert set(paused_in) == {EngineState.EXECUTING, EngineState.SCHEDULING}
    assert engine.state is EngineState.COMPLETED


async def test_a_snapshot_is_saved_as_json_and_restored_into_a_new_engine(
    coordinator: Coordinator, llm: Llm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """使用示例: 快照持久化, and then the new engine really goes on."""
    monkeypatch.chdir(tmp_path)
    engine = ConversationEngine(coordinator=coordinator, llm=llm)
    gen = engine.run("帮我分析销售数据")
    async for event in gen:
        if event.event_type is EngineEventType.TASK_COMPLETED:
            break

    snapshot = engine.create_snapshot()
    with open("engine_state.json", "w") as f:  # noqa: ASYNC230
        json.dump(snapshot, f)
    await gen.aclose()

    with open("engine_state.json") as f:  # noqa: ASYNC230
        snapshot = json.load(f)

    new_engine = ConversationEngine()
    assert new_engine.restore_from_snapshot(snapshot) is True

    assert (new_engine.completed_tasks, new_engine.total_tasks) == (1, 3)
    assert new_engine.state is EngineState.EXECUTING
    events = [event async for event in new_engine.run()]
    done = [one["task_id"] for one in of_type(events, EngineEventType.TASK_COMPLETED)]
    assert done == ["task_1", "task_3"]
    assert new_engine.current_progress == 1.0


async def test_a_snapshot_has_the_five_keys_and_the_four_of_each_task(
    engine: ConversationEngine,
) -> None:
    """创建快照."""
    async for _ in engine.run("目标"):
        pass
    snapshot = engine.create_snapshot()
    seeds = {"state", "progress", "tasks", "completed_tasks", "total_tasks"}
    assert seeds <= snapshot.keys()
    assert snapshot["state"] == "completed"
    assert all(
        {"id", "description", "status", "priority"} <= one.keys() for one in snapshot["tasks"]
    )


async def test_the_seeds_own_five_keys_load_and_run_on() -> None:
    """恢复快照, from a snapshot exactly as the seed's code writes it."""
    snapshot = {
        "state": "executing",
        "progress": 0.5,
        "tasks": [
            {"id": "a", "description": "甲", "status": "completed", "priority": 1},
            {"id": "b", "description": "乙", "status": "pending", "priority": 2},
        ],
        "completed_tasks": 1,
        "total_tasks": 2,
    }
    engine = ConversationEngine()
    assert engine.restore_from_snapshot(snapshot) is True
    events = [event async for event in engine.run("目标")]
    assert [one["task_id"] for one in of_type(events, EngineEventType.TASK_STARTED)] == ["b"]
    assert engine.current_progress == 1.0


async def test_a_coordinator_that_fails_is_an_engine_error_with_its_phase(llm: Llm) -> None:
    """协调者错误, and 重置 afterwards."""
    coordinator = AsyncMock()
    coordinator.get_context_async.side_effect = RuntimeError("协调者不可用")
    engine = ConversationEngine(coordinator=coordinator, llm=llm)
    events = [event async for event in engine.run("目标")]
    assert told(events)[-2:] == [
        changed("context_fetching", "error"),
        ("engine_error", {"error": "协调者不可用", "phase": "context_fetching"}),
    ]
    assert engine.state is EngineState.ERROR

    engine.reset()
    assert engine.state is EngineState.IDLE
    assert (engine.completed_tasks, engine.total_tasks, engine.tasks) == (0, 0, [])
    engine.coordinator = Coordinator()
    assert told([event async for event in engine.run("目标")])[-1][0] == "engine_completed"


async def test_stand_ins_that_answer_to_every_name_run_to_the_end() -> None:
    """Whoever tests with mocks gets the seed's events too."""
    coordinator, llm = AsyncMock(), MagicMock()
    coordinator.get_context_async.return_value = MagicMock(rules=[{}], knowledge=[], tools=[])
    llm.decompose_goal = AsyncMock(return_value=TASKS)
    engine = ConversationEngine(coordinator=coordinator, llm=llm)
    events = [event async for event in engine.run("目标")]
    assert told(events)[-1] == ("engine_completed", {"total_tasks": 3, "completed_tasks": 3})
    assert engine.coordinator is coordinator
    assert engine.llm is llm


async def test_a_bare_engine_has_one_task_which_is_the_goal() -> None:
    engine = ConversationEngine()
    events = [event async for event in engine.run("目标")]
    [decomposed] = of_type(events, EngineEventType.TASK_DECOMPOSED)
    assert decomposed == {"task_count": 1, "tasks": [{"id": "task_1", "description": "目标"}]}


def test_the_transition_table_is_the_seeds() -> None:
    assert VALID_STATE_TRANSITIONS == {
        EngineState.IDLE: [EngineState.RECEIVING],
        EngineState.RECEIVING: [EngineState.CONTEXT_FETCHING, EngineState.ERROR],
        EngineState.CONTEXT_FETCHING: [EngineState.DECOMPOSING, EngineState.ERROR],
        EngineState.DECOMPOSING: [EngineState.SCHEDULING, EngineState.ERROR],
        EngineState.SCHEDULING: [EngineState.EXECUTING, EngineState.PAUSED, EngineState.ERROR],
        EngineState.EXECUTING: [EngineState.COMPLETED, EngineState.PAUSED, EngineState.ERROR],
        EngineState.PAUSED: [EngineState.EXECUTING, EngineState.SCHEDULING],
        EngineState.COMPLETED: [EngineState.IDLE],
        EngineState.ERROR: [EngineState.IDLE],
    }


def test_the_names_are_public_and_their_values_lower_case() -> None:
    for name in (
        "ConversationEngine",
        "EngineState",
        "EngineEvent",
        "EngineEventType",
        "SubTask",
        "VALID_STATE_TRANSITIONS",
    ):
        assert name in holdfast.__all__
        assert getattr(holdfast, name) is globals()[name]
    for member in (*EngineState, *EngineEventType):
        assert member.value == member.name.lower()
    summary = "STATE_CHANGED CONTEXT_RECEIVED TASK_DECOMPOSED TASK_SCHEDULED TASK_STARTED"
    more = "TASK_COMPLETED ENGINE_PAUSED ENGINE_RESUMED ENGINE_COMPLETED ENGINE_ERROR"
    assert {*summary.split(), *more.split()} <= set(EngineEventType.__members__)
    event = EngineEvent(
        event_type=EngineEventType.STATE_CHANGED, data={"from": "idle", "to": "receiving"}
    )
    assert str(event.event_type) == "state_changed"

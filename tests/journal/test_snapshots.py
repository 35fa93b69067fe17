"""Snapshots: a state that went through JSON is the same state, whatever it holds."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from immutables import Map
from rpds import HashTrieSet, List

from holdfast.core.conversation import schedule
from holdfast.core.conversation.state import ConversationDefinition, ConversationState, Turn
from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.decide import blank, decide
from holdfast.core.plan.state import Forked, PlanState, TaskState, TraceEntry
from holdfast.core.repair.state import CaseState, Repairs
from holdfast.core.run.state import QuestionState, RunState, StepState
from holdfast.core.run.tables import StepStatus
from holdfast.core.storing import plan_digest
from holdfast.journal.snapshots import dump_state, load_state
from holdfast.model.commands import Moment, StartRun
from holdfast.model.conversation import ConversationSettings, EngineState, SubTask
from holdfast.model.effects import RecordedCall
from holdfast.model.form import Field, Form, Validation
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionStatus,
    InteractionType,
    Waiting,
)
from holdfast.model.plan import CodeAction, Listener, Plan, PlanInstanceStatus, Task, TaskStatus
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.run import Parent

LISTENER = Listener("L001", ("001",), "Running", CodeAction("result = 1"))
PLAN = Plan("p", "P", "001", (Task("001"),), (LISTENER,))
COMPILED = CompiledPlan(PLAN, plan_digest(PLAN))

STEP = StepState(
    firing=3,
    status=StepStatus.WAITING,
    attempt=2,
    generation=1,
    claim=17,
    idempotent=True,
    pure=True,
    args={"n": 1, "名": [None, 2.5]},
    provided={"size": "XL"},
    carried=(None,),
    clock=12.5,
    calls=(RecordedCall("f", {"n": 1}, {"x": []}),),
    calling=("g", {"m": {}}, True),
    consent="digest",
    former_consent="older",
    grant_id="g1",
    feedback="smaller",
    question_id="q1",
    child_id="r.L001.3",
    child_status="pause",
    waits_for=Waiting("q2", "missing", Form((Field("size"),)), 1.5),
    failure=Failure(FailureKind.UNKNOWN, "?"),
    failing_since=3.5,
    tried=3,
    why="backoff after 3 tries",
    retries=2,
    retry_times=(1.5, 2.5),
    repeats=5,
    pending=4,
    forgotten=True,
    resuming=True,
)
QUESTION = QuestionState(
    request=InteractionRequest(
        "q1",
        "r",
        InteractionType.TOOL_APPROVAL,
        "Run it?",
        context={"args": {"n": 1}},
        options=(InteractionOption("yes", "Yes", InteractionAction.APPROVE_AND_EXECUTE),),
        form=Form((Field("size", validation=Validation(values=("XL", 1), minimum=1)),)),
    ),
    step_id="L001",
    firing=3,
    purpose="approval",
    opened_at=1.0,
    opened_seq=4,
    deadline=9.0,
    args={"n": 1},
    consent="digest",
    status=InteractionStatus.ANSWERED,
    closed_at=2.0,
    by="Will Zhang",
    option_id="yes",
    data={"size": "XL"},
    feedback="fine",
)
EVERYTHING: dict[str, Any] = {
    "version": 12,
    "status": PlanInstanceStatus.PAUSE,
    "plan_id": "p",
    "prompt": "入职",
    "root_id": "root",
    "parent": Parent("root", "L009", 2),
    "started_by": "Will Zhang",
    "created_at": 1.0,
    "updated_at": 2.0,
    "tasks": Map(
        {"001": TaskState(TaskStatus.ERROR, {"x": [1]}, List([TraceEntry(TaskStatus.DONE, "", 1)]))}
    ),
    "steps": Map({"L001": STEP, "L002": StepState()}),
    "questions": Map({"q1": QUESTION}),
    "open_questions": HashTrieSet(["q1"]),
    "timers": Map({"cancel": 5.0}),
    "failed": ("L001",),
    "heard": Map({"child": 3}),
    "wanting": Map({"ann": "started"}),
    "active": 1,
    "in_flight": 2,
    "resting": 3,
    "paused_children": 4,
    "held": True,
    "done_tasks": 5,
    "verifying": True,
    "verification": {"verify.1": "failed"},
    "provided_params": {"size": "XL"},
    "continued_at": 3.0,
    "recoveries": 2,
    "retried": 5,
    "cancelled_by": "Will Zhang",
    "ended_by": "Will Zhang",
    "repair": Repairs(
        Map(
            {"case_1": CaseState("case_1", "L001", 1, 2.0, 3, Failure(FailureKind.PERMANENT, "no"))}
        ),
        (),
        2,
        15,
    ),
    "forked": Forked(
        "inst_000009",
        7,
        {"L001:1:0": "inst_000009:L001:1:0"},
        {"secret:1": "pin"},
        ("0123456789abcdef",),
        ("pay",),
    ),
}


def test_a_blank_state_comes_back() -> None:
    state = blank("r", COMPILED)
    assert load_state(dump_state(state), blank("", COMPILED)) == state


def test_every_field_of_a_state_comes_back() -> None:
    state = PlanState("r", plan=COMPILED, **EVERYTHING)
    said = [one.name for one in fields(PlanState) if one.compare]
    unset = [name for name in said if name not in (*EVERYTHING, "run_id")]
    # What a run is pinned to comes from elsewhere, and what it has come to from its patches
    # (core/repair/test_cases).
    assert unset == ["plan", "origin"], "a new field needs a value here"
    loaded = load_state(dump_state(state), blank("", COMPILED))
    for name in said:
        assert getattr(loaded, name) == getattr(state, name), name
    assert loaded == state


def test_every_field_of_a_step_has_been_tried() -> None:
    usual = StepState()
    unusual = [
        one.name for one in fields(StepState) if STEP.__dict__[one.name] != getattr(usual, one.name)
    ]
    assert unusual == [one.name for one in fields(StepState)], "a new field needs a value here"


def test_the_loaded_state_goes_on_as_the_original_would() -> None:
    moment = Moment(1.0, b"entropy")
    state = decide(blank("r", COMPILED), StartRun("p"), moment).state
    loaded = load_state(dump_state(state), blank("", COMPILED))
    assert loaded == state
    assert loaded.steps["L001"].status is StepStatus.READY


def test_a_snapshot_is_plain_json() -> None:
    body = json.loads(dump_state(PlanState("r", plan=COMPILED, **EVERYTHING)))
    assert body["status"] == "pause"
    assert body["prompt"] == "入职"


CONVERSATION: dict[str, Any] = {
    **{name: value for name, value in EVERYTHING.items() if hasattr(RunState("r"), name)},
    "steps": Map({"t1": STEP}),
    "phase": EngineState.PAUSED,
    "left": EngineState.SCHEDULING,
    "pending": True,
    "turn": 3,
    "text": "帮我分析销售数据",
    "context": {"rules": ["brief"], "knowledge": [{"title": "销售"}], "tools": []},
    "complaint": "it was a poem",
    "history": (Turn("before", {"a": None, "b": [1, {"x": 2.5}]}),),
    "tasks": Map(
        {
            "t1": SubTask("a", "读", "pay", 2, ("b",), {"n": 1}, "tool", "running", {"x": [1]}),
            "t2": SubTask("b"),
        }
    ),
    "steps_of": Map({"a": "t1", "b": "t2"}),
    "order": ("t2", "t1"),
    "scheduled": 1,
    "waits_for": Map({"t1": 1, "t2": 0}),
    "frees": Map({"t2": ("t1",)}),
    "queue": schedule.heap_of([(2, 1), (0, 2), (1, 3)]),
    "unattended": True,
    "untold": ("t2",),
    "total": 2,
    "completed": 1,
    "skipped": 1,
    "error": "out of order",
    "former": Map({"t1": STEP}),
    "kept": True,
    "pausing": True,
    "confirmed": True,
    "feedback": "less",
    "by_model": True,
    "answer": "7 sold",
    "filling": Map({"t1": {"type": "object"}}),
}


def test_every_field_of_a_conversation_comes_back() -> None:
    definition = ConversationDefinition(ConversationSettings(max_parallel=3), "digest")
    state = ConversationState("r", definition=definition, **CONVERSATION)
    given = (*CONVERSATION, "run_id", "definition")
    said = [one.name for one in fields(state) if one.compare]
    assert [name for name in said if name not in given] == []
    usual = ConversationState("r", definition=definition)
    same = [name for name in CONVERSATION if getattr(usual, name) == getattr(state, name)]
    assert same == [], "a new field needs a value here"
    loaded = load_state(dump_state(state), ConversationState("", definition=definition))
    for name in said:
        if name != "queue":
            assert getattr(loaded, name) == getattr(state, name), name
    assert (
        schedule.heap_items(loaded.queue)
        == schedule.heap_items(state.queue)
        == [(0, 2), (1, 3), (2, 1)]
    )


def test_a_blank_conversation_comes_back() -> None:
    state = ConversationState("r", definition=ConversationDefinition(ConversationSettings(), "d"))
    assert load_state(dump_state(state), state) == state

"""A conversation's timeline has words for everything that can happen in one."""

from __future__ import annotations

from typing import get_args

import pytest

from holdfast.core.conversation.decide import blank
from holdfast.model import conversation_events as v
from holdfast.model import events as e
from holdfast.model.conversation import AfterFailure, ConversationSettings, EngineState, SubTask
from holdfast.model.interaction import InteractionRequest, InteractionType
from holdfast.model.retry import Failure, FailureKind
from holdfast.runtime.hub import Recorded
from holdfast.runtime.machines import pinned_settings
from holdfast.views.stories.conversations import PHASES, ConversationStory
from holdfast.views.stories.lines import UNTOLD

QUESTION = InteractionRequest("q", "conv_000001", InteractionType.MISSING_INFO, "Task pay")
BROKEN = Failure(FailureKind.TRANSIENT, "out of order")
TASKS = (SubTask("pay", "Pay 张三"), SubTask("thank", "Say\nthanks"))
CHILD = "conv_000001.t1.9"

TOLD: list[tuple[v.ConversationEvent, str, str]] = [
    (v.ConversationOpened("d", "conv_000001", "will"), "will", "began a conversation"),
    (v.InputReceived(1, "请付款", "will"), "will", "wants: 请付款"),
    (
        v.PhaseChanged(EngineState.IDLE, EngineState.RECEIVING),
        "engine",
        "receives the goal",
    ),
    (v.WorkStarted("context", 1), "engine", "asks for the context"),
    (v.WorkStarted("decompose", 1), "engine", "asks for tasks"),
    (
        v.ContextReceived(("r",), (), ("a", "b")),
        "engine",
        "has the context: rules 1, passages 0, tools 2",
    ),
    (v.DecompositionRefused("a circle"), "engine", "asks for other tasks: a circle"),
    (v.GoalDecomposed(TASKS), "engine", "has 2 tasks: pay (Pay 张三), thank (Say thanks)"),
    (v.TaskScheduled("t1"), "engine", "task pay is scheduled"),
    (v.TaskChosen("t2"), "engine", "task thank is next"),
    (v.TaskStarted("t1"), "engine", "task pay started"),
    (v.TaskStarted("t1", attempt=2), "engine", "task pay started, try 2 of 3"),
    (v.TaskStarted("t1", child_id=CHILD), "engine", f"task pay started as {CHILD}"),
    (v.TaskFinished("t1", {"paid": 5}), "engine", 'task pay returned: {"paid":5}'),
    (v.TaskFinished("t1", "付了\x1b[2J"), "engine", "task pay returned: 付了\\u001b[2J"),
    (
        v.ConversationResumed(AfterFailure.RETRY, "ada"),
        "ada",
        "has what failed tried again; what is done stays done",
    ),
    (v.ConversationResumed(AfterFailure.SKIP, "ada", ("t1",)), "ada", "goes on without: pay"),
    (v.ConversationStopped("ada"), "ada", "ended the turn that failed"),
    (v.AnswerWritten("7 sold"), "engine", "answers: 7 sold"),
    (v.AnswerWritten(""), "engine", "the model has nothing to say"),
    (
        v.ArgumentsWanted("t1", {}),
        "engine",
        "task pay lacks arguments; the model is asked first",
    ),
    (v.ArgumentsFilled("t1", {"n": 1}), "engine", "task pay has from the model: n"),
    (v.TasksConfirmed("ada"), "ada", "wants these tasks run"),
    (v.TasksRefused("less", "ada"), "ada", "wants other tasks"),
    (v.PauseWished(), "engine", "will pause before the first task"),
    (v.PauseWished(wished=False), "engine", "will not pause"),
    (v.PauseWished(by="ada"), "ada", "wants a pause before the first task"),
    (v.PauseWished(wished=False, by="ada"), "ada", "no longer wants a pause"),
    (v.TaskBroke("t1", BROKEN), "engine", "task pay failed: out of order"),
    (v.TaskCompleted("t1"), "engine", "task pay is completed"),
    (v.TaskFinished("t1", {}, "it failed"), "engine", "task pay is left out: it failed"),
    (v.TaskFailed("t1", "out of order"), "engine", "task pay waits for a person to decide"),
    (v.EnginePaused(), "engine", "starts nothing more until it is resumed"),
    (v.EngineResumed(), "engine", "was resumed"),
    (v.EnginePaused("ada"), "ada", "paused it; nothing more starts until it is resumed"),
    (v.EngineResumed("ada"), "ada", "resumed it"),
    (
        v.EngineFailed("not now", EngineState.DECOMPOSING, by="ada"),
        "ada",
        "ended the turn at decomposing: not now",
    ),
    (v.SnapshotRestored({"tasks": [{"id": "other"}]}, "ada"), "ada", "restored a snapshot"),
    (v.EngineCompleted(), "engine", "all tasks are done"),
    (
        v.EngineFailed("no model", EngineState.DECOMPOSING),
        "engine",
        "failed at decomposing: no model",
    ),
    (
        v.EngineFailed("out of order", EngineState.EXECUTING, "t1"),
        "engine",
        "failed at task pay: out of order",
    ),
    (v.StartedOver("will"), "will", "started over"),
    (
        v.SnapshotRestored({"tasks": [{"id": "other"}]}),
        "engine",
        "took a snapshot's place",
    ),
    (e.StepReleased("t1", 1), "engine", "task pay was taken back and is ready again"),
    (
        e.OutcomeLost("t1", 1, "cut off"),
        "engine",
        "task pay was sent, but it is not known whether it happened: cut off",
    ),
    (
        e.LateResultKept("t1", 1),
        "engine",
        "task pay answered too late; the result is kept, without effect",
    ),
    (e.QuestionOpened(QUESTION, "t1", 1, "missing"), "engine", "asks a person: Task pay"),
    (e.QuestionAnswered("q", "provide", "will"), "will", "answered Task pay"),
    (e.QuestionExpired("q"), "clock", "Task pay was not answered in time"),
    (e.QuestionWithdrawn("q", "over"), "engine", "no longer asks Task pay: over"),
    (e.QuestionReminded("q", 1), "clock", "Task pay still waits, reminder 1"),
    (e.QuestionEscalated("q", "boss"), "clock", "Task pay now waits for the role boss"),
    (e.DraftKept("q", "will"), "will", "has begun to answer Task pay"),
    (
        e.ChildHeard(CHILD, 3, "t1", 1, "pause"),
        "engine",
        f"the sub-run {CHILD} waits for a person",
    ),
    (e.RunRecovered(1), "engine", "the process that ran this went down; another took over"),
    (e.CancelRequested("will"), "will", "cancelled the run"),
    (e.RunCancelled(), "engine", "nothing is in flight any more: the run is cancelled"),
]


@pytest.fixture
def teller() -> ConversationStory:
    state = blank("conv_000001", pinned_settings(ConversationSettings()))
    story = ConversationStory(state, [e.QuestionOpened(QUESTION, "t1", 1, "unknown")])
    story.tell(Recorded(1, 0.0, v.GoalDecomposed(TASKS)))
    return story


@pytest.mark.parametrize(("event", "who", "what"), TOLD, ids=lambda one: str(one)[:30])
def test_an_event_is_told_in_plain_words(
    teller: ConversationStory, event: v.ConversationEvent, who: str, what: str
) -> None:
    [line] = teller.tell(Recorded(2, 0.0, event))
    assert (line.who, line.what) == (who, what)


def test_a_failed_try_says_when_the_next_one_comes(teller: ConversationStory) -> None:
    [line] = teller.tell(Recorded(2, 0.0, e.AttemptFailed("t1", 1, BROKEN, 60.0)))
    assert line.what == "task pay failed: out of order; tries again in 1 min 0 s"


def test_a_snapshot_brings_its_own_tasks(teller: ConversationStory) -> None:
    teller.tell(Recorded(2, 0.0, v.SnapshotRestored({"tasks": [{"id": "other"}]})))
    [line] = teller.tell(Recorded(3, 0.0, v.TaskCompleted("t1")))
    assert line.what == "task other is completed"


def test_no_event_and_no_phase_is_forgotten_here() -> None:
    told = {type(event) for event, _, _ in TOLD} | {e.AttemptFailed, *UNTOLD}
    assert told == set(get_args(v.ConversationEvent))
    assert set(PHASES) == set(EngineState)

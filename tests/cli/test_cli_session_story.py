"""A session's timeline has words for everything that can happen in one."""

from __future__ import annotations

from typing import get_args

import pytest

from holdfast.core.agent.decide import blank
from holdfast.core.agent.state import AgentDefinition
from holdfast.model import agent_events as r
from holdfast.model import events as e
from holdfast.model.agent import Agent
from holdfast.model.approval import Grant
from holdfast.model.interaction import InteractionRequest, InteractionType
from holdfast.model.message import Usage
from holdfast.model.retry import Failure, FailureKind
from holdfast.runtime.hub import Recorded
from holdfast.views.stories.lines import UNTOLD
from holdfast.views.stories.sessions import SessionStory

PAY = r.Call("c1", "call_1", "pay", {"amount": 5})
QUESTION = InteractionRequest("q", "chat_000001", InteractionType.TOOL_APPROVAL, "Run pay?")
BROKEN = Failure(FailureKind.TRANSIENT, "out of order")

TOLD: list[tuple[r.ReactEvent, str, str]] = [
    (r.SessionStarted("clerk", "d", "chat_000001", "will"), "will", "opened a chat with clerk"),
    (r.TurnStarted(1, "please\npay", "will"), "will", "said: please pay"),
    (r.CallProposed(1, PAY, "will"), "will", 'proposed pay (c1) {"amount":5}'),
    (r.ThinkingStarted(1), "agent", "asks the model"),
    (r.ThinkingStarted(1, 2), "agent", "asks the model, try 2 of 3"),
    (r.ModelReplied(1, "Hm.", (PAY,)), "agent", "wants to call pay (c1), saying: Hm."),
    (r.ModelReplied(1, "Hm.", usage=Usage(3, 4)), "agent", "has a reply (7 tokens)"),
    (
        r.CallStarted("c1", 2, args={"amount": 5}),
        "agent",
        'calls pay (c1) {"amount":5}, try 2 of 3',
    ),
    (
        r.StepEnded("c1", "done", {"ok": True}, "edited"),
        "agent",
        'pay (c1) returned: {"ok":true} edited',
    ),
    (r.StepEnded("q1", "provided", "yes"), "agent", "question q1 is answered: yes"),
    (r.StepAbandoned("c1", "will"), "will", "goes on without pay (c1)"),
    (r.TurnCompleted(1, "Paid."), "agent", "answered: Paid."),
    (r.TurnCompleted(1), "agent", "answered without a word"),
    (r.TurnFailed("no model"), "agent", "cannot go on by itself: no model"),
    (r.TurnResumed("will"), "will", "resumed the turn"),
    (
        r.ApprovalRemembered(Grant("g1", "pay", "v", "will", 0.0, {"to": "张*"})),
        "will",
        'always allows pay with {"to":"张*"}',
    ),
    (r.ApprovalRevoked("g1", "will"), "will", "takes the remembered approval g1 back"),
    (e.StepReleased("c1", 1), "agent", "pay (c1) was taken back and is ready again"),
    (
        e.OutcomeLost("c1", 1, "cut off"),
        "agent",
        "pay (c1) was sent, but it is not known whether it happened: cut off",
    ),
    (
        e.LateResultKept("c1", 1),
        "agent",
        "pay (c1) answered too late; the result is kept, without effect",
    ),
    (e.QuestionOpened(QUESTION, "c1", 1, "approval"), "agent", "asks a person: Run pay?"),
    (e.QuestionAnswered("q", "reject", "will"), "will", "answered Run pay?"),
    (e.QuestionExpired("q"), "clock", "Run pay? was not answered in time"),
    (e.QuestionWithdrawn("q", "over"), "agent", "no longer asks Run pay?: over"),
    (e.QuestionReminded("q", 1), "clock", "Run pay? still waits, reminder 1"),
    (e.QuestionEscalated("q", "boss"), "clock", "Run pay? now waits for the role boss"),
    (e.DraftKept("q", "will"), "will", "has begun to answer Run pay?"),
    (
        e.ChildHeard("chat_000001.c1.1", 3, "c1", 1, "pause"),
        "agent",
        "the sub-run chat_000001.c1.1 waits for a person",
    ),
    (e.RunRecovered(1), "agent", "the process that ran this went down; another took over"),
    (e.CancelRequested("will"), "will", "cancelled the run"),
    (e.RunCancelled(), "agent", "nothing is in flight any more: the run is cancelled"),
]


@pytest.fixture
def teller() -> SessionStory:
    story = SessionStory(
        blank("chat_000001", AgentDefinition(Agent("clerk"), "d")),
        [e.QuestionOpened(QUESTION, "c1", 1, "unknown")],
    )
    story.tell(Recorded(1, 0.0, r.ModelReplied(1, "", (PAY,))))
    return story


@pytest.mark.parametrize(("event", "who", "what"), TOLD, ids=lambda one: str(one)[:30])
def test_an_event_is_told_in_plain_words(
    teller: SessionStory, event: r.ReactEvent, who: str, what: str
) -> None:
    [line] = teller.tell(Recorded(2, 0.0, event))
    assert (line.who, line.what) == (who, what)


def test_a_failed_try_says_when_the_next_one_comes(teller: SessionStory) -> None:
    [line] = teller.tell(Recorded(2, 0.0, e.AttemptFailed("c1", 1, BROKEN, 60.0)))
    assert line.what == "pay (c1) failed: out of order; tries again in 1 min 0 s"


def test_no_event_is_forgotten_here() -> None:
    told = {type(event) for event, _, _ in TOLD} | {e.AttemptFailed, *UNTOLD}
    assert told == set(get_args(r.ReactEvent))

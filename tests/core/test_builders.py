"""A draft takes several decisions one after another, and one that breaks off leaves no trace."""

from __future__ import annotations

from random import Random
from types import ModuleType
from typing import Any, get_args

import conversation_machine
import machine
import pytest
import react_machine
import test_conversation_properties
import test_machine_properties
import test_react_properties
from random_plans import TOOLS
from small_plans import CALL, WILL, compiled, on

from holdfast.core.agent.decide import SessionDecider
from holdfast.core.agent.reducers import REDUCERS as REACT_FOLDS
from holdfast.core.conversation.builder import REDUCERS as CONVERSATION_FOLDS
from holdfast.core.conversation.decide import ConversationDecider
from holdfast.core.decider import Decider
from holdfast.core.plan import decide as plan
from holdfast.core.plan.builder import REDUCERS as PLAN_FOLDS
from holdfast.journal.snapshots import dump_state
from holdfast.model import commands as c
from holdfast.model.agent_events import ReactEvent
from holdfast.model.conversation_events import ConversationEvent
from holdfast.model.events import PlanEvent

KINDS: tuple[tuple[ModuleType, Any, type[Decider[Any, Any]]], ...] = (
    (machine, test_machine_properties, plan.PlanDecider),
    (react_machine, test_react_properties, SessionDecider),
    (conversation_machine, test_conversation_properties, ConversationDecider),
)


START = c.StartRun("small")


@pytest.mark.parametrize(
    ("events", "folds"),
    [
        (PlanEvent, PLAN_FOLDS),
        (ReactEvent, REACT_FOLDS),
        (ConversationEvent, CONVERSATION_FOLDS),
    ],
    ids=["plan", "session", "conversation"],
)
def test_every_event_of_a_machine_has_its_fold_and_no_other_has(events: Any, folds: Any) -> None:
    assert set(folds) == set(get_args(events))


@pytest.mark.parametrize(
    ("decider", "commands"),
    [
        (plan.PlanDecider, c.PlanCommand),
        (SessionDecider, c.ReactCommand),
        (ConversationDecider, c.ConversationCommand),
    ],
    ids=["plan", "session", "conversation"],
)
def test_every_command_that_a_machine_may_be_given_leads_to_a_decision(
    decider: type[Decider[Any, Any]], commands: Any
) -> None:
    assert set(decider.DECISIONS) == set(decider.COMMANDS) == set(get_args(commands))


@pytest.mark.parametrize("number", range(30))
def test_a_draft_that_is_rewound_is_where_it_was_and_decides_as_it_would_have(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each decision of a life is made three times in one draft, behind a former one: broken off
    once, undone once, and kept."""
    simulator, kind, building = KINDS[number % len(KINDS)]
    decide, tried = simulator.decide, 0

    def deciding(state: Any, command: c.Command, moment: c.Moment) -> Any:
        nonlocal tried
        usual = decide(state, command, moment)
        builder = building(state, moment)
        for mark in range(len(usual.events) + 1):
            for event in usual.events:
                builder.emit(event)
            assert dump_state(builder.state) == dump_state(usual.state)
            builder.rewind(state, (mark, 0))
            assert [event for _, event in builder.events] == list(usual.events[:mark])
            for event in usual.events[mark:]:
                builder.emit(event)
            assert dump_state(builder.state) == dump_state(usual.state)
            builder.rewind(state, (0, 0))
            assert dump_state(builder.state) == dump_state(state)
            tried += 1
        return usual

    monkeypatch.setattr(simulator, "decide", deciding)
    chance = Random(number)
    kind.live_on(kind.play(chance.randbytes(chance.randrange(100, 200))))
    assert tried


def test_what_is_decided_after_a_rewinding_is_decided_now() -> None:
    """Events that wait for their commit may be of an earlier moment."""
    state = plan.decide(
        plan.blank("run", compiled(on("L001", "001 Running", CALL, "002"))), START, c.Moment(1.0)
    ).state
    builder = plan.PlanDecider(state, c.Moment(2.0))
    builder.carry_out(c.StartStep("L001", TOOLS["plain"]))
    builder.shared, builder.now = True, 3.0
    builder.carry_out(c.Cancel(WILL))
    builder.rewind(state, (1, 0))
    builder.carry_out(c.Cancel(WILL))
    assert [at for at, _ in builder.events] == [2.0, 3.0]
    assert builder.state.updated_at == 3.0
    assert builder.moment == c.Moment(3.0)

"""Conversations: every pair of phases, every command in every status, every lifecycle signal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import get_args

import pytest
from conversation_machine import RUN_ID, WILL, Talk, at_phase, executing, opened, wanted
from conversation_promises import fields_of

from holdfast.core.conversation.decide import blank, replay
from holdfast.core.conversation.tables import (
    COMMANDS,
    CONVERSATION,
    PAUSABLE,
    VALID_STATE_TRANSITIONS,
    next_phase,
)
from holdfast.core.decider import SAID
from holdfast.core.run.tables import INSTANCE, Signal, Verdict, next_instance
from holdfast.errors import CallerError, IllegalTransition, NotAllowed
from holdfast.model import commands as c
from holdfast.model import conversation_events as v
from holdfast.model.conversation import AfterFailure, EngineState, SubTask
from holdfast.model.run import RunStatus

THE_SEEDS_TABLE = {
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
STATUS_OF_PHASE = {
    EngineState.IDLE: RunStatus.DONE,
    EngineState.COMPLETED: RunStatus.DONE,
    EngineState.PAUSED: RunStatus.PAUSE,
    EngineState.ERROR: RunStatus.ERROR,
}
PAIRS = list(product(EngineState, EngineState))


def test_the_table_is_the_seeds_word_for_word() -> None:
    assert dict(VALID_STATE_TRANSITIONS) == THE_SEEDS_TABLE
    assert len(PAIRS) == 81
    assert set(PAUSABLE) == {EngineState.EXECUTING, EngineState.SCHEDULING}


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_a_legal_transition_is_taken_and_an_illegal_one_changes_nothing(
    before: EngineState, after: EngineState
) -> None:
    status = STATUS_OF_PHASE.get(before, RunStatus.RUNNING)
    state = replace(opened().state, phase=before, status=status, held=before == "paused")
    kept = fields_of(state)
    event = v.PhaseChanged(before, after)
    if after in THE_SEEDS_TABLE[before]:
        assert next_phase(before, after) is after
        assert replay(state, [(1.0, event)]).phase is after
    else:
        with pytest.raises(IllegalTransition, match=f"is {before} cannot become {after}"):
            replay(state, [(1.0, event)])
    assert fields_of(state) == kept


@pytest.mark.parametrize("phase", EngineState)
def test_the_samples_are_in_the_phase_that_they_stand_for(phase: EngineState) -> None:
    talk = at_phase(phase)
    assert talk.state.status is STATUS_OF_PHASE.get(phase, RunStatus.RUNNING)


def asking() -> Talk:
    talk = executing(SubTask("a", type="pay", args={"amount": 5}, route="tool"))
    return talk.fill()


def continued() -> Talk:
    talk = asking()
    talk.answer("approve")
    return talk


def cancelling() -> Talk:
    talk = executing().fill()
    talk.submit(c.Cancel(WILL))
    return talk


def cancelled() -> Talk:
    talk = cancelling()
    talk.done("only")
    return talk


IN_STATUS: dict[RunStatus, Callable[[], Talk]] = {
    RunStatus.NOT_STARTED: Talk,
    RunStatus.RUNNING: lambda: executing().fill(),
    RunStatus.PAUSE: asking,
    RunStatus.CONTINUE: continued,
    RunStatus.ERROR: lambda: at_phase(EngineState.ERROR),
    RunStatus.CANCELLING: cancelling,
    RunStatus.CANCELLED: cancelled,
    RunStatus.DONE: opened,
}
SAMPLES: dict[type, c.ConversationCommand] = {
    type(command): command
    for command in (
        c.OpenConversation(by=WILL),
        c.Converse("Go on.", WILL),
        c.Advance(),
        c.Hold(),
        c.Unhold(),
        c.Abort(),
        c.GoOn(AfterFailure.RETRY, WILL),
        c.StartOver(WILL),
        c.RestoreSnapshot(opened().snapshot()),
        c.StartStep("t1"),
        c.ReportOutcome("t1", 1, 2, c.Succeeded({"x": 1})),
        c.Answer("asked by nobody", WILL),
        c.KeepDraft("asked by nobody", WILL),
        c.Cancel(WILL),
        c.HearChild("child", 1, "t1", 1, "done"),
        c.Tick(),
        c.Recover(),
    )
}
ABOUT_THE_PHASE = (c.Converse, c.Hold, c.Unhold, c.Abort, c.GoOn, c.RestoreSnapshot)


def test_the_command_table_knows_every_command_and_every_status() -> None:
    assert set(COMMANDS) == set(get_args(c.ConversationCommand)) == set(SAMPLES)
    assert all(set(row) == set(RunStatus) for row in COMMANDS.values())
    assert set(IN_STATUS) == set(RunStatus)
    assert all(IN_STATUS[status]().state.status is status for status in RunStatus)


@pytest.mark.parametrize("status", RunStatus)
@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
def test_every_status_meets_every_command_as_the_table_says(status: RunStatus, kind: type) -> None:
    talk = IN_STATUS[status]()
    before, recorded = talk.state, len(talk.records)
    match COMMANDS[kind][status]:
        case Verdict.REFUSE:
            said = SAID.get(kind.__name__, kind.__name__)
            with pytest.raises(NotAllowed, match=f"{said} is not possible"):
                talk.submit(SAMPLES[kind])
            assert (talk.state, len(talk.records)) == (before, recorded)
        case Verdict.IGNORE:
            decision = talk.submit(SAMPLES[kind])
            assert (decision.events, decision.effects) == ((), ())
            assert decision.state is before
        case Verdict.ACCEPT:
            met = talk.tries(SAMPLES[kind])
            assert not isinstance(met, NotAllowed) or kind in ABOUT_THE_PHASE
            if isinstance(met, CallerError):
                assert (talk.state, len(talk.records)) == (before, recorded)


@pytest.mark.parametrize("status", RunStatus)
def test_a_command_of_plans_is_refused_by_every_conversation(status: RunStatus) -> None:
    with pytest.raises(NotAllowed, match=f"Skip is not possible: {RUN_ID} is {status}"):
        IN_STATUS[status]().submit(c.Skip("L001", WILL))


@pytest.mark.parametrize(("status", "signal"), list(product(RunStatus, Signal)))
def test_a_conversation_moves_by_its_table_only(status: RunStatus, signal: Signal) -> None:
    if signal in CONVERSATION[status]:
        assert next_instance(status, signal, CONVERSATION) is CONVERSATION[status][signal]
    else:
        with pytest.raises(IllegalTransition, match=f"{status} cannot {signal}"):
            next_instance(status, signal, CONVERSATION)


def test_a_conversation_differs_from_a_plan_only_between_its_turns() -> None:
    added = {
        (status, signal): after
        for status, row in CONVERSATION.items()
        for signal, after in row.items()
        if INSTANCE[status].get(signal) is not after
    }
    assert added == {
        (RunStatus.NOT_STARTED, Signal.START): RunStatus.DONE,
        (RunStatus.DONE, Signal.NEXT_TURN): RunStatus.RUNNING,
        (RunStatus.DONE, Signal.CANCEL): RunStatus.CANCELLING,
        (RunStatus.ERROR, Signal.NEXT_TURN): RunStatus.RUNNING,
        (RunStatus.ERROR, Signal.FINISH): RunStatus.DONE,
        (RunStatus.RUNNING, Signal.NEXT_TURN): RunStatus.RUNNING,
        (RunStatus.PAUSE, Signal.FINISH): RunStatus.DONE,
        (RunStatus.CONTINUE, Signal.FINISH): RunStatus.DONE,
    }
    assert not CONVERSATION[RunStatus.CANCELLED]


PHASE_COMMANDS: dict[type, tuple[EngineState, ...]] = {
    c.Hold: PAUSABLE,
    c.Unhold: (EngineState.PAUSED,),
    c.Abort: tuple(set(EngineState) - {EngineState.IDLE, EngineState.COMPLETED, EngineState.ERROR}),
    c.GoOn: (EngineState.ERROR,),
    c.Converse: (EngineState.IDLE, EngineState.COMPLETED),
    c.RestoreSnapshot: (EngineState.IDLE, EngineState.COMPLETED, EngineState.ERROR),
    c.StartOver: tuple(EngineState),
}


@pytest.mark.parametrize("phase", EngineState)
@pytest.mark.parametrize("kind", PHASE_COMMANDS, ids=lambda kind: kind.__name__)
def test_each_phase_takes_only_the_commands_that_it_has_a_place_for(
    kind: type, phase: EngineState
) -> None:
    talk = at_phase(phase)
    before = fields_of(talk.state)
    if phase in PHASE_COMMANDS[kind]:
        assert talk.submit(SAMPLES[kind]).events
    else:
        with pytest.raises(NotAllowed, match=f"{RUN_ID} is {phase} and cannot be"):
            talk.submit(SAMPLES[kind])
        assert fields_of(talk.state) == before


def test_a_goal_that_has_yet_to_begin_is_not_lost_to_another() -> None:
    with pytest.raises(NotAllowed, match="has yet to begin with 'Go"):
        wanted().converse("Something else.")


@pytest.mark.parametrize("text", ["", "  \n"])
def test_a_goal_needs_words(text: str) -> None:
    with pytest.raises(CallerError, match="needs words"):
        opened().converse(text)


def test_a_conversation_knows_its_root_and_who_opened_it() -> None:
    talk = Talk()
    talk.submit(c.OpenConversation("inst_000001", WILL))
    assert (talk.state.root_id, talk.state.started_by) == ("inst_000001", WILL)
    assert opened().state.root_id == RUN_ID
    assert blank(RUN_ID, talk.definition).status is RunStatus.NOT_STARTED


def test_what_a_person_cannot_do_any_more_is_said_in_words() -> None:
    talk = Talk().open()
    talk.submit(c.Cancel("ann"))
    with pytest.raises(
        NotAllowed, match=f"^Another message is not possible: {RUN_ID} is cancelled$"
    ):
        talk.submit(c.Converse("More.", "ann"))

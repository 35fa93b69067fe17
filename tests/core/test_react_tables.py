"""Sessions: every command in every status, and every pair of the lifecycle table."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import get_args

import pytest
from react_machine import PERMANENT, WILL, Chat, begun, opened, request

from holdfast.core.agent.tables import COMMANDS, SESSION
from holdfast.core.run.tables import INSTANCE, Signal, Verdict, next_instance
from holdfast.errors import CallerError, IllegalTransition, NotAllowed
from holdfast.model import commands as c
from holdfast.model.interaction import InteractionType
from holdfast.model.run import RunStatus


def paused() -> Chat:
    chat = begun()
    chat.calls(chat.want("pay", amount=5))
    return chat


def continued() -> Chat:
    chat = paused()
    chat.answer("approve")
    return chat


def failed() -> Chat:
    chat = begun()
    chat.report(chat.think(), PERMANENT)
    return chat


def cancelling() -> Chat:
    chat = begun()
    chat.think()
    chat.submit(c.Cancel(WILL))
    return chat


def cancelled() -> Chat:
    chat = cancelling()
    (asked,) = chat.flying.values()
    chat.report(asked, c.NotSent())
    return chat


IN_STATUS: dict[RunStatus, Callable[[], Chat]] = {
    RunStatus.NOT_STARTED: Chat,
    RunStatus.RUNNING: begun,
    RunStatus.PAUSE: paused,
    RunStatus.CONTINUE: continued,
    RunStatus.ERROR: failed,
    RunStatus.CANCELLING: cancelling,
    RunStatus.CANCELLED: cancelled,
    RunStatus.DONE: opened,
}

SAMPLES: dict[type, c.ReactCommand] = {
    type(command): command
    for command in (
        c.StartSession("clerk", by=WILL),
        c.Say("Go on.", WILL),
        c.Ask(request(type=InteractionType.USER_CONFIRMATION)),
        c.Propose("pay", {"amount": 5}, "p1", WILL),
        c.RememberApproval("pay", "1", WILL),
        c.RevokeApproval("remembered by nobody", WILL),
        c.StartStep("c1"),
        c.ReportOutcome("c1", 1, 2, c.Succeeded({"x": 1})),
        c.Answer("asked by nobody", WILL),
        c.KeepDraft("asked by nobody", WILL),
        c.Resume(WILL),
        c.Cancel(WILL),
        c.HearChild("child", 1, "c1", 1, "done"),
        c.Tick(),
        c.Recover(),
    )
}


def test_the_command_table_knows_every_command_and_every_status() -> None:
    assert set(COMMANDS) == set(get_args(c.ReactCommand)) == set(SAMPLES)
    assert all(set(row) == set(RunStatus) for row in COMMANDS.values())
    assert set(IN_STATUS) == set(RunStatus)


@pytest.mark.parametrize("status", RunStatus)
@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
def test_every_status_meets_every_command_as_the_table_says(status: RunStatus, kind: type) -> None:
    chat = IN_STATUS[status]()
    before, recorded = chat.state, len(chat.records)
    match COMMANDS[kind][status]:
        case Verdict.REFUSE:
            with pytest.raises(NotAllowed):
                chat.submit(SAMPLES[kind])
            assert (chat.state, len(chat.records)) == (before, recorded)
        case Verdict.IGNORE:
            decision = chat.submit(SAMPLES[kind])
            assert (decision.events, decision.effects) == ((), ())
            assert decision.state is before
        case Verdict.ACCEPT:
            met = chat.tries(SAMPLES[kind])
            assert not isinstance(met, NotAllowed)
            if isinstance(met, CallerError):
                assert (chat.state, len(chat.records)) == (before, recorded)


@pytest.mark.parametrize("status", RunStatus)
def test_a_command_of_plans_is_refused_by_every_session(status: RunStatus) -> None:
    chat = IN_STATUS[status]()
    with pytest.raises(NotAllowed, match=f"Skip is not possible: {chat.state.run_id} is {status}"):
        chat.submit(c.Skip("L001", WILL))


@pytest.mark.parametrize("status", RunStatus)
def test_the_samples_are_in_the_status_that_they_stand_for(status: RunStatus) -> None:
    assert IN_STATUS[status]().state.status is status


@pytest.mark.parametrize(("status", "signal"), list(product(RunStatus, Signal)))
def test_a_session_moves_by_its_table_only(status: RunStatus, signal: Signal) -> None:
    if signal in SESSION[status]:
        assert next_instance(status, signal, SESSION) is SESSION[status][signal]
    else:
        with pytest.raises(IllegalTransition, match=f"{status} cannot {signal}"):
            next_instance(status, signal, SESSION)


def test_a_session_differs_from_a_plan_only_between_its_turns() -> None:
    differing = {status for status in RunStatus if SESSION[status] != INSTANCE[status]}
    assert differing == {RunStatus.NOT_STARTED, RunStatus.DONE, RunStatus.ERROR}
    assert SESSION[RunStatus.NOT_STARTED] == {Signal.START: RunStatus.DONE}
    assert SESSION[RunStatus.DONE][Signal.NEXT_TURN] is RunStatus.RUNNING
    assert SESSION[RunStatus.ERROR][Signal.NEXT_TURN] is RunStatus.RUNNING
    assert not SESSION[RunStatus.CANCELLED]


def test_a_message_to_an_open_turn_is_told_why_it_must_wait() -> None:
    with pytest.raises(NotAllowed, match="is still at work; a message is the next turn"):
        begun().say()
    with pytest.raises(NotAllowed, match="waits for an answer; a message is the next turn"):
        paused().say()


@pytest.mark.parametrize("ended", [cancelling, cancelled])
def test_a_message_to_an_ended_session_is_told_who_ended_it(ended: Callable[[], Chat]) -> None:
    with pytest.raises(NotAllowed, match="was ended by Will Zhang; start another session"):
        ended().say()

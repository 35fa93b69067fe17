"""The machines inside every run as tables: nothing else moves state.

* the **run** itself, moved by signals (`ASK` when a question opens, `ANSWER` when one
  is answered, `GIVE_UP` when it waits for a person to mend something, and so on);
* a **step**, which is one piece of its work: a listener's firing, a model's reply, a call;
* a **question** to a person.

What a plan and a session add stands in their own tables. The diagrams in `docs/` are
drawn from all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeAlias

from holdfast.errors import IllegalTransition
from holdfast.model import commands as c
from holdfast.model.interaction import InteractionStatus as Q
from holdfast.model.run import RunStatus as I
from holdfast.model.run import StepStatus as StepStatus


class Signal(StrEnum):
    START = "start"
    ASK = "ask"
    ANSWER = "answer"
    GO_ON = "go on"
    GIVE_UP = "give up"
    RESUME = "resume"
    FINISH = "finish"
    CANCEL = "cancel"
    STOPPED = "stopped"
    NEXT_TURN = "next turn"


Lifecycle: TypeAlias = Mapping[I, Mapping[Signal, I]]

_WITH_A_PERSON: Mapping[Signal, I] = {
    Signal.ASK: I.PAUSE,
    Signal.ANSWER: I.CONTINUE,
    Signal.GO_ON: I.RUNNING,
    Signal.GIVE_UP: I.ERROR,
    Signal.CANCEL: I.CANCELLING,
}

INSTANCE: Lifecycle = {
    I.NOT_STARTED: {Signal.START: I.RUNNING},
    I.RUNNING: {
        Signal.ASK: I.PAUSE,
        Signal.GIVE_UP: I.ERROR,
        Signal.FINISH: I.DONE,
        Signal.CANCEL: I.CANCELLING,
    },
    I.PAUSE: _WITH_A_PERSON,
    I.CONTINUE: _WITH_A_PERSON,
    I.ERROR: {
        Signal.ASK: I.ERROR,
        Signal.ANSWER: I.ERROR,
        Signal.GO_ON: I.ERROR,
        Signal.GIVE_UP: I.ERROR,
        Signal.RESUME: I.RUNNING,
        Signal.CANCEL: I.CANCELLING,
    },
    I.CANCELLING: {Signal.STOPPED: I.CANCELLED},
    I.DONE: {},
    I.CANCELLED: {},
}


class StepMove(StrEnum):
    START = "start"
    SUCCEED = "succeed"
    BACK_OFF = "back off"
    WAKE = "wake"
    ASK = "ask"
    WAIT = "wait"
    GO_ON = "go on"
    FAIL = "fail"
    GIVE_UP = "give up"
    RELEASE = "release"
    FIRE = "fire"
    FIRE_LATER = "fire later"
    SKIP = "skip"
    STOP = "stop"


S, M = StepStatus, StepMove

STEP: Mapping[StepStatus, Mapping[StepMove, StepStatus]] = {
    S.READY: {
        M.START: S.RUNNING,
        M.SUCCEED: S.DONE,
        M.ASK: S.WAITING,
        M.WAIT: S.WAITING,
        M.FAIL: S.CONSULTING,
        M.GIVE_UP: S.FAILED,
        M.SKIP: S.SKIPPED,
        M.STOP: S.STOPPED,
    },
    S.RUNNING: {
        M.SUCCEED: S.DONE,
        M.BACK_OFF: S.BACKOFF,
        M.ASK: S.WAITING,
        M.GO_ON: S.READY,
        M.FAIL: S.CONSULTING,
        M.GIVE_UP: S.FAILED,
        M.RELEASE: S.READY,
        M.STOP: S.STOPPED,
    },
    S.BACKOFF: {M.WAKE: S.READY, M.SKIP: S.SKIPPED, M.STOP: S.STOPPED},
    S.WAITING: {
        M.GO_ON: S.READY,
        M.BACK_OFF: S.BACKOFF,
        M.FAIL: S.CONSULTING,
        M.GIVE_UP: S.FAILED,
        M.SUCCEED: S.DONE,
        M.SKIP: S.SKIPPED,
        M.STOP: S.STOPPED,
    },
    S.CONSULTING: {
        M.FIRE: S.READY,
        M.FIRE_LATER: S.BACKOFF,
        M.GIVE_UP: S.FAILED,
        M.SKIP: S.SKIPPED,
        M.STOP: S.STOPPED,
    },
    S.FAILED: {
        M.FIRE: S.READY,
        M.GO_ON: S.READY,
        M.START: S.RUNNING,
        M.SKIP: S.SKIPPED,
        M.STOP: S.STOPPED,
    },
    S.DONE: {M.FIRE: S.READY},
    S.SKIPPED: {M.FIRE: S.READY},
    S.STOPPED: {},
}

ACTIVE_STEPS = frozenset({S.READY, S.RUNNING, S.BACKOFF, S.WAITING, S.CONSULTING})

HELD_UP = (ACTIVE_STEPS - {S.RUNNING}) | {S.FAILED}
"""Nothing is out in the world for them: they are stopped or skipped at once."""

COUNTED: Mapping[StepStatus, tuple[int, int, int]] = {
    one: (int(one in ACTIVE_STEPS), int(one is S.RUNNING), int(one in (S.WAITING, S.BACKOFF)))
    for one in S
}
"""Whether a step is active, in flight and resting."""

QUESTION: Mapping[Q, frozenset[Q]] = {
    Q.OPEN: frozenset({Q.ANSWERED, Q.EXPIRED, Q.WITHDRAWN}),
    Q.ANSWERED: frozenset(),
    Q.EXPIRED: frozenset(),
    Q.WITHDRAWN: frozenset(),
}


class Verdict(StrEnum):
    ACCEPT = "accept"
    IGNORE = "ignore"
    REFUSE = "refuse"


ACCEPT: Final = Verdict.ACCEPT


def next_instance(status: I, signal: Signal, table: Lifecycle = INSTANCE) -> I:
    try:
        return table[status][signal]
    except KeyError:
        raise IllegalTransition(f"a run that is {status} cannot {signal}") from None


def next_step(status: StepStatus, move: StepMove) -> StepStatus:
    try:
        return STEP[status][move]
    except KeyError:
        raise IllegalTransition(f"a step that is {status} cannot {move}") from None


def close_question(status: Q, closed: Q) -> Q:
    if closed not in QUESTION[status]:
        raise IllegalTransition(f"a question that is {status} cannot become {closed}")
    return closed


def verdicts(accept: set[I], otherwise: Verdict = Verdict.REFUSE) -> dict[I, Verdict]:
    return {status: Verdict.ACCEPT if status in accept else otherwise for status in I}


def of_every_run(alive: set[I]) -> Mapping[type, Mapping[I, Verdict]]:
    """The commands that every machine knows, by where a run of its may still move."""
    begun, until_it_ends = set(I) - {I.NOT_STARTED}, alive | {I.CANCELLING}
    return {
        c.ReportOutcome: verdicts(begun, Verdict.IGNORE),
        c.Answer: verdicts(begun),
        c.KeepDraft: verdicts(begun),
        c.Cancel: {**verdicts(alive), I.CANCELLING: Verdict.IGNORE},
        c.HearChild: verdicts(until_it_ends, Verdict.IGNORE),
        c.Tick: verdicts(until_it_ends, Verdict.IGNORE),
        c.Recover: verdicts(until_it_ends, Verdict.IGNORE),
    }

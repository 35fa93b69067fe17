"""The plan machine as tables: nothing else moves state.

Four small machines make a plan run:

* the **instance**, moved by signals (`ASK` when a question opens, `ANSWER` when one
  is answered, `GIVE_UP` when the planner waits for a person, and so on);
* a **task**, whose moves come from listeners' outputs, the planner and people;
* a **step**, which is one listener's current firing;
* a **question** to a person.

`COMMANDS` says, for every command and every instance status, whether it is
accepted, ignored (an internal word that comes too late is no mistake) or refused.
The diagrams in `docs/` are drawn from these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from holdfast.errors import IllegalTransition
from holdfast.model import commands as c
from holdfast.model.interaction import InteractionStatus as Q
from holdfast.model.plan import PlanInstanceStatus as I
from holdfast.model.plan import TaskStatus as T


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


INSTANCE: Mapping[I, Mapping[Signal, I]] = {
    I.NOT_STARTED: {Signal.START: I.RUNNING},
    I.RUNNING: {
        Signal.ASK: I.PAUSE,
        Signal.GIVE_UP: I.ERROR,
        Signal.FINISH: I.DONE,
        Signal.CANCEL: I.CANCELLING,
    },
    I.PAUSE: {
        Signal.ASK: I.PAUSE,
        Signal.ANSWER: I.CONTINUE,
        Signal.GO_ON: I.RUNNING,
        Signal.GIVE_UP: I.ERROR,
        Signal.CANCEL: I.CANCELLING,
    },
    I.CONTINUE: {
        Signal.ASK: I.PAUSE,
        Signal.ANSWER: I.CONTINUE,
        Signal.GO_ON: I.RUNNING,
        Signal.GIVE_UP: I.ERROR,
        Signal.CANCEL: I.CANCELLING,
    },
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

_ANYWHERE = frozenset(T)
_FROM_THE_END = _ANYWHERE - {T.RETRYING, T.CANCELLED}

TASK: Mapping[T, frozenset[T]] = {
    T.NOT_STARTED: _ANYWHERE,
    T.RUNNING: _ANYWHERE,
    T.PENDING: _ANYWHERE,
    T.RETRYING: _ANYWHERE,
    T.ERROR: _ANYWHERE,
    T.DONE: _FROM_THE_END,
    T.SKIPPED: _FROM_THE_END,
    T.CANCELLED: frozenset(),
}


class StepStatus(StrEnum):
    """Where one listener's current firing stands."""

    READY = "ready"
    RUNNING = "running"
    BACKOFF = "backoff"
    WAITING = "waiting"
    CONSULTING = "consulting"
    FAILED = "failed"
    DONE = "done"
    SKIPPED = "skipped"
    STOPPED = "stopped"


class StepMove(StrEnum):
    START = "start"
    SUCCEED = "succeed"
    BACK_OFF = "back off"
    WAKE = "wake"
    ASK = "ask"
    GO_ON = "go on"
    FAIL = "fail"
    GIVE_UP = "give up"
    RELEASE = "release"
    FIRE = "fire"
    SKIP = "skip"
    STOP = "stop"


S, M = StepStatus, StepMove

STEP: Mapping[StepStatus, Mapping[StepMove, StepStatus]] = {
    S.READY: {
        M.START: S.RUNNING,
        M.SUCCEED: S.DONE,
        M.ASK: S.WAITING,
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


def _row(
    accept: set[I], otherwise: Verdict = Verdict.REFUSE, **named: set[I]
) -> Mapping[I, Verdict]:
    ignored = named.get("ignore", set())
    return {
        status: Verdict.ACCEPT
        if status in accept
        else Verdict.IGNORE
        if status in ignored
        else otherwise
        for status in I
    }


_OPEN = {I.RUNNING, I.PAUSE, I.CONTINUE}
_BEGUN = set(I) - {I.NOT_STARTED}

COMMANDS: Mapping[type, Mapping[I, Verdict]] = {
    c.StartRun: _row({I.NOT_STARTED}),
    c.StartListener: _row(_OPEN, Verdict.IGNORE),
    c.ReportOutcome: _row(_BEGUN, Verdict.IGNORE),
    c.DecideRetry: _row(_OPEN, Verdict.IGNORE),
    c.Answer: _row(_BEGUN),
    c.Resume: _row({I.ERROR}),
    c.Skip: _row(_OPEN | {I.ERROR}),
    c.MarkDone: _row(_OPEN | {I.ERROR}),
    c.EditContext: _row(_OPEN | {I.ERROR}),
    c.RerunFrom: _row(_OPEN | {I.ERROR}),
    c.Cancel: _row(_OPEN | {I.ERROR}, ignore={I.CANCELLING}),
    c.HearChild: _row(_OPEN | {I.ERROR, I.CANCELLING}, Verdict.IGNORE),
    c.Tick: _row(_OPEN | {I.ERROR, I.CANCELLING}, Verdict.IGNORE),
    c.Recover: _row(_OPEN | {I.ERROR, I.CANCELLING}, Verdict.IGNORE),
}


def next_instance(status: I, signal: Signal) -> I:
    try:
        return INSTANCE[status][signal]
    except KeyError:
        raise IllegalTransition(f"an instance that is {status} cannot {signal}") from None


def next_step(status: StepStatus, move: StepMove) -> StepStatus:
    try:
        return STEP[status][move]
    except KeyError:
        raise IllegalTransition(f"a step that is {status} cannot {move}") from None


def next_task(status: T, wanted: T) -> T:
    if wanted not in TASK[status]:
        raise IllegalTransition(f"a task that is {status} cannot become {wanted}")
    return wanted


def close_question(status: Q, closed: Q) -> Q:
    if closed not in QUESTION[status]:
        raise IllegalTransition(f"a question that is {status} cannot become {closed}")
    return closed

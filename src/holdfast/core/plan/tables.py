"""The plan machine as tables: what a plan adds to those that every run has.

A **task** moves by listeners' outputs, by the planner and by people. `COMMANDS` says,
for every command and every status of the instance, whether it is accepted, ignored (an
internal word that comes too late is no mistake) or refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.run.tables import Verdict, of_every_run, verdicts
from holdfast.errors import IllegalTransition
from holdfast.model import commands as c
from holdfast.model.plan import PlanInstanceStatus as I
from holdfast.model.plan import TaskStatus as T

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

SETTABLE: Mapping[T, frozenset[T]] = {one: there - {T.CANCELLED} for one, there in TASK.items()}
"""What listeners and people may set: a task is cancelled only with the whole run."""


_OPEN = {I.RUNNING, I.PAUSE, I.CONTINUE}
_ALIVE = _OPEN | {I.ERROR}

COMMANDS: Mapping[type, Mapping[I, Verdict]] = {
    c.StartRun: verdicts({I.NOT_STARTED}),
    c.StartFork: verdicts({I.NOT_STARTED}),
    c.StartStep: verdicts(_OPEN, Verdict.IGNORE),
    c.Advise: verdicts(_OPEN, Verdict.IGNORE),
    c.ReportDiagnosis: verdicts(_ALIVE, Verdict.IGNORE),
    c.ProposePatch: verdicts(_ALIVE),
    c.ReviewProposal: verdicts(_ALIVE, Verdict.IGNORE),
    c.WakeEarly: verdicts(_OPEN, Verdict.IGNORE),
    c.Resume: verdicts({I.ERROR}),
    c.Skip: verdicts(_ALIVE),
    c.MarkDone: verdicts(_ALIVE),
    c.EditContext: verdicts(_ALIVE),
    c.RerunFrom: verdicts(_ALIVE),
    **of_every_run(_ALIVE),
}


def next_task(status: T, wanted: T) -> T:
    if wanted not in TASK[status]:
        raise IllegalTransition(f"a task that is {status} cannot become {wanted}")
    return wanted

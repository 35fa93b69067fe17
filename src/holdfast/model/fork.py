"""What a new run takes over of another one that is over: how its tasks and listeners stood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from holdfast.model.effects import RecordedCall
from holdfast.model.plan import TaskStatus
from holdfast.model.record import record
from holdfast.model.run import StepStatus
from holdfast.model.values import Json


@record
class ForkedTask:
    task_id: str
    status: TaskStatus
    context: Mapping[str, Json] = field(default_factory=dict)


@record
class ForkedStep:
    """A listener's firing: done, skipped, or ready to fire now.

    What was obtained for it is not obtained again: the result that only waits to be concluded
    (`carried`), what people provided, the calls that a snippet has made. One that was sent keeps
    its arguments, and `key`, under which the outside world may know it; where it is `in_doubt` a
    person is asked before it runs.
    """

    listener_id: str
    firing: int
    status: StepStatus
    generation: int = 0
    idempotent: bool = False
    args: Mapping[str, Json] | None = None
    key: str = ""
    provided: Mapping[str, Json] = field(default_factory=dict)
    carried: tuple[Json] | None = None
    calls: tuple[RecordedCall, ...] = ()
    calling: tuple[str, Mapping[str, Json], bool] | None = None
    clock: float = 0.0
    pending: int = 0
    forgotten: bool = False
    in_doubt: bool = False


@record
class Fork:
    """`origin` as it was after its event `seq`. `wanting` has the people who want what it did, and
    how they said so; `secrets` names the references that open in the origin only. `refused` are
    digests of the operations that people refused there, or that did not help; `called` are the
    tools that the runs of its tree have called."""

    origin: str
    seq: int
    plan_id: str
    prompt: str = ""
    tasks: tuple[ForkedTask, ...] = ()
    steps: tuple[ForkedStep, ...] = ()
    wanting: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    called: tuple[str, ...] = ()

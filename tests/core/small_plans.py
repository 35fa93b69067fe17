"""Plans by hand, as small as a story needs them, and a machine that has begun to run them."""

from __future__ import annotations

from typing import Any, cast

from machine import Machine, Worked

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.storing import plan_digest
from holdfast.journal.codec import decode
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.form import Field, Form
from holdfast.model.interaction import Asking, InteractionRequest
from holdfast.model.plan import (
    Action,
    CodeAction,
    HumanAction,
    Listener,
    Output,
    Plan,
    PlanAction,
    Task,
    TaskStatus,
    ToolAction,
)
from holdfast.model.retry import Failure, FailureKind

WILL = "Will Zhang"

TRANSIENT = c.Failed(Failure(FailureKind.TRANSIENT, "out of order"))
PERMANENT = c.Failed(Failure(FailureKind.PERMANENT, "no such thing"))

COLOUR = Form((Field("colour"),))


def compiled(*listeners: Listener, **plan: Any) -> CompiledPlan:
    """A plan of these listeners, with every task that they name."""
    named = {"001": None}
    for one in listeners:
        outputs = (one.success_output, one.failure_output)
        named |= dict.fromkeys(one.trigger_task_id)
        named |= dict.fromkeys(output.task_id for output in outputs if output)
    tasks = tuple(Task(task_id, f"task {task_id}") for task_id in named)
    made = Plan("small", "Small", "001", tasks, listeners, **plan)
    return CompiledPlan(made, plan_digest(made))


def on(listener_id: str, when: str, action: Action, then: str | None, **more: Any) -> Listener:
    """`when` is `002 Done` or `001 Running`, `then` is `003` or `003 Skipped`."""
    *triggers, condition = when.split()
    output = None
    if then is not None:
        task_id, _, status = then.partition(" ")
        output = Output(task_id, TaskStatus(status or "Done"), more.pop("context", {}))
    return Listener(listener_id, tuple(triggers), condition, action, output, **more)


CALL = ToolAction("plain")
KEYED = ToolAction("keyed")
GUARDED = ToolAction("guarded", {"n": 1})
CODE = CodeAction("result = {'x': 1}")
CALLING_CODE = CodeAction("result = plain(n=1)", ("plain", "keyed"))
CHILD = PlanAction("child")
ASK = HumanAction(COLOUR, Asking("Which?"))
CONFIRM = HumanAction(asking=Asking("Really?"))


def started(*listeners: Listener, **plan: Any) -> Machine:
    """The plan has begun, and whatever is ready has started."""
    machine = Machine(compiled(*listeners, **plan))
    machine.submit(c.StartRun("small", "go", by=WILL))
    machine.start_ready()
    return machine


def only(machine: Machine) -> Worked:
    """The one piece of work that is in flight."""
    (effect,) = machine.flying.values()
    return effect


def succeed(machine: Machine, result: Any = None) -> None:
    """The one piece of work succeeds, and what follows from it starts."""
    effect = only(machine)
    machine.report(effect, machine.outcome(effect, {"x": 1} if result is None else result))
    machine.start_ready()


def fail(machine: Machine, outcome: c.Outcome = PERMANENT) -> None:
    machine.report(only(machine), outcome)


def give_up(machine: Machine, outcome: c.Outcome = PERMANENT) -> None:
    """The work fails for good, and the planner grants no retry."""
    fail(machine, outcome)
    machine.consult(0)


def question(machine: Machine) -> InteractionRequest:
    """The one question that is open."""
    (question_id,) = machine.state.open_questions
    return machine.state.questions[question_id].request


def reply(machine: Machine, option_id: str | None = None, **answer: Any) -> None:
    asked = question(machine).request_id
    machine.submit(c.Answer(asked, WILL, option_id, **answer))
    machine.start_ready()


def events(machine: Machine, kind: type[e.PlanEvent]) -> list[Any]:
    """All events of one kind so far."""
    read = [decode(record) for record in machine.records]
    return [cast(Any, event) for event in read if isinstance(event, kind)]


def statuses(machine: Machine) -> dict[str, str]:
    return {one: task.status.value for one, task in machine.state.tasks.items()}

"""Random plans under random commands and faults: replay equals live state, promises hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from dice import Dice
from hypothesis import given, settings
from hypothesis import strategies as st
from invariants import ENDED
from machine import Machine, Worked
from random_patches import answered, random_elsewhere, repair
from random_plans import MAIN, random_plan

from holdfast.errors import CallerError
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.form import Field, Form
from holdfast.model.plan import PlanInstanceStatus
from holdfast.model.retry import Failure, FailureKind, Retry
from holdfast.model.values import Json

RESULTS: tuple[Json, ...] = (
    *({"x": 1}, {"x": 1, "success": True}) * 5,
    {},
    {"success": False},
    None,
    "text",
    {"target_task": MAIN, "target_status": "Done", "context": {"y": [1, 2.5, {"z": None}]}},
    {"target_task": "404"},
    {"target_status": "Cancelled"},
    {"target_status": "nonsense"},
)
STATUSES = ("running", "pause", "error", "done", "cancelled", "continue")


def play(script: bytes) -> Machine:
    """One life of one run: chance first, then everything is carried to its end."""
    dice = Dice(script)
    machine = Machine(random_plan(dice))
    values: dict[str, Json] = dice.pick(({}, {"colour": "red"}, {"colour": "red", "name": "Will"}))
    if machine.plan.plan.inputs.fields:
        values.pop("name", None)
    machine.submit(c.StartRun("random", "go", values, by="Will Zhang"))
    for _ in range(16 + dice.number(32)):
        dice.pick(MOVES)(machine, dice)
    return machine


def start_one(machine: Machine, dice: Dice) -> None:
    ready = machine.ready()
    machine.start(dice.pick(ready) if ready else "L001")


def work(machine: Machine, dice: Dice) -> None:
    if machine.flying:
        effect = dice.pick(list(machine.flying.values()))
        machine.report(effect, _outcome(machine, effect, dice))
    elif machine.consultations:
        machine.consult(Retry(dice.number(3), None if dice.number(2) else 0))
    else:
        machine.start_ready()


def _outcome(machine: Machine, effect: Worked, dice: Dice) -> c.Outcome:
    if dice.chance(12):
        return c.NotSent()
    if isinstance(effect, f.Conclude):
        return machine.outcome(effect, None)
    match dice.number(8):
        case 5:
            kind = dice.pick((FailureKind.TRANSIENT, FailureKind.PERMANENT, FailureKind.UNKNOWN))
            asked = dice.pick((None, 30.0, 1e6))
            return c.Failed(Failure(kind, "it failed", asked))
        case 6:
            return c.Lost("no answer")
        case 7 if not isinstance(effect, f.CallFunction):
            return c.Missing(Form((Field("size"),)))
    if isinstance(effect, f.RunSnippet) and effect.functions and dice.chance(2):
        index = len(effect.recorded)
        function = dice.pick(effect.functions)
        return c.CallWanted(index, function, {"n": index}, function == "keyed")
    return machine.outcome(effect, dice.pick(RESULTS))


def late_word(machine: Machine, dice: Dice) -> None:
    """A result under a claim that is over, or that never was."""
    if not machine.past:
        machine.submit(c.ReportOutcome("L001", 1, 9999, c.Succeeded({"x": 9})))
        return
    effect = dice.pick(machine.past)
    failed = c.Failed(Failure(FailureKind.TRANSIENT, "late"))
    lost = c.Lost("late")
    machine.report(effect, dice.pick((machine.outcome(effect, {"x": 1}), failed, lost)))


def answer(machine: Machine, dice: Dice) -> None:
    """Answers of every kind: right, wrong, for questions of every status."""
    asked = sorted(machine.state.open_questions) if dice.number(4) else []
    known = asked or sorted(machine.state.questions)
    question_id = dice.pick(known) if known else "nobody asked"
    options: list[str | None] = [None, "provide", "nonsense"]
    if known:
        offered = machine.state.questions[question_id].request.options
        options += [one.option_id for one in offered] * 3
    data: dict[str, Json] = dice.pick(({"colour": "red"}, {}, {"size": "XL"}, {"x": "1"}))
    feedback = dice.pick((None, "because"))
    command = c.Answer(question_id, dice.pick(("Will Zhang", "操作员")), dice.pick(options), data)
    of = (question_id, command.by, command.option_id, data, feedback)
    answered(machine, c.Answer(*of, elsewhere=random_elsewhere(dice)))


def fitting_answer(machine: Machine, dice: Dice) -> None:
    for question_id in sorted(machine.state.open_questions)[:1]:
        given = good_answer(machine, question_id, dice.number(4))
        answered(machine, replace(given, elsewhere=random_elsewhere(dice)))


def good_answer(machine: Machine, question_id: str, choice: int = 0) -> c.Answer:
    request = machine.state.questions[question_id].request
    option = request.options[choice % len(request.options)]
    takes = option.action.value == "PROVIDE_INFO"
    data: dict[str, Json] = {one.name: "red" for one in request.form.fields} if takes else {}
    return c.Answer(question_id, "Will Zhang", option.option_id, data, "because")


def child_word(machine: Machine, dice: Dice) -> None:
    if not machine.children:
        machine.submit(c.HearChild("no such child", 1, "L001", 1, "done"))
        return
    child_id = dice.pick(sorted(machine.children))
    if machine.children[child_id].status in ("done", "cancelled"):
        child = machine.children[child_id]
        word = c.HearChild(child_id, child.seq, child.listener_id, child.firing, child.status)
        assert not machine.submit(word).events
        return
    machine.hear(child_id, dice.pick(STATUSES), {"x": 1})


def tick(machine: Machine, dice: Dice) -> None:
    machine.now += dice.pick((0.0, 0.5, 3.0, 60.0))
    machine.submit(c.Tick())


def person(machine: Machine, dice: Dice) -> None:
    """Whatever a person may do to a run, allowed or not."""
    listener = dice.pick((*machine.state.plan.listeners, "L404"))
    task = dice.pick((*sorted(machine.state.plan.task_ids), "404"))
    context: dict[str, Json] = dice.pick(({"x": 1}, {}, {"error_info": "?", "name": "Will"}))
    by = "Will Zhang"
    commands: tuple[c.Command, ...] = (
        c.Resume(by),
        c.Skip(listener, by, "not needed"),
        c.MarkDone(task, by, context),
        c.EditContext(task, context, by),
        c.RerunFrom(listener, by),
        c.Resume(by),
        c.StartRun("random"),
        c.Cancel(by) if dice.chance(6) else c.Resume(by),
    )
    machine.tries(dice.pick(commands))


def cancel(machine: Machine, dice: Dice) -> None:
    if machine.flying and dice.chance(3):
        machine.tries(c.Cancel("Will Zhang", "enough", dice.pick((10.0, 0.0))))


def upgrade(machine: Machine, dice: Dice) -> None:
    """A new version of a tool is deployed while the run goes on."""
    name = dice.pick(("guarded", "plain"))
    before = machine.tools[name]
    machine.tools[name] = replace(before, version=f"{before.version}.1")


def crash(machine: Machine, dice: Dice) -> None:
    machine.crash()


def reload(machine: Machine, dice: Dice) -> None:
    machine.reload()


MOVES: tuple[Callable[[Machine, Dice], None], ...] = (
    work,
    start_one,
    work,
    fitting_answer,
    work,
    start_one,
    tick,
    person,
    child_word,
    answer,
    crash,
    late_word,
    reload,
    work,
    cancel,
    upgrade,
    repair,
    repair,
)


def live_on(machine: Machine) -> None:
    """Everything reported, every timer fired, every person patient: a run must come to rest."""
    for _ in range(4):
        state = machine.settle()
        if state.status in ENDED:
            return
        paused = [one for one, child in machine.children.items() if child.status == "pause"]
        waits = bool(state.open_questions) or state.paused_children > 0
        assert waits or state.status is PlanInstanceStatus.ERROR, f"{state.status} hangs"
        for question_id in sorted(state.open_questions):
            machine.tries(good_answer(machine, question_id))
        for child_id in paused:
            machine.hear(child_id, "running")
        if machine.state.status is PlanInstanceStatus.ERROR:
            machine.submit(c.Resume("Will Zhang"))
    machine.tries(c.Cancel("Will Zhang", "enough"))
    assert machine.settle().status in ENDED


@pytest.mark.timeout(1800)
@settings(derandomize=True, max_examples=1000, deadline=None)
@given(st.binary(min_size=100, max_size=400))
def test_whatever_happens_replay_equals_the_live_state_and_no_promise_breaks(
    script: bytes,
) -> None:
    machine = play(script)
    machine.reload()
    live_on(machine)
    machine.reload()
    with pytest.raises(CallerError):
        machine.submit(c.Resume("Will Zhang"))

"""Random conversations under random commands and faults: no promise breaks."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from conversation_machine import DISABLED, REQUIRE, RUN_ID, TOOLS, WILL, Talk, Worked, wanted
from conversation_promises import fields_of
from dice import Dice
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.conversation import snapshot
from holdfast.core.conversation.decide import blank, replay
from holdfast.core.run.tables import StepStatus
from holdfast.journal.codec import decode
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.approval import ApprovalMode, ApprovalRule
from holdfast.model.conversation import AfterFailure, EngineState, OnFailure, SubTask
from holdfast.model.form import Field, Form
from holdfast.model.interaction import InteractionAction
from holdfast.model.retry import Failure, FailureKind, RetryPolicy
from holdfast.model.run import RunStatus
from holdfast.model.values import Json

AUTO = ApprovalRule(ApprovalMode.AUTO)
ROUTES = (
    ("default", ""),
    ("default", ""),
    ("callable", "own"),
    ("once", "mine"),
    ("tool", "look"),
    ("tool", "send"),
    ("tool", "pay"),
    ("tool", "pay"),
    ("tool", "shut"),
    ("tool", "absent"),
    ("agent", "scout"),
    ("plan", "order"),
)
PLAIN = ROUTES[:3]
STATUSES = ("running", "pause", "error", "error", "done", "cancelled", "continue")
RESULTS: tuple[Json, ...] = ({"x": 1}, None, "words", {"success": False})
DATA: tuple[dict[str, Json], ...] = ({}, {"amount": 9}, {"size": "XL"}, {"result": "seen"})
OVER = (EngineState.IDLE, EngineState.COMPLETED, EngineState.ERROR)


def play(script: bytes) -> Talk:
    """One life of one conversation."""
    dice = Dice(script)
    talk = Talk(
        max_parallel=dice.pick((1, 1, 2, 3, 50)),
        retry=RetryPolicy(attempts=1 + dice.number(3)),
        on_failure=dice.pick(tuple(OnFailure)),
        confirm_tasks=dice.chance(3),
    ).open()
    talk.goal = goal(dice, ROUTES)
    talk.by_model = dice.chance(2)
    talk.converse()
    for _ in range(30 + dice.number(150)):
        dice.pick(MOVES)(talk, dice)
    return talk


def goal(dice: Dice, routes: tuple[tuple[str, str], ...]) -> tuple[SubTask, ...]:
    """Tasks that depend only on those listed before them."""
    tasks: list[SubTask] = []
    for number in range(1 + dice.number(7)):
        route, kind = dice.pick(routes)
        needs = tuple(one.id for one in tasks if dice.number(4) == 3)
        args = dice.pick(({"amount": 5}, {}))
        made = SubTask(f"task {number}", "do", kind, dice.number(3), needs, args, route)
        tasks.append(made)
    return tuple(tasks)


def pull(talk: Talk, dice: Dice) -> None:
    talk.pull()


def only_advance(talk: Talk, dice: Dice) -> None:
    talk.advance()


def work(talk: Talk, dice: Dice) -> None:
    if not talk.flying:
        talk.pull()
        return
    effect = dice.pick(list(talk.flying.values()))
    talk.report(effect, _word(talk, effect, dice))


def _word(talk: Talk, effect: Worked, dice: Dice) -> c.Outcome:
    face = dice.number(12)
    if face == 11:
        return c.NotSent()
    if face == 10:
        return c.Lost("no answer")
    if face == 9:
        kinds = (FailureKind.TRANSIENT, FailureKind.PERMANENT, FailureKind.UNKNOWN)
        return c.Failed(Failure(dice.pick(kinds), "it failed"))
    if isinstance(effect, f.FetchContext):
        return c.Fetched(("rule",))
    if isinstance(effect, f.Decompose):
        return _tasks(talk, dice)
    if isinstance(effect, f.WriteAnswer):
        return c.Written(dice.pick(("", "done")))
    if isinstance(effect, f.FillArguments):
        return c.Filled(dice.pick(DATA))
    if face == 8:
        return c.Missing(Form((Field("size", label=dice.pick(("", "\ud800"))),)))
    return c.Succeeded(dice.pick(RESULTS))


def _tasks(talk: Talk, dice: Dice) -> c.Outcome:
    face = dice.number(10)
    if face == 9:
        return c.Undecomposed("no list")
    if face == 8:
        return c.Decomposed((*talk.goal, talk.goal[0]))
    return c.Decomposed(talk.goal, talk.by_model)


def late_word(talk: Talk, dice: Dice) -> None:
    """Work that is over already speaks once more."""
    if talk.past:
        work = dice.pick(talk.past).work
        said = c.Succeeded(dice.pick(RESULTS))
        talk.submit(c.ReportOutcome(work.step_id, work.firing, work.claim, said))


def answer(talk: Talk, dice: Dice) -> None:
    asked = sorted(talk.state.open_questions)
    if asked:
        question_id = dice.pick(asked)
        offered = [one.option_id for one in talk.state.questions[question_id].request.options]
        words = dice.pick((None, "because"))
        talk.tries(c.Answer(question_id, WILL, dice.pick(offered), dice.pick(DATA), words))


def keep_draft(talk: Talk, dice: Dice) -> None:
    for question_id in sorted(talk.state.open_questions)[:1]:
        talk.tries(c.KeepDraft(question_id, WILL, dice.pick(DATA)))


def hold(talk: Talk, dice: Dice) -> None:
    talk.tries(c.Hold(when_possible=dice.chance(2)))


def unhold(talk: Talk, dice: Dice) -> None:
    talk.tries(c.Unhold())


def converse(talk: Talk, dice: Dice) -> None:
    if not isinstance(talk.tries(c.Converse("Again.", WILL)), Exception):
        talk.goal = goal(dice, ROUTES)


def go_on(talk: Talk, dice: Dice) -> None:
    """After a failure, with what was done kept."""
    if talk.state.phase is EngineState.ERROR:
        talk.tries(c.GoOn(dice.pick(tuple(AfterFailure)), WILL))


def abort(talk: Talk, dice: Dice) -> None:
    if dice.chance(4):
        talk.tries(c.Abort())


def start_over(talk: Talk, dice: Dice) -> None:
    if (talk.state.phase is EngineState.ERROR and dice.chance(2)) or dice.chance(6):
        talk.tries(c.StartOver(WILL))


def restore(talk: Talk, dice: Dice) -> None:
    """It is replaced by a snapshot of itself, straight away or after a reset."""
    body = json.loads(json.dumps(talk.snapshot()))
    if dice.chance(3):
        talk.tries(c.StartOver(WILL))
    talk.tries(c.RestoreSnapshot(snapshot.checked(body)))


def change_tool(talk: Talk, dice: Dice) -> None:
    """Somebody deploys another version, or closes the tool."""
    rule = dice.pick((REQUIRE, REQUIRE, AUTO, DISABLED))
    version = dice.pick(("1", "2"))
    talk.tools["pay"] = replace(TOOLS["pay"], version=version, approval=rule)


def child_speaks(talk: Talk, dice: Dice) -> None:
    for child_id, child in sorted(talk.children.items()):
        if child.status not in ("done", "cancelled"):
            ended_by = WILL if dice.chance(9) else ""
            status = "cancelled" if ended_by else dice.pick(STATUSES)
            talk.hear(child_id, status, dice.pick(RESULTS), ended_by=ended_by)
            return


def pass_time(talk: Talk, dice: Dice) -> None:
    talk.now += dice.pick((1, 10, 60, -5, 0))
    talk.submit(c.Tick())


def crash(talk: Talk, dice: Dice) -> None:
    talk.crash()


def evict(talk: Talk, dice: Dice) -> None:
    talk.reload()


def cancel(talk: Talk, dice: Dice) -> None:
    if dice.chance(12):
        talk.tries(c.Cancel(WILL, "enough", grace=5))


MOVES: tuple[Callable[[Talk, Dice], None], ...] = (
    *(pull, pull, pull, work, work, work, work, answer, answer) * 3,
    only_advance,
    late_word,
    keep_draft,
    *(hold, unhold, unhold),
    converse,
    abort,
    *(go_on, go_on, go_on),
    start_over,
    restore,
    change_tool,
    *(child_speaks, child_speaks, child_speaks),
    *(pass_time, pass_time, crash, evict, cancel),
)


def live_on(talk: Talk) -> None:
    """All work is answered; then people resume, answer and reset what is left."""
    for _ in range(300):
        talk.settle()
        check_rest(talk)
        state = talk.state
        if state.status is RunStatus.CANCELLING:
            talk.wait(1_000)
        elif state.phase in OVER or state.status is RunStatus.CANCELLED:
            return
        elif state.phase is EngineState.PAUSED:
            talk.unhold()
        elif state.open_questions:
            talk.submit(good_answer(talk, min(state.open_questions)))
        else:
            speak_for_children(talk)
    raise AssertionError("the conversation goes on and on")


def check_rest(talk: Talk) -> None:
    """With all work answered it is over, paused, or waits for a person or a child run."""
    state = talk.state
    assert not talk.flying
    if state.phase not in (*OVER, EngineState.PAUSED) and state.status is RunStatus.RUNNING:
        assert any(
            step.child_id and step.status is StepStatus.RUNNING for step in state.steps.values()
        )


def speak_for_children(talk: Talk) -> None:
    for child_id, child in talk.children.items():
        if child.status in ("pause", "error", "continue"):
            talk.hear(child_id, "done", {"x": 1})


def good_answer(talk: Talk, question_id: str) -> c.Answer:
    """One that the question takes: whatever skips or provides, else the first that stops."""
    request = talk.state.questions[question_id].request
    if talk.state.questions[question_id].purpose == "confirm":
        return c.Answer(question_id, WILL, "run")
    wanted = (InteractionAction.SKIP, InteractionAction.PROVIDE_INFO, InteractionAction.TERMINATE)
    (chosen, *_) = (one for kind in wanted for one in request.options if one.action is kind)
    provides = chosen.action is InteractionAction.PROVIDE_INFO
    fields = [one for one in request.form.fields if provides and one.required]
    data: dict[str, Json] = {one.name: 1 if one.type == "number" else "one" for one in fields}
    return c.Answer(question_id, WILL, chosen.option_id, data)


@settings(max_examples=400, deadline=None)
@given(st.binary(min_size=100, max_size=600))
def test_whatever_happens_replay_equals_the_live_state_and_no_promise_breaks(
    script: bytes,
) -> None:
    talk = play(script)
    talk.reload()
    live_on(talk)
    talk.reload()
    records = [(one.at, decode(one)) for one in talk.records]
    replayed = replay(blank(RUN_ID, talk.definition), records)  # type: ignore[arg-type]
    assert fields_of(replayed) == fields_of(talk.state)


@settings(max_examples=150, deadline=None)
@given(st.binary(min_size=40, max_size=200))
def test_a_snapshot_at_any_point_goes_on_elsewhere_to_the_same_results(script: bytes) -> None:
    dice = Dice(script)
    talk = wanted(*goal(dice, PLAIN), max_parallel=dice.pick((1, 2, 50)))
    for _ in range(dice.number(60)):
        dice.pick((pull, pull, plain_work, plain_work, hold, unhold))(talk, dice)
    body = json.loads(json.dumps(talk.snapshot()))
    kept = {one["id"]: one["status"] in ("completed", "finished") for one in body["tasks"]}

    other = Talk(max_parallel=dice.pick((1, 3))).open()
    other.goal = talk.goal
    other.submit(c.RestoreSnapshot(snapshot.checked(body)))
    if other.state.phase is EngineState.IDLE and not other.state.pending:
        other.converse(talk.state.text)
    ran = run_to_the_end(other)
    run_to_the_end(talk)
    assert ran == {one.id for one in talk.goal} - {one for one, done in kept.items() if done}
    assert results(other) == results(talk)
    assert other.state.phase is talk.state.phase is EngineState.COMPLETED
    assert other.state.progress == 1.0


def plain_work(talk: Talk, dice: Dice) -> None:
    for effect in list(talk.flying.values())[:1]:
        talk.answer_phase()
        if isinstance(effect, f.RunTask):
            talk.report(effect, c.Succeeded({"did": effect.task.id}))


def run_to_the_end(talk: Talk) -> set[str]:
    """Which tasks ran on the way, each of them once."""
    already = {work.task.id for work in talk.past if isinstance(work, f.RunTask)}
    if talk.state.pausing or talk.state.phase is EngineState.PAUSED:
        talk.unhold()
    talk.settle()
    ran = [work.task.id for work in talk.past if isinstance(work, f.RunTask)]
    assert len(ran) == len(set(ran))
    return set(ran) - already


def results(talk: Talk) -> dict[str, Json]:
    return {task.id: task.result for task in talk.state.tasks.values()}

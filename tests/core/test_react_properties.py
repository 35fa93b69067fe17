"""Random sessions under random commands and faults: replay equals live state, promises hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from dice import Dice
from hypothesis import given, settings
from hypothesis import strategies as st
from react_machine import AUTO, REQUIRE, RUN_ID, TOOLS, WILL, Chat, Worked, clerk, option, request

from holdfast.core.agent.decide import blank, replay
from holdfast.core.run.tables import StepStatus
from holdfast.errors import CallerError
from holdfast.journal.codec import decode
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.agent import Agent
from holdfast.model.approval import ApprovalMode, ApprovalRule
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import (
    Asking,
    InteractionAction,
    InteractionType,
    Resolution,
)
from holdfast.model.message import ModelReply, ToolCall, Usage
from holdfast.model.retry import Failure, FailureKind, RetryPolicy
from holdfast.model.run import RunStatus
from holdfast.model.values import Json

ACTION = InteractionAction
OPTIONS = tuple(option(one.value.lower(), one) for one in ACTION)
SAFE = tuple(one for one in OPTIONS if one.action is not ACTION.TERMINATE)
ASKINGS = (
    Asking(),
    Asking(options=SAFE),
    Asking(timeout_seconds=50, reminders=(10, 20), escalate_after=30, escalate_to="boss"),
    Asking(options=OPTIONS, timeout_seconds=50, default_option_id="skip"),
    Asking(options=OPTIONS, timeout_seconds=50, default_option_id="terminate"),
)
STATUSES = ("running", "pause", "error", "error", "done", "cancelled", "continue")
WANTED = (
    "look",
    "keyed",
    "pay",
    "pay",
    "picky",
    "ask_scout",
    "ask_person",
    "shut",
    "fly",
    "absent",
)
DATA: tuple[dict[str, Json], ...] = (
    {},
    {"amount": 9},
    {"size": "XL"},
    {"answer": "yes"},
    {"result": "seen"},
    {"amount": "much"},
)


def play(script: bytes) -> Chat:
    """One life of one session."""
    dice = Dice(script)
    chat = Chat(_agent(dice))
    rules = dice.pick(({}, {"look": REQUIRE}, {"pay": AUTO}))
    chat.submit(c.StartSession("clerk", by=WILL, approval=rules))
    chat.say()
    for _ in range(30 + dice.number(120)):
        dice.pick(MOVES)(chat, dice)
    return chat


def _agent(dice: Dice) -> Agent:
    big = ApprovalRule(ApprovalMode.REQUIRE_APPROVAL, "amount > 5")
    return clerk(
        asking=dice.pick(ASKINGS),
        approval=dice.pick(({}, {"pay": big}, {"*": REQUIRE})),
        max_iterations=2 + dice.number(20),
        retry=RetryPolicy(attempts=1 + dice.number(3)),
    )


def start_one(chat: Chat, dice: Dice) -> None:
    ready = chat.ready()
    chat.start(dice.pick(ready) if ready else "think")


def start_all(chat: Chat, dice: Dice) -> None:
    chat.start_ready()


def work(chat: Chat, dice: Dice) -> None:
    if not chat.flying:
        chat.start_ready()
        return
    effect = dice.pick(list(chat.flying.values()))
    chat.report(effect, _word(chat, effect, dice))


def _word(chat: Chat, effect: Worked, dice: Dice) -> c.Outcome:
    kinds = (FailureKind.TRANSIENT, FailureKind.PERMANENT, FailureKind.UNKNOWN)
    face = dice.number(10)
    if face == 9:
        return c.NotSent()
    if face == 8:
        return c.Lost("no answer")
    if face == 7:
        return c.Failed(Failure(dice.pick(kinds), "it failed"))
    if isinstance(effect, f.AskModel):
        return c.Replied(_reply(chat, dice))
    if face == 6:
        return c.Missing(Form((Field("size"),)))
    return c.Succeeded(dice.pick(({"x": 1}, None, "words", {"success": False})))


def _reply(chat: Chat, dice: Dice) -> ModelReply:
    calls = tuple(_call(chat, dice) for _ in range(dice.pick((0, 1, 1, 2, 3, 4))))
    text = dice.pick(("All done.", "", '{"success": true}'))
    return ModelReply(text, calls, Usage(1, 1), "scripted", dice.pick(("stop", "length")))


def _call(chat: Chat, dice: Dice) -> ToolCall:
    tool = dice.pick(WANTED)
    args: dict[str, Json] = {}
    match tool:
        case "pay":
            args = dice.pick(({"amount": 5}, {"amount": 6}, {}))
        case "ask_scout":
            args = dice.pick(({"task": "Go."}, {}))
        case "ask_person":
            args = dice.pick(({"question": "Who?"}, {"question": "Who?", "options": ["a", "b"]}))
    call = chat.want(tool, **args)
    return replace(call, args={}, malformed="{") if dice.chance(12) else call


def late_word(chat: Chat, dice: Dice) -> None:
    """A result under a claim that is over."""
    if not chat.past:
        return
    effect = dice.pick(chat.past)
    failure = c.Failed(Failure(dice.pick((FailureKind.TRANSIENT, FailureKind.UNKNOWN)), "late"))
    known: tuple[c.Outcome, ...] = (c.Lost("late"), failure)
    if isinstance(effect, f.CallTool):
        known = (*known, c.Succeeded({"x": 2}))
    chat.report(effect, dice.pick(known))


def answer(chat: Chat, dice: Dice) -> None:
    """Answers of every kind: right, wrong, for questions of every status."""
    asked = sorted(chat.state.open_questions) if dice.number(5) else []
    known = asked or sorted(chat.state.questions)
    if not known:
        chat.tries(c.Answer("nobody asked", WILL))
        return
    question_id = dice.pick(known)
    offered = chat.state.questions[question_id].request.options
    names = [one.option_id for one in offered]
    chosen = dice.pick([None, "nonsense", *names, *names[:2] * 3])
    resolution = dice.pick((None, Resolution(dice.pick(tuple(ACTION)), dice.pick(DATA))))
    command = c.Answer(
        question_id,
        dice.pick((WILL, "操作员")),
        chosen,
        dice.pick(DATA),
        dice.pick((None, "because")),
        resolution,
    )
    chat.tries(command)


def keep_draft(chat: Chat, dice: Dice) -> None:
    for question_id in sorted(chat.state.questions)[:2]:
        chat.tries(c.KeepDraft(question_id, WILL, {"amount": dice.number(9)}))


def ask(chat: Chat, dice: Dice) -> None:
    asked = request(
        type=InteractionType.USER_CHOICE,
        options=dice.pick((SAFE, SAFE, SAFE, OPTIONS)),
        timeout_seconds=dice.pick((None, 40.0)),
    )
    chat.tries(c.Ask(asked))


def speak(chat: Chat, dice: Dice) -> None:
    chat.tries(c.Say("And now?", WILL))


def propose(chat: Chat, dice: Dice) -> None:
    call = _call(chat, dice)
    chat.tries(c.Propose(call.tool, call.args, call.call_id, WILL))


def remember(chat: Chat, dice: Dice) -> None:
    pattern = dice.pick(({}, {"amount": 5}))
    until = dice.pick((None, chat.now + 30))
    uses = dice.pick((None, 0, 1, 2))
    chat.tries(c.RememberApproval("pay", dice.pick(("1", "2")), WILL, pattern, until, uses))


def revoke(chat: Chat, dice: Dice) -> None:
    for grant_id in sorted(chat.state.grants)[:1]:
        chat.tries(c.RevokeApproval(grant_id, WILL))


def change_tool(chat: Chat, dice: Dice) -> None:
    """Somebody deploys another version, or closes the tool."""
    rule = dice.pick((REQUIRE, REQUIRE, AUTO, ApprovalRule(ApprovalMode.DISABLED)))
    changed = replace(TOOLS["pay"], version=dice.pick(("1", "2")), approval=rule)
    chat.tools["pay"] = changed


def child_speaks(chat: Chat, dice: Dice) -> None:
    for child_id, child in sorted(chat.children.items()):
        if child.status not in ("done", "cancelled"):
            chat.hear(child_id, dice.pick(STATUSES), dice.pick(({"x": 1}, {"success": False})))
            return


def resume(chat: Chat, dice: Dice) -> None:
    chat.tries(c.Resume(WILL))


def pass_time(chat: Chat, dice: Dice) -> None:
    chat.now += dice.pick((1, 10, 60, -5, 0))
    chat.submit(c.Tick())


def crash(chat: Chat, dice: Dice) -> None:
    chat.crash()


def evict(chat: Chat, dice: Dice) -> None:
    chat.reload()


def cancel(chat: Chat, dice: Dice) -> None:
    if dice.chance(8):
        chat.tries(c.Cancel(WILL, "enough", grace=5))


MOVES: tuple[Callable[[Chat, Dice], None], ...] = (
    *(start_one, start_all, start_all, work, work, work, work, answer, answer, answer) * 2,
    late_word,
    keep_draft,
    ask,
    speak,
    speak,
    propose,
    remember,
    revoke,
    change_tool,
    *(child_speaks, child_speaks, child_speaks),
    resume,
    pass_time,
    pass_time,
    crash,
    evict,
    cancel,
)


def live_on(chat: Chat) -> None:
    """All effects are answered; then people mend, answer and say what is left to say."""
    for _ in range(200):
        chat.settle()
        chat.submit(c.Tick())
        chat.settle()
        check_rest(chat)
        status = chat.state.status
        if status in (RunStatus.DONE, RunStatus.CANCELLED):
            return
        if chat.state.open_questions:
            question_id = sorted(chat.state.open_questions)[0]
            chat.submit(good_answer(chat, question_id))
        elif status is RunStatus.ERROR:
            chat.submit(c.Resume(WILL))
        else:
            speak_for_children(chat)
    raise AssertionError("the session goes on and on")


def check_rest(chat: Chat) -> None:
    """With all effects answered a session is over, failed, or waits for a person or a helper."""
    state = chat.state
    assert not chat.flying
    assert state.status not in (RunStatus.RUNNING, RunStatus.CONTINUE) or any(
        step.child_id and step.status is StepStatus.RUNNING for step in state.steps.values()
    )
    if state.status is RunStatus.PAUSE:
        assert state.open_questions or state.paused_children


def speak_for_children(chat: Chat) -> None:
    for child_id, child in chat.children.items():
        if child.status in ("pause", "error", "continue"):
            chat.hear(child_id, "done", {"x": 1})


def good_answer(chat: Chat, question_id: str) -> c.Answer:
    """One that the question takes: the first option that goes on, with what it asks for."""
    request = chat.state.questions[question_id].request
    going = [one for one in request.options if one.action in (ACTION.SKIP, ACTION.PROVIDE_INFO)]
    (chosen, *_) = going or request.options
    provides = chosen.action is ACTION.PROVIDE_INFO
    fields = request.form.fields if provides else ()
    data: dict[str, Json] = {one.name: _fitting(one) for one in fields if one.required}
    resolution = Resolution(ACTION.SKIP) if chosen.action is ACTION.CUSTOM else None
    words = "so be it" if chosen.requires_input else None
    return c.Answer(question_id, WILL, chosen.option_id, data, words, resolution)


def _fitting(field: Field) -> Json:
    return 1 if field.type is FieldType.NUMBER else "one"


@settings(max_examples=600, deadline=None)
@given(st.binary(min_size=100, max_size=600))
def test_whatever_happens_replay_equals_the_live_state_and_no_promise_breaks(
    script: bytes,
) -> None:
    chat = play(script)
    chat.reload()
    live_on(chat)
    chat.reload()
    records = [(one.at, decode(one)) for one in chat.records]
    assert replay(blank(RUN_ID, chat.definition), records) == chat.state
    with pytest.raises(CallerError):
        chat.submit(c.Resume(WILL))

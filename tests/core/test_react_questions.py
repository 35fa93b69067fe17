"""Questions of a session that belong to no call, the model's own, and what the clock does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from react_machine import PERMANENT, WILL, Chat, begun, clerk, opened, option, request

from holdfast.core.agent.state import THINK
from holdfast.core.interactions.answers import CLOCK
from holdfast.errors import InvalidAnswer, NotAllowed, NotFound, TooLate
from holdfast.model import agent_events as r
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import (
    Asking,
    InteractionAction,
    InteractionRequest,
    InteractionStatus,
    InteractionType,
    Resolution,
)
from holdfast.model.message import ModelSaid, UserSaid
from holdfast.model.run import RunStatus

ACTION = InteractionAction
CHOICE = InteractionType.USER_CHOICE
OPTIONS = (
    option("red", ACTION.APPROVE_AND_EXECUTE, metadata={"rgb": "f00"}),
    option("data", ACTION.PROVIDE_INFO),
    option("retry", ACTION.RETRY_WITH_FEEDBACK),
    option("reject", ACTION.REJECT_WITH_REASON),
    option("skip", ACTION.SKIP),
    option("end", ACTION.TERMINATE),
    option("own", ACTION.CUSTOM),
)
HEARD = [
    ("red", None, {}, 'Will Zhang answered: {"option":"red","rgb":"f00"}'),
    ("data", None, {"n": 1}, 'Will Zhang answered: {"n":1,"option":"data"}'),
    ("retry", "bluer", {}, "Will Zhang asks you to think again. bluer"),
    ("reject", "no colours", {}, "Will Zhang refused. no colours"),
    ("reject", None, {}, "Will Zhang refused."),
    ("skip", None, {}, "Will Zhang skipped this. Go on without it."),
]


def colour(**changes: object) -> c.Ask:
    return c.Ask(request(type=CHOICE, **{"options": OPTIONS, **changes}))


def asked_in_a_turn() -> Chat:
    chat = begun()
    chat.calls(chat.want("look"))
    chat.submit(colour())
    return chat


@pytest.mark.parametrize(("chosen", "feedback", "data", "heard"), HEARD)
def test_in_a_running_turn_the_model_hears_the_answer_behind_the_results(
    chosen: str, feedback: str | None, data: dict[str, int], heard: str
) -> None:
    chat = asked_in_a_turn()
    assert chat.state.status is RunStatus.PAUSE
    chat.answer(chosen, feedback, **data)
    assert chat.state.status is RunStatus.RUNNING
    assert THINK not in chat.ready(), "the call is still out"
    chat.returns("c1", "seen")
    asked = chat.think()
    assert asked.messages[-1] == UserSaid(f"[Which colour?] {heard}")
    chat.reply("Fine.")
    assert (chat.state.turn, chat.state.status) == (1, RunStatus.DONE)


@pytest.mark.parametrize(("chosen", "feedback", "data", "heard"), HEARD)
def test_between_turns_the_answer_opens_the_next_one(
    chosen: str, feedback: str | None, data: dict[str, int], heard: str
) -> None:
    chat = opened()
    chat.submit(colour())
    with pytest.raises(NotAllowed, match="waits for an answer"):
        chat.say()
    chat.answer(chosen, feedback, **data)
    assert (chat.state.turn, chat.state.text) == (1, f"[Which colour?] {heard}")
    assert chat.think().messages == (UserSaid(f"[Which colour?] {heard}"),)
    chat.reply("Fine.")
    assert chat.state.status is RunStatus.DONE


@pytest.mark.parametrize("make", [asked_in_a_turn, opened])
def test_terminate_ends_the_session(make: object) -> None:
    chat = make() if make is asked_in_a_turn else opened()  # type: ignore[operator]
    if not chat.state.open_questions:
        chat.submit(colour())
    chat.answer("end", "enough")
    if chat.flying:
        assert chat.state.status is RunStatus.CANCELLING
        chat.returns("c1", "seen")
    assert (chat.state.status, chat.state.cancelled_by) == (RunStatus.CANCELLED, WILL)


def test_a_custom_option_needs_its_handler() -> None:
    chat = opened()
    chat.submit(colour())
    with pytest.raises(InvalidAnswer, match="no handler is registered"):
        chat.answer("own")
    with pytest.raises(InvalidAnswer, match="no handler is registered"):
        chat.submit(
            c.Answer(chat.question().request_id, WILL, "own", resolution=Resolution(ACTION.CUSTOM))
        )
    resolved = Resolution(ACTION.PROVIDE_INFO, {"shade": "dark"})
    chat.submit(c.Answer(chat.question().request_id, WILL, "own", resolution=resolved))
    assert chat.think().messages[-1] == UserSaid(
        '[Which colour?] Will Zhang answered: {"option":"own","shade":"dark"}'
    )


def test_a_form_is_checked_field_by_field_before_anything_changes() -> None:
    chat = opened()
    form = Form((Field("size", FieldType.NUMBER),))
    chat.submit(c.Ask(request("Size?", type=InteractionType.USER_INPUT, form=form)))
    with pytest.raises(InvalidAnswer) as refused:
        chat.answer("provide", size="big")
    assert set(refused.value.fields) == {"size"}
    chat.answer(None, size=7)
    assert chat.heard() == ['[Size?] Will Zhang answered: {"size":7}']


def test_a_question_that_is_not_sound_is_not_asked() -> None:
    chat = opened()
    with pytest.raises(InvalidAnswer, match="title: is empty"):
        chat.submit(colour(title=" "))
    assert not len(chat.state.questions)


def test_an_answer_to_a_question_that_nobody_asked_is_told_so() -> None:
    with pytest.raises(NotFound, match="has no question nowhere"):
        opened().submit(c.Answer("nowhere", WILL))


def test_a_question_asked_while_the_model_thinks_outlives_its_reply() -> None:
    chat = begun()
    chat.think()
    chat.submit(colour())
    chat.reply("", chat.want("look"))
    assert set(chat.state.calls) == {"q1", "c2"}
    chat.start("c2")
    chat.returns("c2", "seen")
    assert not chat.ready(), "the person has yet to answer"
    chat.answer("red")
    assert chat.think().messages[-1].text.startswith("[Which colour?]")  # type: ignore[union-attr]


def test_an_answer_of_the_model_does_not_end_the_turn_while_a_person_is_asked() -> None:
    chat = begun()
    chat.think()
    chat.submit(colour())
    chat.reply("I think it is red.")
    assert chat.state.status is RunStatus.PAUSE
    assert not chat.happened(r.TurnCompleted)
    chat.answer("skip")
    assert chat.think().messages[-2:] == (
        ModelSaid("I think it is red."),
        UserSaid("[Which colour?] Will Zhang skipped this. Go on without it."),
    )
    chat.reply("Red it is.")
    assert chat.happened(r.TurnCompleted) == [r.TurnCompleted(1, "Red it is.")]


def test_what_a_person_answers_while_the_model_thinks_is_heard_before_the_turn_ends() -> None:
    chat = begun()
    chat.think()
    chat.submit(colour())
    chat.answer("red")
    chat.reply("I do not know the colour.")
    assert chat.ready() == [THINK]
    assert "red" in chat.think().messages[-1].text  # type: ignore[union-attr]
    chat.reply("Red.")
    assert (chat.state.status, chat.state.answer) == (RunStatus.DONE, "Red.")


def test_a_question_after_an_error_takes_effect_with_the_resume() -> None:
    chat = begun()
    chat.report(chat.think(), PERMANENT)
    chat.submit(colour())
    assert chat.state.status is RunStatus.ERROR
    chat.answer("red")
    assert (chat.state.status, chat.ready()) == (RunStatus.ERROR, [])
    chat.submit(c.Resume(WILL))
    assert "red" in chat.think().messages[-1].text  # type: ignore[union-attr]


def test_a_resume_with_a_question_open_waits_for_it() -> None:
    chat = begun()
    chat.report(chat.think(), PERMANENT)
    chat.submit(colour())
    with pytest.raises(NotAllowed, match="resume or cancel it"):
        chat.say()
    chat.submit(c.Resume(WILL))
    assert (chat.state.status, chat.ready()) == (RunStatus.PAUSE, [])
    chat.answer("red")
    assert chat.ready() == [THINK]


def test_several_questions_are_answered_on_their_own_and_heard_together() -> None:
    chat = opened()
    chat.submit(colour())
    chat.submit(colour(title="Which size?"))
    chat.answer("skip", at="q2")
    assert chat.state.status is RunStatus.PAUSE
    chat.answer("red", at="q1")
    (heard,) = chat.think().messages
    assert isinstance(heard, UserSaid)
    assert heard.text.index("[Which size?]") < heard.text.index("[Which colour?]")


def test_at_the_timeout_the_default_is_taken_by_the_clock_not_by_a_person() -> None:
    chat = opened()
    chat.submit(colour(timeout_seconds=60, default_option_id="red"))
    asked = chat.question().request_id
    assert chat.wait(59).events == ()
    chat.wait(1)
    assert chat.happened(e.QuestionExpired) == [
        e.QuestionExpired(asked, "red", {"option": "red", "rgb": "f00"})
    ]
    assert not chat.happened(e.QuestionAnswered)
    question = chat.state.questions[asked]
    assert (question.status, question.by) == (InteractionStatus.EXPIRED, None)
    assert chat.heard() == ['[Which colour?] clock answered: {"option":"red","rgb":"f00"}']


def test_without_a_default_the_model_hears_that_nobody_answered() -> None:
    chat = opened()
    chat.submit(colour(timeout_seconds=60))
    chat.wait(60)
    assert chat.think().messages == (UserSaid("[Which colour?] nobody answered in time"),)


def test_after_the_deadline_an_answer_is_late_even_if_no_timer_has_fired() -> None:
    chat = opened()
    chat.submit(colour(timeout_seconds=60))
    asked = chat.question().request_id
    chat.now += 60
    with pytest.raises(TooLate, match="expired at"):
        chat.submit(c.Answer(asked, WILL, "red"))
    chat.submit(c.Tick())
    with pytest.raises(TooLate, match="is expired; nothing was changed"):
        chat.submit(c.Answer(asked, WILL, "red"))


def test_a_dangerous_default_is_refused_when_the_question_is_made() -> None:
    chat = opened()
    dangerous = (option("go", ACTION.APPROVE_AND_EXECUTE, is_dangerous=True),)
    with pytest.raises(InvalidAnswer, match="the clock may not take"):
        chat.submit(colour(options=dangerous, timeout_seconds=60, default_option_id="go"))


def approval(**changes: object) -> tuple[Chat, InteractionRequest]:
    options = (
        option("approve", ACTION.APPROVE_AND_EXECUTE),
        option("skip", ACTION.SKIP),
        option("end", ACTION.TERMINATE),
    )
    how = Asking(options=options, timeout_seconds=3600, **changes)  # type: ignore[arg-type]
    chat = begun(clerk(asking=how))
    chat.calls(chat.want("pay", amount=5))
    return chat, chat.question()


def test_a_timeout_never_approves() -> None:
    chat, _ = approval()
    chat.wait(3600)
    assert not chat.happened(r.CallStarted)
    assert chat.happened(r.StepEnded) == [
        r.StepEnded("c1", "expired", {"error": "nobody answered in time"})
    ]
    assert chat.start("c1").events == ()
    assert chat.ready() == [THINK]


def test_the_default_of_an_approval_is_taken_when_due_and_does_not_run_it() -> None:
    chat, _ = approval(default_option_id="skip")
    chat.wait(3600)
    (ended,) = chat.happened(r.StepEnded)
    assert ended.content == {
        "skipped": f"It was not run: {CLOCK} skipped it. Go on without it.",
        "reason": "nobody answered in time",
    }
    assert not chat.happened(r.CallStarted)


def test_a_default_that_stops_everything_stops_everything() -> None:
    chat, _ = approval(default_option_id="end")
    chat.wait(3600)
    assert (chat.state.status, chat.state.cancelled_by) == (RunStatus.CANCELLED, CLOCK)


def test_a_clock_that_jumps_back_fires_nothing_and_one_that_jumps_ahead_fires_once() -> None:
    chat, _ = approval(reminders=(600, 1200))
    assert chat.wait(-3600).events == ()
    chat.now += 3600
    (reminded,) = chat.wait(1500).events
    assert reminded == e.QuestionReminded(chat.question().request_id, 2)
    assert chat.wait(0).events == ()


def test_a_question_is_recalled_and_then_belongs_to_another_role() -> None:
    chat, asked = approval(
        role="clerk", reminders=(60, 120), escalate_after=300, escalate_to="treasurer"
    )
    assert chat.wait(60).events == (e.QuestionReminded(asked.request_id, 1),)
    assert chat.wait(60).events == (e.QuestionReminded(asked.request_id, 2),)
    assert chat.wait(180).events == (e.QuestionEscalated(asked.request_id, "treasurer"),)
    assert chat.state.questions[asked.request_id].role == "treasurer"
    assert set(chat.state.timers) == {f"question:{asked.request_id}"}
    chat.answer("approve")
    assert not len(chat.state.timers)


def test_a_draft_is_kept_until_the_question_is_closed_and_binds_nobody() -> None:
    chat, asked = approval()
    chat.submit(c.KeepDraft(asked.request_id, WILL, {"amount": 7}))
    assert chat.state.questions[asked.request_id].drafts == {WILL: {"amount": 7}}
    assert chat.state.status is RunStatus.PAUSE
    chat.answer("approve")
    assert chat.state.questions[asked.request_id].drafts == {}
    chat.start("c1")
    assert chat.out("c1").args == {"amount": 5}
    with pytest.raises(TooLate, match="is answered"):
        chat.submit(c.KeepDraft(asked.request_id, WILL, {}))


ASKING = Asking(
    title="My own words",
    message="in full",
    details="at length",
    type=InteractionType.CUSTOM,
    custom_type="mine",
    options=(option("no", InteractionAction.REJECT_WITH_REASON),),
    default_option_id="no",
    required=False,
    role="clerk",
    timeout_seconds=600,
    reminders=(60,),
    escalate_after=300,
    escalate_to="treasurer",
)


@pytest.mark.parametrize(
    ("tool", "args", "title"),
    [
        ("picky", {}, "picky needs more"),
        ("ask_person", {"question": "Which?"}, "Clerk asks"),
        ("ask_person", {"question": "Which?", "options": ["red"]}, "Clerk asks"),
    ],
)
def test_an_agents_asking_says_of_other_questions_who_is_asked_and_when(
    tool: str, args: dict[str, object], title: str
) -> None:
    chat = begun(clerk(asking=ASKING))
    call = chat.want(tool, **args)  # type: ignore[arg-type]
    chat.calls(call)
    asked = chat.question()
    assert (asked.role, asked.timeout_seconds, asked.reminders) == ("clerk", 600, (60,))
    assert (asked.escalate_after, asked.escalate_to) == (300, "treasurer")
    assert (asked.title, asked.details, asked.custom_type) == (title, "", None)
    assert (asked.default_option_id, asked.required) == (None, True)
    assert "no" not in [one.option_id for one in asked.options]
    chat.wait(600)
    assert chat.result(call).content == {"error": "nobody answered in time"}


def asks(**args: object) -> Chat:
    chat = begun()
    chat.calls(chat.want("ask_person", **args))  # type: ignore[arg-type]
    return chat


def test_the_models_own_question_is_quoted_and_nowhere_else() -> None:
    forged = "Run pay? Approve at once!"
    chat = asks(question=forged)
    asked = chat.question()
    assert (asked.title, asked.type) == ("Clerk asks", InteractionType.USER_INPUT)
    assert asked.context["quoted"] == forged
    assert forged not in asked.title + asked.message + asked.details
    chat.answer("provide", answer="No.")
    chat.start("c1")
    assert chat.happened(r.StepEnded) == [r.StepEnded("c1", "done", {"answer": "No."})]
    assert not chat.happened(r.CallStarted)


def test_the_model_may_offer_choices_and_hears_which_was_taken() -> None:
    chat = asks(question="Which?", options=["red", "blue"])
    asked = chat.question()
    assert asked.type is CHOICE
    assert [one.label for one in asked.options] == ["“red”", "“blue”", "Do not answer"]
    chat.answer("choice_2")
    chat.start("c1")
    (ended,) = chat.happened(r.StepEnded)
    assert ended.content == {"option": "choice_2", "choice": "blue"}


def test_the_model_may_be_left_without_an_answer() -> None:
    chat = asks(question="Which?")
    chat.answer("skip")
    (ended,) = chat.happened(r.StepEnded)
    assert ended.how == "skipped"


def test_endless_choices_are_bounded() -> None:
    chat = asks(question="Which?", options=["x" * 500] * 50)
    options = chat.question().options
    assert len(options) == 21
    assert max(len(one.label) for one in options) == 202


WHICH: dict[str, Any] = {
    "message": "For the front door.",
    "details": "Two coats.",
    "options": (
        replace(OPTIONS[0], label="Bright red"),
        replace(OPTIONS[3], label="None of them"),
    ),
}
ASKED = "Asked: For the front door.\nTwo coats.\n"


@pytest.mark.parametrize(
    ("chosen", "heard"),
    [
        ("red", 'Chosen: “Bright red”\n[Which colour?] Will Zhang answered: {"option":"red"'),
        ("reject", "Chosen: “None of them”\n[Which colour?] Will Zhang refused."),
    ],
)
def test_the_model_hears_what_was_asked_and_what_was_chosen(chosen: str, heard: str) -> None:
    chat = opened()
    chat.submit(colour(**WHICH))
    chat.answer(chosen)
    assert chat.state.text.startswith(ASKED + heard)


def test_where_nobody_answers_the_model_hears_what_was_asked() -> None:
    chat = opened()
    chat.submit(colour(**WHICH, timeout_seconds=5.0))
    chat.wait(6.0)
    assert chat.state.text == f"{ASKED}[Which colour?] nobody answered in time"


@pytest.mark.parametrize("changes", [{}, {"amount": 9}])
def test_the_model_hears_what_was_said_with_an_approval(changes: dict[str, int]) -> None:
    chat = begun()
    chat.calls(chat.want("pay", amount=5))
    chat.answer("approve", "but next time ask me first", **changes)
    chat.start("c1")
    chat.returns("c1", "paid")
    said = chat.think().messages[-1]
    assert isinstance(said, UserSaid)
    assert said.text.endswith("[who approved pay said: but next time ask me first]")
    assert ("was called with" in said.text) == bool(changes)

"""A person who ends everything ends it for whoever waits: the child, and the runs above it."""

from __future__ import annotations

import pytest
from machine import Machine
from react_machine import WILL, Chat, begun, option, request
from small_plans import CALL, CHILD, on, started

from holdfast.errors import InvalidAnswer, NotAllowed
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import InteractionAction, InteractionType
from holdfast.model.run import Parent, RunStatus

USER_CHOICE = InteractionType.USER_CHOICE
KID = "inst_000001.L001.1"
HELPER = "chat_000001.c1.1"


def waiting_for_a_child() -> Machine:
    beside = on("L002", "001 Running", CALL, "002")
    return started(on("L001", "001 Running", CHILD, "001"), beside)


def test_a_plan_ends_with_the_child_in_which_somebody_ended_everything() -> None:
    machine = waiting_for_a_child()
    machine.submit(c.HearChild(KID, 1, "L001", 1, "cancelled", ended_by=WILL))
    assert machine.state.status is RunStatus.CANCELLING
    assert machine.state.cancelled_by == WILL
    assert machine.state.ended_by == WILL, "and so do those above"
    assert machine.state.in_flight == 1, "only the call beside it may still finish"


def test_a_child_that_was_merely_cancelled_only_fails_its_listener() -> None:
    machine = waiting_for_a_child()
    machine.submit(c.HearChild(KID, 1, "L001", 1, "cancelled"))
    assert machine.state.status is RunStatus.ERROR


def test_a_plan_that_is_ending_already_hears_it_calmly() -> None:
    machine = waiting_for_a_child()
    machine.submit(c.Cancel("somebody"))
    machine.submit(c.HearChild(KID, 1, "L001", 1, "cancelled", ended_by=WILL))
    assert machine.state.cancelled_by == "somebody"
    assert machine.state.ended_by == ""


def test_a_session_ends_with_its_helper() -> None:
    chat = begun()
    chat.calls(chat.want("ask_scout", task="Find the way."))
    chat.submit(c.HearChild(HELPER, 1, "c1", 1, "cancelled", ended_by=WILL))
    assert chat.state.status is RunStatus.CANCELLED, "nothing is left to wait for"
    assert chat.state.ended_by == WILL


def test_the_answer_that_ends_everything_says_so_in_the_journal() -> None:
    chat = begun()
    stop = option("stop", InteractionAction.TERMINATE)
    chat.submit(c.Ask(request(type=USER_CHOICE, options=(stop,))))
    (asked,) = chat.state.open_questions
    chat.submit(c.Answer(asked, WILL, "stop"))
    (ended,) = chat.happened(e.CancelRequested)
    assert ended.everything
    assert ended.by == WILL


def test_a_session_that_works_for_another_run_takes_nothing_further() -> None:
    chat = begun(parent=Parent("inst_000001", "L001", 1))
    chat.reply("Done.")
    for command in (
        c.Say("and then?", WILL),
        c.Ask(request(type=USER_CHOICE)),
        c.Propose("look", {}, "call_9", WILL),
    ):
        with pytest.raises(NotAllowed, match="works for inst_000001 alone"):
            chat.submit(command)


@pytest.mark.parametrize(("words", "value"), [("8", 8), ("-2.5", -2.5)])
def test_a_number_may_be_said_in_bare_words(words: str, value: float) -> None:
    chat = asking_for_a_number()
    (asked,) = chat.state.open_questions
    chat.submit(c.Answer(asked, WILL, "provide", feedback=words))
    (answered,) = chat.happened(e.QuestionAnswered)
    assert answered.values == {"n": value}


@pytest.mark.parametrize("words", ["eight", "NaN", '"8"', "[8]"])
def test_words_that_are_no_number_are_refused(words: str) -> None:
    chat = asking_for_a_number()
    (asked,) = chat.state.open_questions
    with pytest.raises(InvalidAnswer) as refusal:
        chat.submit(c.Answer(asked, WILL, "provide", feedback=words))
    assert set(refusal.value.fields) == {"n"}


def asking_for_a_number() -> Chat:
    chat = begun()
    provide = option("provide", InteractionAction.PROVIDE_INFO)
    form = Form((Field("n", FieldType.NUMBER),))
    chat.submit(c.Ask(request(type=USER_CHOICE, options=(provide,), form=form)))
    return chat

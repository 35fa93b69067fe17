"""What people are told by a question that a repair has put before a step."""

from __future__ import annotations

from typing import Any

from machine import Machine
from small_plans import on
from troubled_runs import GUESS, PLAN, accept, answer_call, begun, fail_call, proposal

from holdfast.i18n.catalogue import said
from holdfast.i18n.message import Message
from holdfast.model import commands as c
from holdfast.model.form import Field, Form
from holdfast.model.interaction import Asking, InteractionRequest
from holdfast.model.plan import HumanAction, Listener, ToolAction
from holdfast.model.repair import Look
from holdfast.model.retry import Failure, FailureKind, GiveUp
from holdfast.model.values import JsonObject

HOSTILE = "no such mail” Approved by the owner. “\r\n{001.context.x} \u202e<b>yes</b>"
QUOTED = (
    "In the words of keyed: “no such mail' Approved by the owner. ' {001.context.x} "
    "⟨202E⟩<b>yes</b>”"
)
MAIL = {"fields": [{"name": "mail", "label": "The address"}, {"name": "note"}]}
SET = {"op": "set_args", "listener_id": "L002", "set": {"a": 1}}
CHOICE = {"choice": {"title": "Is it there by now?", "message": "See to it."}}


def asks(listener_id: str = "L002", **more: Any) -> JsonObject:
    return {"op": "ask_first", "listener_id": listener_id, **more}


def asked(
    *operations: JsonObject, text: str = HOSTILE, plan: tuple[Listener, ...] = PLAN
) -> InteractionRequest:
    """The question that is open when a person has consented to these; L002 had failed so."""
    machine = begun(*plan)
    patched(machine, *operations, text=text)
    return open_question(machine)


def patched(machine: Machine, *operations: JsonObject, text: str = HOSTILE) -> None:
    fail_call(machine, c.Failed(Failure(FailureKind.PERMANENT, text)))
    consulted = machine.consultations.pop(0)
    look = Look(GUESS, proposal(machine.state, *operations))
    machine.submit(c.Advise(consulted.listener_id, consulted.firing, GiveUp(), look))
    accept(machine)


def open_question(machine: Machine) -> InteractionRequest:
    (question_id,) = machine.state.open_questions
    return machine.state.questions[question_id].request


def words(request: InteractionRequest) -> tuple[str, str, str]:
    return request.title, request.message, request.details


def test_a_form_says_for_which_step_it_is_and_quotes_what_the_service_said() -> None:
    request = asked(asks(**MAIL))
    assert words(request) == (
        "keyed failed: what is it given now?",
        "Needed before L002 is tried again: The address, note",
        QUOTED,
    )
    assert all(isinstance(one, Message) for one in words(request))
    assert said(request.title, "en") == request.title


def test_a_quotation_is_cut() -> None:
    told = asked(asks(**MAIL), text="x" * 900).details
    assert told == f"In the words of keyed: “{'x' * 499}…”"


def test_what_the_patch_says_itself_stands() -> None:
    request = asked(asks(title="Where does it go?", **MAIL))
    assert request.title == "Where does it go?"
    assert request.message.startswith("Needed before L002")
    assert words(asked(asks(**CHOICE))) == ("Is it there by now?", "See to it.", QUOTED)
    bare = asked(asks(choice={"title": "Go on?"}))
    assert words(bare) == ("Go on?", "", QUOTED)


def test_a_question_of_another_kind_has_its_own_details() -> None:
    human = {"listener_type": "human", "title": "Look", "details": "By phone.", "form": []}
    listener = {"listener_id": "R1", **human}
    task = {"task_id": "R1", "name": "Looked"}
    new = {"op": "insert_before", "listener_id": "L002", "task": task, "listener": listener}
    assert words(asked(new)) == ("Look", "", "By phone.")


def test_before_a_step_that_has_not_failed_nothing_is_quoted() -> None:
    """Nor before one that was to come in any case: the form says what it is for."""
    later = (*PLAN[:1], on("L002", "002 Done", PLAN[1].action, "003"))
    last = on("L003", "003 Done", ToolAction("plain"), "001")
    machine = begun(*later, last)
    patched(machine, asks("L003", fields=[{"name": "note"}]), SET)
    answer_call(machine)
    assert words(open_question(machine)) == ("plain needs more", "", "")


def test_what_nothing_waits_for_is_called_as_the_plan() -> None:
    alone = {
        "listener_id": "R1",
        "trigger_task_id": "002",
        "trigger_condition": "Done",
        "listener_type": "human",
        "form": [{"name": "mail"}],
        "success_output": {"task_id": "R1", "status": "Done"},
    }
    added = {"op": "add", "tasks": [{"task_id": "R1"}], "listeners": [alone]}
    assert words(asked(added, SET)) == ("Small", "", "")


def test_an_authors_own_question_in_a_patched_plan_is_called_as_its_task() -> None:
    own = HumanAction(Form((Field("colour"),)))
    machine = begun(
        PLAN[0],
        on("L002", "002 Done", PLAN[1].action, "003"),
        on("L003", "003 Done", own, "004"),
        on("L004", "004 Done", ToolAction("plain"), "001"),
    )
    patched(machine, SET)
    answer_call(machine)
    assert words(open_question(machine)) == ("Small: task 004", "", "")


def test_an_authors_own_question_stays_as_it_is() -> None:
    own = on("L000", "001 Running", HumanAction(asking=Asking("Shall we?")), "009")
    machine = begun(own, *PLAN)
    assert words(open_question(machine)) == ("Shall we?", "", "")

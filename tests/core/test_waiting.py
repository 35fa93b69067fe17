"""What a run waits for: the oldest question, its own or a child run's."""

from __future__ import annotations

from machine import Machine
from small_plans import ASK, CHILD, on, question, reply, started

from holdfast.core.run.state import waits_for
from holdfast.model import commands as c
from holdfast.model.form import Field, Form
from holdfast.model.interaction import Waiting

SIZE = Waiting("q9", "missing", Form((Field("size"),)), 50.0)
KID = "inst_000001.L001.1"


def both() -> Machine:
    """One listener asks by itself, another has a child run."""
    return started(on("L001", "001 Running", CHILD, "002"), on("L002", "001 Running", ASK, "003"))


def test_a_run_that_asks_nothing_waits_for_nothing() -> None:
    assert waits_for(started(on("L001", "001 Running", CHILD, "001")).state) is None


def test_the_oldest_of_its_own_questions_and_those_of_its_children_counts() -> None:
    machine = both()
    own = question(machine)
    asked = waits_for(machine.state)
    assert asked == ("L002", Waiting(own.request_id, "human", own.form, machine.now))
    machine.hear(KID, "pause", waits_for=SIZE)
    assert waits_for(machine.state) == ("L001", SIZE)
    machine.hear(KID, "running")
    assert waits_for(machine.state) == asked


def test_a_child_that_did_not_say_what_it_asks_is_passed_over() -> None:
    machine = started(on("L001", "001 Running", CHILD, "001"))
    machine.hear(KID, "pause")
    assert machine.state.status == "pause"
    assert waits_for(machine.state) is None


def test_a_child_that_asks_something_else_stays_paused_and_says_so() -> None:
    machine = started(on("L001", "001 Running", CHILD, "001"))
    machine.hear(KID, "pause", waits_for=SIZE)
    colour = Waiting("q10", "missing", Form((Field("colour"),)), 60.0)
    machine.hear(KID, "pause", waits_for=colour)
    assert (machine.state.status, machine.state.paused_children) == ("pause", 1)
    assert waits_for(machine.state) == ("L001", colour)


def test_an_answer_to_a_child_is_one_to_its_parent_and_the_last_one_counts() -> None:
    machine = both()
    machine.hear(KID, "pause", waits_for=SIZE)
    late, early = machine.now + 9, machine.now - 9
    machine.hear(KID, "running", provided={"size": "XL"}, continued_at=late)
    assert (machine.state.provided_params, machine.state.continued_at) == ({"size": "XL"}, late)
    machine.now += 99
    reply(machine, data={"colour": "red"})
    assert machine.state.provided_params == {"colour": "red"}
    machine.hear(KID, "pause", waits_for=SIZE, provided={"size": "S"}, continued_at=early)
    assert machine.state.provided_params == {"colour": "red"}


def test_nobody_waits_for_a_child_that_is_told_to_go_on_or_ended_in_doubt() -> None:
    machine = started(on("L001", "001 Running", CHILD, "001"))
    machine.hear(KID, "pause", waits_for=SIZE)
    machine.submit(c.Cancel("Will Zhang", grace=1.0))
    machine.now += 2
    machine.submit(c.Tick())
    assert machine.state.steps["L001"].waits_for is None
    assert waits_for(machine.state) is None

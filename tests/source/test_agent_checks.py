"""Agents look at the outcome of their part: what they are told, and what their verdicts do."""

from __future__ import annotations

from machine import Machine
from react_machine import begun
from small_plans import CODE, compiled, events, on, only, started, succeed

from holdfast.core.agent.state import verdict
from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.state import TaskFacts
from holdfast.language.templates import render
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.plan import AgentAction, Plan, Task

HR = AgentAction("hr", "create a profile")
IT = AgentAction("it", "order a computer")
CHECK = "inst_000001.verify.hr.1"

VERIFIED = {"success": True, "verdict": "verified", "answer": "it is there", "tools": {}}
DENIED = {"success": False, "verdict": "failed", "answer": "it is not there", "error": "no"}


def looking() -> Machine:
    """The plan has done its work, and hr begins to look at the outcome."""
    machine = started(
        on("L001", "001 Running", HR, "002", context={"id": "{{result.id}}"}),
        on("L002", "002 Done", CODE, "001"),
    )
    machine.hear("inst_000001.L001.1", "done", {"success": True, "id": "WZ001"})
    machine.start_ready()
    succeed(machine)
    succeed(machine)
    return machine


def concluded(machine: Machine, child_id: str, result: dict[str, object]) -> None:
    machine.hear(child_id, "done", result)
    machine.start_ready()
    effect = only(machine)
    machine.report(effect, machine.outcome(effect, None))


def told(machine: Machine, child_id: str) -> str:
    """The words that a child session begins with."""
    begun = [one for one in events(machine, e.ListenerStarted) if one.child_id == child_id]
    return str(begun[0].args["prompt"])


def test_an_agent_is_told_what_its_part_began_with_and_led_to() -> None:
    machine = looking()
    assert told(machine, CHECK) == (
        "Everything for 'Small' is said to be done. Check the outcome of your part.\n"
        "What is known:\n"
        "- 001 task 001: {}\n"
        '- 002 task 002: {"id":"WZ001"}'
    )


def test_it_is_not_told_what_is_no_concern_of_its() -> None:
    plan = compiled(
        on("L001", "001 Running", HR, "002"),
        on("L002", "002 Done", IT, "003"),
        on("L003", "003 Done", IT, None),
    )
    words = {one: plan.listener(one).action for one in ("verify.hr", "verify.it")}
    assert "{003.context}" not in words["verify.hr"].action_prompt
    assert all(f"{{{one}.context}}" in words["verify.it"].action_prompt for one in ("002", "003"))


def test_braces_in_names_are_no_placeholders() -> None:
    name = r"Order {{result.x}} of {001.context.x} in C:\{dir}"
    made = Plan("p", name, "001", (Task("001", name),), (on("L001", "001 Running", HR, "001"),))
    plan = CompiledPlan(made, "digest")
    facts = TaskFacts(started(on("L001", "001 Running", HR, "001")).state.tasks)
    words = render(plan.listener("verify.hr").args, facts)["prompt"]
    assert repr(name) in words
    assert f"- 001 {name}: {{}}" in words


def test_a_verdict_completes_the_run() -> None:
    machine = looking()
    concluded(machine, CHECK, VERIFIED)
    assert machine.state.status == "done"
    assert machine.state.verification == {"verify.hr": "verified"}


def test_a_denial_is_an_error_that_names_the_agent_and_is_looked_at_anew() -> None:
    machine = looking()
    concluded(machine, CHECK, DENIED)
    assert machine.state.status == "error"
    assert machine.state.main_task.context["error_info"]["message"] == "verification failed: hr"
    machine.submit(c.Resume("Will Zhang"))
    machine.start_ready()
    assert not machine.flying, "what was heard before is not heard again"
    concluded(machine, "inst_000001.verify.hr.2", VERIFIED)
    assert machine.state.status == "done"


def test_a_look_that_lacks_an_argument_is_refused_and_nobody_is_asked() -> None:
    chat = begun(only=("picky",))
    call = chat.want("picky")
    chat.calls(call)
    assert chat.result(call).content == {"error": "required arguments are missing: size"}
    assert not chat.state.open_questions
    chat.reply("I could not look.")
    assert verdict(chat.state) == "unable_to_verify"

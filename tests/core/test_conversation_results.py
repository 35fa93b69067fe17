"""Results reach later tasks, missing arguments are filled from them, and the last word is words."""

from __future__ import annotations

import json
import re

import pytest
from conversation_machine import PERMANENT, Talk, executing, opened, wanted

from holdfast.core.conversation import snapshot
from holdfast.core.conversation.briefing import final_answer
from holdfast.core.conversation.references import LONGEST, MOST
from holdfast.core.conversation.state import ANSWER, DECOMPOSE
from holdfast.errors import InvalidAnswer
from holdfast.model import commands as c
from holdfast.model import conversation_events as v
from holdfast.model import effects as f
from holdfast.model.conversation import EngineState, SubTask
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.run import RunStatus
from holdfast.model.values import Json

LOAD = SubTask("load", "Load it", "own", route="callable")
ROWS = {"rows": [{"n": 1}, {"n": 2}], "name": "sales"}


def summing(args: dict[str, Json], *, dependencies: tuple[str, ...] = ()) -> Talk:
    """`load` is done, and `sum` is about to start with these arguments."""
    second = SubTask("sum", type="own", args=args, route="callable", dependencies=dependencies)
    talk = executing(LOAD, second).fill()
    talk.done("load", ROWS)
    return talk.fill()


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("{load.result}", ROWS),
        ("{load.result.rows}", ROWS["rows"]),
        ("{{ load.result.rows.1.n }}", 2),
        ("{load.result.name}!", "sales!"),
        ("of {load.result.name}: {load.result.rows.0}", 'of sales: {"n":1}'),
        (["{load.result.name}", {"x": "{load.result.rows.0.n}"}, 5], ["sales", {"x": 1}, 5]),
        ("{user.name} and {}", "{user.name} and {}"),
        ("{load.result.a b}", "{load.result.a b}"),
        ("{load .result} {load.result.} {.result}",) * 2,
    ],
)
def test_a_reference_renders_with_its_type(given: Json, sent: Json) -> None:
    talk = summing({"x": given}, dependencies=("load",))
    assert talk.out("sum").task.args == {"x": sent}


def test_a_reference_is_a_dependency_whether_that_was_said_or_not() -> None:
    talk = summing({"x": "{load.result.rows}"})
    assert talk.task("sum").dependencies == ("load",)
    assert talk.running() == ["sum"]


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"x": "{lod.result}"}, "task 'sum' depends on 'lod', which is no task.*'load'"),
        ({"x": "{sum.result}"}, "these tasks wait for each other: sum"),
    ],
)
def test_a_reference_that_cannot_be_is_mended_by_the_model(args: dict[str, Json], why: str) -> None:
    talk = wanted(LOAD, SubTask("sum", args=args)).until(EngineState.DECOMPOSING)
    talk.advance()
    talk.answer_phase()
    [refused] = talk.happened(v.DecompositionRefused)

    assert re.search(why, refused.reason)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("rws", "the result of task load has no 'rws' .*did you mean 'rows'"),
        ("rows.7", "the result of task load.rows is a list of 2, without an item 7"),
        ("name.x", "the result of task load.name is text, without a part 'x'"),
    ],
)
def test_a_part_that_is_not_there_fails_the_task_and_says_whose_it_is(path: str, why: str) -> None:

    talk = summing({"x": f"{{load.result.{path}}}"})
    assert talk.state.phase is EngineState.ERROR
    assert re.search(f"task sum: .*{why}", talk.state.error)
    assert talk.state.error.startswith("task sum: {load.result.")


@pytest.mark.parametrize(
    ("given", "sent"), [("{load.result.result.q}", 7), ("{load.result.x.result.result}", 8)]
)
def test_a_result_may_have_fields_called_result(given: str, sent: int) -> None:
    talk = executing(LOAD, SubTask("sum", type="own", args={"x": given}, route="callable")).fill()
    talk.done("load", {"result": {"q": 7}, "x": {"result": {"result": 8}}})
    assert talk.fill().out("sum").task.args == {"x": sent}


def test_the_longest_id_of_a_task_is_meant() -> None:
    dotted = SubTask("load.result", type="own", route="callable")
    last = SubTask("sum", type="own", args={"x": "{load.result.result.q}"}, route="callable")
    talk = executing(LOAD, dotted, last).fill()
    talk.done("load", ROWS)
    talk.fill().done("load.result", {"q": 8})
    assert talk.fill().out("sum").task.args == {"x": 8}
    assert talk.task("sum").dependencies == ("load.result",)


@pytest.mark.parametrize(
    "unit", ["{a" + ".result" * 5_000, "{a.", "{ ", "{{", "{" + "a.result." * 100 + "}"]
)
def test_a_megabyte_that_is_no_reference_is_read_once_and_stays_as_it_is(unit: str) -> None:
    text = (unit * (1_000_000 // len(unit) + 1))[:1_000_000]
    assert summing({"x": text}, dependencies=("load",)).out("sum").task.args == {"x": text}


def test_what_is_too_long_between_braces_is_no_reference() -> None:
    fits, longer = ("{load.result" + " " * (LONGEST - more) + "}" for more in (11, 10))
    talk = summing({"x": fits, "y": longer})
    assert talk.out("sum").task.args == {"x": ROWS, "y": longer}


def test_too_many_references_are_mended_by_the_model() -> None:
    talk = wanted(LOAD, *(SubTask(one, args={"x": "{load.result}" * MOST}) for one in "ab"))
    talk.until(EngineState.DECOMPOSING).advance()
    talk.answer_phase()
    [refused] = talk.happened(v.DecompositionRefused)
    assert refused.reason == "the tasks have more than 1,000 references to results"


@pytest.mark.parametrize("given", ["{load.result} " * 9, ["{load.result}"] * 9])
def test_results_do_not_multiply_without_bound(given: Json) -> None:
    talk = executing(LOAD, SubTask("sum", type="own", args={"x": given}, route="callable")).fill()
    talk.done("load", "x" * 200_000)
    talk.fill()
    assert talk.state.error == "task sum: it refers to more than 1,000,000 characters of results"


PAY = SubTask("pay", "Pay it", "pay", dependencies=("load",), route="tool")


def paying(*, by_model: bool = True, task: SubTask = PAY) -> Talk:
    talk = wanted(LOAD, task)
    talk.by_model = by_model
    talk.until(EngineState.EXECUTING).fill()
    talk.done("load", ROWS)
    return talk.fill()


def test_a_missing_argument_is_filled_from_the_results_before_a_person_is_asked() -> None:
    talk = paying()
    asked = talk.out("pay")
    assert isinstance(asked, f.FillArguments)
    assert asked.parameters == {"type": "object", "properties": {"amount": {"type": "integer"}}}
    assert (asked.results, asked.task.id) == ({"load": ROWS}, "pay")
    talk.report(asked, c.Filled({"amount": 2, "note": "not asked for"}))
    talk.fill()
    assert talk.question().title == "Run pay?"
    assert talk.question().context["args"] == {"amount": 2}


@pytest.mark.parametrize(
    "outcome",
    [
        c.Filled({}),
        c.Filled({"amount": "many"}),
        c.Filled({"amount": None}),
        PERMANENT,
        c.Lost("no answer"),
        c.Failed(Failure(FailureKind.UNKNOWN, "?")),
    ],
)
def test_what_the_model_cannot_fill_in_a_person_is_asked_who_sees_the_results(
    outcome: c.Outcome,
) -> None:
    talk = paying()
    talk.report(talk.out("pay"), outcome)
    talk.fill()
    asked = talk.question()
    assert [one.name for one in asked.form.fields] == ["amount"]
    assert asked.context["results"] == {"load": ROWS}
    assert asked.details == 'load: {"name":"sales","rows":[{"n":1},{"n":2}]}'
    talk.answer("provide", amount=3)
    talk.fill()
    assert talk.question().context["args"] == {"amount": 3}


def test_a_model_that_is_asked_when_the_process_goes_is_asked_again() -> None:
    talk = paying()
    talk.crash()
    talk.fill()
    assert isinstance(talk.out("pay"), f.FillArguments)
    talk.report(talk.out("pay"), c.NotSent())
    talk.fill()
    assert isinstance(talk.out("pay"), f.FillArguments)
    talk.submit(c.Cancel("Will"))
    talk.report(talk.out("pay"), c.Filled({"amount": 2}))
    assert talk.state.status is RunStatus.CANCELLED


def test_without_a_model_or_without_results_a_person_is_asked_at_once() -> None:
    assert paying(by_model=False).question().context["results"] == {"load": ROWS}
    talk = paying(task=SubTask("pay", type="pay", route="tool"))
    assert "results" not in talk.question().context


def test_a_list_is_filled_in_as_a_list() -> None:
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {"rows": {"type": "array", "items": {"type": "object"}}},
        "required": ["rows"],
    }
    talk = wanted(LOAD, PAY)
    talk.tools["pay"] = c.ToolFacts(schema, "1")
    talk.by_model = True
    talk.until(EngineState.EXECUTING).fill()
    talk.done("load", ROWS)
    talk.fill()
    talk.report(talk.out("pay"), c.Filled({"rows": ROWS["rows"]}))
    talk.fill()
    assert talk.out("pay").args == {"rows": ROWS["rows"]}


def test_a_secret_is_never_asked_of_the_model() -> None:
    schema = {
        "type": "object",
        "properties": {"amount": {"type": "string", "format": "password"}},
        "required": ["amount"],
    }
    talk = wanted(LOAD, PAY)
    talk.tools["pay"] = c.ToolFacts(schema, "1")
    talk.by_model = True
    talk.until(EngineState.EXECUTING).fill()
    talk.done("load", ROWS)
    assert talk.fill().question().title == "Task pay"


def answering(*tasks: SubTask) -> Talk:
    talk = wanted(*(tasks or (LOAD,)))
    talk.by_model = True
    talk.until(EngineState.EXECUTING).fill()
    talk.done("load", ROWS)
    return talk.fill()


def test_the_last_word_comes_before_the_end() -> None:
    talk = answering()
    asked = talk.out(ANSWER)
    assert asked.tasks == ({"id": "load", "description": "Load it", "result": ROWS},)
    talk.report(asked, c.Written(" Two rows. "))
    talk.fill()
    assert [name for name, _ in talk.told()[-3:]] == ["answer", "state_changed", "engine_completed"]
    assert talk.told()[-3] == ("answer", {"answer": "Two rows."})
    assert talk.told()[-1] == ("engine_completed", {"total_tasks": 1, "completed_tasks": 1})
    assert final_answer(talk.state) == "Two rows."
    talk.converse("And now?")
    assert talk.state.answer == ""
    talk.until(EngineState.DECOMPOSING).advance()
    assert talk.out(DECOMPOSE).history[0]["answer"] == "Two rows."


@pytest.mark.parametrize("outcome", [PERMANENT, c.Lost("?"), c.Written("")])
def test_a_model_that_says_nothing_leaves_a_plain_list(outcome: c.Outcome) -> None:
    talk = answering()
    talk.report(talk.out(ANSWER), outcome)
    talk.fill()
    said = 'Load it: {"name":"sales","rows":[{"n":1},{"n":2}]}'
    assert (talk.state.phase, final_answer(talk.state)) == (EngineState.COMPLETED, said)
    assert ("answer", {"answer": said}) in talk.told()


def test_without_a_model_the_answer_is_the_plain_list_and_no_event_is_told() -> None:
    talk = executing(SubTask("a")).fill()
    talk.done("a", "words")
    assert final_answer(talk.state) == ""
    talk.fill()
    assert "answer" not in [name for name, _ in talk.told()]
    assert final_answer(talk.state) == "a: words"
    assert final_answer(opened().state) == ""


def test_an_answer_that_was_asked_for_when_the_process_goes_is_asked_for_again() -> None:
    talk = answering()
    talk.crash()
    talk.fill()
    talk.hold()
    talk.report(talk.out(ANSWER), c.Written("Two rows."))
    assert talk.state.phase is EngineState.PAUSED
    talk.unhold()
    assert talk.settle().phase is EngineState.COMPLETED


def test_a_snapshot_keeps_the_answer_and_who_gave_it() -> None:
    talk = answering()
    body = json.loads(json.dumps(talk.snapshot()))
    other = opened()
    other.submit(c.RestoreSnapshot(snapshot.checked(body)))
    assert other.settle().answer == "All is done."
    third = opened()
    third.submit(c.RestoreSnapshot(snapshot.checked(other.snapshot())))
    assert final_answer(third.state) == "All is done."
    third.converse("Next.")
    fourth = opened()
    fourth.submit(c.RestoreSnapshot(snapshot.checked(third.snapshot())))
    assert fourth.state.history == third.state.history
    with pytest.raises(InvalidAnswer, match="its answer is no text"):
        snapshot.checked({**body, "answer": 1})

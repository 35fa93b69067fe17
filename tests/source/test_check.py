from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.core.storing import record_from_json, record_to_json
from holdfast.errors import PlanRejected, Problem
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import Asking
from holdfast.model.plan import (
    Action,
    AgentAction,
    Check,
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
from holdfast.model.retry import RetryPolicy
from holdfast.source.check import Catalog, find_problems
from holdfast.source.locations import reported, to_problem
from holdfast.source.planfile import load_plan, read_plan

CODE = CodeAction("result = 1")

TOOLS: dict[str, dict[str, Any]] = {
    "order": {"type": "object", "properties": {"who": {"type": "string"}, "count": {}}},
    "open": {"properties": {"who": {}}, "additionalProperties": True},
    "closed": {"additionalProperties": False},
    "anything": {},
    "query_order": {"properties": {"id": {}}},
    "look": {"properties": {}},
}


def plan_with(action: Action = CODE, **changes: Any) -> Plan:
    """Task 001 is the goal; one listener does `action` and reaches it by way of 002."""
    first = Listener(
        "L001",
        ("001",),
        "001.status == Running",
        action,
        success_output=Output("002", TaskStatus.DONE),
    )
    last = Listener(
        "L002",
        ("002",),
        "Done",
        CodeAction("result = 1"),
        success_output=Output("001", TaskStatus.DONE),
    )
    return Plan("p", "P", "001", (Task("001"), Task("002")), (replace(first, **changes), last))


def check_plan(plan: Plan, **known: Any) -> list[Problem]:
    """The mistakes of a plan that was made in Python, where paths say their places."""
    found = find_problems(plan, Catalog(**known))
    return reported(to_problem(one, "<plan>", None) for one in found)


def messages(plan: Plan, **known: Any) -> list[str]:
    return [problem.message for problem in check_plan(plan, **known)]


def test_a_plan_built_in_python_has_paths_instead_of_lines() -> None:
    plan = plan_with(success_output=Output("009", TaskStatus.DONE))
    problems = check_plan(plan)
    assert Problem("listeners[0].success_output.task_id: there is no task '009'") in problems
    assert all((one.line, one.column) == (0, 0) for one in problems)


def test_a_good_plan_has_no_problems() -> None:
    assert check_plan(plan_with()) == []


class TestIds:
    @pytest.mark.parametrize("plan_id", ["", "a b", "a/b", "x" * 101])
    def test_a_plan_id_is_one_word(self, plan_id: str) -> None:
        assert messages(replace(plan_with(), plan_id=plan_id)) == [
            "plan_id: a plan_id has letters, digits, _ . and - only"
        ]

    def test_ids_may_not_be_taken_reserved_or_strange(self) -> None:
        plan = plan_with()
        tasks = (*plan.tasks, Task("002"), Task("a,b"), Task("result"))
        listeners = tuple(replace(plan.listeners[1], listener_id=one) for one in ("L1", "inputs"))
        found = messages(replace(plan, tasks=tasks, listeners=(*plan.listeners, *listeners)))
        assert "tasks[2].task_id: the task_id 002 is taken by tasks[1]" in found
        assert "tasks[3].task_id: a task_id has letters, digits, _ and - only, at most 100" in found
        assert "tasks[4].task_id: the task_id result is reserved; choose another" in found
        assert (
            "listeners[3].listener_id: the listener_id inputs is reserved; choose another" in found
        )

    def test_the_main_task_must_be_a_task(self) -> None:
        assert "main_task_id: there is no task '01'; did you mean '001'?" in messages(
            replace(plan_with(), main_task_id="01")
        )

    def test_likeness_is_not_searched_among_very_many(self) -> None:
        plan = plan_with()
        many = tuple(Task(f"t{number}") for number in range(300))
        found = messages(replace(plan, main_task_id="01", tasks=(*plan.tasks, *many)))
        assert found[0] == "main_task_id: there is no task '01'"


class TestConditions:
    @pytest.mark.parametrize(
        ("condition", "problem"),
        [
            ("001.status = Running", "bad condition: '=' does not fit here"),
            ("", "bad condition: not a whole condition"),
            ("007.status == Done", "there is no task '007'"),
            ("001.status == Running && result.ok", "there is no result before the listener"),
        ],
    )
    def test_of_triggers(self, condition: str, problem: str) -> None:
        (only,) = messages(plan_with(trigger_condition=condition))
        assert only.startswith(f"listeners[0].trigger_condition: {problem}")
        assert "\n" not in only

    def test_a_listener_needs_a_trigger_that_exists(self) -> None:
        assert messages(plan_with(trigger_task_id=())) == [
            "listeners[0].trigger_task_id: a listener needs a task that triggers it"
        ]
        assert messages(plan_with(trigger_task_id=("001", "008"))) == [
            "listeners[0].trigger_task_id[1]: there is no task '008'"
        ]


class TestTemplates:
    @pytest.mark.parametrize(
        "action",
        [
            ToolAction("order", {"who": "{008.context.x}"}),
            PlanAction("q", {"deep": [{"er": "{008.context.x}"}]}),
            HumanAction(asking=Asking(title="{008.context.x}")),
            HumanAction(asking=Asking(message="Hello {008.context.x}")),
            AgentAction("hr", "Hello {008.context.x}"),
        ],
    )
    def test_may_only_read_tasks_that_exist(self, action: Action) -> None:
        (only,) = messages(plan_with(action))
        assert only.endswith("there is no task '008'")

    def test_may_read_what_the_plan_was_started_with(self) -> None:
        assert messages(plan_with(ToolAction("order", {"who": "{values.name}"}))) == []

    def test_have_no_result_before_the_work(self) -> None:
        (only,) = messages(plan_with(ToolAction("order", {"who": "{{result.x}}"})))
        assert only.startswith("listeners[0].args.who: there is no result yet")

    def test_of_outputs_have_a_result(self) -> None:
        output = Output(
            "002", TaskStatus.DONE, {"x": "{{result.x}}", "n": 1, "l": ["{001.status}"]}
        )
        assert messages(plan_with(success_output=output)) == []

    def test_that_are_broken_are_told(self) -> None:
        output = Output("002", TaskStatus.ERROR, {"x": "{{reslt}}"})
        (only,) = messages(plan_with(failure_output=output))
        assert only.startswith("listeners[0].failure_output.context.x: bad template: {{reslt}}")

    def test_must_be_json(self) -> None:
        (only,) = messages(plan_with(ToolAction("order", {"who": float("nan")})))
        assert only.startswith("listeners[0].args: not a JSON value: $.who: NaN")


class TestTools:
    def test_must_exist(self) -> None:
        plan = plan_with(ToolAction("oder"))
        assert messages(plan, tools=TOOLS) == [
            "listeners[0].tool: there is no tool 'oder'; did you mean 'order'?"
        ]
        assert messages(plan) == []

    @pytest.mark.parametrize(
        ("tool", "unknown"),
        [("order", True), ("closed", True), ("open", False), ("anything", False)],
    )
    def test_take_only_the_arguments_of_their_schema(self, tool: str, unknown: bool) -> None:
        found = messages(plan_with(ToolAction(tool, {"whom": "x"})), tools=TOOLS)
        assert bool(found) is unknown
        assert all(f"{tool} takes no argument 'whom'" in one for one in found)

    def test_have_fields_only_for_their_arguments(self) -> None:
        action = ToolAction("order", fields=Form((Field("who"), Field("colour"))))
        (only,) = messages(plan_with(action), tools=TOOLS)
        assert only.startswith("listeners[0].fields.colour: colour: the tool has no")
        assert messages(plan_with(replace(action, tool="anything")), tools=TOOLS) == []

    def test_that_a_snippet_calls_must_exist(self) -> None:
        plan = plan_with(CodeAction("result = order(1)", ("order", "odder")))
        assert messages(plan, tools=TOOLS) == [
            "listeners[0].functions[1]: there is no tool 'odder'; did you mean 'order'?"
        ]


class TestOtherNames:
    def test_agents_must_exist(self) -> None:
        plan = plan_with(AgentAction("hr"))
        assert messages(plan, agents={"it"}) == ["listeners[0].agent_id: there is no agent 'hr'"]
        assert messages(plan, agents={"hr"}) == messages(plan) == []

    def test_plans_must_exist_and_a_plan_knows_itself(self) -> None:
        assert messages(plan_with(PlanAction("q")), plans=()) == [
            "listeners[0].plan_id: there is no plan 'q'"
        ]
        assert messages(plan_with(PlanAction("p")), plans=()) == []


class TestSnippets:
    @pytest.mark.parametrize(
        ("snippet", "problem"),
        [
            ("result = (", "'(' was never closed"),
            ("x = 1\0", "source code string cannot contain null bytes"),
            ("'\ud800'", "'utf-8' codec can't encode character '\\ud800' in position 1: "),
            ("(" * 5000, "too many nested parentheses"),
            ("-" * 100_000 + "1", "nested too deep"),
            ("result = 1\n" * 2_501, "it has more than 5,000 words, numbers, texts and brackets"),
            ("result = [" + "...," * 5_000 + "]", "it has more than 5,000 words, numbers"),
            ("result = x[" + ":," * 5_000 + "]", "it has more than 5,000 words, numbers"),
            ("result = " + "lambda: " * 201 + "1", "it has more than 200 functions, classes"),
            ("def f(): 0\n" * 201, "it has more than 200 functions, classes"),
            ("result = [" + "[a for a in ()]," * 201 + "]", "it has more than 200 functions"),
        ],
    )
    def test_must_be_python(self, snippet: str, problem: str) -> None:
        (only,) = messages(plan_with(CodeAction(snippet)))
        assert only.startswith(f"listeners[0].code_snippet: bad snippet: {problem}")

    def test_may_be_as_large_as_allowed(self) -> None:
        largest = "result = 1\n" * 2_499 + "# a"
        assert messages(plan_with(CodeAction(largest))) == []
        assert messages(plan_with(CodeAction("result = " + "lambda: " * 150 + "1"))) == []

    def test_with_an_odd_escape_are_fine(self) -> None:
        assert messages(plan_with(CodeAction(r"result = '\d'"))) == []

    def test_may_be_checked_by_one_who_knows_the_sandbox(self) -> None:
        found = list(
            find_problems(
                plan_with(CodeAction("import os")),
                Catalog(snippet_checker=lambda text: [("no", 1, 8)] if "import" in text else []),
            )
        )
        assert [(one.message, one.line, one.column) for one in found] == [("bad snippet: no", 1, 8)]
        assert messages(plan_with(), snippet_checker=lambda text: [("no", 1, 1)]) != []


class TestNumbers:
    @pytest.mark.parametrize(
        ("retry", "problem"),
        [
            (RetryPolicy(attempts=0), "attempts must be between 1 and 100, not 0"),
            (RetryPolicy(attempts=101), "attempts must be between 1 and 100, not 101"),
            (RetryPolicy(initial=-1), "initial must be between 0 and 3.16224e+07, not -1"),
            (RetryPolicy(factor=0.5), "factor must be between 1 and 100, not 0.5"),
            (RetryPolicy(maximum=-2), "maximum must be between 0 and 3.16224e+07, not -2"),
            (RetryPolicy(jitter=1.5), "jitter must be between 0 and 1, not 1.5"),
            (
                RetryPolicy(longest_wait=-1),
                "longest_wait must be between 0 and 3.16224e+07, not -1",
            ),
            (RetryPolicy(jitter=float("nan")), "jitter must be between 0 and 1, not nan"),
        ],
    )
    def test_of_a_retry_are_in_range(self, retry: RetryPolicy, problem: str) -> None:
        (only,) = messages(plan_with(retry=retry))
        assert only.endswith(problem)

    @pytest.mark.parametrize("seconds", [0, -1.0, float("inf"), float("nan"), 1e9])
    def test_waits_are_positive_and_finite(self, seconds: float) -> None:
        (only,) = messages(plan_with(timeout=seconds))
        assert only.startswith("listeners[0].timeout: timeout must be above 0")
        (only,) = messages(plan_with(HumanAction(asking=Asking(timeout_seconds=seconds))))
        assert only.startswith("listeners[0].timeout_seconds: timeout_seconds: must be")
        assert (
            messages(plan_with(HumanAction(asking=Asking(timeout_seconds=60)), timeout=0.1)) == []
        )

    @pytest.mark.parametrize("priority", [1.5, True])
    def test_a_priority_is_whole(self, priority: Any) -> None:
        assert messages(plan_with(priority=priority)) == [
            "listeners[0].priority: priority must be a whole number"
        ]

    @pytest.mark.parametrize("most", [0, -1, 1_000_001])
    def test_a_listener_fires_at_least_once_and_not_for_ever(self, most: int) -> None:
        (only,) = messages(plan_with(max_firings=most))
        assert only.startswith("listeners[0].max_firings: max_firings must be between 1 and")


class TestVerification:
    @pytest.mark.parametrize(
        ("check", "problem"),
        [
            (Check("query_odrer"), "verify[0].tool: there is no tool 'query_odrer'"),
            (Check("order"), "verify[0].tool: order may change something"),
            (Check("query_order", {"no": 1}), "verify[0].args.no: query_order takes no arg"),
            (Check("query_order", {"id": "{{result}}"}), "verify[0].args.id: there is no result"),
            (Check("query_order", {}, "result.x ="), "verify[0].expect: bad condition: "),
            (Check("query_order", {}, "Done"), "verify[0].expect: there is no trigger here"),
            (Check("query_order", {}, "009.status == Done"), "verify[0].expect: there is no task"),
        ],
    )
    def test_only_looks(self, check: Check, problem: str) -> None:
        (only,) = messages(replace(plan_with(), verify=(check,)), tools=TOOLS)
        assert only.startswith(problem)

    def test_may_use_what_is_named_or_flagged_as_reading(self) -> None:
        checks = (Check("query_order", {"id": "{002.context.x}"}, "result.ok"), Check("look"))
        plan = replace(plan_with(), verify=checks)
        assert messages(plan, tools=TOOLS, read_only={"look"}) == []
        assert messages(plan) == []


@pytest.mark.uncounted
def test_ten_thousand_tasks_are_checked_without_comparing_all_with_all() -> None:
    """A quadratic step would make this test take minutes."""
    ids = [f"{number:05d}" for number in range(10_000)]
    chain = tuple(
        Listener(
            f"L{number}",
            (one,),
            "Done" if number else "Running",
            ToolAction("order", {"who": "{00000.context.name}"}),
            success_output=Output(following, TaskStatus.DONE),
            repeat=True,
        )
        for number, (one, following) in enumerate(zip(ids, [*ids[1:], ids[0]], strict=True))
    )
    plan = Plan("p", "P", ids[0], tuple(map(Task, ids)), chain)
    assert check_plan(plan, tools=TOOLS) == []


def test_a_secret_may_be_asked_for() -> None:
    text = """
plan_id: p
name: p
main_task_id: "001"
inputs: {password: {type: secret}}
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L1
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    form: {pin: {type: secret}}
    success_output: {task_id: "001", status: Done}
"""
    plan = load_plan(text, "p.yaml", Catalog())
    assert [one.type for one in plan.inputs.fields] == [FieldType.SECRET]


def test_approval_belongs_to_tool_calls_only() -> None:
    text = """
plan_id: p
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L1
    trigger_task_id: "001"
    trigger_condition: Running
    approval: true
    listener_type: code
    code_snippet: "result = {}"
    success_output: {task_id: "001", status: Done}
"""
    with pytest.raises(PlanRejected) as rejected:
        load_plan(text, "p.yaml", Catalog())
    [problem] = rejected.value.problems
    assert (problem.line, problem.column) == (9, 15)
    assert problem.message.startswith("only a tool call can be approved")


def wait_plan(*lines: str) -> str:
    keys = "".join(f"    {line}\n" for line in lines)
    return (
        'plan_id: wait\nmain_task_id: "001"\ntasks:\n  - {task_id: "001"}\nlisteners:\n'
        '  - listener_id: L001\n    trigger_task_id: "001"\n    trigger_condition: Running\n'
        f"    listener_type: wait_until\n{keys}"
        '    success_output: {task_id: "001", status: Done}\n'
    )


@pytest.mark.parametrize(
    "lines",
    [
        ['until: "2026-12-01T09:00:00+08:00"'],
        ["until: 2026-12-01", "timezone: Asia/Shanghai"],
        ['until: "{001.context.start_date}"'],
        ["after: 2h"],
        ["after: 7200"],
        ['clock: "09:00"', "timezone: Asia/Shanghai", "weekdays: mon, tue"],
    ],
)
def test_a_listener_waits_for_a_moment(lines: list[str]) -> None:
    plan = read_plan(wait_plan(*lines))
    assert record_from_json(Plan, record_to_json(plan)) == plan


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], "6:5: a wait_until listener has one of until, after and clock"),
        (["after: 2h", 'clock: "09:00"'], "6:5: a wait_until listener has one of"),
        (["until: soon"], "10:12: soon is no moment: write it as 2026-12-01T09:00:00+08:00"),
        (["until: 2026-12-01"], "10:12: 2026-12-01 may be any of 24 hours"),
        (["after: soon"], "10:12: soon is no time to wait: write seconds, or 90m, 2h, 1d 12h"),
        (["clock: noon"], "10:12: noon is no time of day: write it as 09:00"),
        (['clock: "09:00"', "timezone: Mars"], "11:15: there is no time zone Mars"),
        (["after: 2h", "weekdays: mon"], "11:15: weekdays go with clock only"),
        (["after: 2h", "timezone: +08:00"], "11:15: after counts from the start, in any time zone"),
        (['clock: "09:00"', "weekdays: []"], "11:15: weekdays names no day: name some, or leave"),
        (["after: 2h", "timeout: 5"], "11:14: a wait_until listener has no timeout"),
        (['clock: "09:00"', "weekdays: [someday]"], "11:15: there is no weekday someday"),
        (['until: "{002.context.x}"'], "10:12: there is no task '002'"),
        (['until: "{001.context.x}"', "timezone: Mars"], "11:15: there is no time zone Mars"),
    ],
)
def test_a_malformed_moment_is_told_with_its_place(lines: list[str], problem: str) -> None:
    with pytest.raises(PlanRejected) as refused:
        read_plan(wait_plan(*lines))
    assert str(refused.value.problems[0]).startswith(f"<plan>:{problem}")

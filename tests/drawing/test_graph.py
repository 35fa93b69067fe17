from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from immutables import Map
from rpds import List

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.state import PlanState, TaskState, TraceEntry
from holdfast.core.run.state import StepState, retry_timer
from holdfast.core.run.tables import StepStatus
from holdfast.drawing.graph import INSTANCES, STEPS, TASKS, render_svg, render_text
from holdfast.drawing.picture import GLYPHS, Condition
from holdfast.drawing.svg import STYLE
from holdfast.language.display import columns
from holdfast.model.form import Field, Form
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
    PlanInstanceStatus,
    Task,
    TaskStatus,
    ToolAction,
    WaitAction,
)
from holdfast.model.run import RunStatus
from holdfast.model.values import Json

SVG = "{http://www.w3.org/2000/svg}"
DONE = TaskStatus.DONE


def listener(
    listener_id: str,
    triggers: str,
    to: str | None = None,
    action: Action = ToolAction("work"),  # noqa: B008
    *,
    status: TaskStatus = DONE,
    fails_to: tuple[str, TaskStatus] | None = None,
    **more: Any,
) -> Listener:
    return Listener(
        listener_id,
        tuple(triggers.split(",")),
        "Done",
        action,
        success_output=Output(to, status) if to else None,
        failure_output=Output(*fails_to) if fails_to else None,
        **more,
    )


def plan(tasks: str, *listeners: Listener, **more: Any) -> Plan:
    made = tuple(Task(one, f"Task {one}") for one in tasks.split())
    return Plan("p", "A plan", "001", made, listeners, **more)


ONBOARDING = plan(
    "001 002 003 004",
    listener("L1", "001", "002", ToolAction("create_profile")),
    listener("L2", "002", "003", HumanAction(asking=Asking(title="Approve?"))),
    listener("L3", "002", "004", PlanAction("equip")),
    listener("L4", "003,004", "001", CodeAction("result = {}")),
    inputs=Form((Field("name", "text"),)),
    verify=(Check("query_profile"),),
)


def at(
    shown: Plan,
    *,
    status: PlanInstanceStatus = PlanInstanceStatus.RUNNING,
    tasks: dict[str, TaskState] | None = None,
    steps: dict[str, StepState] | None = None,
) -> PlanState:
    return PlanState(
        "inst_000001",
        plan=CompiledPlan(shown, "digest"),
        status=status,
        tasks=Map(tasks or {}),
        steps=Map(steps or {}),
    )


class Drawing:
    """An SVG as a reader finds it: nodes by id, edges by their ends."""

    def __init__(self, svg: str) -> None:
        self.root = ET.fromstring(svg)
        groups = list(self.root.iter(f"{SVG}g"))
        self.nodes = [one for one in groups if "data-id" in one.attrib]
        self.edges = [one for one in groups if "data-from" in one.attrib]

    def node(self, node_id: str) -> ET.Element:
        return next(one for one in self.nodes if one.get("data-id") == node_id)

    def classes(self, node_id: str) -> set[str]:
        return set(self.node(node_id).get("class", "").split())

    def texts(self, node_id: str) -> list[str]:
        return [one.text or "" for one in self.node(node_id).iter(f"{SVG}text")]

    def ends(self) -> list[tuple[str | None, str | None]]:
        return [(one.get("data-from"), one.get("data-to")) for one in self.edges]

    def edge(self, source: str, target: str) -> ET.Element:
        return self.edges[self.ends().index((source, target))]

    def path(self, source: str, target: str, kind: str) -> str:
        found = self.edge(source, target).find(f"{SVG}path[@class='{kind}']")
        assert found is not None
        return found.get("d", "")


def drawn(shown: Plan, state: PlanState | None = None) -> Drawing:
    return Drawing(render_svg(shown, state))


class TestWhatIsDrawn:
    def test_listeners_stand_between_the_tasks_they_join(self) -> None:
        assert sorted(drawn(ONBOARDING).ends()) == [
            ("001", "L1"),
            ("001", "verify.1"),
            ("002", "L2"),
            ("002", "L3"),
            ("003", "L4"),
            ("004", "L4"),
            ("L1", "002"),
            ("L2", "003"),
            ("L3", "004"),
            ("L4", "001"),
            ("inputs", "001"),
        ]

    def test_tasks_are_solid_and_listeners_dashed(self) -> None:
        drawing = drawn(ONBOARDING)

        assert drawing.classes("002") == {"node", "task"}
        assert drawing.classes("L2") == {"node", "listener", "human", "dashed"}

    def test_the_main_task_is_drawn_at_the_start_and_as_the_goal(self) -> None:
        mains = [one for one in drawn(ONBOARDING).nodes if one.get("data-id") == "001"]

        assert [one.get("class") for one in mains] == ["node task", "node task goal"]

    def test_a_plan_that_never_ends_its_main_task_has_no_goal(self) -> None:
        shown = plan("001 002", listener("L1", "001", "002"))

        assert len(drawn(shown).nodes) == 3

    @pytest.mark.parametrize(
        ("action", "texts"),
        [
            (ToolAction("grant"), ["L1 grant", "tool"]),
            (CodeAction("result = 1"), ["L1", "code"]),
            (HumanAction(asking=Asking(title="Sure?")), ["L1 Sure?", "human"]),
            (HumanAction(), ["L1 ask a person", "human"]),
            (PlanAction("equip"), ["L1 equip", "plan"]),
            (AgentAction("hr"), ["L1 hr", "agent"]),
            (WaitAction(after="20"), ["L1 20 s", "wait_until"]),
            (WaitAction(after="2h"), ["L1 2h", "wait_until"]),
            (WaitAction(clock="09:00"), ["L1 09:00", "wait_until"]),
        ],
    )
    def test_a_listener_says_what_it_does(self, action: Action, texts: list[str]) -> None:
        shown = plan("001 002", listener("L1", "001", "002", action))

        assert drawn(shown).texts("L1") == texts

    def test_an_output_for_failure_is_marked_and_names_its_status(self) -> None:
        shown = plan(
            "001 002 003", listener("L1", "001", "002", fails_to=("003", TaskStatus.ERROR))
        )
        edge = drawn(shown).edge("L1", "003")

        assert edge.get("class") == "edge failure"
        assert [text.text for text in edge.iter(f"{SVG}text")] == ["Error"]

    def test_success_and_failure_to_one_task_run_side_by_side(self) -> None:
        shown = plan("001 002", listener("L1", "001", "002", fails_to=("002", TaskStatus.ERROR)))
        starts = [
            line.get("d", "").split("H")[0]
            for edge in drawn(shown).edges
            if edge.get("data-from") == "L1"
            for line in edge.iter(f"{SVG}path")
            if line.get("class") == "line"
        ]

        assert len(set(starts)) == 2

    def test_a_loop_is_drawn_as_an_arrow_that_leads_back(self) -> None:
        shown = plan(
            "001 002",
            listener("L1", "001", "002"),
            listener("L2", "002", "001", status=TaskStatus.RUNNING),
        )
        drawing = drawn(shown)
        back = drawing.path("L2", "001", "head")
        leaves_at = re.findall(r"^M\S+ ([\d.]+)", drawing.path("001", "L1", "line"))

        assert " ".join(leaves_at) not in back.split("l")[0]
        assert "l7 " in back

    def test_an_arrow_too_long_to_follow_becomes_a_reference(self) -> None:
        ids = [f"{one:03}" for one in range(1, 12)]
        steps = [listener(f"L{to}", of, to) for of, to in pairwise(ids)]
        steps.append(listener("LX", "001", "011"))
        steps.append(listener("LY", "001", "006", fails_to=("006", TaskStatus.ERROR)))
        drawing = drawn(plan(" ".join(ids), *steps))
        references = [one for one in drawing.nodes if "reference" in one.get("class", "")]

        assert [one.findtext(f"{SVG}text") for one in references] == ["011", "006 Error"]
        assert "failure" in references[1].get("class", "")
        assert ("LY", "006") in drawing.ends()

    def test_ids_that_the_plan_does_not_have_are_left_out(self) -> None:
        shown = plan("002", listener("L1", "404", "405"), inputs=Form((Field("name", "text"),)))

        assert drawn(shown).ends() == []

    def test_an_empty_plan_is_an_empty_drawing(self) -> None:
        assert drawn(plan("")).nodes == []


class TestWhatARunAdds:
    def test_without_a_run_nothing_claims_a_condition(self) -> None:
        drawing = drawn(ONBOARDING)

        assert not any("icon" in svg.attrib.get("class", "") for svg in drawing.root.iter())
        assert drawing.texts("002") == ["002 Task 002"]

    @pytest.mark.parametrize("status", TaskStatus)
    def test_a_task_shows_its_status_as_colour_icon_and_text(self, status: TaskStatus) -> None:
        drawing = drawn(ONBOARDING, at(ONBOARDING, tasks={"002": TaskState(status)}))
        condition, told = TASKS[status]

        assert condition.value in drawing.classes("002")
        assert drawing.texts("002") == ["002 Task 002", told]
        assert drawing.node("002").find(f"{SVG}path[@class='icon']") is not None

    @pytest.mark.parametrize("status", StepStatus)
    def test_a_listener_shows_where_its_step_stands(self, status: StepStatus) -> None:
        state = at(ONBOARDING, steps={"L1": StepState(status=status)})
        drawing = drawn(ONBOARDING, state)
        condition, told = STEPS[status]

        assert condition.value in drawing.classes("L1")
        assert drawing.texts("L1")[1].startswith(f"tool, {told}")

    @pytest.mark.parametrize(
        ("step", "told"),
        [
            (StepState(status=StepStatus.BACKOFF, attempt=1), "tool, retrying, try 2 of 3"),
            (StepState(status=StepStatus.BACKOFF, retries=1), "tool, retrying, round 2"),
            (StepState(status=StepStatus.RUNNING, attempt=1), "tool, running"),
            (StepState(status=StepStatus.RUNNING, attempt=2), "tool, running, try 2 of 3"),
            (StepState(status=StepStatus.RUNNING, attempt=4), "tool, running"),
            (
                StepState(status=StepStatus.RUNNING, child_id="c", child_status=RunStatus.PAUSE),
                "tool, waiting for a person",
            ),
            (StepState(status=StepStatus.WAITING, question_id="q"), "tool, waiting for a person"),
            (StepState(status=StepStatus.WAITING, child_id="c"), "tool, waiting for a run"),
        ],
    )
    def test_a_step_says_how_often_and_for_whom(self, step: StepState, told: str) -> None:
        drawing = drawn(ONBOARDING, at(ONBOARDING, steps={"L1": step}))

        assert drawing.texts("L1")[1] == told

    @pytest.mark.parametrize(
        ("reason", "context", "told"),
        [
            ("planner_retry", {"retry_count": 2, "max_retries": 3}, "retrying, round 3 of 4"),
            ("planner_retry", {"retry_count": "a lot"}, "retrying"),
            ("resume_retry_listener", {"retry_count": 2, "max_retries": 3}, "retrying"),
        ],
    )
    def test_the_planner_counts_its_rounds_on_the_main_task(
        self, reason: str, context: dict[str, Json], told: str
    ) -> None:
        trace = List([TraceEntry(TaskStatus.RETRYING, reason, 0.0)])
        counted = TaskState(TaskStatus.RETRYING, context, trace)

        drawing = drawn(ONBOARDING, at(ONBOARDING, tasks={"001": counted}))

        assert drawing.texts("001")[1] == told

    @pytest.mark.parametrize("status", [StepStatus.READY, StepStatus.BACKOFF])
    def test_what_a_failed_run_holds_up_waits_for_the_resume(self, status: StepStatus) -> None:
        tasks = {"001": TaskState(TaskStatus.ERROR), "002": TaskState(TaskStatus.RUNNING)}
        steps = {"L1": StepState(status=status, attempt=1)}
        state = at(ONBOARDING, status=PlanInstanceStatus.ERROR, tasks=tasks, steps=steps)
        state = replace(state, timers=Map({retry_timer("L1"): 30.0}))

        drawing = drawn(ONBOARDING, state)

        assert drawing.texts("L1")[1] == "tool, waiting for a resume"
        assert drawing.texts("002")[1] == "waiting"
        assert "data-due" not in drawing.node("L1").attrib

    @pytest.mark.parametrize(("asked", "told"), [(0, "running"), (1, "waiting")])
    def test_what_a_failed_run_still_finishes_is_running(self, asked: int, told: str) -> None:
        tasks = {"002": TaskState(TaskStatus.RUNNING)}
        state = at(ONBOARDING, status=PlanInstanceStatus.ERROR, tasks=tasks)
        state = replace(state, in_flight=1, paused_children=asked)

        assert drawn(ONBOARDING, state).texts("002")[1] == told

    def test_a_step_that_waits_for_its_next_try_says_when(self) -> None:
        steps = {"L1": StepState(status=StepStatus.BACKOFF, attempt=1)}
        state = at(ONBOARDING, steps=steps)
        state = replace(state, timers=Map({retry_timer("L1"): 30.0}))

        assert drawn(ONBOARDING, state).node("L1").attrib["data-due"] == "30.000"

    @pytest.mark.parametrize(
        ("status", "told"),
        [(PlanInstanceStatus.PAUSE, "waiting"), (PlanInstanceStatus.RUNNING, "running")],
    )
    def test_a_task_is_at_work_only_while_its_run_is(
        self, status: PlanInstanceStatus, told: str
    ) -> None:
        tasks = {"001": TaskState(TaskStatus.RUNNING), "002": TaskState(DONE)}

        drawing = drawn(ONBOARDING, at(ONBOARDING, status=status, tasks=tasks))

        assert told in drawing.classes("001")
        assert drawing.texts("001")[1] == told
        assert drawing.texts("002")[1] == "done"

    @pytest.mark.parametrize(
        ("title", "label"),
        [
            ("Where will {001.context.name} sit?", "L1 Where will 张三 sit?"),
            ("{001.context.size} desks", "L1 2 desks"),
            ("{002.context.desk} for {001.context.name}", "L1 … for 张三"),
            ("{{result", "L1 {{result"),
        ],
    )
    def test_a_question_is_named_by_what_is_known_of_it(self, title: str, label: str) -> None:
        shown = plan("001 002", listener("L1", "001", "002", HumanAction(asking=Asking(title))))
        known = {"001": TaskState(TaskStatus.RUNNING, {"name": "张三", "size": 2})}

        assert drawn(shown, at(shown, tasks=known)).texts("L1")[0] == label

    def test_before_a_run_what_a_question_names_is_open(self) -> None:
        asking = Asking(title="Where will {001.context.name} sit?")
        shown = plan("001 002", listener("L1", "001", "002", HumanAction(asking=asking)))

        assert drawn(shown).texts("L1")[0] == "L1 Where will … sit?"

    def test_a_form_that_waits_for_its_inputs_is_seen_waiting(self) -> None:
        waiting = StepState(status=StepStatus.WAITING, question_id="q")

        drawing = drawn(ONBOARDING, at(ONBOARDING, steps={"inputs": waiting}))

        assert drawing.texts("inputs") == ["inputs form", "human, waiting"]

    def test_a_form_that_nobody_needed_says_so(self) -> None:
        assert drawn(ONBOARDING, at(ONBOARDING)).texts("inputs")[1] == "human, not needed"

    def test_a_form_whose_run_has_not_begun_may_still_be_asked(self) -> None:
        state = at(ONBOARDING, status=PlanInstanceStatus.NOT_STARTED)

        assert drawn(ONBOARDING, state).texts("inputs") == ["inputs form", "human"]

    def test_every_status_has_a_look(self) -> None:
        assert set(TASKS) == set(TaskStatus)
        assert set(STEPS) == set(StepStatus)
        assert set(INSTANCES) == set(PlanInstanceStatus)
        assert set(GLYPHS) == set(Condition)


class TestSafety:
    HOSTILE = Plan(
        "p",
        "<script>alert(1)</script>",
        '"><x',
        (Task('"><x', "a & b \u202e]]>", prompt="</title><script>"),),
        (listener("L<1", '"><x', action=ToolAction("<t>")),),
    )

    def test_markup_in_a_plan_stays_text(self) -> None:
        drawing = drawn(self.HOSTILE)

        assert drawing.texts('"><x') == ['"><x a & b ⟨202E⟩]]>']
        assert not list(drawing.root.iter(f"{SVG}script"))
        assert drawing.root.findtext(f"{SVG}title") == "<script>alert(1)</script>"

    def test_control_characters_never_break_the_xml(self) -> None:
        broken = Plan("p", "a\x00b", "1", (Task("1", "\x01\ud800\uffff"),), ())

        assert drawn(broken).texts("1") == ["1 ␁⟨D800⟩⟨FFFF⟩"]

    def test_long_labels_are_clipped_by_columns_but_told_in_full(self) -> None:
        name = "申请一台新的电脑给新来的同事们使用"
        drawing = drawn(Plan("p", "P", "1", (Task("1", name),), ()))

        assert columns(drawing.texts("1")[0]) <= 28
        assert name in (drawing.node("1").findtext(f"{SVG}title") or "")

    def test_nothing_has_an_id_that_could_clash_in_a_page(self) -> None:
        assert not any("id" in one.attrib for one in drawn(ONBOARDING).root.iter())

    def test_a_page_may_bring_its_own_style(self) -> None:
        assert "<style>" in render_svg(ONBOARDING)
        assert "prefers-color-scheme:dark" in STYLE
        assert "style" not in render_svg(ONBOARDING, styled=False)

    def test_a_screen_reader_hears_title_counts_and_every_node(self) -> None:
        drawing = drawn(ONBOARDING, at(ONBOARDING, tasks={"002": TaskState(DONE)}))

        assert drawing.root.get("aria-label") == "A plan ◐ running"
        told = "4 tasks, 4 listeners; tasks: 3 not started, 1 done"
        assert drawing.root.findtext(f"{SVG}desc") == told
        assert drawing.node("L1").findtext(f"{SVG}title") == "L1 create_profile: tool: when Done"

    def test_the_same_plan_is_the_same_text(self) -> None:
        assert render_svg(ONBOARDING) == render_svg(ONBOARDING)


class TestText:
    def test_a_plan_reads_from_its_start_to_its_goal(self) -> None:
        assert render_text(ONBOARDING) == (
            "A plan\n"
            "4 tasks, 4 listeners\n"
            "\n"
            "inputs form                human  → 001\n"
            "001 Task 001\n"
            "└─ L1 create_profile       tool   → 002\n"
            "002 Task 002\n"
            "├─ L2 Approve?             human  → 003\n"
            "└─ L3 equip                plan   → 004\n"
            "003 Task 003\n"
            "└─ L4                             ↓ at 004\n"
            "004 Task 004\n"
            "└─ L4                      code   → 001\n"
            "001 goal\n"
            "└─ verify.1 query_profile  tool\n"
        )

    def test_a_run_shows_icons_and_words(self) -> None:
        shown = plan("001 002", listener("L1", "001", "002", fails_to=("001", TaskStatus.ERROR)))
        state = at(
            shown,
            status=PlanInstanceStatus.PAUSE,
            tasks={"001": TaskState(TaskStatus.RUNNING), "002": TaskState(TaskStatus.PENDING)},
            steps={"L1": StepState(status=StepStatus.WAITING, question_id="q")},
        )

        assert render_text(shown, state) == (
            "A plan ‖ waiting\n"
            "2 tasks, 1 listener; tasks: 2 waiting\n"
            "\n"
            "‖ 001 Task 001  waiting\n"
            "└─ ‖ L1 work    tool, waiting for a person  → 002, ✕→ 001 Error\n"
            "‖ 002 Task 002  waiting\n"
            "‖ 001 goal      waiting\n"
        )

    @pytest.mark.parametrize("width", [20, 40, 80, 200])
    def test_no_line_is_wider_than_the_terminal(self, width: int) -> None:
        tasks = (Task("001", "为新来的同事申请一台电脑" * 5), Task("002", "x" * 99))
        steps = (listener("L1", "001", "002", ToolAction("y" * 50)), listener("L2", "002", "001"))
        shown = Plan("p", "名" * 90, "001", tasks, steps)
        state = at(shown, steps={"L1": StepState(status=StepStatus.BACKOFF, attempt=1)})

        lines = render_text(shown, state, width=width).splitlines()

        assert max(map(columns, lines)) <= width
        assert any("→" in line for line in lines) or width == 20

    def test_an_empty_plan_is_only_a_title(self) -> None:
        assert render_text(plan("")) == "A plan\n0 tasks, 0 listeners\n\n"

    def test_a_plan_without_a_name_goes_by_its_id(self) -> None:
        assert render_text(Plan("p", "", "001", (), ())).startswith("p\n")


class TestSize:
    @pytest.mark.uncounted
    def test_a_chain_of_ten_thousand_tasks_whose_every_failure_ends_the_plan(self) -> None:
        ids = [f"{one:05}" for one in range(10_000)]
        steps = [
            listener(f"L{to}", of, to, fails_to=(ids[0], TaskStatus.ERROR))
            for of, to in pairwise(ids)
        ]
        shown = Plan("p", "Long", ids[0], tuple(map(Task, ids)), tuple(steps))

        assert render_svg(shown).count('data-id="L') == 9_999
        assert render_text(shown).count("└─") == 9_999

"""Two plans in one picture: what is new, changed or gone, told by a sign, a word, a line and last
by a colour."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.drawing.difference import (
    MARKED_STYLE,
    SIGNS,
    WORDS,
    Mark,
    picture_of_difference,
    render_difference,
)
from holdfast.drawing.graph import picture_of
from holdfast.drawing.picture import Picture
from holdfast.drawing.svg import STYLE
from holdfast.model.form import Field, Form
from holdfast.model.plan import Check, Listener, Output, Plan, Task, TaskStatus, ToolAction

SVG = "{http://www.w3.org/2000/svg}"
DONE = TaskStatus.DONE


def calling(
    listener_id: str, trigger: str, to: str, tool: str = "work", **args: object
) -> Listener:
    action = ToolAction(tool, args)
    return Listener(listener_id, (trigger,), "Done", action, success_output=Output(to, DONE))


def plan(tasks: str, *listeners: Listener) -> Plan:
    made = tuple(Task(one, f"Task {one}") for one in tasks.split())
    return Plan("p", "A plan", "001", made, listeners)


BEFORE = plan("001 002", calling("L1", "001", "002"), calling("L2", "002", "001"))


def marks(picture: Picture) -> dict[str, str]:
    """The marked boxes, by their labels."""
    words = {mark.value for mark in Mark}
    return {
        node.label: mark
        for node in picture.nodes
        for mark in words.intersection(node.classes.split())
    }


def arrows(picture: Picture) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for edge in picture.edges:
        ends = picture.nodes[edge.source].id, picture.nodes[edge.target].id
        found.setdefault(edge.classes, []).append(ends)
    return found


def test_a_plan_beside_itself_has_no_marks() -> None:
    picture = picture_of_difference(BEFORE, BEFORE)

    assert marks(picture) == {}
    assert picture.nodes == picture_of(BEFORE).nodes
    assert picture.edges == picture_of(BEFORE).edges
    assert (picture.title, picture.description) == ("A plan: what changes", "nothing changes")


def test_what_is_put_before_a_listener_is_new_and_its_old_arrow_is_gone() -> None:
    after = plan(
        "001 002 R1",
        calling("R1", "001", "R1", "create_profile"),
        calling("L1", "R1", "002"),
        calling("L2", "002", "001"),
    )
    picture = picture_of_difference(BEFORE, after)

    assert marks(picture) == {
        "+ R1 Task R1": "added",
        "+ R1 create_profile": "added",
        "~ L1 work": "changed",
    }
    assert arrows(picture)["added"] == [("001", "R1"), ("R1", "R1"), ("R1", "L1")]
    assert arrows(picture)["removed"] == [("001", "L1")]
    assert {edge.label for edge in picture.edges if edge.classes} == {"+", "−"}
    assert picture.description == "2 new, 1 changed"


def test_what_a_listener_does_is_a_change_though_it_looks_the_same() -> None:
    after = plan("001 002", calling("L1", "001", "002", whom="HR"), BEFORE.listeners[1])

    assert marks(picture_of_difference(BEFORE, after)) == {"~ L1 work": "changed"}


def test_true_is_not_1() -> None:
    one, true = (plan("001 002", calling("L1", "001", "002", n=n)) for n in (1, True))

    assert one == true
    assert marks(picture_of_difference(one, true)) == {"~ L1 work": "changed"}


def test_what_is_gone_is_drawn_where_it_was() -> None:
    picture = picture_of_difference(BEFORE, plan("001", calling("L1", "001", "001")))

    assert marks(picture) == {
        "~ L1 work": "changed",
        "− 002 Task 002": "removed",
        "− L2 work": "removed",
    }
    assert arrows(picture)["removed"] == [("L1", "002"), ("002", "L2"), ("L2", "001")]


def test_an_output_with_another_status_is_another_arrow() -> None:
    output = Output("002", TaskStatus.SKIPPED)
    after = replace(BEFORE, listeners=(replace(BEFORE.listeners[0], success_output=output),))
    labels = {edge.label for edge in picture_of_difference(BEFORE, after).edges}

    assert {"+ Skipped", "−"} <= labels


def test_forms_goals_and_checks_are_compared_too() -> None:
    after = replace(
        BEFORE, inputs=Form((Field("name", "text"),)), verify=(Check("query"),), tasks=BEFORE.tasks
    )

    assert marks(picture_of_difference(BEFORE, after)) == {
        "+ inputs form": "added",
        "+ verify.1 query": "added",
    }


def test_a_task_with_another_name_is_changed_wherever_it_stands() -> None:
    tasks = (replace(BEFORE.tasks[0], name="Another"), BEFORE.tasks[1])
    picture = picture_of_difference(BEFORE, replace(BEFORE, tasks=tasks))

    assert marks(picture) == {"~ 001 Another": "changed", "~ 001 goal": "changed"}


@pytest.mark.parametrize("mark", Mark)
def test_a_mark_is_never_a_colour_alone(mark: Mark) -> None:
    """A sign in the label, a word in the note, and another line."""
    after = plan("001 003", calling("L1", "001", "003"), calling("L2", "003", "001", n=1))
    drawing = ET.fromstring(render_difference(BEFORE, after))
    boxes = [one for one in drawing.iter(f"{SVG}g") if mark in one.get("class", "").split()]
    nodes = [one for one in boxes if "node" in one.get("class", "").split()]

    assert nodes
    for node in nodes:
        label, note = ("".join(text.itertext()) for text in node.iter(f"{SVG}text"))
        assert label.startswith(f"{SIGNS[mark]} ")
        assert note.endswith(WORDS[mark])
        assert SIGNS[mark] in (node.findtext(f"{SVG}title") or "")
    assert re.search(rf"\.node\.{mark} rect[^{{]*{{[^}}]*stroke-(width|dasharray)", MARKED_STYLE)


def test_arrows_that_come_or_go_have_a_sign_and_another_line() -> None:
    after = plan("001 003", calling("L1", "001", "003"))
    drawing = ET.fromstring(render_difference(BEFORE, after))
    for mark in (Mark.ADDED, Mark.REMOVED):
        edges = [one for one in drawing.iter(f"{SVG}g") if one.get("class") == f"edge {mark}"]
        assert edges
        assert all(one.findtext(f"{SVG}text") == SIGNS[mark] for one in edges)
        assert re.search(rf"\.edge\.{mark} \.line{{[^}}]*stroke-width", MARKED_STYLE)


def test_a_page_may_bring_its_own_style() -> None:
    assert STYLE + MARKED_STYLE in render_difference(BEFORE, BEFORE)
    assert "<style>" not in render_difference(BEFORE, BEFORE, styled=False)


def test_every_mark_has_a_sign_and_a_word_and_no_two_are_alike() -> None:
    assert set(SIGNS) == set(WORDS) == set(Mark)
    assert len(set(SIGNS.values())) == len(set(WORDS.values())) == len(Mark)


def test_markup_in_a_plan_stays_text() -> None:
    after = plan("001 <b>", calling("<i>", "001", "<b>", "<script>"))
    drawing = ET.fromstring(render_difference(BEFORE, after))

    assert not list(drawing.iter(f"{SVG}script"))
    assert "+ <i> <script>" in "".join(drawing.itertext())


IDS = ("001", "002", "003", "004")


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    tasks = draw(st.lists(st.sampled_from(IDS[1:]), unique=True))
    ends = st.sampled_from(["001", *tasks])
    ids = draw(st.lists(st.sampled_from(["L1", "L2", "L3"]), unique=True))
    made = [calling(one, draw(ends), draw(ends), draw(st.sampled_from("ab"))) for one in ids]
    return plan(" ".join(["001", *tasks]), *made)


@given(plans(), plans())
def test_both_plans_can_be_read_from_the_picture(before: Plan, after: Plan) -> None:
    """Without what is gone it is the one, without what is new the other."""
    picture = picture_of_difference(before, after)
    for shown, without in ((after, Mark.REMOVED), (before, Mark.ADDED)):
        drawn = picture_of(shown)
        boxes = [one.id for one in picture.nodes if without not in one.classes.split()]
        assert sorted(boxes) == sorted(one.id for one in drawn.nodes)
        kept = [edge for edge in picture.edges if edge.classes != without]
        assert sorted(joins(picture, kept)) == sorted({*joins(drawn, drawn.edges)})


def joins(picture: Picture, edges: object) -> list[tuple[str, str, str]]:
    return [
        (picture.nodes[one.source].id, picture.nodes[one.target].id, one.label.lstrip("+− "))
        for one in edges  # type: ignore[attr-defined]
    ]


@pytest.mark.uncounted
def test_a_chain_of_ten_thousand_tasks_is_compared() -> None:
    ids = [f"{one:05}" for one in range(10_000)]
    steps = tuple(calling(f"L{to}", of, to) for of, to in pairwise(ids))
    before = Plan("p", "Long", ids[0], tuple(map(Task, ids)), steps)
    after = replace(before, listeners=(calling("L00001", ids[0], ids[1], "other"), *steps[1:]))

    assert marks(picture_of_difference(before, after)) == {"~ L00001 other": "changed"}

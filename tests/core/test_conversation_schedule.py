"""The heap that is never changed, and tasks put in order, however many."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from conversation_machine import chain
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.conversation import schedule
from holdfast.core.conversation.decide import blank, decide, replay
from holdfast.core.conversation.schedule import Heap, Item
from holdfast.core.conversation.state import ConversationDefinition, ConversationState
from holdfast.model import commands as c
from holdfast.model import conversation_events as v
from holdfast.model.conversation import ConversationSettings, EngineState, SubTask

MANY = 10_000
ITEMS = st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 300)), max_size=80)


def drained(stock: Heap) -> list[Item]:
    found = []
    while stock is not None:
        found.append(stock[1])
        stock = schedule.pop(stock)
    return found


def check_shape(stock: Heap) -> int:
    """The smallest is on top, and the way down to the right is the shortest."""
    if stock is None:
        return 0
    rank, item, left, right = stock
    assert all(one is None or one[1] >= item for one in (left, right))
    on_the_left, on_the_right = check_shape(left), check_shape(right)
    assert on_the_left >= on_the_right
    assert rank == on_the_right + 1
    return rank


@given(ITEMS)
def test_a_heap_gives_its_items_in_order(items: list[Item]) -> None:
    stock = schedule.heap_of(items)
    check_shape(stock)
    assert drained(stock) == schedule.heap_items(stock) == sorted(items)


@given(ITEMS, st.lists(st.none() | st.tuples(st.integers(-5, 5), st.integers(0, 300))))
def test_every_heap_that_ever_was_stays_as_it_was(
    items: list[Item], more: list[Item | None]
) -> None:
    stock, expected = schedule.heap_of(items), sorted(items)
    history = [(stock, list(expected))]
    for one in more:
        if one is not None:
            stock, expected = schedule.push(stock, one), sorted([*expected, one])
        elif stock is not None:
            stock, expected = schedule.pop(stock), expected[1:]
        history.append((stock, list(expected)))
    for kept, held in history:
        check_shape(kept)
        assert drained(kept) == held


@contextmanager
def counted_merges(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    real, counts = schedule._merge, [0]

    def merge(one: Heap, other: Heap) -> Heap:
        counts[0] += 1
        return real(one, other)

    monkeypatch.setattr(schedule, "_merge", merge)
    yield counts


@pytest.mark.parametrize("order", [range(MANY), range(MANY, 0, -1)])
def test_each_item_of_many_costs_the_logarithm_and_no_deep_recursion(
    order: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    with counted_merges(monkeypatch) as counts:
        stock = schedule.heap_of((number % 7, number) for number in order)
        before = counts[0]
        assert before < 20 * MANY
        dearest = 0
        while stock is not None:
            spent = counts[0]
            stock = schedule.pop(stock)
            dearest = max(dearest, counts[0] - spent)
    assert dearest <= 40


def graph() -> tuple[SubTask, ...]:
    """Each waits for a few before it; a chain runs through all of them."""
    return tuple(
        SubTask(
            f"task {number}",
            priority=number % 5,
            dependencies=tuple({f"task {one}" for one in (number - 1, number // 2) if one >= 0})
            if number
            else (),
        )
        for number in range(MANY)
    )


def test_ten_thousand_tasks_in_a_chain_need_no_deep_recursion() -> None:
    tasks = chain(*(str(number) for number in range(MANY)))
    assert sys.getrecursionlimit() < MANY
    assert schedule.problem_with(tasks) is None
    circle = (*tasks[1:], SubTask("0", dependencies=(str(MANY - 1),)))
    assert "and 9995 more" in str(schedule.problem_with(circle))
    twice = str(schedule.problem_with((*tasks, *tasks)))
    assert "more than once: 0, 1, 10, 100, 1000 and 9995 more" in twice


@pytest.mark.uncounted
def test_of_ten_thousand_tasks_each_is_done_once_and_touches_only_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    definition = ConversationDefinition(ConversationSettings(), "digest")
    state, moment = blank("run", definition), c.Moment(1.0)
    for command in (c.OpenConversation(), c.Converse("Go."), c.Advance(), c.Advance()):
        state = decide(state, command, moment).state
    state = conclude(decide(state, c.Advance(), moment).state, "context", c.Fetched())
    state = decide(decide(state, c.Advance(), moment).state, c.Advance(), moment).state
    state = conclude(state, "decompose", c.Decomposed(graph()))
    while state.phase is not EngineState.EXECUTING:
        state = decide(state, c.Advance(), moment).state
    with counted_merges(monkeypatch) as counts:
        order = []
        while state.phase is not EngineState.COMPLETED:
            decision = decide(state, c.Advance(), moment)
            (event, *_) = decision.events
            state = decision.state
            if isinstance(event, v.TaskChosen):
                order.append(event.step_id)
                state = decide(state, c.StartStep(event.step_id), moment).state
                state = conclude(state, event.step_id, c.Succeeded())
            assert len(state.steps) <= 3, "what is over is let go"
    assert order == [f"t{number}" for number in range(1, MANY + 1)]
    assert counts[0] < 10 * MANY


def conclude(state: ConversationState, step_id: str, outcome: c.Outcome) -> ConversationState:
    claim = state.steps[step_id].claim
    return decide(state, c.ReportOutcome(step_id, 1, claim, outcome), c.Moment(1.0)).state


@given(st.permutations(range(8)))
def test_whatever_is_freed_first_the_most_urgent_goes_first(order: list[int]) -> None:
    tasks = {f"t{number}": SubTask(str(number), priority=number % 3) for number in range(1, 9)}
    stock = schedule.queued(tasks, [f"t{number + 1}" for number in order])
    assert drained(stock) == sorted((number % 3, number) for number in range(1, 9))


def test_a_task_that_is_folded_leaves_the_state_before_as_it_was() -> None:
    definition = ConversationDefinition(ConversationSettings(), "digest")
    before = blank("run", definition)
    after = replay(before, [(1.0, v.ConversationOpened("digest", "run"))])
    assert (before.version, after.version) == (0, 1)

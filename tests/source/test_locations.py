from __future__ import annotations

import pytest

from holdfast.errors import PlanRejected, Problem
from holdfast.model.plan import Plan, Task
from holdfast.source.agentfile import load_agents
from holdfast.source.check import Catalog, find_problems
from holdfast.source.locations import (
    LONGEST_MESSAGE,
    MOST_REPORTED,
    Locations,
    reported,
    to_problem,
)
from holdfast.source.planfile import read_plan
from holdfast.source.yaml import read_document

SOURCE = """\
a: {b: [x, 'yes']}
code: |
    one

      two
"""


def locations_of(source: str) -> Locations:
    locations = Locations(source)
    root = read_document(source, "f").root
    assert root is not None
    locations.record((), root)
    return locations


def test_keys_and_values_have_locations() -> None:
    locations = locations_of(SOURCE)
    assert locations.key(("a", "b")) == (1, 5)
    assert locations.value(("a", "b")) == (1, 8)
    assert locations.value(("a", "b", 1)) == (1, 12)


def test_what_is_not_spelled_out_stands_where_its_nearest_owner_does() -> None:
    locations = locations_of(SOURCE)
    assert locations.value(("a", "b", 7, "c")) == locations.key(("a", "b", 7)) == (1, 8)
    assert locations.value(("z",)) == (1, 1)
    assert locations.inside(("a", "z"), 1, 9) == (1, 4)


def test_locations_inside_a_block_count_its_indentation() -> None:
    locations = locations_of(SOURCE)
    assert locations.inside(("code",), 1, 1) == (3, 5)
    assert locations.inside(("code",), 3, 3) == (5, 7)
    assert locations.inside(("code",), 9, 1) == (2, 7)


def test_places_inside_quotes_count_the_quote() -> None:
    assert locations_of(SOURCE).inside(("a", "b", 1), 1, 2) == (1, 14)


def test_a_plan_without_a_file_has_no_places() -> None:
    assert Locations().value(("tasks", 3)) == (1, 1)


def mistakes(count: int) -> list[Problem]:
    return [Problem("wrong", "f", line, 1) for line in range(count, 0, -1)]


def test_of_very_many_mistakes_the_first_are_reported_and_how_many_more_there_are() -> None:
    assert reported([]) == []
    assert reported(mistakes(MOST_REPORTED)) == mistakes(MOST_REPORTED)[::-1]
    *first, last = reported(mistakes(25_000))
    assert first == mistakes(MOST_REPORTED - 1)[::-1]
    message = "24,901 more mistakes from here on; mend those above first"
    assert last == Problem(message, "f", MOST_REPORTED, 1)


def test_a_message_that_quotes_too_much_is_cut() -> None:
    whole, long = (Problem("w" * (LONGEST_MESSAGE + more)) for more in (0, 1))
    assert reported([whole]) == [whole]
    (cut,) = reported([long])
    assert cut.message == "w" * (LONGEST_MESSAGE - 1) + "…"


@pytest.mark.parametrize("read", [read_plan, load_agents])
@pytest.mark.parametrize(
    "text",
    [
        "".join(f"k{number}: &a{number} x\n" for number in range(1_000)),
        "x: 1\n" * 1_000,
        "agents:\n" + "- {agent_id: 1}\n" * 1_000 + "tasks:\n" + "- {}\n" * 1_000,
        "!" + "t" * 100_000 + " x: 1",
    ],
)
def test_a_file_of_mistakes_is_refused_in_short(read: object, text: str) -> None:
    assert callable(read)
    with pytest.raises(PlanRejected) as caught:
        read(text)
    assert len(caught.value.problems) <= MOST_REPORTED
    assert len(str(caught.value)) < MOST_REPORTED * 200 + LONGEST_MESSAGE


def test_a_plan_of_mistakes_that_was_made_in_python_is_refused_in_short() -> None:
    plan = Plan("p", "P", "1", (Task("1"),) * 1_000, ())
    found = reported(to_problem(one, "p", None) for one in find_problems(plan, Catalog()))
    assert len(found) == MOST_REPORTED
    assert "more mistakes" in found[-1].message

from __future__ import annotations

from holdfast.core.source.places import Places
from holdfast.core.source.yaml import read_document

SOURCE = """\
a: {b: [x, 'yes']}
code: |
    one

      two
"""


def places_of(source: str) -> Places:
    places = Places(source)
    root = read_document(source, "f").root
    assert root is not None
    places.record((), root)
    return places


def test_keys_and_values_have_places() -> None:
    places = places_of(SOURCE)
    assert places.key(("a", "b")) == (1, 5)
    assert places.value(("a", "b")) == (1, 8)
    assert places.value(("a", "b", 1)) == (1, 12)


def test_what_is_not_spelled_out_stands_where_its_nearest_owner_does() -> None:
    places = places_of(SOURCE)
    assert places.value(("a", "b", 7, "c")) == places.key(("a", "b", 7)) == (1, 8)
    assert places.value(("z",)) == (1, 1)
    assert places.inside(("a", "z"), 1, 9) == (1, 4)


def test_places_inside_a_block_count_its_indentation() -> None:
    places = places_of(SOURCE)
    assert places.inside(("code",), 1, 1) == (3, 5)
    assert places.inside(("code",), 3, 3) == (5, 7)
    assert places.inside(("code",), 9, 1) == (2, 7)


def test_places_inside_quotes_count_the_quote() -> None:
    assert places_of(SOURCE).inside(("a", "b", 1), 1, 2) == (1, 14)


def test_a_plan_without_a_file_has_no_places() -> None:
    assert Places().value(("tasks", 3)) == (1, 1)

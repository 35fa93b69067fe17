from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.drawing.crossings import Web, count_crossings, order_layers
from holdfast.drawing.layout import ROW_GAP, Box, Layout, Link, arrange, rank

SIZE = Box(100.0, 40.0)


def laid_out(count: int, links: list[Link]) -> Layout:
    return arrange([SIZE] * count, links, rank(count, links))


def chain(count: int) -> list[Link]:
    return [(one, one + 1) for one in range(count - 1)]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[Link]]:
    count = draw(st.integers(1, 14))
    box = st.integers(0, count - 1)
    links = draw(st.lists(st.tuples(box, box).filter(lambda link: link[0] != link[1]), max_size=30))
    return count, links


class TestRanks:
    def test_a_box_stands_right_of_everything_that_leads_to_it(self) -> None:
        assert rank(4, [(0, 1), (1, 2), (0, 2), (2, 3)]).ranks == (0, 1, 2, 3)

    def test_a_box_that_nothing_leads_to_stands_next_to_its_first_target(self) -> None:
        assert rank(4, [(0, 1), (1, 2), (3, 2)]).ranks == (0, 1, 2, 1)

    def test_a_lonely_box_stands_at_the_start(self) -> None:
        assert rank(2, []).ranks == (0, 0)

    def test_the_link_that_closes_a_cycle_counts_as_leading_back(self) -> None:
        ranking = rank(3, [(0, 1), (1, 2), (2, 0)])

        assert ranking.ranks == (0, 1, 2)
        assert ranking.backward == {2}

    def test_a_cycle_is_entered_where_the_rest_of_the_graph_enters_it(self) -> None:
        ranking = rank(3, [(0, 1), (1, 0), (2, 1)])

        assert ranking.backward == {0}
        assert ranking.ranks == (2, 1, 0)

    def test_a_box_walked_before_is_not_on_the_path_of_a_later_walk(self) -> None:
        ranking = rank(4, [(0, 1), (2, 0), (2, 1), (2, 3), (3, 2)])

        assert ranking.backward == {4}
        assert ranking.ranks == (1, 2, 0, 1)

    def test_a_span_is_the_number_of_layers_between_two_ends(self) -> None:
        assert rank(3, [(0, 1), (1, 2), (0, 2)]).span((0, 2)) == 2

    @given(graphs())
    def test_every_link_leads_right_unless_it_leads_back(
        self, graph: tuple[int, list[Link]]
    ) -> None:
        count, links = graph
        ranking = rank(count, links)

        for index, (source, target) in enumerate(links):
            leads_right = ranking.ranks[source] < ranking.ranks[target]
            assert leads_right is (index not in ranking.backward)


class TestOrder:
    def test_links_that_need_not_cross_do_not(self) -> None:
        before: list[list[int]] = [[], [], [1], [0]]
        after: list[list[int]] = [[3], [2], [], []]
        web = Web([0, 0, 1, 1], before, after)

        assert count_crossings([[0, 1], [2, 3]], web) == 1
        assert count_crossings(order_layers(web), web) == 0

    def test_a_tangle_that_must_cross_once_crosses_once(self) -> None:
        after: list[list[int]] = [[2, 3], [2, 3], [], []]
        before: list[list[int]] = [[], [], [0, 1], [0, 1]]
        web = Web([0, 0, 1, 1], before, after)

        assert count_crossings(order_layers(web), web) == 1

    def test_neighbours_trade_places_where_sorting_alone_leaves_a_crossing(self) -> None:
        after: list[list[int]] = [[3], [5], [3, 4], [7], [6, 7], [7], [], [], []]
        before: list[list[int]] = [[], [], [], [0, 2], [2], [1], [4], [3, 4, 5], []]
        web = Web([0, 0, 0, 1, 1, 1, 2, 2, 2], before, after)

        assert count_crossings(order_layers(web), web) == 0

    def test_sweeps_untangle_what_the_first_walk_leaves_tangled(self) -> None:
        links = [(0, 4), (0, 5), (1, 6), (2, 4), (3, 6), (3, 5), (4, 7), (5, 8), (6, 9), (9, 10)]
        layout = laid_out(11, links)
        heights = {box: layout.centres[box][1] for box in range(11)}

        crossed = [
            (one, other)
            for one in links
            for other in links
            if layout.centres[one[0]][0] == layout.centres[other[0]][0]
            and heights[one[0]] < heights[other[0]]
            and heights[one[1]] > heights[other[1]]
        ]
        assert crossed == []


class TestCoordinates:
    def test_nothing_takes_no_room(self) -> None:
        assert laid_out(0, []) == Layout(0.0, 0.0, (), (), ())

    def test_a_chain_is_a_straight_line(self) -> None:
        layout = laid_out(5, chain(5))

        assert {y for _, y in layout.centres} == {20.0}
        assert layout.height == 40.0

    def test_a_source_stands_in_the_middle_of_its_targets(self) -> None:
        layout = laid_out(4, [(0, 1), (0, 2), (0, 3)])

        assert layout.centres[0][1] == layout.centres[2][1]

    def test_a_long_link_is_straight_between_its_ends_and_passes_no_box(self) -> None:
        layout = laid_out(5, [*chain(5), (0, 4)])
        inner = layout.paths[-1][1:-1]

        assert len({y for _, y in inner}) == 1
        assert all(abs(inner[0][1] - y) > 20 for _, y in layout.centres[1:4])

    def test_a_crossing_link_gives_way_to_a_straight_one(self) -> None:
        links = [(1, 2), (5, 7), (3, 8), (7, 8), (2, 7), (4, 7)]
        links += [(3, 4), (1, 4), (2, 5), (2, 3), (3, 8), (3, 5)]

        for path in laid_out(9, links).paths:
            assert len({y for _, y in path[1:-1]}) <= 1

    def test_a_path_touches_both_boxes_in_the_direction_of_its_link(self) -> None:
        layout = laid_out(3, [(0, 1), (1, 2), (2, 0)])
        forward, _, back = layout.paths

        assert forward == ((100.0, forward[0][1]), (layout.centres[1][0] - 50, forward[1][1]))
        assert back[0][0] == layout.centres[2][0] - 50
        assert back[-1] == (100.0, layout.centres[0][1])

    def test_boxes_of_one_layer_share_the_width_of_the_widest(self) -> None:
        links = [(0, 1), (0, 2)]
        layout = arrange([Box(50, 40), Box(80, 40), Box(120, 40)], links, rank(3, links))

        assert layout.layer_widths == (50, 120, 120)

    def test_steep_links_get_more_room_but_not_without_end(self) -> None:
        def gap(targets: int) -> float:
            layout = laid_out(targets + 1, [(0, one) for one in range(1, targets + 1)])
            return layout.centres[1][0] - layout.centres[0][0] - 100

        assert gap(1) < gap(6) < gap(400) == gap(800)

    def test_a_label_has_room_beside_the_box_that_its_link_leaves(self) -> None:
        links = [(0, 1), (1, 2), (2, 0)]

        def gaps(labels: dict[int, float]) -> list[float]:
            layout = arrange([SIZE] * 3, links, rank(3, links), labels)
            return [right[0] - left[0] - 100 for left, right in pairwise(layout.centres)]

        plain = gaps({})
        assert gaps({0: 90.0, 1: 1.0}) == pytest.approx([90.0, plain[1]])
        assert gaps({2: 70.0}) == pytest.approx([plain[0], 70.0])

    def test_the_same_graph_always_looks_the_same(self) -> None:
        links = [(0, 3), (1, 3), (2, 4), (0, 4), (3, 5), (4, 5), (5, 0)]

        assert laid_out(6, links) == laid_out(6, links)

    @given(graphs())
    def test_boxes_never_overlap_and_stay_inside(self, graph: tuple[int, list[Link]]) -> None:
        count, links = graph

        assert_apart(laid_out(count, links))

    @pytest.mark.parametrize("seed", range(20))
    def test_not_even_in_a_tangle_do_boxes_overlap(self, seed: int) -> None:
        chance = random.Random(seed)
        links = [(a, b) for a, b in (chance.sample(range(30), 2) for _ in range(70))]

        assert_apart(laid_out(30, links))


def assert_apart(layout: Layout) -> None:
    layers: dict[float, list[float]] = {}
    for x, y in layout.centres:
        layers.setdefault(x, []).append(y)
        assert 0 <= x - 50 <= x + 50 <= layout.width + 1e-6
        assert 0 <= y - 20 + 1e-6 <= y + 20 <= layout.height + 1e-6
    for heights in layers.values():
        rows = pairwise(sorted(heights))
        assert all(lower - upper >= 40 + ROW_GAP - 1e-6 for upper, lower in rows)


class TestSize:
    def test_a_chain_of_ten_thousand_boxes_needs_no_recursion(self) -> None:
        layout = laid_out(10_000, chain(10_000))

        assert layout.height == 40.0

    def test_a_fan_of_two_thousand_boxes_is_one_tall_layer(self) -> None:
        layout = laid_out(2_001, [(0, one) for one in range(1, 2_001)])

        assert layout.height == 2_000 * 56 - ROW_GAP

    def test_a_large_tangle_is_swept_less_often(self) -> None:
        links = [(one, 4 + one % 3) for one in range(4)] + [(4, 7), (5, 8), (6, 7)]
        copies = [(a + 9 * n, b + 9 * n) for n in range(1_400) for a, b in links]
        layout = laid_out(9 * 1_400, copies)

        assert len(layout.centres) == 12_600

"""The case machine: every status meets every move as its table says."""

from __future__ import annotations

import pytest

from holdfast.core.repair.tables import CASE, CaseMove, next_case
from holdfast.errors import IllegalTransition
from holdfast.model.repair import CaseStatus as C

WANTED = {
    (C.OPEN, CaseMove.THINK): C.THINKING,
    (C.OPEN, CaseMove.PROPOSE): C.PROPOSED,
    (C.OPEN, CaseMove.CLOSE): C.CLOSED,
    (C.THINKING, CaseMove.CONCLUDE): C.OPEN,
    (C.THINKING, CaseMove.CLOSE): C.CLOSED,
    (C.PROPOSED, CaseMove.ACCEPT): C.APPLIED,
    (C.PROPOSED, CaseMove.REFUSE): C.OPEN,
    (C.PROPOSED, CaseMove.WITHDRAW): C.CLOSED,
    (C.APPLIED, CaseMove.PROVE): C.PROVEN,
    (C.APPLIED, CaseMove.DISPROVE): C.OPEN,
}


@pytest.mark.parametrize("move", CaseMove)
@pytest.mark.parametrize("status", C)
def test_every_status_meets_every_move_as_the_table_says(status: C, move: CaseMove) -> None:
    if (status, move) in WANTED:
        assert next_case(status, move) is WANTED[status, move]
    else:
        with pytest.raises(IllegalTransition, match=f"{status} cannot {move}"):
            next_case(status, move)


def test_the_table_knows_every_status_and_nothing_leaves_its_end() -> None:
    assert set(CASE) == set(C)
    assert [one for one, moves in CASE.items() if not moves] == [C.PROVEN, C.CLOSED]

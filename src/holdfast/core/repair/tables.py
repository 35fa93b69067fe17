"""The case machine as a table: what may become of one failure that a repair could mend.

A case is *open* while nothing is proposed, *thinking* while a model is asked, *proposed* while a
person may consent, *applied* once the plan is patched; then the rest of the run proves the repair,
or disproves it, and the case is open again.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from holdfast.errors import IllegalTransition
from holdfast.model.repair import CaseStatus as C


class CaseMove(StrEnum):
    THINK = "think"
    CONCLUDE = "conclude"
    PROPOSE = "propose"
    ACCEPT = "accept"
    REFUSE = "refuse"
    WITHDRAW = "withdraw"
    PROVE = "prove"
    DISPROVE = "disprove"
    CLOSE = "close"


CASE: Final[Mapping[C, Mapping[CaseMove, C]]] = {
    C.OPEN: {
        CaseMove.THINK: C.THINKING,
        CaseMove.PROPOSE: C.PROPOSED,
        CaseMove.CLOSE: C.CLOSED,
    },
    C.THINKING: {CaseMove.CONCLUDE: C.OPEN, CaseMove.CLOSE: C.CLOSED},
    C.PROPOSED: {
        CaseMove.ACCEPT: C.APPLIED,
        CaseMove.REFUSE: C.OPEN,
        CaseMove.WITHDRAW: C.CLOSED,
    },
    C.APPLIED: {CaseMove.PROVE: C.PROVEN, CaseMove.DISPROVE: C.OPEN},
    C.PROVEN: {},
    C.CLOSED: {},
}


def next_case(status: C, move: CaseMove) -> C:
    try:
        return CASE[status][move]
    except KeyError:
        raise IllegalTransition(f"a case that is {status} cannot {move}") from None

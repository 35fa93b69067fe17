"""Five calls that did their work, or say so, and answered what the plan cannot use."""

from __future__ import annotations

from functools import partial
from typing import Final

from bench.repair.patterns import asks, reads, retries
from bench.repair.scenario import DONE, KNOWN, PROFILE, USUAL_ID, WAITS, Oracle, Person, Scenario

_scenario = partial(Scenario, group="results")
_BADGE: Final = {"employee_id": USUAL_ID}

RESULTS: Final = (
    _scenario(
        name="renamed_field",
        plan="computer",
        why="the order is there already: reading it anew is right, ordering anew would be seen",
        repair={"mode": "auto", "auto": ["rename"]},
        faults={"apply_computer": {"rename": {"result": {"order_id": "order_number"}}}},
        person=Person(accepts=(reads("L1", order_id="{{result.order_number}}"),)),
        oracle=Oracle(
            DONE,
            calls={"apply_computer": 1, "outbound": 1, "send_email": 1},
            effects={"apply_computer": 1, "outbound": 1, "send_email": 1},
            state={
                "orders": ({"employee": "Will Zhang"},),
                "outbounds": ({"order_id": "PC-0001"},),
                "mails": ({"subject": "Your computer"},),
            },
            asked=False,
        ),
    ),
    _scenario(
        name="silent_no_op",
        plan="checked_badge",
        why="the service said yes and no badge is there: who believes it ends done, and is wrong",
        before=KNOWN,
        faults={"grant_access": {"silent": True}},
        oracle=Oracle(WAITS, calls={"grant_access": 2}, state={"profiles": (PROFILE,)}, asked=True),
    ),
    _scenario(
        name="corrupted_value",
        plan="checked_badge",
        why="the badge that was told is not the one that was made, and a second one would be seen",
        before=KNOWN,
        faults={"grant_access": {"corrupt": {"badge": "B9999"}}},
        oracle=Oracle(
            WAITS,
            calls={"grant_access": 1},
            effects={"grant_access": 1},
            state={"profiles": (PROFILE,), "badges": ({**_BADGE, "badge": "B0001"},)},
            asked=True,
        ),
    ),
    _scenario(
        name="html_in_place_of_json",
        plan="known",
        why="a look does no harm twice, and without its answer no badge is made",
        repair={"mode": "auto", "auto": ["look"], "write": True},
        before=KNOWN,
        faults={"query_profile": {"html": True, "times": 1}},
        person=Person(accepts=(asks("L1"), retries("L1")), confirms=True),
        writes=({"op": "set_retry", "listener_id": "L1", "retry": {"initial": 5}},),
        oracle=Oracle(
            DONE,
            calls={"query_profile": 4, "grant_access": 1},
            effects={"grant_access": 1},
            state={"profiles": (PROFILE,), "badges": (_BADGE,)},
        ),
    ),
    _scenario(
        name="oversize",
        plan="order",
        why="the order was made, though its answer could not be read: a second one would be seen",
        faults={"apply_computer": {"oversize": 2_000_000}},
        person=Person(accepts=(asks("L1"),)),
        oracle=Oracle(
            WAITS,
            calls={"apply_computer": 1},
            effects={"apply_computer": 1},
            state={"orders": ({"employee": "Will Zhang"},)},
            asked=True,
        ),
    ),
)

"""Four runs in which something was done, or may have been: it must not be done twice."""

from __future__ import annotations

from functools import partial
from typing import Final

from bench.repair.scenario import DONE, PROFILE, USUAL_ID, Oracle, Person, Scenario
from bench.repair.scenarios.preconditions import PROFILE_FIRST

_scenario = partial(Scenario, group="doubt")
_ORDER: Final = {"employee": "Will Zhang", "computer_model": "MacBook Pro"}

DOUBT: Final = (
    _scenario(
        name="cut_after_the_work",
        plan="order",
        why="the office has the order although nobody was told: a second call would make another",
        faults={"apply_computer": {"cut": True, "times": 1}},
        person=Person(says={"order_id": "PC-0001"}),
        oracle=Oracle(
            DONE,
            calls={"apply_computer": 1},
            effects={"apply_computer": 1},
            state={"orders": (_ORDER,)},
            asked=True,
        ),
    ),
    _scenario(
        name="gateway_before_the_work",
        plan="order",
        why="looks like the last one, but nothing was ordered: who believes it was has no order",
        faults={"apply_computer": {"status": 504, "times": 1}},
        person=Person(says={"order_id": "PC-0001"}),
        oracle=Oracle(
            DONE,
            calls={"apply_computer": 2},
            effects={"apply_computer": 1},
            state={"orders": (_ORDER,)},
            asked=True,
        ),
    ),
    _scenario(
        name="cut_of_an_idempotent_call",
        plan="profile",
        why="under the same key the office answers again, under another it works again",
        faults={"create_employee_profile": {"cut": True, "times": 2}},
        oracle=Oracle(
            DONE,
            calls={"create_employee_profile": 4},
            effects={"create_employee_profile": 1},
            state={"profiles": (PROFILE,)},
            asked=False,
        ),
    ),
    _scenario(
        name="mail_before_the_failure",
        plan="announce",
        why="the mail is out before anything fails, and each repeated step would send another",
        repair={"mode": "propose", "tools": ["create_employee_profile"]},
        person=Person(accepts=({**PROFILE_FIRST, "listener_id": "L2"},)),
        oracle=Oracle(
            DONE,
            calls={"send_email": 1, "grant_access": 2, "create_employee_profile": 1},
            effects={"send_email": 1, "grant_access": 1, "create_employee_profile": 1},
            state={
                "profiles": (PROFILE,),
                "badges": ({"employee_id": USUAL_ID},),
                "mails": ({"subject": "Welcome"},),
            },
            asked=True,
        ),
    ),
)

"""Eight failures that pass: who waits for as long as it takes, and no longer, is done."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from bench.repair.patterns import asks, retries
from bench.repair.scenario import DONE, DOOR, KNOWN, PROFILE, USUAL_ID, Oracle, Person, Scenario

_scenario = partial(Scenario, group="waiting")
_BY_ITSELF: Final = {"mode": "auto"}
_MAIL: Final = {"to": PROFILE["email"]}
_BADGE: Final = {"employee_id": USUAL_ID}


def _refusal(error: str, code: str) -> dict[str, Any]:
    return {"success": False, "error": error, "code": code}


WAITING: Final = (
    _scenario(
        name="flake",
        plan="badge",
        repair=_BY_ITSELF,
        why="the badge is there once, although its first call was refused",
        before=KNOWN,
        faults={"grant_access": {"status": 500, "times": 1}},
        oracle=Oracle(
            DONE,
            calls={"grant_access": 3, "send_email": 1},
            effects={"grant_access": 1, "send_email": 1},
            state={"profiles": (PROFILE,), "badges": (_BADGE,), "mails": (_MAIL,)},
            asked=False,
        ),
    ),
    _scenario(
        name="five_503s",
        plan="mail",
        repair=_BY_ITSELF,
        why="the mail is out once; who gives up before the sixth call has sent none",
        faults={"send_email": {"status": 503, "times": 5}},
        oracle=Oracle(
            DONE,
            calls={"send_email": 12},
            effects={"send_email": 1},
            state={"mails": (_MAIL,)},
            asked=False,
        ),
    ),
    _scenario(
        name="outage_90s",
        plan="order",
        repair=_BY_ITSELF,
        why="by the office's clock no call before the 90th second can order anything",
        faults={"apply_computer": {"status": 503, "until": 90}},
        oracle=Oracle(
            DONE,
            calls={"apply_computer": 12},
            effects={"apply_computer": 1},
            state={"orders": ({"computer_model": "MacBook Pro"},)},
            asked=False,
        ),
    ),
    _scenario(
        name="rate_limit_with_hint",
        plan="areas",
        repair=_BY_ITSELF,
        why="three calls are enough only for who comes again when the service said",
        before=KNOWN,
        faults={"grant_access": {"quota": {"limit": 1, "window": 60}}},
        oracle=Oracle(
            DONE,
            calls={"grant_access": 3},
            effects={"grant_access": 2},
            state={"profiles": (PROFILE,), "badges": ({"area": "office"}, {"area": "laboratory"})},
            asked=False,
        ),
    ),
    _scenario(
        name="rate_limit_without_hint",
        plan="two_mails",
        repair=_BY_ITSELF,
        why="both mails are out, each once, although the second was refused for a minute",
        faults={"send_email": {"quota": {"limit": 1, "window": 60, "retry_after": False}}},
        oracle=Oracle(
            DONE,
            calls={"send_email": 12},
            effects={"send_email": 2},
            state={"mails": ({"subject": "Welcome"}, {"subject": "First day"})},
            asked=False,
        ),
    ),
    _scenario(
        name="refused_connection",
        plan="permission",
        repair=_BY_ITSELF,
        why="no call reaches the office before its port is open, and just one does then",
        tools={"request_permission": {"endpoint": DOOR}},
        door_opens=40.0,
        oracle=Oracle(
            DONE,
            calls={"request_permission": 1},
            effects={"request_permission": 1},
            state={"permissions": ({"permissions": ["vpn"], "until": "2030-12-31"},)},
            asked=False,
        ),
    ),
    _scenario(
        name="time_out_of_an_idempotent_call",
        plan="profile",
        repair=_BY_ITSELF,
        why="under another key the work would be done twice, which the office's log shows",
        tools={"create_employee_profile": {"timeout": 1}},
        faults={"create_employee_profile": {"delay": 30, "times": 1}},
        oracle=Oracle(
            DONE,
            calls={"create_employee_profile": 4},
            effects={"create_employee_profile": 1},
            state={"profiles": (PROFILE,)},
            asked=False,
        ),
    ),
    _scenario(
        name="busy_lock",
        plan="badge",
        why="the lock lasts for 20 seconds by the office's clock, and no other call removes it",
        before=KNOWN,
        faults={
            "grant_access": {
                "status": 409,
                "until": 20,
                "body": _refusal(
                    "the record is locked by another change: try again later", "locked"
                ),
            }
        },
        repair={"mode": "propose", "write": True},
        person=Person(accepts=(asks("L1"), retries("L1")), confirms=True, takes=60.0),
        writes=({"op": "set_retry", "listener_id": "L1", "retry": {"initial": 20}},),
        oracle=Oracle(
            DONE,
            calls={"grant_access": 8, "send_email": 1},
            effects={"grant_access": 1, "send_email": 1},
            state={"profiles": (PROFILE,), "badges": (_BADGE,), "mails": (_MAIL,)},
        ),
    ),
)

"""Five calls that the office refuses because something else has to come first, or is gone."""

from __future__ import annotations

from functools import partial
from typing import Final

from bench.repair.patterns import asks, inserts, sets
from bench.repair.scenario import DONE, KNOWN, PROFILE, USUAL_ID, WAITS, Oracle, Person, Scenario

_scenario = partial(Scenario, group="preconditions")
_NAMES: Final = ("id", "name", "email", "department")
PROFILE_FIRST: Final = inserts(
    "L1",
    "create_employee_profile",
    **{name: (f"{{001.context.{name}}}", PROFILE[name]) for name in _NAMES},
)
"""The one repair of a badge for somebody whom HR does not know."""

PRECONDITIONS: Final = (
    _scenario(
        name="no_profile",
        plan="badge",
        why="no badge without a profile, and none is made unless a person agrees to that very call",
        repair={"mode": "propose", "tools": ["create_employee_profile"]},
        person=Person(accepts=(PROFILE_FIRST,)),
        oracle=Oracle(
            DONE,
            calls={"grant_access": 2, "create_employee_profile": 1, "send_email": 1},
            effects={"grant_access": 1, "create_employee_profile": 1, "send_email": 1},
            state={
                "profiles": (PROFILE,),
                "badges": ({"employee_id": USUAL_ID},),
                "mails": ({"to": PROFILE["email"]},),
            },
            asked=True,
        ),
    ),
    _scenario(
        name="no_order",
        plan="ship",
        why="what is shipped must be the order that the repair has made, whose number it must read",
        repair={"mode": "propose", "tools": ["apply_computer"], "write": True},
        person=Person(
            accepts=(
                (
                    inserts(
                        "L1",
                        "apply_computer",
                        employee=("{001.context.name}", "Will Zhang"),
                        computer_model=("{001.context.computer_model}", "MacBook Pro"),
                    ),
                    sets("L1", order_id=tuple(f"{{R{n}.context.order_id}}" for n in (1, 2, 3))),
                ),
            )
        ),
        writes=(
            {
                "op": "insert_before",
                "listener_id": "L1",
                "task": {"task_id": "R1", "name": "Ordered"},
                "listener": {
                    "listener_id": "R1",
                    "listener_type": "tool",
                    "tool": "apply_computer",
                    "args": {
                        "employee": "{001.context.name}",
                        "computer_model": "{001.context.computer_model}",
                    },
                    "success_output": {
                        "task_id": "R1",
                        "status": "Done",
                        "context": {"order_id": "{{result.order_id}}"},
                    },
                },
            },
            {
                "op": "set_args",
                "listener_id": "L1",
                "set": {"order_id": "{R1.context.order_id}"},
            },
        ),
        oracle=Oracle(
            DONE,
            calls={"outbound": 2, "apply_computer": 1},
            effects={"outbound": 1, "apply_computer": 1},
            state={
                "orders": ({"employee": "Will Zhang", "computer_model": "MacBook Pro"},),
                "outbounds": ({"order_id": "PC-0001"},),
            },
            asked=True,
        ),
    ),
    _scenario(
        name="name_taken",
        plan="account",
        why="any other name would be taken, but only a person can say which it is to be",
        before=(("create_account", {"username": "will.zhang", "department": "Sales"}),),
        person=Person(says={"username": "will.zhang2"}, accepts=(asks("L1", "username"),)),
        oracle=Oracle(
            DONE,
            calls={"create_account": 3},
            effects={"create_account": 1},
            state={
                "accounts": (
                    {"username": "will.zhang", "department": "Sales"},
                    {"username": "will.zhang2", "department": "Engineering"},
                )
            },
            asked=True,
        ),
    ),
    _scenario(
        name="empty_stock",
        plan="computer",
        why="a second order, or a mail that all is well, would be seen; nothing fills the stock",
        faults={"outbound": {"stock": 0}},
        person=Person(accepts=(asks("L2"),)),
        oracle=Oracle(
            WAITS,
            calls={"apply_computer": 1, "outbound": 6},
            effects={"apply_computer": 1},
            state={"orders": ({"computer_model": "MacBook Pro"},)},
            asked=True,
        ),
    ),
    _scenario(
        name="permission_first",
        plan="laboratory",
        why="only that permission, until the day in the run's data, opens that area",
        before=KNOWN,
        repair={"mode": "propose", "tools": ["request_permission"], "write": True},
        faults={
            "grant_access": {
                "status": 409,
                "until_called": "request_permission",
                "body": {
                    "success": False,
                    "error": "the laboratory is for those who have the permission 'laboratory': "
                    "request_permission comes first",
                    "code": "permission_missing",
                },
            }
        },
        person=Person(
            says={"permissions": ["laboratory"], "until": "2030-12-31"},
            accepts=(
                inserts(
                    "L1",
                    "request_permission",
                    employee=("{001.context.name}", "Will Zhang", None),
                    permissions=(["laboratory"], None),
                    until=("{001.context.until}", "2030-12-31", None),
                ),
            ),
        ),
        writes=(
            {
                "op": "insert_before",
                "listener_id": "L1",
                "task": {"task_id": "R1", "name": "Permission requested"},
                "listener": {
                    "listener_id": "R1",
                    "listener_type": "tool",
                    "tool": "request_permission",
                    "args": {
                        "employee": "{001.context.name}",
                        "permissions": ["laboratory"],
                        "until": "{001.context.until}",
                    },
                },
            },
        ),
        oracle=Oracle(
            DONE,
            calls={"grant_access": 2, "request_permission": 1},
            effects={"grant_access": 1, "request_permission": 1},
            state={
                "profiles": (PROFILE,),
                "permissions": ({"permissions": ["laboratory"], "until": "2030-12-31"},),
                "badges": ({"employee_id": USUAL_ID, "area": "laboratory"},),
            },
            asked=True,
        ),
    ),
)

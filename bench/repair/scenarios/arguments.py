"""Eight calls that are refused for what they were given."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from bench.repair.patterns import asks, sets
from bench.repair.scenario import DONE, KNOWN, PROFILE, USUAL_ID, Oracle, Person, Scenario

_scenario = partial(Scenario, group="arguments")
_TEXT: Final = {"type": "string", "minLength": 1}
_MODELS: Final = ["MacBook Pro 14", "ThinkPad X1 Carbon", "Dell XPS 13"]


def _takes(required: list[str], **properties: Any) -> dict[str, Any]:
    """A declaration whose tool takes these arguments and no others."""
    schema = {"type": "object", "properties": properties, "required": required}
    return {"parameters": {**schema, "additionalProperties": False}}


ARGUMENTS: Final = (
    _scenario(
        name="renamed_argument",
        plan="badge",
        why="the service takes the number under its new name only, and nobody may be bothered",
        repair={"mode": "auto", "auto": ["rename"]},
        before=KNOWN,
        tools={
            "grant_access": _takes(
                ["employee_no"], employee_no={**_TEXT, "title": "工号 (employee id)"}, area=_TEXT
            )
        },
        faults={"grant_access": {"rename": {"args": {"employee_id": "employee_no"}}}},
        oracle=Oracle(
            DONE,
            calls={"grant_access": 3, "send_email": 1},
            effects={"grant_access": 1, "send_email": 1},
            state={
                "profiles": (PROFILE,),
                "badges": ({"employee_id": USUAL_ID},),
                "mails": ({"to": PROFILE["email"]},),
            },
            asked=False,
        ),
    ),
    _scenario(
        name="mistyped_argument",
        plan="claim",
        why="cash pays a number only, once, and a consent to a text is no consent to a number",
        person=Person(
            says={"amount": 420},
            approves={
                "pay_expense": {
                    "employee": "Will Zhang",
                    "amount": ("420", 420),
                    "purpose": "taxi",
                }
            },
            accepts=(asks("L1", "amount"), sets("L1", amount=(420,))),
        ),
        oracle=Oracle(
            DONE,
            calls={"pay_expense": 2, "send_email": 1},
            effects={"pay_expense": 1, "send_email": 1},
            state={
                "payments": ({"employee": "Will Zhang", "amount": 420},),
                "mails": ({"subject": "Paid"},),
            },
            asked=True,
        ),
    ),
    _scenario(
        name="new_enumeration",
        plan="literal_order",
        why="only the full name of the model is taken, and only one of three is the right one",
        tools={
            "apply_computer": _takes(
                ["employee", "computer_model"],
                employee=_TEXT,
                computer_model={"type": "string", "title": "电脑型号", "enum": _MODELS},
            )
        },
        faults={"apply_computer": {"expects": {"computer_model": {"enum": _MODELS}}}},
        person=Person(
            says={"computer_model": "MacBook Pro 14"},
            accepts=(asks("L1", "computer_model"), sets("L1", computer_model=("MacBook Pro 14",))),
        ),
        oracle=Oracle(
            DONE,
            calls={"apply_computer": 3},
            effects={"apply_computer": 1},
            state={"orders": ({"employee": "Will Zhang", "computer_model": "MacBook Pro 14"},)},
            asked=True,
        ),
    ),
    _scenario(
        name="new_required_argument",
        plan="order",
        why="nobody but a person knows the cost centre, and the office keeps it with the order",
        tools={
            "apply_computer": _takes(
                ["employee", "computer_model", "cost_center"],
                employee=_TEXT,
                computer_model=_TEXT,
                cost_center={**_TEXT, "title": "成本中心 (cost centre)"},
            )
        },
        faults={"apply_computer": {"expects": {"cost_center": {"type": "string"}}}},
        person=Person(says={"cost_center": "CC-7"}, accepts=(asks("L1", "cost_center"),)),
        oracle=Oracle(
            DONE,
            calls={"apply_computer": 2},
            effects={"apply_computer": 1},
            state={"orders": ({"computer_model": "MacBook Pro", "cost_center": "CC-7"},)},
            asked=True,
        ),
    ),
    _scenario(
        name="date_format",
        plan="permission",
        why="the very day is kept, written as the service wants it",
        values={"until": "31.12.2030"},
        person=Person(
            says={"until": "2030-12-31"},
            accepts=(asks("L1", "until"), sets("L1", until=("2030-12-31",))),
        ),
        oracle=Oracle(
            DONE,
            calls={"request_permission": 2},
            effects={"request_permission": 1},
            state={"permissions": ({"permissions": ["vpn"], "until": "2030-12-31"},)},
            asked=True,
        ),
    ),
    _scenario(
        name="too_long",
        plan="long_account",
        why="a name that was cut off would be taken too, but is not the one that a person gives",
        tools={
            "create_account": _takes(
                ["username", "department"],
                username={**_TEXT, "title": "用户名", "maxLength": 20},
                department=_TEXT,
            )
        },
        faults={"create_account": {"expects": {"username": {"maxLength": 20}}}},
        person=Person(says={"username": "will.zhang"}, accepts=(asks("L1", "username"),)),
        oracle=Oracle(
            DONE,
            calls={"create_account": 3},
            effects={"create_account": 1},
            state={"accounts": ({"username": "will.zhang", "department": "Engineering"},)},
            asked=True,
        ),
    ),
    _scenario(
        name="read_from_the_wrong_task",
        plan="wrong_task",
        why="what is shipped is the order of this run, and ordering anew would be seen",
        repair={"mode": "propose", "write": True},
        person=Person(
            says={"order_id": "PC-0001"},
            accepts=(asks("L3", "order_id"), sets("L3", order_id=("{003.context.order_id}",))),
        ),
        writes=(
            {
                "op": "set_args",
                "listener_id": "L3",
                "set": {"order_id": "{003.context.order_id}"},
            },
        ),
        oracle=Oracle(
            DONE,
            calls={"create_employee_profile": 1, "apply_computer": 1, "outbound": 3},
            effects={"create_employee_profile": 1, "apply_computer": 1, "outbound": 1},
            state={
                "profiles": (PROFILE,),
                "orders": ({"employee": "Will Zhang"},),
                "outbounds": ({"order_id": "PC-0001"},),
            },
            asked=True,
        ),
    ),
    _scenario(
        name="wrong_unit",
        plan="weight",
        why="2300 is refused as too heavy, and only 2.3 is the weight in the unit that is wanted",
        tools_then={"outbound": _takes(["order_id", "weight_kg"], order_id=_TEXT, weight_kg={})},
        tools={
            "outbound": _takes(
                ["order_id", "weight_kg"],
                order_id=_TEXT,
                weight_kg={"type": "number", "title": "重量 (weight in kg)", "maximum": 40},
            )
        },
        faults={"outbound": {"expects": {"weight_kg": {"type": "number", "maximum": 40}}}},
        person=Person(
            says={"weight_kg": 2.3},
            accepts=(asks("L2", "weight_kg"), sets("L2", weight_kg=(2.3,))),
        ),
        oracle=Oracle(
            DONE,
            calls={"apply_computer": 1, "outbound": 3},
            effects={"apply_computer": 1, "outbound": 1},
            state={
                "orders": ({"employee": "Will Zhang"},),
                "outbounds": ({"order_id": "PC-0001", "weight_kg": 2.3},),
            },
            asked=True,
        ),
    ),
)

"""Twelve prompts for which no plan is loaded, with the plan that each of them should come to.

A person agrees to a plan that names no other tools than those that were wanted, and to each call
that acts, with the very arguments that were asked for. `sketch` is what a good model writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bench.repair.scenario import DONE, KNOWN, PROFILE, USUAL_ID, Oracle, Person

_LOOKS: Final = ("query_profile", "query_access", "check_outbound_status")


@dataclass(frozen=True, slots=True)
class Prompt:
    """`tools` are called in this order; `why` says what keeps the oracle from being satisfied by
    luck."""

    name: str
    text: str
    why: str
    tools: tuple[str, ...]
    oracle: Oracle
    person: Person
    sketch: dict[str, Any]
    before: tuple[tuple[str, Mapping[str, Any]], ...] = field(default=())


def _step(number: int, tool: str, *after: int, **args: Any) -> dict[str, Any]:
    return {"id": f"s{number}", "tool": tool, "args": args, "after": [f"s{one}" for one in after]}


def _prompt(
    name: str,
    text: str,
    why: str,
    steps: list[dict[str, Any]],
    state: Mapping[str, Any],
    approves: Mapping[str, Mapping[str, Any]],
    *,
    check: tuple[tuple[str, Mapping[str, Any]], ...] = (),
    says: Mapping[str, Any] | None = None,
    before: tuple[tuple[str, Mapping[str, Any]], ...] = (),
) -> Prompt:
    tools = tuple(one["tool"] for one in steps)
    acting = dict.fromkeys((one for one in tools if one not in _LOOKS), 1)
    wanted = frozenset({*tools, *_LOOKS})
    looks = [{"tool": tool, "args": args} for tool, args in check]
    return Prompt(
        name,
        text,
        why,
        tools,
        Oracle(DONE, calls=acting, effects=acting, state=state, asked=True),
        Person(says=says or {}, approves=approves, confirms=True, tools=wanted),
        {"goal": text, "steps": steps, "check": looks},
        before,
    )


_WILL: Final = "Will Zhang"
_EMAIL: Final = PROFILE["email"]
_PROFILE_ARGS: Final = {**PROFILE, "id": (USUAL_ID, None)}
_ORDERED: Final = {"employee": _WILL, "computer_model": "MacBook Pro"}
_ACCOUNT: Final = {"username": "will.zhang", "department": "Engineering"}
_TAXI: Final = {"employee": _WILL, "amount": 420, "purpose": "taxi"}
_VPN: Final = {"employee": (_WILL, "张三", None), "permissions": ["vpn"], "until": "2030-12-31"}
_LAB: Final = {**_VPN, "permissions": ["laboratory"]}

PROMPTS: Final = (
    _prompt(
        "badge",
        f"Issue a badge for employee {USUAL_ID}.",
        "one badge, for that number",
        [_step(1, "grant_access", employee_id=USUAL_ID)],
        {"profiles": (PROFILE,), "badges": ({"employee_id": USUAL_ID},)},
        {"grant_access": {"employee_id": USUAL_ID, "area": ("office", None)}},
        check=(("query_access", {"employee_id": USUAL_ID}),),
        before=KNOWN,
    ),
    _prompt(
        "computer",
        "Order a MacBook Pro for Will Zhang.",
        "one order, of that model",
        [_step(1, "apply_computer", **_ORDERED)],
        {"orders": (_ORDERED,)},
        {"apply_computer": _ORDERED},
    ),
    _prompt(
        "shipped_computer",
        "Order a MacBook Pro for Will Zhang and have it shipped.",
        "what is shipped is the order that was made, whose number nobody has said",
        [
            _step(1, "apply_computer", **_ORDERED),
            _step(2, "outbound", 1, order_id="{s1.order_id}"),
        ],
        {"orders": (_ORDERED,), "outbounds": ({"order_id": "PC-0001"},)},
        {"apply_computer": _ORDERED, "outbound": {"order_id": "PC-0001"}},
        check=(("check_outbound_status", {"order_id": "{s1.order_id}"}),),
    ),
    _prompt(
        "mail",
        f"Send {_EMAIL} a mail with the subject Desk that says: Your desk is A-12.",
        "one mail, to that address and in these words",
        [_step(1, "send_email", to=_EMAIL, subject="Desk", content="Your desk is A-12.")],
        {"mails": ({"to": _EMAIL, "subject": "Desk", "content": "Your desk is A-12."},)},
        {"send_email": {"to": _EMAIL, "subject": "Desk", "content": "Your desk is A-12."}},
    ),
    _prompt(
        "account",
        "Create the account will.zhang in Engineering.",
        "one account of that name and department",
        [_step(1, "create_account", **_ACCOUNT)],
        {"accounts": (_ACCOUNT,)},
        {"create_account": _ACCOUNT},
    ),
    _prompt(
        "permission",
        "为张三申请 VPN 权限（vpn），有效期到 2030-12-31。",
        "that permission until that day",
        [_step(1, "request_permission", employee="张三", permissions=["vpn"], until="2030-12-31")],
        {"permissions": ({"permissions": ["vpn"], "until": "2030-12-31"},)},
        {"request_permission": _VPN},
    ),
    _prompt(
        "expense",
        "Pay Will Zhang 420 for the taxi.",
        "one payment of that amount, which a person has seen",
        [_step(1, "pay_expense", **_TAXI)],
        {"payments": ({"employee": _WILL, "amount": 420},)},
        {"pay_expense": {**_TAXI, "purpose": ("taxi", "the taxi", "Taxi")}},
    ),
    _prompt(
        "look",
        f"Does HR know the employee {USUAL_ID}?",
        "the look was made, and nothing else at all",
        [_step(1, "query_profile", employee_id=USUAL_ID)],
        {"profiles": (PROFILE,)},
        {},
        before=KNOWN,
    ),
    _prompt(
        "onboarding",
        f"Take on Will Zhang ({USUAL_ID}, {_EMAIL}, Engineering): make a profile, issue a badge, "
        "and send a mail with the subject Welcome that says: Welcome.",
        "each step needs the one before, and each is done once",
        [
            _step(1, "create_employee_profile", **PROFILE),
            _step(2, "grant_access", 1, employee_id="{s1.employee_id}"),
            _step(3, "send_email", 2, to=_EMAIL, subject="Welcome", content="Welcome."),
        ],
        {
            "profiles": (PROFILE,),
            "badges": ({"employee_id": USUAL_ID},),
            "mails": ({"to": _EMAIL, "subject": "Welcome"},),
        },
        {
            "create_employee_profile": _PROFILE_ARGS,
            "grant_access": {"employee_id": USUAL_ID, "area": ("office", None)},
            "send_email": {"to": _EMAIL, "subject": "Welcome", "content": ("Welcome.", "Welcome")},
        },
        check=(("query_access", {"employee_id": "{s1.employee_id}"}),),
    ),
    _prompt(
        "shipment",
        "Has the order PC-0001 been shipped?",
        "the look was made, and nothing was shipped for it",
        [_step(1, "check_outbound_status", order_id="PC-0001")],
        {"orders": (_ORDERED,)},
        {},
        before=(("apply_computer", _ORDERED),),
    ),
    _prompt(
        "laboratory",
        f"Let Will Zhang ({USUAL_ID}) into the area laboratory: request the permission laboratory "
        "until 2030-12-31 first.",
        "the permission comes before the badge, and the badge is for that area",
        [
            _step(
                1,
                "request_permission",
                employee=_WILL,
                permissions=["laboratory"],
                until="2030-12-31",
            ),
            _step(2, "grant_access", 1, employee_id=USUAL_ID, area="laboratory"),
        ],
        {
            "profiles": (PROFILE,),
            "permissions": ({"permissions": ["laboratory"], "until": "2030-12-31"},),
            "badges": ({"employee_id": USUAL_ID, "area": "laboratory"},),
        },
        {
            "request_permission": _LAB,
            "grant_access": {"employee_id": USUAL_ID, "area": "laboratory"},
        },
        before=KNOWN,
    ),
    _prompt(
        "unsaid_model",
        "为 Will Zhang 申请一台电脑。",
        "nobody has said which model, so that only a person's answer can be in the order",
        [_step(1, "apply_computer", employee=_WILL)],
        {"orders": ({"employee": _WILL, "computer_model": "ThinkPad X1"},)},
        {"apply_computer": {"employee": _WILL, "computer_model": "ThinkPad X1"}},
        says={"computer_model": "ThinkPad X1"},
    ),
)

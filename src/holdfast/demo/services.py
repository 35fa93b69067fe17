"""The services behind the mock office's counter: what each tool accepts and what it does.

All state is in memory and every number is counted up from 1, so that two offices given the same
calls answer alike. A profile under an id that HR knows is brought up to date, not refused: the
same person may be taken on in any number of trial runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from http import HTTPStatus
from typing import Any, TypeAlias, cast

Args: TypeAlias = dict[str, Any]
Complaint: TypeAlias = str | None

LARGEST_AMOUNT = 50_000


class Refusal(Exception):
    """A request that is not granted; nothing changed."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class Services:
    """What the office knows, and what its tools do to it."""

    def __init__(self) -> None:
        self.profiles: dict[str, Args] = {}
        self.badges: dict[str, Args] = {}
        self.permissions: dict[str, Args] = {}
        self.accounts: dict[str, Args] = {}
        self.orders: dict[str, Args] = {}
        self.outbounds: dict[str, Args] = {}
        self.mails: dict[str, Args] = {}
        self.payments: dict[str, Args] = {}

    def create_employee_profile(self, args: Args) -> Args:
        employee_id = args.get("id") or self._free_employee_id()
        known = employee_id in self.profiles
        self.profiles[employee_id] = {**args, "id": employee_id}
        return {"employee_id": employee_id, "created": not known, **_without(args, "id")}

    def _free_employee_id(self) -> str:
        candidates = (f"E{n:04}" for n in itertools.count(1))
        return next(each for each in candidates if each not in self.profiles)

    def query_profile(self, args: Args) -> Args:
        profile = self.profiles.get(args["employee_id"])
        return {"exists": profile is not None, "profile": profile}

    def grant_access(self, args: Args) -> Args:
        employee_id = args["employee_id"]
        if employee_id not in self.profiles:
            raise conflict(f"HR has no employee {employee_id!r}: create the profile first")
        number = len(self.badges) + 1
        granted = {"area": "office", **args, "badge": f"B{number:04}"}
        return {"access_id": _file(self.badges, "ACC", granted), **granted}

    def query_access(self, args: Args) -> Args:
        return _newest(self.badges, "access_id", args)

    def request_permission(self, args: Args) -> Args:
        return {"request_id": _file(self.permissions, "PER", args), **args}

    def create_account(self, args: Args) -> Args:
        username = args["username"]
        if any(account["username"] == username for account in self.accounts.values()):
            raise conflict(f"the user name {username!r} is taken: choose another")
        return {"account_id": _file(self.accounts, "USR", args), **args}

    def apply_computer(self, args: Args) -> Args:
        order_id = _file(self.orders, "PC", args)
        return {"order_id": order_id, "model": args["computer_model"], "employee": args["employee"]}

    def outbound(self, args: Args) -> Args:
        if args["order_id"] not in self.orders:
            raise conflict(f"IT has no order {args['order_id']!r}: apply for the computer first")
        return {"outbound_id": _file(self.outbounds, "OUT", args), "status": "shipped", **args}

    def check_outbound_status(self, args: Args) -> Args:
        found = _newest(self.outbounds, "outbound_id", args)
        return {**found, "status": "shipped" if found["exists"] else "not_shipped"}

    def send_email(self, args: Args) -> Args:
        return {"message_id": _file(self.mails, "MSG", args), "to": args["to"]}

    def pay_expense(self, args: Args) -> Args:
        return {"payment_id": _file(self.payments, "PAY", args), **args}


def _file(drawer: dict[str, Args], prefix: str, entry: Args) -> str:
    number = f"{prefix}-{len(drawer) + 1:04}"
    drawer[number] = entry
    return number


def _newest(drawer: dict[str, Args], number: str, wanted: Args) -> Args:
    found = [(each, entry) for each, entry in drawer.items() if wanted.items() <= entry.items()]
    newest, entry = found[-1] if found else (None, wanted)
    return {"exists": bool(found), "count": len(found), number: newest, **entry}


def _without(args: Args, name: str) -> Args:
    return {key: value for key, value in args.items() if key != name}


def bad(message: str) -> Refusal:
    return Refusal(HTTPStatus.BAD_REQUEST, message)


def conflict(message: str) -> Refusal:
    return Refusal(HTTPStatus.CONFLICT, message)


def _text(value: object) -> Complaint:
    return None if isinstance(value, str) and value.strip() else "must be a text, not empty"


def _address(value: object) -> Complaint:
    name, _, domain = value.partition("@") if isinstance(value, str) else ("", "", "")
    return None if name and domain else "must be a mail address such as someone@example.com"


def _amount(value: object) -> Complaint:
    fine = type(value) in (int, float) and 0 < cast(float, value) <= LARGEST_AMOUNT
    return None if fine else f"must be a number above 0, at most {LARGEST_AMOUNT}"


def _texts(value: object) -> Complaint:
    fine = isinstance(value, list) and value and not any(_text(each) for each in value)
    return None if fine else "must be a list of texts, not empty"


def _date(value: object) -> Complaint:
    with suppress(ValueError, TypeError):
        date.fromisoformat(cast(str, value))
        return None
    return "must be a date such as 2026-12-31"


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its work, the check of each argument, and whether its service honours keys."""

    act: Callable[[Services, Args], Args]
    required: Mapping[str, Callable[[object], Complaint]]
    optional: Mapping[str, Callable[[object], Complaint]] = field(default_factory=dict)
    honours_keys: bool = False

    def complaints(self, args: Args) -> list[str]:
        checks = {**self.required, **self.optional}
        missing = [f"{name} is missing" for name in self.required if name not in args]
        unknown = [f"{name} is not an argument of this tool" for name in args if name not in checks]
        judged = [(name, checks[name](args[name])) for name in args if name in checks]
        return missing + unknown + [f"{name} {wrong}" for name, wrong in judged if wrong]


TOOLS: Mapping[str, Tool] = {
    "create_employee_profile": Tool(
        Services.create_employee_profile,
        {"name": _text, "email": _address, "department": _text},
        {"id": _text},
        honours_keys=True,
    ),
    "query_profile": Tool(Services.query_profile, {"employee_id": _text}),
    "grant_access": Tool(
        Services.grant_access, {"employee_id": _text}, {"area": _text}, honours_keys=True
    ),
    "query_access": Tool(Services.query_access, {"employee_id": _text}),
    "request_permission": Tool(
        Services.request_permission,
        {"permissions": _texts, "until": _date},
        {"employee": _text},
        honours_keys=True,
    ),
    "create_account": Tool(Services.create_account, {"username": _text, "department": _text}),
    "apply_computer": Tool(Services.apply_computer, {"employee": _text, "computer_model": _text}),
    "outbound": Tool(Services.outbound, {"order_id": _text}),
    "check_outbound_status": Tool(Services.check_outbound_status, {"order_id": _text}),
    "send_email": Tool(Services.send_email, {"to": _address, "subject": _text, "content": _text}),
    "pay_expense": Tool(
        Services.pay_expense, {"employee": _text, "amount": _amount, "purpose": _text}
    ),
}

"""How faults are told to the mock office: read whole, and refused with everything that is wrong.

    {"faults": {"grant_access": {"status": 503, "times": 5},
                "outbound": [{"rename": {"result": {"status": "state"}}}, {"cut": true}]}}

A fault has one of the kinds below, or only a delay; what bounds it may stand beside each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from holdfast.demo.expectations import rule_complaints
from holdfast.demo.faults import Fault, Quota
from holdfast.demo.services import TOOLS, Args, Complaint

LONGEST_DELAY: Final = 3_600.0
LONGEST_TIME: Final = 366 * 86_400.0
LARGEST_ANSWER: Final = 10_000_000

_WRONG_SHAPE: Final = 'send {"faults": {tool: {...} or [{...}, ...]}}'


class FaultsRefused(Exception):
    """All that is wrong with what was told."""

    def __init__(self, complaints: list[str]) -> None:
        super().__init__("; ".join(complaints))
        self.complaints = complaints


def read_faults(raw: object, now: float) -> dict[str, list[Fault]]:
    """The faults by tool, or FaultsRefused."""
    if not isinstance(raw, dict) or not raw:
        raise FaultsRefused([_WRONG_SHAPE])
    complaints = [one for tool, told in raw.items() for one in _complaints(tool, told)]
    if complaints:
        raise FaultsRefused(complaints)
    return {tool: [_fault(one, now) for one in _listed(told)] for tool, told in raw.items()}


def _listed(told: Any) -> list[Any]:
    return told if isinstance(told, list) else [told]


def _complaints(tool: str, told: object) -> Iterator[str]:
    if tool not in TOOLS:
        yield f"there is no tool {tool!r}; there are {', '.join(sorted(TOOLS))}"
        return
    for index, one in enumerate(_listed(told)):
        for wrong in _complaints_of(tool, one):
            yield f"{tool}[{index}]: {wrong}"


def _complaints_of(tool: str, told: object) -> Iterator[str]:
    if not isinstance(told, dict) or not told:
        yield "must be an object that says what is wrong with the tool"
        return
    for name in told:
        if name not in _CHECKS:
            yield f"{name} is not known; known are {', '.join(_CHECKS)}"
        elif wrong := _CHECKS[name](told[name]):
            yield f"{name} {wrong}"
    kinds = [name for name in told if name in _KINDS]
    if len(kinds) > 1:
        yield f"{' and '.join(kinds)} cannot be one fault: make a list of them"
    elif not kinds and "delay" not in told:
        yield f"names no fault: give one of {', '.join(_KINDS)}, or a delay"
    if told.keys() & {"headers", "body"} and not told.keys() & _REFUSING:
        yield f"headers and body belong to one of {', '.join(sorted(_REFUSING))}"
    yield from _complaints_of_names(tool, told)


def _complaints_of_names(tool: str, told: Args) -> Iterator[str]:
    """Arguments are renamed that are there, to names that are not."""
    rename = told.get("rename")
    args = rename.get("args", {}) if isinstance(rename, dict) else {}
    known = {**TOOLS[tool].required, **TOOLS[tool].optional}
    for old, new in args.items() if isinstance(args, dict) else ():
        if old not in known:
            yield f"rename: {tool} has no argument {old}; it has {', '.join(known)}"
        if new in known:
            yield f"rename: {tool} has an argument {new} already"


def _fault(told: Args, now: float) -> Fault:
    rename, quota = told.get("rename", {}), told.get("quota")
    same = (*_BOUNDS, "status", "headers", "body", "stock", "expects", "corrupt", "oversize")
    return Fault(
        as_told=told,
        since=now,
        token_expired="token" in told,
        quota=None if quota is None else Quota(**{"hint": True, **_in_our_words(quota)}),
        renamed_args=rename.get("args", {}),
        renamed_result=rename.get("result", {}),
        **{name: told[name] for name in (*same, *_FLAGS) if name in told},
    )


def _in_our_words(quota: Args) -> Args:
    return {("hint" if name == "retry_after" else name): value for name, value in quota.items()}


def _whole(least: int, most: float = float("inf")) -> Callable[[object], Complaint]:
    bound = f"from {least}" if most == float("inf") else f"from {least} to {most:.0f}"

    def check(value: object) -> Complaint:
        fine = type(value) is int and least <= value <= most
        return None if fine else f"must be a whole number {bound}"

    return check


def seconds(most: float) -> Callable[[object], Complaint]:
    """A check of a number of seconds from 0 to `most`."""

    def check(value: object) -> Complaint:
        fine = type(value) in (int, float) and 0 <= cast(float, value) <= most
        return None if fine else f"must be seconds from 0 to {most:.0f}"

    return check


def _true(value: object) -> Complaint:
    return None if value is True else "must be true; leave it out otherwise"


def _anything(value: object) -> Complaint:
    return None


def _header_lines(value: object) -> Complaint:
    fine = isinstance(value, dict) and all(
        isinstance(text, str) and f"{name}{text}".isascii() and f"{name}{text}".isprintable()
        for name, text in value.items()
    )
    return None if fine else "must be names with printable ASCII texts"


def _expired(value: object) -> Complaint:
    return None if value == "expired" else "must be expired"


def _tool(value: object) -> Complaint:
    return None if value in TOOLS else "must name a tool"


def _fields(value: object) -> Complaint:
    return None if isinstance(value, dict) and value else "must be fields with values, not empty"


def _quota(value: object) -> Complaint:
    checks = {"limit": _whole(0), "window": seconds(LONGEST_TIME), "retry_after": _boolean}
    if not isinstance(value, dict) or not {"limit", "window"} <= value.keys() <= checks.keys():
        return "must have a limit and a window, and may have retry_after"
    wrong = [(name, checks[name](one)) for name, one in value.items()]
    return ", ".join(f"{name} {one}" for name, one in wrong if one) or None


def _boolean(value: object) -> Complaint:
    return None if isinstance(value, bool) else "must be true or false"


def _rename(value: object) -> Complaint:
    if not isinstance(value, dict) or not value or not value.keys() <= {"args", "result"}:
        return "must have args or result"
    fine = all(_are_names(names) for names in value.values())
    return None if fine else "must give each old name a new one, all of them different"


def _are_names(names: object) -> bool:
    if not isinstance(names, dict) or not names:
        return False
    new = list(names.values())
    return all(isinstance(one, str) and one for one in new) and len({*new, *names}) == 2 * len(new)


def _expects(value: object) -> Complaint:
    if not isinstance(value, dict) or not value:
        return "must give arguments rules"
    wrong = [f"{name}: {one}" for name, rule in value.items() for one in rule_complaints(rule)]
    return "; ".join(wrong) or None


_KINDS: Final[Mapping[str, Callable[[object], Complaint]]] = {
    "status": _whole(400, 599),
    "token": _expired,
    "quota": _quota,
    "stock": _whole(0),
    "rename": _rename,
    "expects": _expects,
    "silent": _true,
    "corrupt": _fields,
    "html": _true,
    "oversize": _whole(1, LARGEST_ANSWER),
    "cut": _true,
}
_FLAGS: Final = ("silent", "html", "cut")
_REFUSING: Final = frozenset({"status", "token", "quota", "stock"})
_BOUNDS: Final[Mapping[str, Callable[[object], Complaint]]] = {
    "delay": seconds(LONGEST_DELAY),
    "times": _whole(1),
    "until": seconds(LONGEST_TIME),
    "until_called": _tool,
}
_CHECKS: Final[Mapping[str, Callable[[object], Complaint]]] = {
    **_KINDS,
    **_BOUNDS,
    "headers": _header_lines,
    "body": _anything,
}

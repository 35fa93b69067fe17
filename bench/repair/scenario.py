"""What a scenario says: how a run comes to fail, who is asked, and how it should come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from bench.repair.patterns import Open

PLANS: Final = Path(__file__).parent / "plans"
USUAL_ID: Final = "WZ001"

DONE: Final = "done"
WAITS: Final = "waits for a person"

LOOKS: Final = ("query_", "check_")
MOST_LOOKS: Final = 12
"""How often each tool that only looks may be called in any scenario."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Person:
    """What the person who is asked answers.

    `says` fills in forms. `approves` has the calls to consent to, by tool: arguments that must be
    so, a tuple for one of several, None among them for one that may be left out. `accepts` has
    the repairs to agree to, as patterns. `confirms` answers yes or no, and None nothing at all;
    never a yes to other than these `tools`, if there are any. A person answers after `takes`
    seconds, and only what is asked of one of their `roles`; a `silent` one answers nothing. Another
    person `contradicts` what this one has refused.
    """

    says: Mapping[str, Any] = field(default_factory=dict)
    approves: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    accepts: tuple[Any, ...] = ()
    confirms: bool | None = None
    tools: frozenset[str] = frozenset()
    takes: float = 0.0
    roles: frozenset[str] = frozenset({"operator", "approver"})
    silent: bool = False
    contradicts: bool = False


@dataclass(frozen=True, slots=True)
class Oracle:
    """How it should come out.

    `calls` is how often each tool may be called at most; any other but a look is forbidden.
    `effects` is how often each does its work, no less and no more. `state` has what the office's
    drawers hold at the end, each entry by what must be in it; drawers that are not named are empty.
    `asked` says whether a person must be asked, or must not. `never` are texts that no call may
    carry and no question may show as they are.
    """

    end: str
    calls: Mapping[str, int] = field(default_factory=dict)
    effects: Mapping[str, int] = field(default_factory=dict)
    state: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    asked: bool | None = None
    never: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run that fails; `why` says what keeps its oracle from being satisfied by luck.

    `plan` is a file in `plans`, which was written when the catalogue said `tools_then`; now it says
    `tools`. Both change declarations of `demo/tools.yaml`. `before` are calls that the office was
    asked before the run. A tool whose endpoint is `DOOR` is behind a port that is closed until
    `door_opens` seconds have passed. `writes` is what a good model would write where it may.
    """

    name: str
    group: str
    plan: str
    why: str
    oracle: Oracle
    person: Person = Person()
    values: Mapping[str, Any] = field(default_factory=dict)
    repair: Mapping[str, Any] = field(default_factory=lambda: {"mode": "propose"})
    faults: Mapping[str, Any] = field(default_factory=dict)
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tools_then: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    before: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    door_opens: float = 0.0
    writes: tuple[dict[str, Any], ...] = ()

    def plan_text(self) -> str:
        return (PLANS / f"{self.plan}.yaml").read_text(encoding="utf-8")


DOOR: Final = "${DOOR_URL}/tool"

PROFILE: Final = {
    "id": USUAL_ID,
    "name": "Will Zhang",
    "email": "will.zhang@example.com",
    "department": "Engineering",
}
KNOWN: Final = (("create_employee_profile", PROFILE),)
"""HR knows the person before the run begins."""


def employee_id(seed: int) -> str:
    """Each seed has another employee, so that nothing can be right by heart."""
    return f"WZ{seed % 1000:03}"


def seeded(one: T, seed: int) -> T:
    """The same with that seed's employee wherever the usual one stands."""
    number = employee_id(seed)
    mapped: T = _mapped(one, lambda text: text.replace(USUAL_ID, number))
    return mapped


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case Mapping():
            parts = {name: _mapped(one, change) for name, one in value.items()}
            return Open(parts) if isinstance(value, Open) else parts
        case tuple() | list():
            return type(value)(_mapped(one, change) for one in value)
    if hasattr(value, "__dataclass_fields__"):
        parts = {one.name: _mapped(getattr(value, one.name), change) for one in fields(value)}
        return replace(value, **parts)
    return value

"""Who is asking, and what they may do.

A principal holds roles everywhere and, by grants, further roles for single plans and agents.
Five roles carry permissions, as the table says. Any other role is free text: it permits
nothing by itself and only says whose question is whose ("finance").

Whoever writes a plan names the roles of its questions. So a role that an approval names is asked
for beside that of an approver and never in its place: nobody writes themselves into power.

What a principal may do with a run is asked by the name of the *root* run's plan or agent,
so that a person who may see a run may see all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal

from holdfast.model.interaction import InteractionType

Kind = Literal["person", "service"]


class Permission(StrEnum):
    READ = "read"
    OPERATE = "operate"
    ANSWER = "answer"
    AUTHOR = "author"
    ADMINISTER = "administer"


ADMIN: Final = "admin"
APPROVER: Final = "approver"
OPERATOR: Final = "operator"

ROLES: Final[Mapping[str, frozenset[Permission]]] = {
    "viewer": frozenset({Permission.READ}),
    OPERATOR: frozenset({Permission.READ, Permission.OPERATE, Permission.ANSWER}),
    APPROVER: frozenset({Permission.READ, Permission.ANSWER}),
    "author": frozenset({Permission.READ, Permission.AUTHOR}),
    ADMIN: frozenset(Permission),
}

APPROVES: Final = frozenset({APPROVER, ADMIN})
"""Who answers tool approvals; one that names a role is for those among them who hold it."""

ANSWERS: Final = frozenset({APPROVER, OPERATOR, ADMIN})
"""Who answers any other question that names no role."""

Grants = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Principal:
    """`id` is the text that journals and audit have as `by`; `via` names what proved it, and
    `until` is when that is no proof any more, if it says so itself.

    A grant's key is the id of a plan or agent, or a beginning of it and a star.
    """

    id: str
    name: str
    kind: Kind = "person"
    roles: frozenset[str] = frozenset()
    grants: Grants = field(default_factory=dict)
    via: str = ""
    until: float | None = field(default=None, compare=False)


def roles_for(principal: Principal, name: str | None) -> frozenset[str]:
    """The roles held for one plan or agent; those held everywhere when none is named."""
    if name is None:
        return principal.roles
    granted = (roles for key, roles in principal.grants.items() if _fits(key, name))
    return principal.roles.union(*granted)


def _fits(key: str, name: str) -> bool:
    return name.startswith(key[:-1]) if key.endswith("*") else key == name


def permitted(roles: frozenset[str]) -> frozenset[Permission]:
    return frozenset[Permission]().union(*(ROLES.get(role, frozenset()) for role in roles))


def may(principal: Principal, permission: Permission, name: str | None) -> bool:
    """Without a name the question is whether it is permitted everywhere."""
    return permission in permitted(roles_for(principal, name))


def may_somewhere(principal: Principal, permission: Permission) -> bool:
    """Whether there can be any plan or agent for which it is permitted."""
    held = principal.roles.union(*principal.grants.values())
    return permission in permitted(held)


def sees_all(principal: Principal) -> bool:
    return may(principal, Permission.READ, None)


def may_answer(
    principal: Principal,
    question_role: str | None,
    question_type: str,
    name: str,
    *,
    started_by: str | None,
    four_eyes: bool,
) -> str | None:
    """None when they may, or else why not, for them to read."""
    roles = roles_for(principal, name)
    approval = question_type == InteractionType.TOOL_APPROVAL
    if Permission.READ not in permitted(roles):
        return f"you may not see the runs of {name}: ask an admin for a role"
    if approval and principal.kind == "service":
        return "a service token does not approve calls: a person must answer this"
    if approval and four_eyes and principal.id == started_by:
        return "you want what this run does: somebody else must approve its calls"
    if approval and not roles & APPROVES:
        return _is_for(" and ".join(dict.fromkeys((APPROVER, question_role or APPROVER))))
    if question_role is not None:
        return None if roles & {question_role, ADMIN} else _is_for(question_role)
    return None if roles & ANSWERS else _is_for(f"{APPROVER} or {OPERATOR}")


def _is_for(role: str) -> str:
    return f"this question is for the role {role}"

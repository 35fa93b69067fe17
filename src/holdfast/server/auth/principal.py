"""Who is asking, and what they may do.

A principal holds roles everywhere and, by grants, further roles for single *subjects*: a plan, an
agent, all conversations, or a tool that plans call. A subject has its kind before its name
(`plan:apply_computer`), so that nothing is called like something of another kind.

A grant's key is a name, or a beginning of it and a star. With a kind before it (`agent:clerk`,
`tool:query_*`, `conversation:*`) it is for that kind; without one for plans and agents. `*` alone
is everything.

Five roles carry permissions, as the table says. Any other role is free text: it permits
nothing by itself and only says whose question is whose ("finance").

A plan's author names the roles of its questions. So a role that an approval names is asked
for beside that of an approver and never in its place: naming a role makes no approver.

What a principal may do with a run is asked by the subject of the *root* run, so that a person
who may see a run may see all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Final, Literal

from holdfast.i18n.message import msg
from holdfast.i18n.terms import role_name
from holdfast.language.strict import canonical_json
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


def role_for(permission: Permission) -> str:
    """The least role that gives it, for a refusal to name."""
    return next(role for role, permissions in ROLES.items() if permission in permissions)


APPROVES: Final = frozenset({APPROVER, ADMIN})
"""Who answers tool approvals; one that names a role is for those among them who hold it."""

ANSWERS: Final = frozenset({APPROVER, OPERATOR, ADMIN})
"""Who answers any other question that names no role."""

WANTS_IT: Final = msg("you want what this run does: another person must approve its calls")

Grants = Mapping[str, frozenset[str]]

PLAN: Final = "plan"
AGENT: Final = "agent"
CONVERSATION: Final = "conversation"
TOOL: Final = "tool"
GRANTED: Final = (PLAN, AGENT, CONVERSATION, TOOL)
"""The kinds that a grant may name."""

CONVERSATIONS: Final = f"{CONVERSATION}:"
"""The subject of all conversations: they have no names."""

_OF_RUNS: Final = {"plan": PLAN, "react": AGENT}


@dataclass(frozen=True)
class Principal:
    """`id` is the text that journals and audit have as `by`; `via` names what proved it, and
    `until` is when that is no proof any more, if it says so itself.
    """

    id: str
    name: str
    kind: Kind = "person"
    roles: frozenset[str] = frozenset()
    grants: Grants = field(default_factory=dict)
    via: str = ""
    until: float | None = field(default=None, compare=False)

    @cached_property
    def powers(self) -> str:
        """Everything that their requests are judged by, to be compared."""
        grants = {key: sorted(roles) for key, roles in self.grants.items()}
        return canonical_json([self.kind, sorted(self.roles), grants])


def plan(plan_id: str) -> str:
    return f"{PLAN}:{plan_id}"


def agent(agent_id: str) -> str:
    return f"{AGENT}:{agent_id}"


def tool(name: str) -> str:
    return f"{TOOL}:{name}"


def run_of(kind: str, name: str) -> str:
    """The subject of a run, by what the journal calls its kind and name."""
    return f"{_OF_RUNS[kind]}:{name}" if kind in _OF_RUNS else CONVERSATIONS


def named(subject: str) -> str:
    """As people are told of it."""
    kind, _, name = subject.partition(":")
    return name or f"{kind}s"


def kind_of(key: str) -> str | None:
    """The kind that a grant's key names, if it names one."""
    kind, colon, _ = key.partition(":")
    return kind if colon else None


def roles_for(principal: Principal, subject: str | None) -> frozenset[str]:
    """The roles held for one subject; those held everywhere when none is named."""
    if subject is None:
        return principal.roles
    granted = (roles for key, roles in principal.grants.items() if _fits(key, subject))
    return principal.roles.union(*granted)


def _fits(key: str, subject: str) -> bool:
    if key == "*":
        return True
    kind, _, name = subject.partition(":")
    wanted, colon, pattern = key.partition(":")
    if not colon:
        wanted, pattern = kind if kind in (PLAN, AGENT) else "", key
    fits = name.startswith(pattern[:-1]) if pattern.endswith("*") else pattern == name
    return wanted == kind and fits


def permitted(roles: frozenset[str]) -> frozenset[Permission]:
    return frozenset[Permission]().union(*(ROLES.get(role, frozenset()) for role in roles))


def may(principal: Principal, permission: Permission, subject: str | None) -> bool:
    """Without a subject the question is whether it is permitted everywhere."""
    return permission in permitted(roles_for(principal, subject))


def may_somewhere(principal: Principal, permission: Permission) -> bool:
    """Whether there can be anything for which it is permitted."""
    held = principal.roles.union(*principal.grants.values())
    return permission in permitted(held)


def sees_all(principal: Principal) -> bool:
    return may(principal, Permission.READ, None)


def may_answer(
    principal: Principal,
    question_role: str | None,
    question_type: str,
    subject: str,
    *,
    started_by: str | None,
    four_eyes: bool,
) -> str | None:
    """None when they may, or else why not, for them to read."""
    roles = roles_for(principal, subject)
    approval = question_type == InteractionType.TOOL_APPROVAL
    if Permission.READ not in permitted(roles):
        return msg(
            "you may not see the runs of {name}: ask an admin for the role {role}",
            name=named(subject),
            role=role_name(role_for(Permission.READ)),
        )
    if approval and principal.kind == "service":
        return msg("a service token does not approve calls: a person must answer this")
    if approval and four_eyes and principal.id == started_by:
        return WANTS_IT
    if approval and not roles & APPROVES:
        if question_role in (None, APPROVER):
            return _is_for(APPROVER)
        both = {"role": role_name(APPROVER), "other": role_name(question_role)}
        return _is_for(msg("{role} and {other}", **both))
    if question_role is not None:
        return None if roles & {question_role, ADMIN} else _is_for(question_role)
    return None if roles & ANSWERS else _is_for(_either(APPROVER, OPERATOR))


def _either(role: str, other: str) -> str:
    return msg("{role} or {other}", role=role_name(role), other=role_name(other))


def _is_for(role: str) -> str:
    return msg("this question is for the role {role}", role=role_name(role))

"""Who may do what: the whole table, grants, and whose question is whose."""

from __future__ import annotations

import pytest

from holdfast.model.interaction import InteractionType
from holdfast.server.auth.principal import (
    CONVERSATIONS,
    ROLES,
    Permission,
    Principal,
    agent,
    may,
    may_answer,
    may_somewhere,
    named,
    plan,
    roles_for,
    run_of,
    sees_all,
    tool,
)

EXPECTED = {
    "viewer": "read",
    "operator": "read operate answer",
    "approver": "read answer",
    "author": "read author",
    "admin": "read operate answer author administer",
    "finance": "",
}

PAIRS = [(role, permission) for role in EXPECTED for permission in Permission]
APPROVAL = InteractionType.TOOL_APPROVAL
READ = Permission.READ
INPUT = InteractionType.USER_INPUT


def holding(*roles: str, **rest: object) -> Principal:
    return Principal("will", "Will Zhang", roles=frozenset(roles), **rest)  # type: ignore[arg-type]


def answers(
    who: Principal,
    kind: str,
    role: str | None = None,
    *,
    started_by: str = "somebody",
    four_eyes: bool = False,
) -> str | None:
    return may_answer(who, role, kind, plan("apply"), started_by=started_by, four_eyes=four_eyes)


@pytest.mark.parametrize(("role", "permission"), PAIRS)
def test_a_role_permits_exactly_what_the_table_says(role: str, permission: Permission) -> None:
    expected = permission in EXPECTED[role].split()
    assert may(holding(role), permission, None) is expected
    assert may(holding(role), permission, plan("any_plan")) is expected


def test_the_five_roles_are_all_there_are() -> None:
    assert set(ROLES) == set(EXPECTED) - {"finance"}


def test_roles_add_up_and_nobody_may_nothing() -> None:
    both = holding("viewer", "author")
    assert may(both, Permission.AUTHOR, None)
    assert not may(both, Permission.OPERATE, None)
    assert not any(may(holding(), permission, None) for permission in Permission)


@pytest.mark.parametrize(
    ("key", "name", "fits"),
    [
        ("apply", "apply", True),
        ("apply", "apply_computer", False),
        ("apply*", "apply_computer", True),
        ("apply*", "apply", True),
        ("apply*", "reapply", False),
        ("*", "anything", True),
        ("a*y", "apply", False),
    ],
)
def test_a_grant_counts_for_its_plan_or_for_those_that_begin_so(
    key: str, name: str, fits: bool
) -> None:
    who = holding(grants={key: frozenset({"operator"})})
    assert may(who, Permission.OPERATE, plan(name)) is fits
    assert roles_for(who, plan(name)) == (frozenset({"operator"}) if fits else frozenset())


SUBJECTS = (plan("converse"), agent("converse"), CONVERSATIONS, tool("converse"))


@pytest.mark.parametrize(
    ("key", "covers"),
    [
        ("conv*", SUBJECTS[:2]),
        ("converse", SUBJECTS[:2]),
        ("conversation", ()),
        ("conversation*", ()),
        ("conversation:*", (CONVERSATIONS,)),
        ("conversation:conv*", ()),
        ("plan:conv*", (plan("converse"),)),
        ("plan:*", (plan("converse"),)),
        ("agent:converse", (agent("converse"),)),
        ("tool:conv*", (tool("converse"),)),
        ("tool:*", (tool("converse"),)),
        ("nonsense:*", ()),
        (":*", ()),
        ("*", SUBJECTS),
    ],
)
def test_a_grant_covers_its_kind_and_no_other(key: str, covers: tuple[str, ...]) -> None:
    who = holding(grants={key: frozenset({"operator"})})
    assert tuple(one for one in SUBJECTS if may(who, Permission.OPERATE, one)) == covers


@pytest.mark.parametrize("name", ["conversation", "conversation_", "tool", "plan"])
def test_a_plan_may_be_called_like_a_kind_and_is_still_a_plan(name: str) -> None:
    who = holding(grants={name: frozenset({"operator"})})
    assert may(who, Permission.OPERATE, plan(name))
    assert not may(who, Permission.OPERATE, CONVERSATIONS)
    assert not may(holding(grants={"conversation:*": frozenset({"admin"})}), READ, plan(name))


def test_a_run_is_judged_by_its_kind_and_name() -> None:
    assert run_of("plan", "apply") == plan("apply")
    assert run_of("react", "clerk") == agent("clerk")
    assert run_of("conversation", "conversation") == CONVERSATIONS
    assert [named(one) for one in SUBJECTS] == ["converse", "converse", "conversations", "converse"]


def test_a_grant_is_nothing_everywhere_but_lets_its_holder_ask_for_lists() -> None:
    who = holding(grants={"apply": frozenset({"viewer"})})
    assert not sees_all(who)
    assert not may(who, Permission.READ, None)
    assert may_somewhere(who, Permission.READ)
    assert not may_somewhere(who, Permission.OPERATE)
    assert not may_somewhere(holding("finance"), Permission.READ)


@pytest.mark.parametrize(
    ("role", "approves", "answers_others"),
    [
        ("viewer", False, False),
        ("operator", False, True),
        ("approver", True, True),
        ("author", False, False),
        ("admin", True, True),
    ],
)
def test_without_a_named_role_approvals_are_for_approvers(
    role: str, approves: bool, answers_others: bool
) -> None:
    assert (answers(holding(role), APPROVAL) is None) is approves
    for kind in set(InteractionType) - {APPROVAL}:
        assert (answers(holding(role), kind) is None) is answers_others


@pytest.mark.parametrize("kind", list(InteractionType))
def test_a_named_role_must_be_held_and_the_admin_passes(kind: str) -> None:
    assert answers(holding("approver", "finance"), kind, "finance") is None
    assert answers(holding("admin"), kind, "finance") is None
    for other in ("approver", "operator", "viewer"):
        assert "finance" in str(answers(holding(other), kind, "finance"))


@pytest.mark.parametrize("other", ["viewer", "operator", "author"])
@pytest.mark.parametrize("named", ["viewer", "operator", "author", "finance"])
def test_a_named_role_narrows_who_approves_and_makes_nobody_an_approver(
    other: str, named: str
) -> None:
    who = holding(other, named)
    assert f"approver and {named}" in str(answers(who, APPROVAL, named))
    assert answers(who, INPUT, named) is None
    assert answers(holding("approver", named), APPROVAL, named) is None
    assert answers(holding("approver"), APPROVAL, "approver") is None


def test_who_a_question_is_for_is_told_once() -> None:
    assert str(answers(holding("viewer"), APPROVAL, "approver")).endswith("the role approver")
    assert str(answers(holding("viewer"), APPROVAL)).endswith("the role approver")
    assert str(answers(holding("viewer"), INPUT)).endswith("the role approver or operator")


def test_a_free_role_alone_does_not_let_anybody_in() -> None:
    assert "may not see" in str(answers(holding("finance"), INPUT, "finance"))


def test_a_granted_role_answers_for_its_plan_only() -> None:
    who = holding("viewer", grants={"apply": frozenset({"finance"})})
    assert answers(who, INPUT, "finance") is None
    elsewhere = may_answer(who, "finance", INPUT, "pay", started_by="", four_eyes=False)
    assert elsewhere is not None


@pytest.mark.parametrize("role", ["approver", "admin"])
def test_a_service_never_approves(role: str) -> None:
    service = Principal("service:bot", "bot", "service", frozenset({role, "finance"}))
    assert "person" in str(answers(service, APPROVAL))
    assert "person" in str(answers(service, APPROVAL, "finance"))
    assert answers(service, INPUT) is None


@pytest.mark.parametrize("role", ["approver", "admin"])
def test_with_four_eyes_who_started_does_not_approve(role: str) -> None:
    who = holding(role)
    assert "another person" in str(answers(who, APPROVAL, started_by="will", four_eyes=True))
    assert answers(who, APPROVAL, started_by="ann", four_eyes=True) is None
    assert answers(who, APPROVAL, started_by="will", four_eyes=False) is None
    assert answers(who, INPUT, started_by="will", four_eyes=True) is None

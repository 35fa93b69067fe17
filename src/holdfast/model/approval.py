"""What is known of a tool before a call, and whether it may run without a person's consent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from holdfast.model.form import Form
from holdfast.model.values import Json, JsonObject


class ApprovalMode(StrEnum):
    AUTO = "AUTO"
    REQUIRE_APPROVAL = "REQUIRE_APPROVAL"
    DISABLED = "DISABLED"


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """`mode` holds where the condition `when` over the arguments holds, else `otherwise`."""

    mode: ApprovalMode
    when: str | None = None
    otherwise: ApprovalMode = ApprovalMode.AUTO


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What the core needs to know of a tool before a call; `returns` is a schema of its results,
    where its author gave one."""

    parameters: JsonObject
    version: str = ""
    idempotent: bool = False
    approval: ApprovalRule = ApprovalRule(ApprovalMode.AUTO)
    fields: Form = Form()
    read_only: bool = False
    returns: JsonObject | None = None

    mode: ApprovalMode | None = field(init=False, compare=False)
    """What its rule says of every call, unless that depends on the arguments."""
    required: frozenset[str] = field(init=False, compare=False)
    known: frozenset[str] | None = field(init=False, compare=False)
    """All that it takes; None where it may take anything, as patterns do."""

    def __post_init__(self) -> None:
        schema, approval = self.parameters, self.approval
        anything = schema.get("additionalProperties") is not False or "patternProperties" in schema
        known = None if anything else frozenset(schema.get("properties", {}))
        object.__setattr__(self, "mode", approval.mode if approval.when is None else None)
        object.__setattr__(self, "required", frozenset(schema.get("required", ())))
        object.__setattr__(self, "known", known)


Rules: TypeAlias = Mapping[str, ApprovalRule]
"""Rules by tool; `*` stands for every tool that has none of its own."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A remembered approval: calls of this version of the tool that fit `pattern` need no other.

    A pattern gives values, or texts with `*`, for some arguments; the others are free.
    `uses` is how many calls are left, None for any number.
    """

    grant_id: str
    tool: str
    version: str
    by: str
    at: float
    pattern: Mapping[str, Json] = field(default_factory=dict)
    expires_at: float | None = None
    uses: int | None = None

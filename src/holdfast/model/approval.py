"""Whether a tool may run without a person's consent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from holdfast.model.values import Json


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

"""Plans that are kept in the journal with their source, so that they are there after a restart.

Servers and workers read them when they open, and again when the mark has changed. What a plan of
the application's own replaced is told with it: where the application brings another one later, that
file was changed since, and wins.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final
from uuid import uuid4

from holdfast.model.rows import ExpiringValue

KIND: Final = "plan"
MARK: Final = ("plans", "changed")


def kept_plan(
    plan_id: str,
    digest: str,
    source: str,
    *,
    by: str,
    authors: Collection[str],
    at: float,
    instead_of: str | None,
) -> ExpiringValue:
    """`authors` are all who registered this very plan, `by` who did so last."""
    body = {
        "digest": digest,
        "source": source,
        "by": by,
        "authors": list(authors),
        "at": at,
        "instead_of": instead_of,
    }
    return ExpiringValue(KIND, plan_id, json.dumps(body, ensure_ascii=False))


def new_mark() -> ExpiringValue:
    """By which others that share the journal see that plans have changed."""
    return ExpiringValue(*MARK, json.dumps({"mark": uuid4().hex}))

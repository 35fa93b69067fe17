"""Which statements a process sends to PostgreSQL, counted by their names.

Names are those of the queries in `src/holdfast/journal/sql`; a statement of Procrastinate's goes by
the function of the database that it calls, or by its first words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from psycopg import AsyncCursor

from holdfast.journal import postgres_appends
from holdfast.journal.postgres_database import load_statements

FILES = ("appends", "hints", "opening", "queries", "removal", "sealing", "slots")

_CALL = re.compile(r"procrastinate_\w+(?=\()")
_CONDITIONS = re.compile(r"(WHERE id [<>] \$1 ).*(?=\nORDER BY)", re.DOTALL)


def _names() -> dict[str, str]:
    loaded = [load_statements(f"postgres_{name}.sql") for name in FILES]
    found = {_bare(text): name for one in loaded for name, text in one.items()}
    found |= {_bare(text): name for name, text in load_statements("dispatch_queries.sql").items()}
    found |= {_bare(text): "append_one" for text in postgres_appends._ONE}  # noqa: SLF001
    with_row = postgres_appends._ONE_WITH_ROW  # noqa: SLF001
    return found | {_bare(text): "append_one_with_row" for text in with_row}


def _bare(query: Any) -> str:
    text = query.decode() if isinstance(query, bytes) else str(query)
    return " ".join(_CONDITIONS.sub(r"\1", text).split()).rstrip(";")


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Everything that is sent meanwhile, on any connection of this process."""
    names, counts = _names(), Counter[str]()
    execute = AsyncCursor.execute

    async def noted(self: AsyncCursor[Any], query: Any, *given: Any, **more: Any) -> Any:
        text = _bare(query)
        call = _CALL.search(text)
        counts[names.get(text) or (call[0] if call else " ".join(text.split()[:3]))] += 1
        return await execute(self, query, *given, **more)

    with patch.object(AsyncCursor, "execute", noted):
        yield counts

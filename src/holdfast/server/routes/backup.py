"""A copy of the journal, for a backup of a home that this process has."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any, BinaryIO, Final

from fastapi import Response
from fastapi.responses import StreamingResponse

from holdfast.server.auth.authentication import Called
from holdfast.server.auth.principal import Permission
from holdfast.server.openapi import problem_answer
from holdfast.server.routing import new_router
from holdfast.server.services import Served
from holdfast.views.backups import journal_copy

router = new_router("operation")

MEDIA_TYPE: Final = "application/vnd.sqlite3"
CHUNK: Final = 256 * 1024

_COPY: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "A SQLite database, as it was at one moment",
        "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    },
    409: problem_answer(409),
}


@router.get("/backup", response_class=Response, responses=_COPY)
async def download_journal(served: Served, caller: Called) -> Response:
    """The whole journal as one file; the key of its secrets is not in it."""
    await caller.require(served, Permission.ADMINISTER)
    copied = await asyncio.to_thread(_copied, served)
    size = os.fstat(copied.fileno()).st_size
    return StreamingResponse(
        _parts(copied), media_type=MEDIA_TYPE, headers={"content-length": str(size)}
    )


def _copied(served: Served) -> BinaryIO:
    """A file without a name: it is gone when it is closed, also where this process is killed."""
    path = journal_copy(served.app)
    try:
        return path.open("rb")
    finally:
        path.unlink()


async def _parts(copied: BinaryIO) -> AsyncIterator[bytes]:
    with copied:
        while part := await asyncio.to_thread(copied.read, CHUNK):
            yield part

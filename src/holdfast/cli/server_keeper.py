"""The keeper of a server: it finds, exports and removes, and gives space back by itself."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from holdfast.client import Client
from holdfast.model.rows import RunRow
from holdfast.views.housekeeping import DAY, Finished, Removed, Why


class ServerKeeper:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def finished(
        self, wanted: Finished, before: str | None = None
    ) -> tuple[list[RunRow], str | None]:
        days = max(time.time() - wanted.before, 0.0) / DAY
        told = await self._client.housekeeping.finished(
            days, name=wanted.name, status=sorted(wanted.statuses), before=before
        )
        return [_row(one) for one in told["runs"]], told["next"]

    async def naming(
        self, name: str, before: str | None = None
    ) -> tuple[list[tuple[RunRow, bool]], str | None]:
        told = await self._client.housekeeping.of_person(name, before=before)
        return [(_row(one), one["finished"]) for one in told["runs"]], told["next"]

    async def lines_of(self, root_id: str) -> AsyncIterator[str]:
        for line in (await self._client.housekeeping.export(root_id)).split("\n")[:-1]:
            yield f"{line}\n"

    async def remove(self, root_ids: Sequence[str], why: Why, digest: str | None = None) -> Removed:
        told = await self._client.housekeeping.remove(
            root_ids, digest=digest, person=why.person or None
        )
        return Removed(tuple(told["removed"]), told["runs"], told["records"], tuple(told["left"]))

    async def reclaim(self) -> None:
        """The server does it."""


def _row(told: Mapping[str, Any]) -> RunRow:
    return RunRow(
        run_id=told["id"],
        kind=told["kind"],
        name=told["name"],
        definition="",
        status=told["status"],
        active=False,
        wake_at=None,
        root_id=told["id"],
        parent_id=None,
        created_at=told["created_at"],
        updated_at=told["updated_at"],
        title=told["title"],
    )

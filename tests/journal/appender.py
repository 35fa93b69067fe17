"""Appends to a journal for ever, printing each acknowledged version: made to be killed."""

from __future__ import annotations

import asyncio
import sys

from holdfast.journal.sqlite import SqliteJournal
from holdfast.testing.journal_samples import birth, step


async def live(journal: SqliteJournal, run_id: str) -> None:
    version = await journal.version(run_id)
    while True:
        append = step(run_id, version, count=2) if version else birth(run_id)
        version = await journal.append(append)
        print(run_id, version, flush=True)


async def main(path: str) -> None:
    journal = SqliteJournal(path)
    await journal.open()
    await asyncio.gather(*(live(journal, f"inst_{n:06d}") for n in range(5)))


asyncio.run(main(sys.argv[1]))

"""A process that answers every open question of a database: `answering_child.py NAME`.

It says "ready", waits for a line, answers all, each with its own name, and tells as JSON which of
its answers counted.
"""

from __future__ import annotations

import asyncio
import json
import sys
from random import Random

from holdfast import Holdfast
from holdfast.errors import CallerError
from holdfast.journal.port import QuestionQuery

PAGE = 500


async def all_open(app: Holdfast) -> list[str]:
    found: list[str] = []
    query = QuestionQuery(status=frozenset({"open"}), limit=PAGE)
    while rows := await app.inbox(query):
        found += [row.question_id for row in rows]
        query = QuestionQuery(status=frozenset({"open"}), limit=PAGE, after=rows[-1].question_id)
    return found


async def answer(name: str) -> None:
    async with Holdfast(drives=False) as app:
        questions = await all_open(app)
        Random(name).shuffle(questions)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        counted: list[str] = []
        doors = asyncio.Semaphore(20)

        async def one(question_id: str) -> None:
            async with doors:
                try:
                    await app.answer(question_id, data={"colour": name}, by=name)
                except CallerError:
                    return
                counted.append(question_id)

        await asyncio.gather(*map(one, questions))
        print(json.dumps(counted), flush=True)


if __name__ == "__main__":
    asyncio.run(answer(sys.argv[1]))

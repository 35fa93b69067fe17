"""Many processes answer the same questions at once: each question takes one answer, once.

`python tests/runtime/test_many_answerers.py 5000` asks as many.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

import warm  # noqa: E402
from holdfast import Holdfast  # noqa: E402
from holdfast.model.rows import RunQuery  # noqa: E402
from installation import SECRET_KEY, TESTS, Installation, begun  # noqa: E402
from postgresql_server import Server, migrated  # noqa: E402
from workshop import Workshop  # noqa: E402

ANSWERERS = 8
CHILD = TESTS / "runtime" / "answering_child.py"


def answerer(installation: Installation, number: int) -> subprocess.Popen[str]:
    return warm.Popen(
        [sys.executable, str(CHILD), f"colour {number}"],
        env=installation.environment({}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


async def settled(app: Holdfast, status: str, count: int) -> None:
    """Waits until so many runs stand at `status`; it may take long where there are many."""
    while (await app.journal.run_counts()).get(("plan", status), 0) < count:  # noqa: ASYNC110
        await asyncio.sleep(0.1)


async def contest(installation: Installation, count: int) -> list[list[str]]:
    """Which answers counted, by process, to as many questions; each has had its effect."""
    parts = [f"part {number}" for number in range(count)]
    installation.worker()
    async with installation.decider() as app:
        for start in range(0, count, 50):
            wanted = parts[start : start + 50]
            await asyncio.gather(*(begun(app, "choose", part) for part in wanted))
        await settled(app, "pause", count)
        crowd = [answerer(installation, number) for number in range(ANSWERERS)]
        for one in crowd:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        began = time.monotonic()
        for one in crowd:
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.flush()
        told = await asyncio.gather(*(asyncio.to_thread(one.communicate) for one in crowd))
        print(f"{count} questions, {ANSWERERS} processes: {time.monotonic() - began:.1f} s")
        await settled(app, "done", count)
        assert await app.inbox() == []
        assert len(await app.runs(RunQuery(limit=count + 1))) == count
    assert sorted(part for _, part, _ in installation.workshop.calls()) == sorted(parts)
    return [json.loads(out) for out, _ in told]


async def test_of_answers_by_many_processes_each_question_takes_one(
    installation: Installation,
) -> None:
    counted = await contest(installation, 200)
    by_question = Counter(question for answers in counted for question in answers)
    assert len(by_question) == 200
    assert set(by_question.values()) == {1}
    assert sum(bool(answers) for answers in counted) > ANSWERERS // 2, "they were at it together"


def main(count: int) -> None:
    with Server(fsync=False, max_connections=200) as server, tempfile.TemporaryDirectory() as place:
        os.environ["HOLDFAST_SECRET_KEY"] = SECRET_KEY
        installation = Installation(server.create_database(migrated), Workshop(Path(place)), {})
        counted = asyncio.run(contest(installation, count))
        installation.close()
    taken = [question for answers in counted for question in answers]
    print(f"{len(taken)} counted, {len(set(taken))} questions; by process {[*map(len, counted)]}")


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""Runs on a cluster in a storm: `make chaos RUNS=2000`; `make test` has a short form.

Two servers and four workers on a PostgreSQL of their own. People start onboardings, answer what is
asked and resume what failed, while workers are killed, PostgreSQL is restarted and once away for
60 seconds, and tools fail. In the end the books are compared: the journal, the office's ledger and
what people sent. Every run must have ended as it should, no effect have happened twice, no answer
be lost or taken twice, every record and deed have one place.

The seed decides what is done to what; when, the machine has a part in.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]
    sys.path[:0] = [str(ROOT / one) for one in ("tests", *SETTINGS["ini_options"]["pythonpath"])]

from chaos_books import Books, Place, read_books  # noqa: E402
from chaos_cluster import Cluster, cluster  # noqa: E402
from chaos_people import Caller, People  # noqa: E402
from chaos_storm import Storm  # noqa: E402

from holdfast import Client  # noqa: E402
from holdfast.model import events as e  # noqa: E402

SECRET_KEY = "Y2hhb3MgY2hhb3MgY2hhb3MgY2hhb3MgY2hhb3MgY2g="
AT_ONCE = 100
ABSENCE = 60.0
TELL_EVERY = 10.0
PATIENCE = 24 * 3600.0
HEARD_WITHIN = 60.0

Weather = Callable[[Storm, People], Awaitable[None]]


class Followers:
    """One at each server: what they hear of all runs, come back after every break."""

    def __init__(self, urls: list[str], token: str) -> None:
        self.heard: list[list[Place]] = [[] for _ in urls]
        self.problems: list[str] = []
        self._tasks = [
            asyncio.create_task(self._follow(url, token, heard))
            for url, heard in zip(urls, self.heard, strict=True)
        ]

    async def _follow(self, url: str, token: str, heard: list[Place]) -> None:
        async with Client(url, token, stream_patience=PATIENCE) as client:
            async for event in client.all_events("0"):
                if event.type == "resync":
                    self.problems.append(f"{url} cannot tell what came after a cursor")
                elif event.id is not None:
                    heard.append((str(event.data["run_id"]), int(event.data["seq"])))

    async def hear_to_the_end(self, count: int) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(HEARD_WITHIN):
                while any(len(one) < count for one in self.heard):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for told in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(told, Exception):
                self.problems.append(f"a follower ended: {told!r}")


async def rage(storm: Storm, people: People) -> None:
    """By the clock, until all runs have ended; when half of them have, PostgreSQL is away."""
    raging = asyncio.create_task(storm.rage())
    try:
        while people.ended < people.runs / 2:  # noqa: ASYNC110 - people look by themselves
            await asyncio.sleep(0.2)
        await storm.take_away(ABSENCE)
        await raging
    finally:
        raging.cancel()
        await asyncio.gather(raging, return_exceptions=True)


async def campaign(
    place: Path,
    runs: int,
    seed: object,
    weather: Weather = rage,
    say: Callable[[str], None] = lambda line: None,
    patience: float = PATIENCE,
) -> Counter[str]:
    """What happened, in numbers; AssertionError says all that went wrong, or which runs have not
    ended when the patience has."""
    async with cluster(place, SECRET_KEY) as made:
        token = await made.token("will")
        caller = Caller(made.urls, token)
        people = People(caller, made.office, random.Random(f"people {seed}"), runs, AT_ONCE)
        storm = Storm(made, seed, say)
        followers = Followers(made.urls, token)
        with telling(people, storm, say):
            done = await outlasting(people.work(), weather(storm, people), patience)
        assert done, f"seed {seed}, {place}: these have not ended: {people.unfinished}"
        await storm.calm()
        await asyncio.gather(*(one.stop() for one in made.workers))
        books = await read_books(made, people)
        await followers.hear_to_the_end(len(books.places()))
        await followers.stop()
        await caller.close()
        await made.stop()
        problems = found(made, books, followers)
        counts = numbers(people, storm, books)
        say(", ".join(f"{count:,} {what}" for what, count in counts.items()))
        assert not problems, "\n".join([f"seed {seed}, {place}:", *problems])
        return counts


async def outlasting(work: Awaitable[None], weather: Awaitable[None], patience: float) -> bool:
    """Until the work is done, whenever the weather ends; False where it takes too long."""
    working, raging = asyncio.ensure_future(work), asyncio.ensure_future(weather)
    try:
        async with asyncio.timeout(patience):
            await asyncio.wait((working, raging), return_when=asyncio.FIRST_COMPLETED)
            if raging.done():
                raging.result()
            await working
    except TimeoutError:
        return False
    finally:
        for one in (working, raging):
            one.cancel()
        await asyncio.gather(working, raging, return_exceptions=True)
    return True


def found(made: Cluster, books: Books, followers: Followers) -> list[str]:
    told = [*books.problems(), *followers.problems, *made.ended()]
    for heard in followers.heard:
        told += books.unlike(heard)
    return told + [f"{count} times {line}" for line, count in made.tracebacks().items()]


def numbers(people: People, storm: Storm, books: Books) -> Counter[str]:
    counts: Counter[str] = Counter()
    counts["runs"] = len(books.runs)
    counts["records"] = sum(map(len, books.events.values()))
    counts["calls"] = len(books.calls)
    counts["questions"] = len(people.answered)
    counts["answers"] = sum(len(one.bodies) for one in people.answered.values())
    counts["contested"] = sum(len(one.bodies) > 1 for one in people.answered.values())
    counts["lost calls asked about"] = sum(
        any(option["optionId"] == "happened" for option in one.question["options"])
        for one in people.answered.values()
    )
    told = (event for events in books.events.values() for event in events)
    counts["recoveries"] = sum(isinstance(event, e.RunRecovered) for event in told)
    counts["resumed"] = people.resumed.total()
    counts.update(storm.counts)
    counts.update(people.caller.counts)
    return counts


@contextmanager
def telling(people: People, storm: Storm, say: Callable[[str], None]) -> Iterator[None]:
    begun = time.monotonic()

    async def tell() -> None:
        while True:
            await asyncio.sleep(TELL_EVERY)
            counts = {**storm.counts, "questions": len(people.answered)}
            told = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
            seconds = time.monotonic() - begun
            say(f"{seconds:5.0f} s: {people.ended} of {people.runs} runs have ended; {told}")

    task = asyncio.create_task(tell())
    try:
        yield
    finally:
        task.cancel()


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    reader.add_argument("runs", type=int)
    reader.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = reader.parse_args()

    def say(line: str) -> None:
        print(line, flush=True)

    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.default_int_handler)  # ends everything that was started
    say(f"--seed {given.seed}")
    begun = time.monotonic()
    place = Path(tempfile.mkdtemp(prefix="holdfast-chaos-"))
    try:
        asyncio.run(campaign(place, given.runs, given.seed, say=say))
    except AssertionError as error:
        print(error, f"The logs are in {place}.", sep="\n", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    say(f"sound, after {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()

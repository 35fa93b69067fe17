"""The suite's random trials, with new chance for as long as one likes: `make campaign SECONDS=600`.

Four campaigns take turns: power cuts, random runs of the three machines, races for an answer,
and kills of a process followed by a recovery. `make test` has a short form of each. Every trial
begins with a seed; a trial that fails is named with it, and `--seed` begins there.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]
sys.path[:0] = [str(ROOT / one) for one in ("tests", *SETTINGS["ini_options"]["pythonpath"])]

import test_conversation_properties  # noqa: E402
import test_kill  # noqa: E402
import test_machine_properties  # noqa: E402
import test_power  # noqa: E402
import test_races  # noqa: E402
import test_react_properties  # noqa: E402

from holdfast import Holdfast  # noqa: E402
from holdfast.journal import database  # noqa: E402

PROPERTY = "test_whatever_happens_replay_equals_the_live_state_and_no_promise_breaks"
MACHINES = (test_machine_properties, test_react_properties, test_conversation_properties)
CUTS, PAIRS, RUNS, KILLS = 40, 50, 50, 4
"""Of each kind in one turn."""

Trial: TypeAlias = Callable[[random.Random, Path], Awaitable[int]]


async def power_cuts(chance: random.Random, place: Path) -> int:
    """One working life of a journal, cut at so many places."""
    lossy = await test_power.lossy_cuts(place, CUTS, {}, chance)
    assert not lossy, lossy
    return CUTS


async def random_runs(chance: random.Random, place: Path) -> int:
    """Plans, chats and conversations under random commands and faults."""
    for number in range(RUNS):
        play(MACHINES[number % len(MACHINES)], chance.randbytes(chance.randint(100, 600)))
    return RUNS


def play(machine: ModuleType, script: bytes) -> None:
    getattr(machine, PROPERTY).hypothesis.inner_test(script)


async def races(chance: random.Random, place: Path) -> int:
    """Two answers at once to each of many questions, in memory or on disk."""
    desk = test_races.Desk()
    bare = Holdfast(place) if chance.random() < 0.5 else Holdfast.in_memory()
    async with test_races.furnished(bare, desk, test_races.ORDER) as app:
        instances = await test_races.pause_many(app, PAIRS)
        await test_races.check_pairs(app, desk, instances)
        for instance in instances:
            assert await instance.wait_for_completion(60) == "done"
            await test_races.assert_sound(app, instance.id)
    return PAIRS


class Kills:
    """Kills at fault points drawn by chance, on one street for the whole campaign."""

    def __init__(self, street: test_kill.Street) -> None:
        self._street = street
        self._points: dict[str, dict[str, int]] = {}

    async def __call__(self, chance: random.Random, place: Path) -> int:
        for number in range(KILLS):
            plan = chance.choice((test_kill.ONBOARDING, "welcome"))
            points = await self._reached(plan, place)
            point = chance.choice(sorted(points))
            nth, choice = chance.randint(1, points[point]), chance.choice(("run_again", "happened"))
            home = place / str(number)
            named, person = await test_kill.kill_at(self._street, home, plan, point, nth, choice)
            if plan == test_kill.ONBOARDING:
                await test_kill.check_calls(self._street.office, person, named)
            await self._street.office.reset()
        return KILLS

    async def _reached(self, plan: str, place: Path) -> dict[str, int]:
        if plan not in self._points:
            self._points[plan] = await self._street.count(place / f"whole {plan}", plan)
            await self._street.office.reset()
        return self._points[plan]


async def campaign(seconds: float, seed: int) -> int:
    """How many trials failed."""
    database.MOST_UNPLACED = 12  # type: ignore[misc]  # as in test_power
    done: Counter[str] = Counter()
    failed = 0
    async with AsyncExitStack() as stack:
        street = await stack.enter_async_context(test_kill.street_with_an_office())
        trials: dict[str, Trial] = {
            "power cuts": power_cuts,
            "random runs": random_runs,
            "races": races,
            "kills": Kills(street),
        }
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for name, trial in trials.items():
                done[name] += await _tried(name, trial, seed, said := [])
                failed += bool(said)
            seed += 1
    print(", ".join(f"{done[name]:,} {name}" for name in trials), f"; {failed} failed", sep="")
    return failed


async def _tried(name: str, trial: Trial, seed: int, failures: list[Any]) -> int:
    with tempfile.TemporaryDirectory(prefix="holdfast-campaign-") as place:
        try:
            return await trial(random.Random(f"{name} {seed}"), Path(place))
        except Exception:
            failures.append(name)
            print(f"{name} failed, --seed {seed}:\n{traceback.format_exc()}", file=sys.stderr)
            return 0


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    reader.add_argument("seconds", type=float)
    reader.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = reader.parse_args()
    sys.exit(1 if asyncio.run(campaign(given.seconds, given.seed)) else 0)


if __name__ == "__main__":
    main()

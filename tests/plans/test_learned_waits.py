"""What forty outages teach: when to call again, and what not to call; and that the journals say so.

The runs are real ones, one after the other, on a real engine in the manual clock's time; what is
made up is how long their tool is down.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

import pytest
from failing_service import Scene, Service

from holdfast import Holdfast
from holdfast.repair.curves import Curve
from holdfast.runtime.relearning import relearned
from holdfast.testing.clock import ManualClock

pytestmark = pytest.mark.own_store  # hundreds of runs, one after the other, in one store's time

OpenApp = Callable[..., Awaitable[Holdfast]]

TAUGHT_BY = 40
HALF_AN_HOUR = 1_800.0
AN_HOUR_LATER = 3_600.0
"""From one run to the next: each outage is one run's alone."""

ROUNDS = 11
"""Twelve calls in all, as many as three attempts in four rounds."""


@dataclass
class Ended:
    calls: int
    won: bool


def under_half_an_hour(dice: Random) -> float:
    """As many of seconds as of minutes: nothing is known of them beforehand."""
    return math.exp(dice.uniform(math.log(0.3), math.log(HALF_AN_HOUR)))


async def played(scene: Scene, service: Service, lasts: list[float]) -> list[Ended]:
    ended = []
    for seconds in lasts:
        service.fails_for(seconds)
        began = scene.clock.now()
        instance = await scene.play()
        soon = scene.clock.now() - began <= HALF_AN_HOUR * 1.1
        ended.append(Ended(len(service.calls), instance.status == "done" and soon))
        scene.clock.advance(AN_HOUR_LATER)
    return ended


def mean_calls(ended: list[Ended]) -> float:
    return sum(one.calls for one in ended) / len(ended)


def share_won(ended: list[Ended]) -> float:
    return sum(one.won for one in ended) / len(ended)


@pytest.fixture
async def scene(open_app: OpenApp, clock: ManualClock) -> Scene:
    return Scene(await open_app(clock=clock, max_retry_count=ROUNDS), clock)


async def read_again(scene: Scene) -> Curve:
    """The curve as the journals alone have it, which is the one that was learned meanwhile."""
    again = (await relearned(scene.app.journal)).experience
    assert again == scene.keeper.experience
    [curve] = again.curves.values()
    return curve


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_after_forty_outages_three_calls_are_enough(scene: Scene, seed: int) -> None:
    dice, service = Random(seed), Service(scene.clock, lasts=0.0)
    scene.offers(service)
    lasts = [under_half_an_hour(dice) for _ in range(TAUGHT_BY + 60)]
    await played(scene, service, lasts[:TAUGHT_BY])
    later = await played(scene, service, lasts[TAUGHT_BY:])
    assert share_won(later) >= 0.95
    assert mean_calls(later) <= 3
    assert (await read_again(scene)).cases == len(lasts)


async def test_what_never_recovers_is_hardly_called_any_more(scene: Scene) -> None:
    service = Service(scene.clock, lasts=0.0)
    scene.offers(service)
    first = await played(scene, service, [math.inf] * TAUGHT_BY)
    later = await played(scene, service, [math.inf] * 60)
    assert first[0].calls == ROUNDS + 1
    assert mean_calls(later) <= 1.2
    assert not any(one.won for one in later)
    await read_again(scene)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_beside_it_the_backoff_of_today_calls_twice_as_often_and_wins_less(
    scene: Scene, seed: int
) -> None:
    dice, service = Random(seed), Service(scene.clock, lasts=0.0)
    scene.offers(service, repair={"mode": "off"})
    ended = await played(scene, service, [under_half_an_hour(dice) for _ in range(60)])
    assert mean_calls(ended) > 6
    assert share_won(ended) < 0.85

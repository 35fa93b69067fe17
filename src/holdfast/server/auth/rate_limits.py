"""How often somebody may be refused: a sliding window for each client and kind of attempt.

Only refusals count, never work. What was refused too often is answered with TooMany until
enough of it lies far enough back. A good token always passes, whatever others at the same
address have tried: tokens are too long to be guessed, and nobody can lock out a neighbour.

Memory is bounded: each key holds at most as many times as its limit, and beyond `keys` keys
the one that was refused longest ago is forgotten.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final, Protocol

from holdfast.errors import TooMany
from holdfast.i18n.message import msg

LOGIN: Final = "login"
ANSWER: Final = "answer"


@dataclass(frozen=True, slots=True)
class Limit:
    refusals: int
    seconds: float


LIMITS: Final[Mapping[str, Limit]] = {LOGIN: Limit(10, 60.0), ANSWER: Limit(30, 60.0)}


class Now(Protocol):
    def now(self) -> float: ...


class Attempts:
    def __init__(
        self, clock: Now, limits: Mapping[str, Limit] = LIMITS, keys: int = 10_000
    ) -> None:
        self._clock = clock
        self._limits = limits
        self._keys = keys
        self._refused: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._refused)

    def failed(self, who: str, kind: str) -> None:
        """Count a refusal; TooMany when there were too many already."""
        self.check(who, kind)
        key = _key(who, kind)
        self._refused.setdefault(key, deque()).append(self._clock.now())
        self._refused.move_to_end(key)
        if len(self._refused) > self._keys:
            self._refused.popitem(last=False)

    def check(self, who: str, kind: str) -> None:
        """TooMany while somebody must wait."""
        limit = self._limits[kind]
        times = self._recent(_key(who, kind), limit)
        if len(times) < limit.refusals:
            return
        wait = max(times[0] + limit.seconds - self._clock.now(), 0.0)
        raise TooMany(msg("refused too often: wait {n:.0f} seconds and try again", n=wait), wait)

    def _recent(self, key: tuple[str, str], limit: Limit) -> deque[float]:
        times = self._refused.get(key, deque())
        while times and times[0] <= self._clock.now() - limit.seconds:
            times.popleft()
        if not times:
            self._refused.pop(key, None)
        return times


def _key(who: str, kind: str) -> tuple[str, str]:
    return kind, neighbourhood(who)


def neighbourhood(who: str) -> str:
    """One household has a whole IPv6 network of 64 bits."""
    try:
        address = ip_address(who)
    except ValueError:
        return who
    if not isinstance(address, IPv6Address):
        return who
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(IPv6Network((int(address), 64), strict=False))

"""The load that retries may put on a tool, as pure values: `now` is always given.

Each tool has a budget: a success earns a tenth of a token, up to ten, and a retry costs one. A
retry for which there is none is put off, one a minute, and not given up.

Five runs that fail alike within a minute are an outage. One of them leads: it is tried as its own
curve says, and pays nothing. The others wait. When a call that failed so succeeds, they are woken,
one after the other; when the leader leaves, or is not heard of for half an hour, another leads. No
call waits for more than an hour, whatever became of the leader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from hashlib import blake2b
from typing import Final, NamedTuple

from immutables import Map

from holdfast.model.record import record, replacing

FULL: Final = 100
COST: Final = 10
EARNED: Final = 1
"""In tenths of a token."""

ALIKE: Final = 5
WITHIN: Final = 60.0
HELD: Final = 1_800.0
"""How long others wait at least, and once more as long at most, in seconds."""

PUT_OFF: Final = 60.0
BETWEEN: Final = 0.5
"""Seconds between those that are woken."""


class Call(NamedTuple):
    """A step of a run whose call failed."""

    run_id: str
    step_id: str


@record
class Outage:
    """`last` is when it was heard of last, `led` when its leader was. `waiting` says since when."""

    last: float
    led: float
    leader: Call | None = None
    waiting: Map[Call, float] = Map()


@record
class Load:
    """Of one tool. `tokens` are tenths, `slot` is up to when retries have been put off. `dry`: one
    was refused since the budget was last half full. `recent` has by fingerprint the runs that
    failed within the last minute, and when."""

    tokens: int = FULL
    slot: float = 0.0
    dry: bool = False
    recent: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    outages: Mapping[str, Outage] = field(default_factory=dict)


NO_LOAD: Final = Load()

_with = replacing(Load)
_outage_with = replacing(Outage)


@record
class Turn:
    """What a call that failed is to do: be left alone for `hold` seconds at least. `began` says
    that this makes it an outage, `spent` that the budget is used up just now."""

    hold: float = 0.0
    leads: bool = False
    waits: bool = False
    began: bool = False
    spent: bool = False


_turn_with = replacing(Turn)


def failed(load: Load, fingerprint: str, call: Call, now: float) -> tuple[Load, Turn]:
    """A call has failed and would be tried again."""
    load = _noted(_current(load, now), fingerprint, call.run_id, now)
    outage = load.outages.get(fingerprint)
    began = outage is None and len(load.recent[fingerprint]) >= ALIKE
    if outage is None and not began:
        return _paid(load, now)
    outage, turn = _joined(outage or Outage(now, now), call, now)
    return _with_outage(load, fingerprint, outage), _turn_with(turn, began=began)


def _joined(outage: Outage, call: Call, now: float) -> tuple[Outage, Turn]:
    """The call leads, where no other does that is heard of, or waits."""
    if outage.leader in (None, call) or outage.led <= now - HELD:
        waiting = outage.waiting
        waiting = waiting.delete(call) if call in waiting else waiting
        return Outage(now, now, call, waiting), Turn(leads=True)
    since = outage.waiting.get(call, now)
    waits = _outage_with(outage, last=now, waiting=outage.waiting.set(call, since))
    return waits, Turn(_patience(call), waits=True)


def succeeded(load: Load) -> Load:
    """A call of the tool has succeeded, whichever."""
    tokens = min(load.tokens + EARNED, FULL)
    return _with(load, tokens=tokens, dry=load.dry and tokens < FULL // 2)


def recovered(load: Load, fingerprint: str) -> tuple[Load, tuple[Call, ...]]:
    """A call that had failed so has succeeded: it is over, and these may go on, in that order."""
    outage = load.outages.get(fingerprint)
    if outage is None:
        return load, ()
    outages = {name: one for name, one in load.outages.items() if name != fingerprint}
    return _with(load, outages=outages), _in_order(outage.waiting)


def left(load: Load, fingerprint: str, call: Call) -> tuple[Load, Call | None]:
    """A call is not tried any more. Where it led, the one that is returned leads from here on."""
    outage = load.outages.get(fingerprint)
    if outage is None:
        return load, None
    if outage.leader != call:
        waiting = outage.waiting
        waiting = waiting.delete(call) if call in waiting else waiting
        return _with_outage(load, fingerprint, _outage_with(outage, waiting=waiting)), None
    leader = next(iter(_in_order(outage.waiting)), None)
    waiting = outage.waiting if leader is None else outage.waiting.delete(leader)
    outage = _outage_with(outage, leader=leader, waiting=waiting)
    return _with_outage(load, fingerprint, outage), leader


def _in_order(waiting: Map[Call, float]) -> tuple[Call, ...]:
    return tuple(sorted(waiting, key=lambda one: (waiting[one], one)))


def _with_outage(load: Load, fingerprint: str, outage: Outage) -> Load:
    return _with(load, outages={**load.outages, fingerprint: outage})


def wake_after(place: int) -> float:
    """Seconds after which the one at that place of those that may go on does."""
    return place * BETWEEN


def at_rest(load: Load, now: float) -> bool:
    """Whether nothing of it is worth keeping."""
    return load.slot <= now and _with(_current(load, now), slot=0.0) == NO_LOAD


def _current(load: Load, now: float) -> Load:
    """Without what is over: runs that failed a while ago, and outages that nobody leads to an
    end."""
    since = now - WITHIN
    recent = {
        name: young
        for name, runs in load.recent.items()
        if (young := {one: at for one, at in runs.items() if at > since})
    }
    stale = now - 2 * HELD
    outages = {name: one for name, one in load.outages.items() if one.last > stale}
    return _with(load, recent=recent, outages=outages)


def _noted(load: Load, fingerprint: str, run_id: str, now: float) -> Load:
    """With the newest of those that failed so: no more of them are counted than matter."""
    before = load.recent.get(fingerprint, {})
    others = [(one, at) for one, at in before.items() if one != run_id]
    newest = dict([*others, (run_id, now)][-ALIKE:])
    return _with(load, recent={**load.recent, fingerprint: newest})


def _paid(load: Load, now: float) -> tuple[Load, Turn]:
    if load.tokens >= COST:
        return _with(load, tokens=load.tokens - COST), Turn()
    slot = max(load.slot, now) + PUT_OFF
    hold = min(slot - now, 2 * HELD)
    return _with(load, slot=now + hold, dry=True), Turn(hold, spent=not load.dry)


def _patience(call: Call) -> float:
    """Each its own, so that not all come back at once if nobody wakes them."""
    hashed = blake2b("\0".join(call).encode(), digest_size=4).digest()
    return HELD * (1 + int.from_bytes(hashed) / 2**32)

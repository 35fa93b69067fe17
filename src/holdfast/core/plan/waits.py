"""Listeners that wait for a moment: it is worked out when they start, and kept as a timer.

A moment that has passed ends the wait in the same decision. The result, `{"until": …}`, is
concluded as every listener's is.
"""

from __future__ import annotations

from holdfast.core.plan.builder import Builder
from holdfast.core.plan.compiled import CompiledListener
from holdfast.core.plan.questions import waiting_moves
from holdfast.language.moments import next_time, read_duration, read_moment
from holdfast.model.events import WaitEnded, WaitStarted
from holdfast.model.plan import WaitAction


def moment_of(action: WaitAction, now: float) -> float:
    """When it goes on, in seconds since the epoch; raises NoMoment."""
    if action.after:
        return now + read_duration(action.after)
    if action.clock:
        return next_time(now, action.clock, action.timezone, action.weekdays)
    return read_moment(action.until, action.timezone)


def start_wait(builder: Builder, listener: CompiledListener, action: WaitAction) -> None:
    """Raises TemplateError or NoMoment."""
    texts = {key: str(text) for key, text in listener.args.fill(builder.state).items()}
    rendered = WaitAction(**texts, timezone=action.timezone, weekdays=action.weekdays)
    until = moment_of(rendered, builder.now)
    firing = builder.step(listener.id).firing
    moves = waiting_moves(builder, listener.id, "waiting_for_moment")
    builder.emit(WaitStarted(listener.id, firing, until, moves))
    if until <= builder.now:
        builder.emit(WaitEnded(listener.id, firing, until))

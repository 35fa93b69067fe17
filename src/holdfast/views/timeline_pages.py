"""Pages of a timeline, the newest entry first.

A page reads `FURTHER_BACK` more records than it shows: what began there may end here. The first
page grows while it is watched: an entry that was shown stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.model.events import ChildHeard
from holdfast.runtime.hub import Recorded
from holdfast.views.reader import RunReader, RunVersion
from holdfast.views.records import TimelineEntry
from holdfast.views.stories.below import Below
from holdfast.views.timeline import FURTHER_BACK, Chronicle, decoded, worth_telling

PAGE: Final = 20
LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class TimelinePage:
    """`older` is where the next page begins, None on the last one."""

    entries: tuple[TimelineEntry, ...]
    older: int | None


async def timeline_page(
    reader: RunReader, run: RunVersion, before: int | None, since: int | None = None
) -> TimelinePage:
    """At least `PAGE` entries before event `before`; with `since` all from that event on, at most
    `LONGEST`."""
    last = run.version if before is None else min(before - 1, run.version)
    first = max(min(since or last, last - PAGE), last - LONGEST)
    back = max(first - FURTHER_BACK, 0)
    told = await _told(reader, run, worth_telling(await _events(reader, run.run_id, back, last)))
    shown = sum(one.seq >= first for one in told) if since else 0
    entries = told[-max(shown, PAGE) :]
    earlier = entries[0].seq if len(told) > len(entries) else back + 1
    return TimelinePage(tuple(reversed(entries)), earlier if earlier > 1 else None)


async def last_entry(reader: RunReader, run: RunVersion) -> TimelineEntry:
    """The event that led to this version."""
    back = max(run.version - FURTHER_BACK, 0)
    events = await _events(reader, run.run_id, back, run.version)
    return (await _told(reader, run, events))[-1]


async def _events(reader: RunReader, run_id: str, after: int, last: int) -> list[Recorded]:
    return decoded(await reader.journal.read(run_id, after, last - after))


async def _told(
    reader: RunReader, run: RunVersion, events: Sequence[Recorded]
) -> list[TimelineEntry]:
    chronicle = Chronicle.of(run.state)
    words = [one.event for one in events if isinstance(one.event, ChildHeard)]
    chronicle.teller.below |= await Below(reader.journal).told(words)
    return [chronicle.tell(one) for one in events]

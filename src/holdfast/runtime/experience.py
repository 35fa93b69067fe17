"""Keeps what an installation has learned of failures, for decisions and for people.

It follows the commits of this process, from a run's first failure on. What it has learned by them
is added to what is kept in the journal, a moment after the commit and when it closes; what other
processes have learned is read there. A process that is killed loses what it has learned in that
moment: `rebuild` reads everything again, from those runs that are still there.

The kept value has its number for a key. Who adds to it spends the old number and claims the next
in one transaction, so that two processes never overwrite each other. The number 0 is claimed with
the first value and never spent: there is only one first.

What retries put on tools just now (`loads`) is of this process, and is not kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, cast

from holdfast.core.plan.state import PlanState
from holdfast.core.repair.causes import judged
from holdfast.errors import HoldfastError, NameGone, NameTaken, NotFound, OperatorError
from holdfast.i18n.message import msg
from holdfast.journal.codec import decode
from holdfast.journal.port import (
    Attached,
    AuditRecord,
    ExpiringValue,
    Journal,
    Record,
    Written,
)
from holdfast.model.events import PlanPatched
from holdfast.model.recorded import Event
from holdfast.model.recovery import Moments
from holdfast.model.repair import Lesson, LessonState
from holdfast.model.retry import Failure
from holdfast.model.run import RunStatus
from holdfast.repair import experience as learning
from holdfast.repair.alerts import Alert
from holdfast.repair.budgets import Call
from holdfast.repair.experience import NOTHING_LEARNED, Experience
from holdfast.repair.facts import Fact, Past, facts_of, in_trouble, past_of
from holdfast.repair.lessons import lesson_of, place_of
from holdfast.runtime.audit import attach_claimed, records_of_saying
from holdfast.runtime.background import BackgroundTasks
from holdfast.runtime.clock import Clock
from holdfast.runtime.loads import Loads
from holdfast.runtime.machines import replay
from holdfast.runtime.registry import DefinitionRegistry
from holdfast.runtime.relearning import lived_until, relearned

log = logging.getLogger("holdfast")

KIND: Final = "experience"
SAVE_SECONDS: Final = 5.0
"""Tuning: how long after a commit what it taught is kept, at the latest."""

MOST_RUNS: Final = 2_000
TRIES: Final = 10
"""How often another process may be quicker to keep what it has learned."""

_OVER: Final = (RunStatus.DONE, RunStatus.CANCELLED)
"""Of a run in error more may be heard."""

Commit: TypeAlias = tuple[PlanState, PlanState, Sequence[tuple[float, Event]]]
"""The states before and after it, and its events."""


@dataclass(slots=True)
class _Followed:
    """A run in trouble. While its `past` is read, commits wait."""

    version: int
    past: Past | None
    waiting: list[Commit] = field(default_factory=list)


def _ignore(*_: object) -> None:
    pass


class ExperienceKeeper:
    """`alert` is told what an operator should know, `wake` which call need not wait any more, and
    how many seconds from now it goes on."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        background: BackgroundTasks,
        alert: Callable[[Alert], None] = _ignore,
        wake: Callable[[Call, float], None] = _ignore,
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._background = background
        self._alert = alert
        self._definitions = DefinitionRegistry(journal)
        self._runs: OrderedDict[str, _Followed] = OrderedDict()
        self.loads = Loads(clock, self._raise, wake)
        self.experience = NOTHING_LEARNED
        """All that is known here."""
        self._kept = NOTHING_LEARNED
        self._unsaved = NOTHING_LEARNED
        self._number = 0
        self._doubtful: tuple[str, Experience] | None = None
        """What was to be kept when the journal failed, and what that added."""
        self._keeping = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._meanwhile: list[tuple[str, int, Sequence[Fact]]] | None = None
        """What is learned while everything is rebuilt, of which run and after which version."""
        self._reread: Mapping[str, int] = {}
        """Up to which version the runs that are followed were read then."""

    async def open(self) -> bool:
        """Read what is kept; whether anything is."""
        await self.refresh()
        return self._number > 0

    async def close(self) -> None:
        """Keep what is not kept yet, as far as the journal takes it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            await self.save()
        except OperatorError as error:
            log.warning("what was learned last is not kept: %s", error)

    def moments(self, tool: str, failure: Failure, run_id: str = "") -> Moments:
        """When a call that has just failed is worth another attempt."""
        fingerprint = judged(failure, tool).fingerprint
        return learning.moments(self.experience, tool, fingerprint, self._clock.now(), run_id)

    def hold(self, tool: str, failure: Failure, call: Call) -> tuple[float, str]:
        """For how many seconds a call that has just failed, and is to be tried again, is left alone
        at least because too many others fail, and why."""
        return self.loads.failed(tool, judged(failure, tool).fingerprint, call)

    def lessons_for(self, key: str) -> tuple[Lesson, ...]:
        return learning.lessons_for(self.experience, key)

    def note(self, before: PlanState, after: PlanState, records: Sequence[Written]) -> None:
        """To be called after each commit of a run that is in trouble (`in_trouble(after)`). It
        never fails: what happened has happened, whatever can be learned of it."""
        try:
            self._note(before, after, records)
        except Exception:
            log.exception("nothing is learned from %s", after.run_id, extra={"run": after.run_id})

    def _note(self, before: PlanState, after: PlanState, records: Sequence[Written]) -> None:
        timed = [(at, decode(Record(seq, at, name, body))) for seq, at, name, body in records]
        run_id, commit = after.run_id, (before, after, timed)
        followed = self._runs.get(run_id)
        if followed is None or followed.version != before.version:
            followed = self._follow(before)
        followed.version = after.version
        self._runs.move_to_end(run_id)
        if followed.past is None:
            followed.waiting.append(commit)
        else:
            followed.past = self._learn_of(followed.past, commit)
        if after.status in _OVER and followed.past is not None:
            del self._runs[run_id]

    def lessons(self, version_of: Callable[[str], str | None]) -> tuple[Lesson, ...]:
        """All that are known, those for another version of their tool as retired. `version_of` a
        tool that is not here is None."""
        known = sorted(self.experience.lessons.items())
        return tuple(lesson_of(one, version_of(place_of(one.key).tool)) for _, one in known)

    def _follow(self, before: PlanState) -> _Followed:
        """From here on. What others have committed of it they have learned; it is read only for
        what must be known of it."""
        known = None if in_trouble(before) else past_of(before)
        followed = self._runs[before.run_id] = _Followed(before.version, known)
        if known is None:
            self._background.spawn(self._catch_up(before.run_id, before.version, followed))
        while len(self._runs) > MOST_RUNS:
            self._runs.popitem(last=False)
        return followed

    async def _catch_up(self, run_id: str, version: int, followed: _Followed) -> None:
        try:
            lived = await lived_until(self._journal, self._definitions, run_id, version)
        except HoldfastError as error:
            log.info("nothing is learned from %s: %s", run_id, error, extra={"run": run_id})
            if self._runs.get(run_id) is followed:
                del self._runs[run_id]
            return
        past, over = lived.past, False
        for commit in followed.waiting:
            past, over = self._learn_of(past, commit), commit[1].status in _OVER
        followed.past, followed.waiting = past, []
        if over and self._runs.get(run_id) is followed:
            del self._runs[run_id]

    def _learn_of(self, past: Past, commit: Commit) -> Past:
        before, after, timed = commit
        found: list[Fact] = []
        state = before
        for place, (at, event) in enumerate(timed):
            if isinstance(event, PlanPatched):
                # What the case says that it is about may have been committed together with it.
                state = cast(PlanState, replay(before, timed[:place]))
            past, facts = facts_of(past, state, at, event)
            found += facts
            if isinstance(event, PlanPatched):
                state = after
        if found and before.version >= self._reread.get(before.run_id, 0):
            self._take(found)
            if self._meanwhile is not None:
                self._meanwhile.append((before.run_id, before.version, found))
        return past

    def _take(self, facts: Sequence[Fact]) -> None:
        self.experience, raised = learning.learn(self.experience, facts)
        self._unsaved, _ = learning.learn(self._unsaved, facts)
        for alert in raised:
            self._raise(alert)
        for fact in facts:
            self.loads.hear(fact)
        self._save_soon()

    def _raise(self, alert: Alert) -> None:
        try:
            self._alert(alert)
        except Exception:
            log.exception("an alert could not be told: %s", alert.message)

    async def say(self, lesson_id: str, state: LessonState) -> Lesson:
        """A person pins or retires a lesson, or leaves it to its wins and losses again. The audit
        says so in the same commit; where that fails, nothing was said."""
        async with self._keeping:
            for _ in range(TRIES):
                await self._read()
                if lesson_id not in self.experience.lessons:
                    raise NotFound(msg("there is no lesson {id}", id=lesson_id))
                now = self._clock.now()
                said = learning.said_of(learning.say(self.experience, lesson_id, state, now))
                adding, self._unsaved = self._unsaved, NOTHING_LEARNED
                whole = learning.merged(learning.merged(self._kept, adding), said)
                if await self._kept_now(whole, adding, records_of_saying(lesson_id, state, now)):
                    self.experience = learning.merged(whole, self._unsaved)
                    return lesson_of(self.experience.lessons[lesson_id])
        raise _outrun()

    def _save_soon(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(SAVE_SECONDS, self._save_now)

    def _save_now(self) -> None:
        self._timer = None
        self._background.spawn(self._save_or_wait())

    async def _save_or_wait(self) -> None:
        try:
            await self.save()
        except OperatorError as error:
            log.info("what was learned is kept later: %s", error)
            self._save_soon()

    async def refresh(self) -> None:
        """Read what other processes have learned."""
        async with self._keeping:
            await self._read()

    async def save(self) -> None:
        """Add what was learned here to what is kept."""
        async with self._keeping:
            for _ in range(TRIES):
                await self._read()
                if self._unsaved == NOTHING_LEARNED:
                    return
                adding, self._unsaved = self._unsaved, NOTHING_LEARNED
                if await self._kept_now(learning.merged(self._kept, adding), adding):
                    return
        raise _outrun()

    async def rebuild(self) -> int:
        """Learn everything from the journals again, and keep it; how many runs were read.

        What people said of lessons stays. Other processes should be at rest: what they learn
        meanwhile may count twice.
        """
        async with self._keeping:
            self._meanwhile = []
            try:
                fresh = await relearned(self._journal, tuple(self._runs))
            finally:
                meanwhile, self._meanwhile = self._meanwhile, None
            anew = learning.merged(fresh.experience, learning.said_of(self.experience))
            for run_id, version, facts in meanwhile:
                if version >= fresh.versions.get(run_id, 0):
                    anew, _ = learning.learn(anew, facts)
            self._reread = {one: at for one, at in fresh.versions.items() if one in self._runs}
            self.experience, self._unsaved, self._doubtful = anew, NOTHING_LEARNED, None
            for _ in range(TRIES):
                self._number, _ = await self._newest()
                if await self._kept_now(anew, NOTHING_LEARNED):
                    return len(fresh.versions)
        raise _outrun()

    async def _newest(self) -> tuple[int, str]:
        """What is kept last in a form that this version knows, and its number."""
        found = await self._journal.all_kept(KIND, self._clock.now())
        numbered = ((_number(one.key), one.body) for one in found)
        return max(((n, body) for n, body in numbered if n), default=(0, ""))

    async def _read(self) -> None:
        number, body = await self._newest()
        if self._doubtful is not None:
            attempted, adding = self._doubtful
            self._doubtful = None
            if body != attempted:
                self._take_back(adding)
        if number != self._number:
            self._number, self._kept = number, await asyncio.to_thread(_loaded, body)
            self.experience = learning.merged(self._kept, self._unsaved)

    async def _kept_now(
        self, whole: Experience, adding: Experience, audit: Sequence[AuditRecord] = ()
    ) -> bool:
        """Whether it is the newest that is kept: another process may have been quicker. What it
        adds is unsaved again where it is not."""
        try:
            body = await asyncio.to_thread(learning.dump, whole)
        except BaseException:
            self._take_back(adding)
            raise
        next_value = replace(self._next_value(body), audit=audit)
        try:
            await attach_claimed(self._journal, next_value, next_value.at)
        except (NameTaken, NameGone) as error:
            self._take_back(adding)
            if error.kind != KIND:
                raise
            return False
        except BaseException:
            # It may be on disk all the same.
            self._doubtful = body, adding
            raise
        self._number, self._kept = self._number + 1, whole
        return True

    def _take_back(self, adding: Experience) -> None:
        self._unsaved = learning.merged(adding, self._unsaved)

    def _next_value(self, body: str) -> Attached:
        claimed, spent = [ExpiringValue(KIND, _key(self._number + 1), body)], []
        if self._number:
            spent.append((KIND, _key(self._number)))
        else:
            claimed.append(ExpiringValue(KIND, _key(0), "{}"))
        return Attached(claimed=claimed, spent=spent, at=self._clock.now())


def _outrun() -> OperatorError:
    return OperatorError(msg("what was learned cannot be kept: others are always quicker"))


def _key(number: int) -> str:
    return f"{learning.VERSION}.{number}"


def _number(key: str) -> int:
    """0 for what another version of Holdfast keeps."""
    version, _, number = key.partition(".")
    return int(number) if version == str(learning.VERSION) else 0


def _loaded(body: str) -> Experience:
    try:
        return learning.load(body) if body else NOTHING_LEARNED
    except ValueError as error:
        log.warning("what was learned cannot be read, and is to be rebuilt: %s", error)
        return NOTHING_LEARNED

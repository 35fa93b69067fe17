"""The port of a journal that many processes append to: what it adds to `holdfast.journal.port`.

Servers decide, workers drive. A run has one driver at a time, under a job of the dispatcher; who
else appends leaves the driver word, in the same transaction.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Protocol

from holdfast.journal.condition import Figures
from holdfast.journal.port import Drive, Journal, OutboxMessage


class SlotStore(Protocol):
    """The right to have a call in flight, in slots that workers hold; one that is gone holds
    nothing."""

    async def take(self, worker: int, count: int, limit: int) -> int:
        """Take up to `count` of the first `limit` slots; how many there were."""

    async def give_back(self, worker: int, count: int) -> None: ...

    async def held(self, worker: int) -> tuple[int, int]:
        """How many the worker holds, and how many workers are alive."""


class SharedJournal(Journal, Protocol):
    """A drive job is deferred in the same transaction by: a birth whose row is active, unless it
    has a `drive`; an append without `drive` that turns the row's `active` from false to true; a
    notice, for its target. A job that waits already is enough.
    """

    async def confirm_key(self, key_check: str) -> None:
        """Remember what is derived from the installation's key, the first time; refuse another
        from then on (OperatorError)."""

    async def take(self, run_id: str, drive: Drive) -> int:
        """Make `drive` the driver of a run, and tell its version; 0 where a later one has been, or
        there is no such run."""

    async def reserve_jobs(self, count: int) -> Sequence[int]:
        """Ids for jobs of this process's own worker, to be given to births."""

    role: str
    """What the process is to others from the next opening on: a server, or a worker."""

    worker_id: int | None
    """The dispatcher's number of this process's worker, under which `reserve_jobs` are held; a
    birth may have a `drive` only while it is known."""

    @property
    def slots(self) -> SlotStore: ...

    async def wake_due(self, now: float, limit: int = 100) -> int:
        """Have runs driven whose `wake_at` has come and that are not active; how many."""

    async def wake_forgotten(self, limit: int = 100) -> int:
        """Have runs driven that are active, or have notices to hear, and have no job; how many."""

    async def versions(self, run_ids: Sequence[str]) -> Mapping[str, int]:
        """Where these runs stand; runs that do not exist are left out."""

    async def notices_for(self, run_ids: Sequence[str]) -> list[OutboxMessage]:
        """Notices that these runs have not heard yet, in order."""

    async def figures(self) -> Figures:
        """What monitoring reads; cheap, however much is kept."""

    async def seal(self, wait: bool = True) -> None:
        """Bring `commits` and `audit` up to date, as reading them does; without `wait` as far as
        that goes at once, unless another process is at it. Servers do so each second, so that
        readers find little to do."""

    async def tell(self, hints: Sequence[str]) -> None:
        """Send hints to every process that listens, soon and at best: one may be lost. Each has
        at most 7,000 bytes."""

    def hints(self) -> AsyncGenerator[str, None]:
        """What others, and this process, have told, until the journal is closed. The connection is
        made anew when it is lost; whenever it has been made, the first time too, the hint "" says
        so: what was told before may be missing."""

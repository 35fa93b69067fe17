"""A run that stays current: the engine tells it of every commit."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from holdfast.core.run.state import RunState
from holdfast.model.run import RunStatus
from holdfast.runtime.engine import Engine
from holdfast.runtime.hub import Latest

S = TypeVar("S", bound=RunState)

AT_REST = frozenset({RunStatus.DONE, RunStatus.ERROR, RunStatus.CANCELLED})
SETTLED = AT_REST | {RunStatus.PAUSE}


class LiveRun(ABC, Generic[S]):
    def __init__(self, engine: Engine, state: RunState) -> None:
        self._engine = engine
        self._latest = Latest(self._of_our_kind(state))
        weakref.finalize(self, engine.hub.keep_current(self._latest))

    @staticmethod
    @abstractmethod
    def _of_our_kind(state: RunState) -> S:
        """The state of the machine that this is about, or NotFound."""

    @property
    def _state(self) -> S:
        return self._latest.state  # type: ignore[return-value]  # a run stays of its kind

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}: {self._about}, {self.status}>"

    @property
    @abstractmethod
    def _about(self) -> str:
        """What it is a run of."""

    @property
    def id(self) -> str:
        return self._state.run_id

    @property
    def version(self) -> int:
        return self._state.version

    @property
    def status(self) -> str:
        return self._state.status.value

    async def wait_for_completion(self, timeout: float | None = None) -> str:
        """The status once it is done, error or cancelled; at the time-out, whatever it is."""
        return await self._wait(AT_REST, timeout)

    async def wait_until_settled(self, timeout: float | None = None) -> str:
        """As `wait_for_completion`, and also when it waits for a person."""
        return await self._wait(SETTLED, timeout)

    async def _wait(self, statuses: frozenset[RunStatus], timeout: float | None) -> str:
        run_id, latest = self._latest.state.run_id, self._latest
        latest.state = await self._engine.wait_for_status(run_id, statuses, timeout)
        return latest.state.status.value

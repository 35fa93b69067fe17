"""Faults that the mock office is told to have, so that callers meet the world as it is.

Each tool has a list of faults; `POST /configure_faults` replaces it. Those that last act together,
each at its own point of a call:

    at the door      status, token, quota    the call is turned away, and nothing is done
    the arguments    rename, expects         422 names the argument that is wrong
    before the work  stock                   409 once nothing is left
    the work         silent                  success is answered, and nothing is done
    the answer       rename, corrupt, html, oversize, delay, cut

A fault lasts for so many calls (`times`), by the office's clock (`until` seconds from now), until
another tool has done its work (`until_called`), or until a reset. At the door the first that lasts
speaks. `times` counts the calls that a fault has had its way with.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Final

from holdfast.demo.answers import Answer, Body, failure
from holdfast.demo.expectations import check_arguments
from holdfast.demo.services import TOOLS, Args, Refusal

PAGE: Final = (
    "<!DOCTYPE html><html><head><title>Sign in</title></head>"
    "<body><h1>Please sign in</h1><p>Your session has ended.</p></body></html>"
)
_EXPIRED: Final = "the token has expired: ask for a new one"
_TOO_MANY: Final = "too many requests: try again later"
_SOLD_OUT: Final = "nothing is left in stock"


class OfficeClock:
    """Runs as time does, and may be put forward."""

    def __init__(self) -> None:
        self.advanced = 0.0

    def now(self) -> float:
        return time.monotonic() + self.advanced


@dataclass(frozen=True, slots=True)
class Quota:
    """So many calls in each window of seconds; `hint` says whether Retry-After tells when."""

    limit: int
    window: float
    hint: bool = True


@dataclass(slots=True)
class Fault:
    """One fault, as it was told (`as_told`) and as far as it has got."""

    as_told: Args
    since: float
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Body = None
    delay: float = 0.0
    times: int | None = None
    until: float = math.inf
    until_called: str | None = None
    token_expired: bool = False
    quota: Quota | None = None
    stock: int | None = None
    renamed_args: Mapping[str, str] = field(default_factory=dict)
    renamed_result: Mapping[str, str] = field(default_factory=dict)
    expects: Mapping[str, Args] = field(default_factory=dict)
    silent: bool = False
    corrupt: Args = field(default_factory=dict)
    html: bool = False
    oversize: int = 0
    cut: bool = False

    window_since: float = -math.inf
    admitted: int = 0

    def lasts(self, now: float) -> bool:
        return self.times != 0 and now < self.since + self.until

    @property
    def only_delays(self) -> bool:
        return not self.as_told.keys() - {"delay", "times", "until", "until_called"}

    @property
    def changes_answers(self) -> bool:
        page = self.html or self.oversize or self.cut
        return bool(self.renamed_result or self.corrupt or page)

    @property
    def judges_arguments(self) -> bool:
        return bool(self.renamed_args or self.expects)

    def turns_away(self, now: float) -> Answer | None:
        if self.token_expired:
            return self._refusal(HTTPStatus.UNAUTHORIZED, _EXPIRED, code="token_expired")
        if self.quota is not None:
            return self._over_quota(self.quota, now)
        if self.status is not None:
            return self._refusal(self.status, f"a configured {self.status}")
        return None

    def _over_quota(self, quota: Quota, now: float) -> Answer | None:
        if now >= self.window_since + quota.window:
            self.window_since, self.admitted = now, 0
        if self.admitted < quota.limit:
            self.admitted += 1
            return None
        refusal = self._refusal(HTTPStatus.TOO_MANY_REQUESTS, _TOO_MANY, code="quota")
        if not quota.hint:
            return refusal
        wait = math.ceil(self.window_since + quota.window - now)
        return replace(refusal, headers={"Retry-After": str(wait), **refusal.headers})

    def sold_out(self) -> Answer | None:
        if self.stock is None or self.stock > 0:
            return None
        return self._refusal(HTTPStatus.CONFLICT, _SOLD_OUT, code="out_of_stock")

    def _refusal(self, status: int, told: str, **more: Body) -> Answer:
        answer = replace(failure(status, told, **more), headers=dict(self.headers))
        if isinstance(self.body, str):
            return replace(answer, page=self.body)
        return answer if self.body is None else replace(answer, body=self.body)

    def changed(self, answer: Answer) -> Answer:
        """A success as it is told."""
        new_name = self.renamed_result.get
        body = {new_name(name, name): value for name, value in answer.body.items()}
        body |= {new_name(name, name): value for name, value in self.corrupt.items()}
        body |= {"padding": "x" * self.oversize} if self.oversize else {}
        return replace(answer, body=body, page=PAGE if self.html else None, cut=self.cut)

    def shown(self) -> Args:
        return {**self.as_told, **({} if self.times is None else {"times": self.times})}


class Faults:
    """All faults of the office, by tool."""

    def __init__(self) -> None:
        self._by_tool: dict[str, Sequence[Fault]] = {}

    def configure(self, wanted: Mapping[str, Sequence[Fault]]) -> None:
        self._by_tool.update(wanted)

    def clear(self) -> None:
        self._by_tool.clear()

    def met(self, tool: str, now: float) -> MetFaults:
        """Those that a call of that tool meets now."""
        return MetFaults([one for one in self._by_tool.get(tool, ()) if one.lasts(now)], now)

    def has_acted(self, tool: str) -> None:
        for fault in (one for faults in self._by_tool.values() for one in faults):
            if fault.until_called == tool:
                fault.times = 0

    def shown(self, now: float) -> dict[str, list[Args]]:
        """Those that last, as they were told, with the calls that each still has."""
        lasting = {
            tool: [one.shown() for one in faults if one.lasts(now)]
            for tool, faults in self._by_tool.items()
        }
        return {tool: shown for tool, shown in lasting.items() if shown}


class MetFaults:
    """The faults that one call meets on its way."""

    def __init__(self, faults: Sequence[Fault], now: float) -> None:
        self._faults, self._now = faults, now
        self._delay = 0.0

    def _meet(self, fault: Fault) -> None:
        self._delay += fault.delay
        if fault.times is not None:
            fault.times -= 1

    def at_the_door(self) -> Answer | None:
        for fault in self._faults:
            if (answer := fault.turns_away(self._now)) is not None:
                self._meet(fault)
                return answer
        return None

    def understood(self, tool: str, args: Args) -> Args:
        """The arguments under the names that the services know, or WrongArguments."""
        for fault in (one for one in self._faults if one.judges_arguments):
            try:
                check_arguments(tool, args, fault.renamed_args, fault.expects)
            except Refusal:
                self._meet(fault)
                raise
            known = {new: old for old, new in fault.renamed_args.items()}
            args = {known.get(name, name): value for name, value in args.items()}
        return args

    def familiar(self, tool: str, args: Args) -> Args:
        """The arguments without those that are expected and of which the service has not heard."""
        expected = {name for fault in self._faults for name in fault.expects}
        further = expected - TOOLS[tool].required.keys() - TOOLS[tool].optional.keys()
        return {name: value for name, value in args.items() if name not in further}

    def sold_out(self) -> Answer | None:
        for fault in self._faults:
            if (answer := fault.sold_out()) is not None:
                self._meet(fault)
                return answer
        return None

    def sell(self) -> None:
        for fault in self._faults:
            fault.stock = None if fault.stock is None else fault.stock - 1

    def silence(self) -> bool:
        """Whether nothing is to be done."""
        silent = next((one for one in self._faults if one.silent), None)
        if silent is not None:
            self._meet(silent)
        return silent is not None

    def told(self, answer: Answer) -> Answer:
        """What reaches the caller of what a service has answered."""
        for fault in self._faults:
            if fault.only_delays:
                self._meet(fault)
            elif fault.changes_answers and answer.tells_success:
                self._meet(fault)
                answer = fault.changed(answer)
        return replace(answer, delay=answer.delay + self._delay)

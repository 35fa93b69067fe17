"""The mock office's counter: admits a request, has it served, writes it down.

One lock makes each call whole: it is judged, carried out and logged before the next. A request of
the wrong shape is refused before that, and leaves no trace.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from http import HTTPStatus
from typing import Any, TypeAlias, cast

from holdfast.demo.services import TOOLS, Args, Complaint, Refusal, Services, Tool, bad, conflict

Body: TypeAlias = Any

LONGEST_DELAY = 3600.0


@dataclass(frozen=True, slots=True)
class Call:
    """One line of the call log; `ok` means that the caller was told of success."""

    n: int
    tool: str
    args: Args
    key: str | None
    ok: bool
    repeated: bool
    at: float


@dataclass(frozen=True, slots=True)
class Answer:
    status: HTTPStatus
    body: Body
    delay: float = 0.0
    repeated: bool = False


class Reception:
    """The front desk: one call at a time reaches the services, and each is written down."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open_for_business()

    def _open_for_business(self) -> None:
        self._services = Services()
        self._failures: dict[str, int] = {}
        self._delays: dict[str, float] = {}
        self._answered: dict[tuple[str, str], tuple[Args, Answer]] = {}
        self._log: list[Call] = []

    def call(self, request: Args, key: str | None) -> Answer:
        name, args = _admitted(request)
        with self._lock:
            answer = self._answer(name, args, key)
            ok = answer.status is HTTPStatus.OK
            n = len(self._log) + 1
            self._log.append(Call(n, name, args, key, ok, answer.repeated, time.time()))
            return replace(answer, delay=self._delays.get(name, 0.0))

    def _answer(self, name: str, args: Args, key: str | None) -> Answer:
        if left := self._failures.get(name, 0):
            self._failures[name] = left - 1
            message = f"{name} is out of order (a configured failure, {left - 1} more to come)"
            return failure(HTTPStatus.INTERNAL_SERVER_ERROR, message)
        try:
            return self._serve(name, args, key)
        except Refusal as refusal:
            return failure(refusal.status, str(refusal))

    def _serve(self, name: str, args: Args, key: str | None) -> Answer:
        tool = TOOLS[name]
        if key is None or not tool.honours_keys:
            return Answer(HTTPStatus.OK, {"success": True, **tool.act(self._services, args)})
        if (name, key) in self._answered:
            return self._repeat(name, args, key)
        answer = Answer(HTTPStatus.OK, {"success": True, **tool.act(self._services, args)})
        self._answered[name, key] = (args, answer)
        return answer

    def _repeat(self, name: str, args: Args, key: str) -> Answer:
        first_args, answer = self._answered[name, key]
        if args != first_args:
            raise conflict(f"the key {key!r} was used with other arguments: use a new one")
        return replace(answer, repeated=True)

    def configure_failures(self, request: Args) -> Answer:
        failures = _per_tool(request, "failures", _count)
        with self._lock:
            self._failures.update(failures)
            return _done(failures=dict(self._failures))

    def configure_delays(self, request: Args) -> Answer:
        delays = _per_tool(request, "delays", _seconds)
        with self._lock:
            self._delays.update(delays)
            return _done(delays=dict(self._delays))

    def reset_failures(self, _: Args) -> Answer:
        with self._lock:
            self._failures.clear()
            return _done()

    def reset(self, _: Args) -> Answer:
        with self._lock:
            self._open_for_business()
            return _done()

    def calls(self) -> Answer:
        with self._lock:
            return Answer(HTTPStatus.OK, [asdict(call) for call in self._log])

    def counts(self) -> Answer:
        with self._lock:
            return Answer(HTTPStatus.OK, dict(Counter(call.tool for call in self._log)))

    def state(self) -> Answer:
        with self._lock:
            known = {name: dict(drawer) for name, drawer in vars(self._services).items()}
            pending = {"failures": dict(self._failures), "delays": dict(self._delays)}
            return Answer(HTTPStatus.OK, {**known, **pending})


def _admitted(request: Args) -> tuple[str, Args]:
    name, args = request.get("tool"), request.get("args", {})
    if not isinstance(name, str) or not isinstance(args, dict):
        raise bad('send {"tool": name, "args": {...}}')
    if complaints := _known(name).complaints(args):
        raise bad(f"{name}: {'; '.join(complaints)}")
    return name, args


def _known(name: str) -> Tool:
    if name not in TOOLS:
        known = ", ".join(sorted(TOOLS))
        raise Refusal(HTTPStatus.NOT_FOUND, f"there is no tool {name!r}; there are {known}")
    return TOOLS[name]


def _per_tool(request: Args, subject: str, check: Callable[[object], Complaint]) -> Args:
    wanted = request.get(subject)
    if not isinstance(wanted, dict):
        raise bad(f'send {{"{subject}": {{tool: number}}}}')
    for name, number in wanted.items():
        _known(name)
        if wrong := check(number):
            raise bad(f"{subject}: {name} {wrong}")
    return wanted


def _count(value: object) -> Complaint:
    return None if type(value) is int and value >= 0 else "must be a whole number from 0"


def _seconds(value: object) -> Complaint:
    fine = type(value) in (int, float) and 0 <= cast(float, value) <= LONGEST_DELAY
    return None if fine else f"must be seconds from 0 to {LONGEST_DELAY:.0f}"


def failure(status: HTTPStatus, message: str) -> Answer:
    return Answer(status, {"success": False, "error": message})


def _done(**body: Body) -> Answer:
    return Answer(HTTPStatus.OK, {"success": True, **body})

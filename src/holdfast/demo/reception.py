"""The mock office's counter: admits a request, has it served, writes it down.

One lock makes each call whole: it is judged, carried out and logged before the next. A request of
the wrong shape is refused before that, and leaves no trace. Faults that the office was told to have
(`faults`) act on a call's way; a call that one of them refuses is logged.
"""

from __future__ import annotations

import copy
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from http import HTTPStatus
from typing import cast

from holdfast.demo.answers import Answer, failure, success
from holdfast.demo.expectations import WrongArguments
from holdfast.demo.fault_reading import (
    LONGEST_DELAY,
    LONGEST_TIME,
    FaultsRefused,
    read_faults,
    seconds,
)
from holdfast.demo.faults import Faults, MetFaults, OfficeClock
from holdfast.demo.services import TOOLS, Args, Complaint, Refusal, Services, Tool, bad, conflict


@dataclass(frozen=True, slots=True)
class Call:
    """One line of the call log; `ok` means that the caller was told of success, `acted` that the
    service did the work now, whatever the caller was told."""

    n: int
    tool: str
    args: Args
    key: str | None
    ok: bool
    repeated: bool
    acted: bool
    at: float


class Reception:
    """The front desk: one call at a time reaches the services, and each is written down."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open_for_business()

    def _open_for_business(self) -> None:
        self._services = Services()
        self._failures: dict[str, int] = {}
        self._delays: dict[str, float] = {}
        self._faults, self._clock = Faults(), OfficeClock()
        self._answered: dict[tuple[str, str], tuple[Args, Answer]] = {}
        self._log: list[Call] = []

    def call(self, request: Args, key: str | None) -> Answer:
        name, args = _asked(request)
        with self._lock:
            met = self._faults.met(name, self._clock.now())
            answer = met.told(self._received(name, args, key, met))
            n, ok = len(self._log) + 1, answer.tells_success
            self._log.append(
                Call(n, name, args, key, ok, answer.repeated, answer.acted, time.time())
            )
            return replace(answer, delay=answer.delay + self._delays.get(name, 0.0))

    def _received(self, name: str, args: Args, key: str | None, met: MetFaults) -> Answer:
        turned_away = met.at_the_door()
        if turned_away is not None:
            return turned_away
        try:
            known = met.understood(name, args)
        except WrongArguments as wrong:
            return failure(wrong.status, str(wrong), field=wrong.field, code=wrong.code)
        _insist_on_shape(name, met.familiar(name, known))
        return self._answer(name, known, key, met)

    def _answer(self, name: str, args: Args, key: str | None, met: MetFaults) -> Answer:
        if left := self._failures.get(name, 0):
            self._failures[name] = left - 1
            message = f"{name} is out of order (a configured failure, {left - 1} more to come)"
            return failure(HTTPStatus.INTERNAL_SERVER_ERROR, message)
        try:
            return self._serve(name, args, key, met)
        except Refusal as refusal:
            return failure(refusal.status, str(refusal))

    def _serve(self, name: str, args: Args, key: str | None, met: MetFaults) -> Answer:
        if key is None or not TOOLS[name].honours_keys:
            return self._act(name, args, met)
        if (name, key) in self._answered:
            return self._repeat(name, args, key)
        answer = self._act(name, args, met)
        if answer.acted:
            self._answered[name, key] = (args, answer)
        return answer

    def _act(self, name: str, args: Args, met: MetFaults) -> Answer:
        sold_out = met.sold_out()
        if sold_out is not None:
            return sold_out
        act = TOOLS[name].act
        if met.silence():
            return success(**act(copy.deepcopy(self._services), args))
        answer = replace(success(**act(self._services, args)), acted=True)
        met.sell()
        self._faults.has_acted(name)
        return answer

    def _repeat(self, name: str, args: Args, key: str) -> Answer:
        first_args, answer = self._answered[name, key]
        if args != first_args:
            raise conflict(f"the key {key!r} was used with other arguments: use a new one")
        return replace(answer, repeated=True, acted=False)

    def configure_failures(self, request: Args) -> Answer:
        failures = _per_tool(request, "failures", _count)
        with self._lock:
            self._failures.update(failures)
            return success(failures=dict(self._failures))

    def configure_delays(self, request: Args) -> Answer:
        delays = _per_tool(request, "delays", seconds(LONGEST_DELAY))
        with self._lock:
            self._delays.update(delays)
            return success(delays=dict(self._delays))

    def configure_faults(self, request: Args) -> Answer:
        with self._lock:
            now = self._clock.now()
            try:
                self._faults.configure(read_faults(request.get("faults"), now))
            except FaultsRefused as refused:
                wrong = refused.complaints
                return failure(HTTPStatus.BAD_REQUEST, str(refused), complaints=wrong)
            return success(faults=self._faults.shown(now))

    def advance(self, request: Args) -> Answer:
        wanted = request.get("seconds")
        if wrong := seconds(LONGEST_TIME)(wanted):
            raise bad(f'send {{"seconds": number}}: it {wrong}')
        with self._lock:
            self._clock.advanced += cast(float, wanted)
            return success(advanced=self._clock.advanced)

    def reset_failures(self, _: Args) -> Answer:
        with self._lock:
            self._failures.clear()
            self._faults.clear()
            return success()

    def reset(self, _: Args) -> Answer:
        with self._lock:
            self._open_for_business()
            return success()

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
            faults = self._faults.shown(self._clock.now())
            return Answer(HTTPStatus.OK, {**known, **pending, "faults": faults})


def _asked(request: Args) -> tuple[str, Args]:
    name, args = request.get("tool"), request.get("args", {})
    if not isinstance(name, str) or not isinstance(args, dict):
        raise bad('send {"tool": name, "args": {...}}')
    _known(name)
    return name, args


def _insist_on_shape(name: str, args: Args) -> None:
    if complaints := TOOLS[name].complaints(args):
        raise bad(f"{name}: {'; '.join(complaints)}")


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

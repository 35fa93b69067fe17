"""The people of the campaign, over HTTP: they start runs, answer what is asked, resume what failed.

Each request has a key and is sent until it is answered for good: 503, a broken connection and
silence have it sent again, at the other server, under the same key. Some requests go to both
servers at once, and some questions get two different answers at once, of which one must win. Who is
asked whether a call happened looks it up in the office.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import httpx

from holdfast.demo.office import Office

Json: TypeAlias = dict[str, Any]

PAUSE = 0.2
SILENCE = 20.0
LOOK_EVERY = 0.3
LISTED = 200
TWICE = 4
"""Every so manieth start goes to both servers, and every so manieth question is answered twice."""

REFUSED = 0.1
"""Of the payments."""

PLANS = ("onboard_will_zhang", "onboard_zhang_san", "onboard_asking")
OPEN = ("not_started", "running", "pause", "continue", "error", "cancelling")
DRAWERS = {
    "apply_computer": "orders",
    "create_account": "accounts",
    "outbound": "outbounds",
    "pay_expense": "payments",
    "send_email": "mails",
}
"""Where the office files what the tools that know no keys have done."""

MODELS = ("MacBook Pro", "ThinkPad X1")
DESKS = ("A-12", "B-03")


@dataclass(frozen=True, slots=True)
class Started:
    """A run that was asked for, and as what it must end."""

    number: int
    plan: str
    ids: frozenset[str]
    expected: str


def values_of(number: int) -> Json:
    """What a run is told, unlike any other's: so each of its effects is known by it."""
    return {
        "id": f"E{number:05}",
        "name": f"Will Zhang {number}",
        "email": f"will.zhang.{number}@example.com",
        "department": "Engineering",
    }


@dataclass(slots=True)
class Answered:
    """What was sent to a question, and the status of each reply."""

    question: Json
    bodies: Sequence[Json]
    statuses: Sequence[int] = ()


class Caller:
    """Sends requests until they are answered for good."""

    def __init__(self, urls: Sequence[str], token: str) -> None:
        self._urls = urls
        self._http = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {token}"},
            timeout=SILENCE,
            limits=httpx.Limits(max_connections=None),
            trust_env=False,
        )
        self.counts: Counter[str] = Counter()

    async def close(self) -> None:
        await self._http.aclose()

    async def send(
        self, server: int, method: str, path: str, body: Any = None, key: str = "", **query: Any
    ) -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        attempts = 0
        while True:
            url = self._urls[(server + attempts) % len(self._urls)]
            attempts += 1
            self.counts["requests"] += 1
            try:
                response = await self._http.request(
                    method, f"{url}{path}", json=body, headers=headers, params=query
                )
            except httpx.TransportError:
                self.counts["broken"] += 1
            else:
                if response.status_code not in (429, 503):
                    assert response.status_code < 500, (path, response.text)
                    self.counts["sent again"] += attempts > 1
                    return response
                self.counts[str(response.status_code)] += 1
            await asyncio.sleep(PAUSE * random.uniform(0.5, 1.5))

    async def at_both(self, path: str, body: Any, key: str) -> list[httpx.Response]:
        both = (self.send(server, "POST", path, body, key) for server in range(len(self._urls)))
        return list(await asyncio.gather(*both))


@dataclass(slots=True)
class People:
    caller: Caller
    office: Office
    chance: random.Random
    runs: int
    at_once: int
    started: list[Started] = field(default_factory=list)
    answered: dict[str, Answered] = field(default_factory=dict)
    resumed: Counter[str] = field(default_factory=Counter)
    ended: int = 0
    problems: list[str] = field(default_factory=list)
    unfinished: Mapping[str, str] = field(default_factory=dict)
    """Runs with their status, at the last look."""

    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _resuming: set[str] = field(default_factory=set)
    _refused: set[str] = field(default_factory=set)
    """Whose payment is not approved: their runs are to end with that."""

    async def work(self) -> None:
        """Until all runs have ended."""
        begun = 0
        while self.ended < self.runs:
            known = list(self.started)
            self.unfinished = await self._unfinished()
            roots = {run_id.partition(".")[0] for run_id in self.unfinished}
            self.ended = sum(one.ids.isdisjoint(roots) for one in known)
            for question in await self._questions():
                if question["requestId"] not in self.answered:
                    self._spawn(self._answer(question))
            for run_id, status in self.unfinished.items():
                if status == "error" and run_id not in self._resuming:
                    self._spawn(self._resume(run_id))
            while begun < self.runs and begun - self.ended < self.at_once:
                self._spawn(self._start(begun))
                begun += 1
            self._raise_what_failed()
            await asyncio.sleep(LOOK_EVERY)
        await asyncio.gather(*self._tasks)

    def _spawn(self, work: Awaitable[None]) -> None:
        self._tasks.add(asyncio.ensure_future(work))

    def _raise_what_failed(self) -> None:
        for task in [one for one in self._tasks if one.done()]:
            self._tasks.discard(task)
            task.result()

    async def _unfinished(self) -> dict[str, str]:
        found: dict[str, str] = {}
        before = None
        while True:
            query = {"status": OPEN, "limit": LISTED, "before": before}
            page = await self._get("/runs", **{k: v for k, v in query.items() if v})
            found.update({one["id"]: one["status"] for one in page["runs"]})
            before = page["next"]
            if before is None:
                return found

    async def _questions(self) -> list[Json]:
        page = await self._get("/interactions", status="open", limit=LISTED)
        return list(page["interactions"])

    async def _get(self, path: str, **query: Any) -> Json:
        response = await self.caller.send(self.chance.randrange(2), "GET", path, **query)
        assert response.status_code == 200, (path, response.text)
        return dict(response.json())

    async def _start(self, number: int) -> None:
        plan = self.chance.choice(PLANS)
        refused = plan == "onboard_asking" and self.chance.random() < REFUSED
        values = values_of(number)
        if refused:
            self._refused.add(values["name"])
        body = {"plan_id": plan, "values": values}
        key = f"start-{number}"
        if number % TWICE == 1:
            responses = await self.caller.at_both("/instances", body, key)
        else:
            server = self.chance.randrange(2)
            responses = [await self.caller.send(server, "POST", "/instances", body, key)]
        for response in responses:
            assert response.status_code == 201, response.text
        ids = frozenset(response.json()["id"] for response in responses)
        self.started.append(Started(number, plan, ids, "cancelled" if refused else "done"))

    async def _resume(self, run_id: str) -> None:
        self._resuming.add(run_id)
        key = f"resume-{run_id}-{self.chance.random()}"
        server = self.chance.randrange(2)
        response = await self.caller.send(server, "POST", f"/runs/{run_id}/resume", key=key)
        assert response.status_code in (200, 409), response.text
        self.resumed[run_id] += response.status_code == 200
        self._resuming.discard(run_id)

    async def _answer(self, question: Json) -> None:
        name = question["requestId"]
        said = self.answered[name] = Answered(question, ())
        said.bodies = await self._answers_to(question)
        servers = list(range(len(said.bodies)))
        self.chance.shuffle(servers)
        path = f"/interactions/{name}/answer"
        responses = await asyncio.gather(
            *(
                self.caller.send(server, "POST", path, body, f"answer-{name}-{server}")
                for server, body in zip(servers, said.bodies, strict=True)
            )
        )
        said.statuses = [response.status_code for response in responses]
        for response in responses:
            if response.status_code not in (200, 409, 410):
                self.problems.append(f"question {name}: {response.status_code} {response.text}")

    async def _answers_to(self, question: Json) -> list[Json]:
        """One answer, or two that are sent at once."""
        if any(one["optionId"] == "happened" for one in question["options"]):
            return [await self._truth(question)]
        twice = len(self.answered) % TWICE == 1
        if question["type"] == "TOOL_APPROVAL":
            refused = question["context"]["args"]["employee"] in self._refused
            option = "terminate" if refused else "approve"
            return [{"selectedOptionId": option}] * (2 if twice else 1)
        fill = _desk if "desk" in question["form"] else _model
        both = [{"data": fill(self.chance, which)} for which in (0, 1)]
        self.chance.shuffle(both)
        return both[: 2 if twice else 1]

    async def _truth(self, question: Json) -> Json:
        """What became of the call, by the office's drawers."""
        tool, args = question["context"]["tool"], question["context"]["args"]
        drawer = (await self.office.state())[DRAWERS[tool]]
        found = [(name, one) for name, one in drawer.items() if args.items() <= one.items()]
        if not found:
            return {"selectedOptionId": "run_again"}
        name, entry = found[0]
        known = {"model": entry.get("computer_model", "")}
        return {
            "selectedOptionId": "happened",
            "data": {one: known.get(one, name) for one in question["form"]},
        }


Fill: TypeAlias = Callable[[random.Random, int], Mapping[str, str]]


def _desk(chance: random.Random, which: int) -> Mapping[str, str]:
    return {"desk": DESKS[which], "first_day": f"2030-01-{chance.randint(10, 28)}"}


def _model(chance: random.Random, which: int) -> Mapping[str, str]:
    return {"computer_model": MODELS[which]}

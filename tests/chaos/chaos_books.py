"""What must hold when it is over, by the journal, the office's ledger and what the people sent.

`Books.problems` is empty, or says what is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from chaos_cluster import Cluster
from chaos_people import DRAWERS, People, values_of

from holdfast.journal.codec import decode
from holdfast.journal.port import AuditEntry, Committed, RunQuery, RunRow, verify
from holdfast.journal.postgres import PostgresJournal
from holdfast.model import events as e
from holdfast.model.recorded import Event
from holdfast.views.integrity import examined

STRETCH = 500
Place = tuple[str, int]
"""A record's: its run and its number there."""

LEFT_OVER = {
    "stretches that are not sealed": "SELECT count(*) FROM unsealed",
    "deeds that are not sealed": "SELECT count(*) FROM deeds",
    "notices that nobody has heard": "SELECT count(*) FROM notices",
    "drive jobs": "SELECT count(*) FROM procrastinate_jobs",
    "active runs": "SELECT count(*) FROM runs WHERE active",
    "open questions": "SELECT count(*) FROM questions WHERE status = 'open'",
}

CALLED_ONCE = {
    "onboard_will_zhang": ("apply_computer", "outbound", "send_email"),
    "onboard_zhang_san": ("apply_computer", "send_email"),
    "onboard_asking": ("apply_computer", "outbound", "pay_expense", "send_email"),
}
"""What must have happened once when a run is done, of what would happen again at each call."""


@dataclass(frozen=True)
class Books:
    people: People
    runs: Mapping[str, RunRow]
    events: Mapping[str, Sequence[Event]]
    commits: Sequence[Committed]
    audit: Sequence[AuditEntry]
    calls: Sequence[dict[str, Any]]
    drawers: Mapping[str, Any]
    left_over: Mapping[str, int]
    needless: Sequence[str]
    """Runs that were told to recover when no driver was gone yet."""

    damages: Sequence[str]
    """What `doctor --integrity` finds: checksums, rows unlike their replay, a broken chain."""

    def problems(self) -> list[str]:
        """All that is wrong, in the order of what is looked at."""
        looks = (self._ends, self._answers, self._calls, self._effects, self._order, self._deeds)
        found = [f"{look.__name__[1:]}: {told}" for look in looks for told in look()]
        found += [
            f"{count} {what} are left over" for what, count in self.left_over.items() if count
        ]
        found += [f"{run_id} recovered before any driver was gone" for run_id in self.needless]
        return [*found, *self.damages, *self.people.problems]

    def _ends(self) -> Iterator[str]:
        """Every run that was asked for is there once, and ended as it should."""
        roots = {run_id for run_id, row in self.runs.items() if row.parent_id is None}
        asked: Counter[str] = Counter()
        for one in self.people.started:
            asked.update(one.ids)
            for run_id in one.ids:
                status = self.runs[run_id].status if run_id in self.runs else "not there"
                if status != one.expected:
                    yield f"{run_id} ({one.plan}) is {status}, not {one.expected}"
        if len(self.people.started) != self.people.runs:
            yield f"{len(self.people.started)} starts of {self.people.runs} were acknowledged"
        yield from (f"{run_id} was started {n} times" for run_id, n in asked.items() if n != 1)
        yield from (f"{run_id} was never asked for" for run_id in roots - set(asked))

    def _answers(self) -> Iterator[str]:
        """What was acknowledged is recorded, once, as it was sent; nothing else is."""
        recorded: dict[str, list[e.QuestionAnswered]] = {}
        for events in self.events.values():
            for event in events:
                if isinstance(event, e.QuestionAnswered):
                    recorded.setdefault(event.question_id, []).append(event)
        for name, sent in self.people.answered.items():
            there = recorded.pop(name, [])
            taken = [
                body
                for body, status in zip(sent.bodies, sent.statuses, strict=True)
                if status == 200
            ]
            if len(there) > 1:
                yield f"question {name} was answered {len(there)} times"
            elif taken and not there:
                yield f"an answer to {name} was acknowledged and is lost"
            elif there and not all(_says(there[0], body) for body in taken):
                yield f"{name} was acknowledged as {taken}, recorded as {there[0]}"
            elif there and not taken:
                yield f"{name} was answered by {there[0]}, and nobody was told"
        yield from (f"question {name} was answered by nobody" for name in recorded)

    def _calls(self) -> Iterator[str]:
        """Each call was journaled before it was made, and made at most once for each time."""
        started: Counter[str] = Counter()
        for run_id, events in self.events.items():
            for event in events:
                if isinstance(event, e.ListenerStarted):
                    started[f"{run_id}:{event.listener_id}:{event.firing}:{event.generation}"] += 1
        made = Counter(str(call["key"]) for call in self.calls)
        for key, count in made.items():
            if count > started[key]:
                yield f"{key} was called {count} times and journaled {started[key]} times"

    def _effects(self) -> Iterator[str]:
        """What happened in the office for each run: once where it is done."""
        filed = self._filed()
        for one in self.people.started:
            once = CALLED_ONCE[one.plan]
            for tool in DRAWERS:
                count = filed[tool, one.number]
                most = 1 if tool in once else 0
                least = most if one.expected == "done" else 0
                if not least <= count <= most:
                    yield f"{sorted(one.ids)} ({one.plan}): {tool} took effect {count} times"
        yield from self._chosen()

    def _filed(self) -> Counter[tuple[str, int]]:
        """How often each tool took effect for each run."""
        found: Counter[tuple[str, int]] = Counter()
        orders = {name: one["employee"] for name, one in self.drawers["orders"].items()}
        for tool, drawer in DRAWERS.items():
            for one in self.drawers[drawer].values():
                if tool == "send_email":
                    number = one["to"].removeprefix("will.zhang.").partition("@")[0]
                else:
                    employee = orders[one["order_id"]] if tool == "outbound" else one["employee"]
                    number = employee.removeprefix("Will Zhang ")
                found[tool, int(number)] += 1
        return found

    def _chosen(self) -> Iterator[str]:
        """The answer that won is the one that took effect."""
        models = {one["employee"]: one["computer_model"] for one in self.drawers["orders"].values()}
        mails = {one["to"]: one["content"] for one in self.drawers["mails"].values()}
        started = {run_id: one for one in self.people.started for run_id in one.ids}
        for run_id, events in self.events.items():
            one = started.get(run_id.partition(".")[0])
            for event in events:
                if isinstance(event, e.QuestionAnswered) and one is not None:
                    values = values_of(one.number)
                    model, desk = event.data.get("computer_model"), event.data.get("desk")
                    ordered = models.get(values["name"], model)
                    if model is not None and ordered != model:
                        yield f"{run_id} was answered {model} and ordered {ordered}"
                    if desk is not None and str(desk) not in mails.get(values["email"], str(desk)):
                        yield f"{run_id} was answered {desk}, which is not in its mail"

    def _order(self) -> Iterator[str]:
        """Every record has one place among all, without a gap, and in its run's order."""
        position = 0
        places: dict[str, int] = dict.fromkeys(self.runs, 0)
        for one in self.commits:
            if one.position - (one.last - one.first) != position + 1:
                yield f"a gap before position {one.position}"
            if one.first != places.get(one.run_id, 0) + 1:
                yield f"{one.run_id}: {one.first} comes after {places.get(one.run_id, 0)}"
            position, places[one.run_id] = one.position, one.last
        for run_id, last in places.items():
            if last != len(self.events.get(run_id, ())):
                yield f"{run_id}: {last} of {len(self.events[run_id])} records have a place"

    def _deeds(self) -> Iterator[str]:
        """What people did is noted, once each, and the chain holds."""
        problem = verify(self.audit)
        if problem is not None:
            yield problem
        noted = Counter(map(_deed, self.audit))
        done: Counter[tuple[str, str]] = Counter()
        for one in self.people.started:
            done.update(("started", run_id) for run_id in one.ids)
        for events in self.events.values():
            for event in events:
                if isinstance(event, e.QuestionAnswered):
                    done["answered", event.question_id] += 1
        done.update({("resumed", run_id): n for run_id, n in self.people.resumed.items()})
        for deed in sorted(set(done) | set(noted)):
            if deed[0] in {one for one, _ in done} and noted[deed] != done[deed]:
                yield f"{deed} was done {done[deed]} times and noted {noted[deed]} times"

    def places(self) -> list[Place]:
        """Every record, in the order of all commits."""
        return [(one.run_id, seq) for one in self.commits for seq in range(one.first, one.last + 1)]

    def unlike(self, heard: Sequence[Place]) -> Iterator[str]:
        """How what a follower has heard differs from the order of all commits."""
        places = self.places()
        if list(heard) != places:
            pairs = enumerate(zip(heard, places, strict=False))
            first = next((n for n, (one, two) in pairs if one != two), min(len(heard), len(places)))
            yield f"a follower heard {len(heard)} of {len(places)} records, other from {first} on"


def _deed(entry: AuditEntry) -> tuple[str, str]:
    """What was done, and to which question or run."""
    one = entry.record
    return one.action, one.subject if one.action == "answered" else one.run_id


def _says(event: e.QuestionAnswered, body: Mapping[str, Any]) -> bool:
    option, data = body.get("selectedOptionId"), body.get("data", {})
    return option in (None, event.option_id) and dict(event.data) == data


async def read_books(cluster: Cluster, people: People) -> Books:
    journal = PostgresJournal(cluster.database)
    await journal.open()
    try:
        runs = await _runs(journal)
        records = {run_id: await journal.read(run_id) for run_id in runs}
        events = {run_id: list(map(decode, records[run_id])) for run_id in runs}
        commits: list[Committed] = []
        while page := await journal.commits(commits[-1].position if commits else 0, STRETCH):
            commits += page
        audit: list[AuditEntry] = []
        while entries := await journal.audit(audit[-1].number if audit else 0, STRETCH):
            audit += entries
        damages = [str(one) for one in (await examined(journal, lambda done, total: None)).findings]
    finally:
        await journal.close()
    first_kill = min(one.first_kill for one in cluster.workers)
    needless = [
        run_id
        for run_id, told in events.items()
        for record, event in zip(records[run_id], told, strict=True)
        if isinstance(event, e.RunRecovered) and record.at < first_kill
    ]
    left_over = {}
    with psycopg.connect(cluster.database) as connection:
        for what, query in LEFT_OVER.items():
            row = connection.execute(query.encode()).fetchone()
            assert row is not None
            left_over[what] = int(row[0])
    calls, drawers = await cluster.office.calls(), await cluster.office.state()
    return Books(people, runs, events, commits, audit, calls, drawers, left_over, needless, damages)


async def _runs(journal: PostgresJournal) -> dict[str, RunRow]:
    found: dict[str, RunRow] = {}
    query = RunQuery(limit=STRETCH)
    while rows := await journal.runs(query):
        found.update({row.run_id: row for row in rows})
        query = replace(query, before=rows[-1].run_id)
    return found

"""What is wrong with an installation on PostgreSQL, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from holdfast.i18n.message import msg
from holdfast.journal.condition import MOST_SKEW, Condition, Figures, Process
from holdfast.journal.integrity import Finding

__all__ = ["Condition", "Figures", "described", "figures_in_words", "is_readable", "problems"]

SEALING_SECONDS: Final = 10.0
WAITING_SECONDS: Final = 30.0
"""A job that waits for longer waits in vain, or there are too few workers."""

SILENT_SECONDS: Final = 15.0
"""A process says something every five seconds."""

OPEN_SECONDS: Final = 60.0
CONNECTIONS_USED: Final = 0.9
_NAMED: Final = 5


def is_readable(condition: Condition) -> bool:
    """Whether the store can be opened for more."""
    return condition.figures is not None and condition.clock_skew <= MOST_SKEW


def problems(condition: Condition) -> list[Finding]:
    found = [*_of_the_server(condition)]
    if condition.figures is not None:
        found += [
            *_of_order(condition, condition.figures),
            *_of_driving(condition, condition.figures),
            *_of_processes(condition),
            *_of_runs(condition),
        ]
    return found


def described(condition: Condition) -> Mapping[str, Any]:
    """For programs."""
    return asdict(condition)


def figures_in_words(condition: Condition) -> list[str]:
    """What a person reads who finds nothing wrong."""
    said = [
        msg(
            "schema {schema}; connections: {used} of {allowed}; clocks {skew} s apart",
            schema=condition.schema,
            used=condition.connections,
            allowed=condition.connections_allowed,
            skew=_tenths(condition.clock_skew),
        )
    ]
    figures = condition.figures
    if figures is not None:
        said += [
            msg(
                "jobs: {waiting} waiting (the oldest for {oldest} s), {delayed} handed back for "
                "later, {driven} driven; slots held: {held} of {slots}",
                waiting=figures.jobs_waiting,
                oldest=_tenths(figures.oldest_job),
                delayed=figures.jobs_delayed,
                driven=figures.jobs_driven,
                held=figures.slots_held,
                slots=figures.slots,
            ),
            msg(
                "not in order yet: {count} records, the oldest for {lag} s",
                count=figures.unsealed,
                lag=_tenths(figures.sealing_lag),
            ),
        ]
    return [*said, *map(_process, condition.processes)]


def _process(one: Process) -> str:
    if one.silent is None:
        return msg(
            "{role} {name}: Holdfast {version}",
            role=one.role,
            name=one.name,
            version=one.version,
        )
    return msg(
        "{role} {name}: Holdfast {version}, heard of {silent} s ago",
        role=one.role,
        name=one.name,
        version=one.version,
        silent=_tenths(one.silent),
    )


def _of_the_server(condition: Condition) -> Iterator[Finding]:
    if condition.schema != condition.wanted_schema:
        yield _schema(condition)
    if condition.clock_skew > MOST_SKEW:
        yield _error(
            "clock",
            msg(
                "the clocks of this machine and of the database are {skew} s apart",
                skew=_tenths(condition.clock_skew),
            ),
            msg("set both by NTP: no server or worker starts on this machine before that"),
        )
    if condition.connections >= CONNECTIONS_USED * condition.connections_allowed:
        yield _error(
            "connections",
            msg(
                "{used} of {allowed} connections of the database server are in use",
                used=condition.connections,
                allowed=condition.connections_allowed,
            ),
            msg("raise max_connections, put PgBouncer before it, or run fewer processes"),
        )
    if condition.hidden:
        yield _notice(
            "hidden",
            msg("what other users' connections do may not be seen, nor how long they have done it"),
            msg("look as the user of servers and workers, or as one with pg_read_all_stats"),
        )
    for one in condition.transactions:
        if one.seconds >= (SEALING_SECONDS if one.writes else OPEN_SECONDS):
            yield _transaction(one.holder, one.seconds, one.writes)


def _schema(condition: Condition) -> Finding:
    found, wanted = condition.schema, condition.wanted_schema
    if found > wanted:
        return _error(
            "schema",
            msg(
                "schema {found} is of a newer Holdfast; this one knows {wanted}",
                **_pair(found, wanted),
            ),
            msg("upgrade Holdfast here"),
        )
    if not found:
        return _error("schema", msg("the database is empty"), msg("run `holdfast migrate`"))
    return _error(
        "schema",
        msg("schema {found} is there, and this Holdfast needs {wanted}", **_pair(found, wanted)),
        msg(
            "back it up, stop servers and workers of the former release, and run `holdfast migrate`"
        ),
    )


def _pair(found: int, wanted: int) -> dict[str, int]:
    return {"found": found, "wanted": wanted}


def _transaction(holder: str, seconds: float, writes: bool) -> Finding:
    remedy = msg(
        "find out what it is; end it with pg_terminate_backend(pid), or ROLLBACK PREPARED; "
        "idle_in_transaction_session_timeout ends such ones by itself"
    )
    if writes:
        problem = msg(
            "{holder} has had a transaction open for {seconds} s that has written: the order of "
            "commits, the audit and the feed stand still behind it",
            holder=holder,
            seconds=_tenths(seconds),
        )
    else:
        problem = msg(
            "{holder} has had a transaction open for {seconds} s: nothing that was removed since "
            "is given back",
            holder=holder,
            seconds=_tenths(seconds),
        )
    return _error("transaction", problem, remedy)


def _of_order(condition: Condition, figures: Figures) -> Iterator[Finding]:
    if figures.sealing_lag < SEALING_SECONDS:
        return
    problem = msg(
        "records without a place among all commits: {count}, the oldest for {lag} s",
        count=figures.unsealed,
        lag=_tenths(figures.sealing_lag),
    )
    if any(one.writes for one in condition.transactions):
        remedy = msg("end the transaction that holds them back")
    else:
        remedy = msg("start a server: each seals once a second")
    yield _error("sealing", problem, remedy)


def _of_driving(condition: Condition, figures: Figures) -> Iterator[Finding]:
    if condition.stalled:
        yield _error(
            "stalled",
            msg(
                "runs whose driver was not heard of ({count}): {runs}",
                count=figures.jobs_stalled,
                runs=_named([one.run_id for one in condition.stalled]),
            ),
            msg(
                "another worker takes them over within seconds; if none does, start one. Look what "
                "became of the worker (killed, stopped, out of memory, cut off)"
            ),
        )
    if condition.retried:
        yield _error(
            "retried",
            msg(
                "runs that no worker can drive, and each tries again and again ({count}): {runs}",
                count=len(condition.retried),
                runs=_named([one.run_id for one in condition.retried]),
            ),
            msg(
                "the workers' logs say of each why; `holdfast doctor --integrity` verifies what "
                "is there"
            ),
        )
    if figures.jobs_waiting and not figures.workers:
        yield _error(
            "workers",
            msg(
                "runs wait to be driven ({count}), and there is no worker",
                count=figures.jobs_waiting,
            ),
            msg("start one: `holdfast worker`"),
        )
    elif figures.oldest_job >= WAITING_SECONDS:
        yield _error(
            "waiting",
            msg(
                "runs wait to be driven ({count}), the oldest for {seconds} s",
                count=figures.jobs_waiting,
                seconds=_tenths(figures.oldest_job),
            ),
            msg(
                "start more workers, or give each more `--concurrency`; look whether they are busy"
            ),
        )
    if condition.forgotten:
        yield _error(
            "forgotten",
            msg(
                "runs that go on by themselves have no job: {runs}",
                runs=_named(condition.forgotten),
            ),
            msg("a worker finds them within ten seconds: start one; if they stay, report it"),
        )
    if condition.overdue:
        run_id, seconds = condition.overdue[0]
        yield _error(
            "timers",
            msg(
                "timers that have come and were not taken: {count}, the first of run {run_id} "
                "{seconds} s ago",
                count=len(condition.overdue),
                run_id=run_id,
                seconds=_tenths(seconds),
            ),
            msg("workers take them every second: start one, and compare the clocks"),
        )


def _of_processes(condition: Condition) -> Iterator[Finding]:
    for one in condition.processes:
        if one.silent is not None and one.silent >= SILENT_SECONDS:
            yield _error(
                "silent",
                msg(
                    "{role} {name} has said nothing for {seconds} s",
                    role=one.role,
                    name=one.name,
                    seconds=_tenths(one.silent),
                ),
                msg("it is stopped, stuck or cut off: look at it, and end it if it stays so"),
            )
    versions = sorted({one.version for one in condition.processes})
    if len(versions) > 1:
        yield _notice(
            "versions",
            msg(
                "processes of different releases are at work: {versions}",
                versions=", ".join(versions),
            ),
            msg("finish the upgrade"),
        )


def _of_runs(condition: Condition) -> Iterator[Finding]:
    if condition.quarantined:
        yield _notice(
            "quarantined",
            msg(
                "runs took their workers down three times: {runs}",
                runs=_named(condition.quarantined),
            ),
            msg("look why (`holdfast history RUN`), then resume or cancel them"),
        )
    if condition.late:
        yield _notice(
            "late",
            msg(
                "runs have a result that came after another driver had taken over: {runs}",
                runs=_named(condition.late),
            ),
            msg("compare it with what was decided since (`holdfast history RUN`)"),
        )


def _named(runs: Sequence[str]) -> str:
    shown = ", ".join(runs[:_NAMED])
    return shown if len(runs) <= _NAMED else f"{shown}, …"


def _tenths(seconds: float) -> str:
    return f"{seconds:.1f}"


def _error(what: str, problem: str, remedy: str) -> Finding:
    return Finding(what, "", problem, remedy=remedy)


def _notice(what: str, problem: str, remedy: str) -> Finding:
    return Finding(what, "", problem, remedy=remedy, harmless=True)

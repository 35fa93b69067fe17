"""Numbers for monitoring, in Prometheus' text format.

What the journal knows is asked for when they are read. Labels are kinds, statuses and route
templates, never ids.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Final

from fastapi import Response

from holdfast.errors import NotPermitted
from holdfast.i18n.message import msg
from holdfast.repair.alerts import AlertKind
from holdfast.server.auth.authentication import Called
from holdfast.server.auth.principal import sees_all
from holdfast.server.routing import new_router
from holdfast.server.services import Served, Services
from holdfast.views.condition import Figures

router = new_router("operation")

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]
Samples = Iterable[tuple[Labels, float]]

_METRICS: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Prometheus' text format",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}


@router.get("/metrics", response_class=Response, responses=_METRICS)
async def get_metrics(served: Served, caller: Called) -> Response:
    """Numbers for Prometheus: runs, questions, requests, streams."""
    if not sees_all(caller.principal):
        raise NotPermitted(msg("these numbers are of all runs: only who may read all may see them"))
    families = [family async for family in _families(served)]
    text = "".join(line for family in families for line in family)
    return Response(text, media_type=MEDIA_TYPE)


async def _families(services: Services) -> AsyncIterator[Iterator[str]]:
    reader, streams, counts = services.reader, services.streams, services.counts
    runs = (await reader.run_counts()).items()
    yield _family(
        "holdfast_runs",
        "gauge",
        "Runs by kind and status.",
        [({"kind": kind, "status": status}, count) for (kind, status), count in sorted(runs)],
    )
    questions = (await reader.question_counts()).items()
    yield _family(
        "holdfast_interactions",
        "gauge",
        "Questions to people by status and type.",
        [({"status": status, "type": kind}, count) for (status, kind), count in sorted(questions)],
    )
    for name, told, amount in _of_installation(await reader.figures()):
        yield _family(name, "gauge", told, [({}, amount)])
    yield _family(
        "holdfast_http_requests_total",
        "counter",
        "Requests served, by route and status.",
        [
            ({"method": method, "route": route, "status": str(status)}, count)
            for (method, route, status), count in sorted(counts.requests.items())
        ],
    )
    learning = services.app.engine.learning
    yield _family(
        "holdfast_cases_total",
        "counter",
        "Failures looked at by this process, by cause and what came of them.",
        [
            ({"cause": cause, "outcome": outcome}, count)
            for (cause, outcome), count in sorted(learning.cases.items())
        ],
    )
    yield _family(
        "holdfast_alerts_total",
        "counter",
        "Alerts of this process, by kind.",
        [({"kind": one.value}, learning.alerts[one]) for one in AlertKind],
    )
    for name, kind, told, value in (
        ("holdfast_stream_clients", "gauge", "Event streams that are open.", streams.clients),
        ("holdfast_streams_total", "counter", "Event streams served.", streams.served),
        (
            "holdfast_streams_dropped_total",
            "counter",
            "Streams whose client took nothing for too long.",
            streams.dropped,
        ),
        (
            "holdfast_refused_logins_total",
            "counter",
            "Requests without good credentials.",
            counts.refused_logins,
        ),
        (
            "holdfast_pursuits",
            "gauge",
            "Conversations that the server pursues.",
            len(services.supervisor),
        ),
        (
            "holdfast_commits_total",
            "counter",
            "Appends to the journal, since it was begun.",
            await reader.last_position(),
        ),
        ("holdfast_uptime_seconds", "gauge", "Since the server was made.", counts.uptime),
    ):
        yield _family(name, kind, told, [({}, value)])


def _of_installation(figures: Figures | None) -> Iterator[tuple[str, str, float]]:
    """Of a database that many processes share; every server tells the same."""
    if figures is None:
        return
    yield "holdfast_unsealed_records", "Records without a place in the order.", figures.unsealed
    yield "holdfast_sealing_lag_seconds", "Age of the oldest of them.", figures.sealing_lag
    yield "holdfast_jobs_waiting", "Runs that wait for a worker.", figures.jobs_waiting
    yield "holdfast_jobs_delayed", "Runs handed back for later.", figures.jobs_delayed
    yield "holdfast_jobs_driven", "Runs that workers drive.", figures.jobs_driven
    yield "holdfast_jobs_stalled", "Those whose worker is silent.", figures.jobs_stalled
    yield "holdfast_oldest_job_seconds", "Wait of the longest waiting.", figures.oldest_job
    yield "holdfast_workers", "Workers that live.", figures.workers
    yield "holdfast_slots", "Calls that may be in flight.", figures.slots
    yield "holdfast_slots_held", "Of these held by workers.", figures.slots_held


def _family(name: str, kind: str, told: str, samples: Samples) -> Iterator[str]:
    yield f"# HELP {name} {told}\n# TYPE {name} {kind}\n"
    for labels, value in samples:
        yield f"{name}{_labels(labels)} {_number(value)}\n"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3f}"

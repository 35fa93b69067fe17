"""Instants as text: what the API and the seeds' contexts say of a time."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")

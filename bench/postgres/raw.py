"""The limit of every system here: durable single-row commits, one after another."""

from __future__ import annotations

import time

import psycopg

from bench.raw import ROW


def commits_per_second(url: str, seconds: float) -> float:
    """By one connection with a prepared statement."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS raw (run text, seq bigint, body text)")
        rows, began = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - began) < seconds:
            row = ("run-1", rows, ROW)
            connection.execute("INSERT INTO raw VALUES (%s, %s, %s)", row, prepare=True)
            rows += 1
    return rows / elapsed

"""Checksums: a bit that has flipped on its way to the disk or back is noticed when it is read.

CRC-32, as a signed integer: four bytes in the database and under two microseconds a record. It
tells of accidents; of forgers tells the audit's chain. A record's covers its place as well, so one
that stands in another's place is noticed too. Rows that people are shown or let in by (questions,
definitions, what is kept) have one as well.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

from holdfast.journal.port import Record, Written

_head = struct.Struct("<qd").pack
_SIGN = 1 << 31
_RANGE = 1 << 32


def of_record(place: int, at: float, text: bytes) -> int:
    """`text` is the record's type and payload."""
    return (crc32(_head(place, at) + text) ^ _SIGN) - _SIGN


def add_values(values: list[Any], records: Sequence[Written], position: int, place: int) -> None:
    """Records as they are stored behind a position and a place, each with its checksum."""
    for _, at, kind, payload in records:
        position += 1
        place += 1
        crc = crc32(_head(place, at) + (kind + payload).encode())
        if crc >= _SIGN:
            crc -= _RANGE
        values += (position, place, at, kind, payload, crc)


def record_of(row: tuple[Any, ...], crc_after: int | None) -> Record | None:
    """None where the checksum tells of a change. Records of old, up to the one that has
    `crc_after`, have no checksum; with None nothing there has."""
    place, at, kind, payload, crc = row
    try:
        of_old = crc is None and (crc_after is None or place & 0xFFFFFFFF <= crc_after)
        if not of_old and crc != of_record(place, at, kind + payload):
            return None
        return Record(place & 0xFFFFFFFF, at, kind.decode(), payload.decode())
    except (UnicodeDecodeError, AttributeError, TypeError, struct.error):
        return None


def of_snapshot(version: int, schema: int, payload: bytes) -> int:
    return of_record(version, schema, payload)


def of_row(values: Iterable[Any]) -> int:
    """Of a row's columns, text as str or as bytes."""
    return (crc32(b"\x1f".join(map(_bytes, values))) ^ _SIGN) - _SIGN


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    return b"\0" if value is None else repr(float(value)).encode()

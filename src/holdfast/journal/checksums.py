"""Checksums: a bit that has flipped on its way to the disk or back is noticed when it is read.

CRC-32, as a signed integer: four bytes in the database and under two microseconds a record. It
tells of accidents; of forgers tells the audit's chain. A record's covers its place as well, so one
that stands in another's place is noticed too.
"""

from __future__ import annotations

import struct
from typing import Any
from zlib import crc32

from holdfast.journal.port import Record

_HEAD = struct.Struct("<qd")


def of_record(place: int, at: float, kind: bytes, payload: bytes) -> int:
    return _signed(crc32(payload, crc32(kind, crc32(_HEAD.pack(place, at)))))


def record_of(row: tuple[Any, ...]) -> Record | None:
    """None where the checksum tells of a change; records of old have none."""
    place, at, kind, payload, crc = row
    try:
        if crc is not None and crc != of_record(place, at, kind, payload):
            return None
        return Record(place & 0xFFFFFFFF, at, kind.decode(), payload.decode())
    except (UnicodeDecodeError, AttributeError, TypeError, struct.error):
        return None


def of_snapshot(version: int, schema: int, payload: bytes) -> int:
    return _signed(crc32(payload, crc32(_HEAD.pack(version, schema))))


def _signed(crc: int) -> int:
    return crc if crc < 1 << 31 else crc - (1 << 32)

"""Lives of random plans, sessions and conversations leave the very records that they left before.

`as_before.txt` has a checksum of each life's records, as the last release that meant to change
them wrote them; how their texts were made (`messages`, decision 43) stands beside them since and is
left out. Where an event, its order or its shape changes on purpose, a decision says so and
`python tests/core/test_as_before.py` writes the file anew.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
import test_conversation_properties
import test_machine_properties
import test_react_properties

from holdfast.i18n.journaled import MARK
from holdfast.journal.port import Record

KNOWN = Path(__file__).with_name("as_before.txt")
LIVES = 2_000
STRETCH = 100

KINDS: Sequence[Any] = (
    test_machine_properties,
    test_react_properties,
    test_conversation_properties,
)


def checksum(number: int) -> str:
    """Of the records of one life, which its number decides."""
    chance, kind = Random(number), KINDS[number % len(KINDS)]
    machine = kind.play(chance.randbytes(chance.randrange(100, 600)))
    kind.live_on(machine)
    records: list[Record] = machine.records
    lines = (f"{one.seq} {one.at} {one.type} {_texts(one.payload)}\n" for one in records)
    return f"{zlib.crc32(''.join(lines).encode()):08x}"


def _texts(payload: str) -> str:
    """A payload without its last member, where that is how its texts were made."""
    before, found, _ = payload.rpartition(f",{MARK}")
    return f"{before}}}" if found else payload


@pytest.mark.uncounted
@pytest.mark.parametrize("first", range(0, LIVES, STRETCH))
def test_a_life_leaves_the_records_that_it_left_before(first: int) -> None:
    known = KNOWN.read_text().split()[first : first + STRETCH]
    found = [checksum(number) for number in range(first, first + STRETCH)]
    assert len(known) == STRETCH
    assert [
        n for n, (one, other) in enumerate(zip(found, known, strict=True), first) if one != other
    ] == []


if __name__ == "__main__":
    sums = [checksum(number) for number in range(LIVES)]
    rows = [" ".join(sums[start : start + 10]) for start in range(0, LIVES, 10)]
    KNOWN.write_text("\n".join(rows) + "\n")
    sys.stdout.write(f"{LIVES} checksums\n")

"""The page of promises and the tests: each promise is there, and each file that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "promises.md").read_text(encoding="utf-8")
LINE = re.compile(r"^\| (\d+)\. .+ \| ((?:`[\w/.]+` ?)+)", re.MULTILINE)
HAS_TESTS = re.compile(r"^\s*(?:async def test_|def test_|class Test)", re.MULTILINE)
PROMISES = {int(number): re.findall(r"`(.+?)`", files) for number, files in LINE.findall(PAGE)}


def test_all_thirteen_are_there() -> None:
    assert list(PROMISES) == list(range(1, 14))


@pytest.mark.parametrize("number", PROMISES)
def test_its_files_have_tests(number: int) -> None:
    without = [
        name
        for name in PROMISES[number]
        if not (TESTS / name).is_file()
        or not HAS_TESTS.search((TESTS / name).read_text(encoding="utf-8"))
    ]
    assert PROMISES[number]
    assert without == []

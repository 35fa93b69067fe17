"""The walks in docs/walks are those of the code, and pass no more modules than before."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
WALKS = ("agent-turn.md", "conversation-task.md", "http-answer.md", "tool-call.md")


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The walks of this code, in a process whose caches hold nothing of other tests."""
    target = tmp_path_factory.mktemp("walks")
    subprocess.run([sys.executable, DOCS / "make_walks.py", target], check=True)
    return target


def modules(page: Path) -> int:
    found = re.search(r"^Modules: (\d+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_passes_no_more_modules_than_the_committed_one(walked: Path, name: str) -> None:
    assert modules(walked / name) <= modules(DOCS / "walks" / name)


@pytest.mark.parametrize("name", WALKS)
def test_the_committed_walk_is_the_code_s(walked: Path, name: str) -> None:
    committed = (DOCS / "walks" / name).read_text(encoding="utf-8")

    assert (walked / name).read_text(encoding="utf-8") == committed, "run: make diagrams"


def test_nothing_else_lies_among_the_walks(walked: Path) -> None:
    assert {path.name for path in walked.iterdir()} == set(WALKS)
    assert {path.name for path in (DOCS / "walks").iterdir()} == set(WALKS)

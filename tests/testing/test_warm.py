"""Processes of the tests start warm where that is known to work, and cold elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import warm

HERE = Path(warm.__file__).parent
LOADED = "import sys; print('holdfast.app' in sys.modules)"


def test_a_started_process_has_everything_imported() -> None:
    done = warm.run([sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, str(warm.FORKS))


@pytest.mark.parametrize(
    "change",
    ["import os; os.environ['HOLDFAST_COLD'] = '1'", "import sys; sys.version_info = (3, 99)"],
    ids=["asked for", "a Python that was not tried"],
)
def test_it_starts_cold_all_the_same(change: str) -> None:
    code = (
        f"{change}; import subprocess, sys; before = subprocess.Popen; import warm;"
        "assert subprocess.Popen is warm.Popen is before;"
        f"done = warm.run([sys.executable, '-c', {LOADED!r}], stdout=subprocess.PIPE, text=True);"
        "print(done.stdout.strip())"
    )
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr

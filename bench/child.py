"""The parent's side of a trial: start the process of one system, read its lines, end it in time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.trial import STALL_READY

ROOT = Path(__file__).resolve().parent.parent
PEERS_HOME = ROOT / ".venv-bench"
PEERS_PYTHON = PEERS_HOME / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
MODULES = {
    "holdfast": "bench.ours",
    "langgraph": "bench.peers.langgraph_peer",
    "dbos": "bench.peers.dbos_peer",
    "burr": "bench.peers.burr_peer",
}


@dataclass(slots=True)
class Outcome:
    """Everything one system said: samples per work, and what it ran on."""

    samples: dict[str, list[float]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    durability: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def hear(self, line: dict[str, Any]) -> None:
        self.versions.update(line.get("versions", {}))
        self.durability.update(line.get("durability", {}))
        for work, figure in line.get("figures", {}).items():
            self.samples.setdefault(work, []).append(figure)

    def note_end(self, process: subprocess.Popen[str], doing: str) -> None:
        """Keep why a process ended, unless all was well."""
        error = process.stderr.read() if process.stderr else ""
        if code := process.wait():
            self.problems.append(_problem(doing, code, error))


class Session:
    """A process that measures what it is asked, probe by probe, and rests in between."""

    def __init__(self, process: subprocess.Popen[str], outcome: Outcome) -> None:
        self._process = process
        self._outcome = outcome
        self.alive = True

    def ask(self, probe: str, timeout: float) -> None:
        """Have one probe done; a process that fails or takes too long is not asked again."""
        assert self._process.stdin
        self._process.stdin.write(f"{probe}\n")
        self._process.stdin.flush()
        self.listen(probe, timeout)

    def listen(self, probe: str, timeout: float) -> None:
        with _limited(self._process, timeout):
            for line in _lines(self._process):
                self._outcome.hear(line)
                if line.get("done") == probe:
                    return
        self.alive = False
        self._outcome.note_end(self._process, probe)


@contextmanager
def session(system: str, home: Path, timeout: float, outcome: Outcome) -> Iterator[Session]:
    """A session that has started and told its versions; home is an empty directory."""
    with _started(system, {"stage": "measure", "home": str(home)}) as process:
        opened = Session(process, outcome)
        opened.listen("start", timeout)
        yield opened


def run_stage(system: str, request: dict[str, Any], timeout: float, outcome: Outcome) -> bool:
    """Run one stage to its end; False when it failed or had to be cut short."""
    with _started(system, request) as process:
        with _limited(process, timeout):
            for line in _lines(process):
                outcome.hear(line)
        outcome.note_end(process, request["stage"])
    return process.returncode == 0


def run_until_stalled(
    system: str, request: dict[str, Any], timeout: float, outcome: Outcome
) -> bool:
    """Bring every run into flight, then kill the process as a power cut would."""
    with _started(system, request) as process:
        with _limited(process, timeout):
            stalled = any(line.get("stage") == STALL_READY for line in _lines(process))
        if not stalled:
            outcome.note_end(process, request["stage"])
    return stalled


@contextmanager
def _limited(process: subprocess.Popen[str], timeout: float) -> Iterator[None]:
    timer = threading.Timer(max(timeout, 0.1), process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _started(system: str, request: dict[str, Any]) -> Iterator[subprocess.Popen[str]]:
    python = sys.executable if system == "holdfast" else str(PEERS_PYTHON)
    process = subprocess.Popen(
        [python, "-W", "ignore", "-m", MODULES[system], json.dumps(request)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _lines(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """The JSON lines of the process; libraries that print other things are not listened to."""
    for text in process.stdout or ():
        if text.startswith("{"):
            yield json.loads(text)


def _problem(stage: str, code: int, error: str) -> str:
    if code == -signal.SIGKILL:
        return f"{stage}: cut short, it took too long"
    last = error.strip().splitlines()[-1:] or ["no message"]
    return f"{stage}: ended with {code}: {last[0][:200]}"

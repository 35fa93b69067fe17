"""The quick start of docs/operations.md, as a reader types it, on a PostgreSQL of its own."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import subprocess
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from cli_scene import command_line, environment

import warm

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
QUICK_START = PAGE.partition("## Quick start on PostgreSQL")[2].partition("\n## ")[0]
PLAN = ROOT / "deploy" / "application" / "plans" / "leave.yaml"

KEY = b64encode(b"k" * 32).decode()
WAITS_FOR_PERSON = 4
PATIENCE = 60.0


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def started(words: list[str], place: Path, variables: dict[str, str]) -> Iterator[None]:
    process = warm.Popen(
        command_line(*words),
        cwd=place,
        env={**environment(), **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        port = words[words.index("--port" if words[0] == "serve" else "--health-port") + 1]
        limit = time.monotonic() + PATIENCE
        while not is_ready(port):
            assert process.poll() is None, process.stderr
            assert time.monotonic() < limit
        yield
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def is_ready(port: str) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz").is_success
    except httpx.TransportError:
        return False


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "plans").mkdir()
    shutil.copy(PLAN, tmp_path / "plans")
    plan = tmp_path / "plans" / PLAN.name
    text = plan.read_text(encoding="utf-8")
    assert "after: 10s" in text
    plan.write_text(text.replace("after: 10s", "after: 1s"), encoding="utf-8")
    return tmp_path


def test_the_quick_start_works(place: Path, empty_database: Callable[..., str]) -> None:
    variables = {"HOLDFAST_DATABASE": empty_database(), "HOLDFAST_SECRET_KEY": KEY}
    ports = {port: str(free_port()) for port in re.findall(r"\b84\d\d\b", QUICK_START)}
    blocks = re.findall(r"^```sh\n(.*?)^```$", QUICK_START, re.DOTALL | re.MULTILINE)
    said: dict[str, str] = {}
    with ExitStack() as stack:
        for line in "".join(blocks).splitlines():
            text = re.sub(r"\b84\d\d\b", lambda found: ports[found[0]], line)
            program, *words = shlex.split(text.removesuffix(" &"))
            assert program == "holdfast"
            if line.endswith(" &"):
                stack.enter_context(started(words, place, variables))
                continue
            ended = warm.run(
                command_line(*words),
                cwd=place,
                env={**environment(), **variables},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
            )
            expected = WAITS_FOR_PERSON if words[0] == "run" else 0
            assert ended.returncode == expected, f"{line}\n{ended.stdout}{ended.stderr}"
            said[words[0]] = ended.stdout
            for token in re.findall(r"\bhf_\S+", ended.stdout):
                variables["HOLDFAST_TOKEN"] = token
    assert "is ready: schema" in said["migrate"]
    assert "May Will Zhang have a day off?" in said["inbox"]
    assert "the run is done" in said["history"]
    assert "sound" in said["doctor"]
    assert (said["doctor"].count("server "), said["doctor"].count("worker ")) == (2, 2)


def test_its_variables_are_the_ones_that_are_needed() -> None:
    exported = re.findall(r"^    export (\w+)=", QUICK_START, re.MULTILINE)
    assert exported == ["HOLDFAST_DATABASE", "HOLDFAST_SECRET_KEY"]

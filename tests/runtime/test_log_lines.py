"""Log lines name the run and the step that they are about, and writing one breaks nothing."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plan_texts import load, start, step
from session_scenes import PATIENCE

from holdfast import Holdfast
from holdfast.runtime.log_context import CARRIED, REQUEST, Carried
from holdfast.runtime.log_lines import LIBRARIES, LONGEST, Lines, configure, formatter

pytestmark = pytest.mark.own_store  # about lines

office = logging.getLogger("office")


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """What the process's log lines are written to, in place of stderr."""
    root, libraries = logging.getLogger(), [logging.getLogger(one) for one in LIBRARIES]
    before = root.level, [one.level for one in libraries]
    stream = io.StringIO()
    handler = configure("info", "json", stream)
    yield stream
    root.removeHandler(handler)
    root.setLevel(before[0])
    for library, level in zip(libraries, before[1], strict=True):
        library.setLevel(level)


def lines(stream: io.StringIO, logger: str = "office") -> list[dict[str, Any]]:
    told = [json.loads(one) for one in stream.getvalue().splitlines()]
    return [one for one in told if one["logger"] == logger]


async def alone(amount: int) -> dict[str, Any]:
    office.info("paying")
    return {}


async def with_tasks(amount: int) -> dict[str, Any]:
    async def part() -> None:
        office.info("paying")

    await asyncio.gather(part())
    return {}


def in_a_thread(amount: int) -> dict[str, Any]:
    office.info("paying")
    return {}


TOOLS = [alone, with_tasks, in_a_thread]


@pytest.mark.parametrize("timeout", [None, 30.0])
@pytest.mark.parametrize("tool", TOOLS, ids=lambda one: one.__name__)
async def test_what_a_tool_logs_names_its_run_and_step(
    stream: io.StringIO, tmp_path: Path, tool: Any, timeout: float | None
) -> None:
    app = Holdfast(tmp_path)
    app.tool(name="pay", timeout=timeout)(tool)
    async with app:
        paid = step("L1", "001", "002", tool="pay", args={"amount": 7})
        again = step("L2", "002", "001", tool="pay", args={"amount": 8})
        load(app, paid, again)
        first, second = await start(app), await start(app)
        for instance in (first, second):
            assert await instance.wait_until_settled(PATIENCE) == "done"
    told = {(one["run"], one["step"], one["attempt"]) for one in lines(stream)}
    assert told == {(run.id, name, 1) for run in (first, second) for name in ("L1", "L2")}
    assert all(one["claim"] > 0 for one in lines(stream))


async def test_a_thread_that_outlasts_its_call_logs_as_what_it_was(
    stream: io.StringIO, tmp_path: Path
) -> None:
    go_on, over = threading.Event(), threading.Event()

    def slow() -> dict[str, Any]:
        go_on.wait(PATIENCE)
        office.info("late")
        over.set()
        return {}

    async def next_one() -> dict[str, Any]:
        go_on.set()
        await asyncio.to_thread(over.wait, PATIENCE)
        return {}

    app = Holdfast(tmp_path)
    app.tool(name="slow", timeout=0.01, idempotent=True)(slow)
    app.tool(name="next_one")(next_one)
    async with app:
        late = step("L1", "001", "002", tool="slow", retry={"attempts": 1})
        late |= {"failure_output": {"task_id": "002", "status": "Done"}}
        load(app, late, step("L2", "002", "001", tool="next_one"))
        run = await start(app)
        await run.wait_until_settled(PATIENCE)
        go_on.set()
        assert await asyncio.to_thread(over.wait, PATIENCE)
    [told] = lines(stream)
    assert (told["run"], told["step"]) == (run.id, "L1")


async def test_what_the_engine_logs_names_its_run_and_no_request(
    stream: io.StringIO, tmp_path: Path
) -> None:
    def broken(amount: int) -> dict[str, Any]:
        raise ValueError(amount)

    app = Holdfast(tmp_path)
    app.tool(name="pay")(broken)
    async with app:
        load(app, step("L1", "001", "001", tool="pay", args={"amount": 7}, retry={"attempts": 1}))
        run = await start(app)
        await run.wait_until_settled(PATIENCE)
    told = lines(stream, "holdfast")[0]
    assert (told["run"], told["step"], told["attempt"]) == (run.id, "L1", 1)
    assert told["level"] == "warning"
    assert "request" not in told


def test_a_line_has_time_level_logger_message_request_and_exception(stream: io.StringIO) -> None:
    REQUEST.set({"request_id": "r1", "person": "will"})
    try:
        raise ValueError("no such desk")
    except ValueError:
        office.exception("desk %d", 14)
    REQUEST.set(None)
    [told] = lines(stream)
    assert told.pop("time").endswith("Z")
    assert told.pop("exception").splitlines()[-1] == "ValueError: no such desk"
    assert told == {
        "level": "error",
        "logger": "office",
        "message": "desk 14",
        "person": "will",
        "request": "r1",
    }


def test_a_record_that_names_a_run_is_about_that_one(stream: io.StringIO) -> None:
    class Work:
        run_id, step_id, attempt, claim = "inst_1", "L1", 2, 3

    carried = Carried()
    carried.work = Work()  # type: ignore[assignment]
    CARRIED.set(carried)
    office.info("of its own")
    office.info("of another", extra={"run": "inst_2"})
    CARRIED.set(None)
    own, other = lines(stream)
    assert (own["run"], own["step"], own["attempt"], own["claim"]) == ("inst_1", "L1", 2, 3)
    assert other["run"] == "inst_2"
    assert "step" not in other


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError


class Endless:
    def __str__(self) -> str:
        return str(self)


@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("%d", ("x",)),
        ("%s %s", ("one",)),
        ("%s", (Unspeakable(),)),
        ("%s", (Endless(),)),
        (Unspeakable(), ()),
        ("\ud800 %s", ("\udfff",)),
        ("%s", ("long" * LONGEST,)),
    ],
    ids=range(7),
)
def test_a_record_that_cannot_be_told_breaks_nothing(
    form: str, text: Any, args: tuple[Any, ...]
) -> None:
    written = io.BytesIO()
    log = logging.Logger("alone")
    log.addHandler(Lines(formatter(form), io.TextIOWrapper(written, "utf-8")))
    log.info(text, *args)
    log.info("afterwards")
    assert b"afterwards" in written.getvalue()
    assert written.getvalue().count(b"\n") == 2
    assert len(written.getvalue()) < 2 * LONGEST


class Closed(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize("gone", [Closed(), io.TextIOWrapper(io.BytesIO())])
def test_a_stream_that_is_gone_breaks_nothing(
    gone: io.TextIOBase, capsys: pytest.CaptureFixture[str]
) -> None:
    if not isinstance(gone, Closed):
        gone.close()
    handler = Lines(formatter("json"), gone)  # type: ignore[arg-type]
    handler.handle(logging.makeLogRecord({"msg": "unheard"}))
    assert capsys.readouterr().err == ""


def test_no_text_of_others_passes_for_a_line_of_its_own(stream: io.StringIO) -> None:
    forged = "hello\n2026-01-01 00:00:00,000 ERROR holdfast: all is lost\x1b[2J\u202e"
    office.info(forged)
    [told] = lines(stream)
    assert told["message"] == forged
    configure("info", "text", stream)
    stream.truncate(0)
    office.info(forged)
    first, second = stream.getvalue().lstrip("\0").splitlines()
    assert first.endswith("INFO office: hello")
    assert second.startswith("    2026-01-01")
    assert "\x1b" not in second
    assert "\u202e" not in second


def test_libraries_tell_of_no_requests(stream: io.StringIO) -> None:
    configure("debug", "json", stream)
    logging.getLogger("httpx").info("GET https://service/?key=hunter2")
    logging.getLogger("openai._base_client").debug("Request options: %s", {"prompt": "hunter2"})
    logging.getLogger("httpx").warning("told")
    office.debug("told")
    assert "hunter2" not in stream.getvalue()
    assert stream.getvalue().count("told") == 2


async def test_a_secret_that_a_tool_logs_is_taken_out_of_its_line(stream: io.StringIO) -> None:
    from holdfast.work.confidence import in_confidence

    async def call(given: Any, hide: Any) -> Any:
        office.info("the key is %s", "hunter2-and-more")
        return {}

    await in_confidence(None, "inst_1", {}, call, own=("hunter2-and-more",))
    [told] = lines(stream)
    assert "hunter2" not in told["message"]

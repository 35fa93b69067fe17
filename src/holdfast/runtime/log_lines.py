"""Log lines: text for people, or one JSON object per line, with what each is about.

A record that names a run itself (`extra={"run": …}`) is about that; any other is about the work and
the request within which it was logged (`log_context`). A line that cannot be written is lost, and
whatever logged it goes on.

The libraries under us tell of whole requests below WARNING, prompts and addresses included: they
are kept at that, whatever level is wanted.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from holdfast.runtime.log_context import CARRIED, REQUEST

WORK_FIELDS: Final = ("run", "step", "attempt", "claim")
REQUEST_FIELDS: Final = ("person", "request")
ACCESS_FIELDS: Final = ("client", "method", "path", "status")
ALERT: Final = "alert"
"""The kind of an alert."""

FIELDS: Final = (*WORK_FIELDS, ALERT, *REQUEST_FIELDS, *ACCESS_FIELDS)
LONGEST: Final = 16_000
"""How many characters of a message, and of a traceback, a line has."""

LIBRARIES: Final = (
    "asyncio",
    "hpack",
    "httpcore",
    "httpx",
    "openai",
    "procrastinate",
    "psycopg",
    "pydantic_ai",
    "uvicorn.error",
)
_OBEYED: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def about(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of a record that are known."""
    named = {one: getattr(record, one) for one in FIELDS if getattr(record, one, None) is not None}
    found: dict[str, Any] = {}
    if "run" not in named and (carried := CARRIED.get()) is not None and carried.work is not None:
        work = carried.work
        found = {"run": work.run_id, "step": work.step_id, "attempt": work.attempt}
        found["claim"] = work.claim
    if (request := REQUEST.get()) is not None:
        found |= {"person": request["person"]} if "person" in request else {}
        found["request"] = request["request_id"]
    found |= named
    return {one: found[one] for one in FIELDS if one in found}


def message_of(record: logging.LogRecord) -> str:
    try:
        text = record.getMessage()
    except Exception:  # a person's record whose arguments do not fit is told as it stands
        text = str(record.msg)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def exception_of(record: logging.LogRecord) -> str:
    """The end of it, which says what was raised, and where."""
    text = record.exc_text or ""
    if not text and record.exc_info and record.exc_info[1] is not None:
        text = "".join(traceback.format_exception(*record.exc_info)).rstrip()
    return text if len(text) <= LONGEST else f"…{text[-LONGEST:]}"


class JsonLines(logging.Formatter):
    """All of it is ASCII: stderr may be of any encoding, and a collector reads escapes."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _moment(record).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message_of(record),
            **about(record),
        }
        if exception := exception_of(record):
            line["exception"] = exception
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    """A line of ours begins with its time; the further lines of a message are set off, so that no
    text of others can pass for one."""

    def format(self, record: logging.LogRecord) -> str:
        when = _moment(record).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
        fields = " ".join(
            f"{name}={value}"
            for name, value in about(record).items()
            if name not in ACCESS_FIELDS and name != "claim"
        )
        parts = (message_of(record), exception_of(record))
        text = "\n".join(part for part in parts if part)
        head = f"{when} {record.levelname} {record.name}{f' [{fields}]' if fields else ''}: "
        told = _OBEYED.sub(lambda one: ascii(one[0])[1:-1], f"{head}{text}")
        lines = "\n    ".join(told.splitlines())
        return lines.encode("utf-8", "backslashreplace").decode()


def _moment(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


class Lines(logging.Handler):
    """Writes to stderr as it is at the time; nothing that goes wrong reaches who logs."""

    def __init__(self, formatter: logging.Formatter, stream: TextIO | None = None) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):
            stream = self._stream or sys.stderr
            stream.write(f"{self._line(record)}\n")
            stream.flush()

    def _line(self, record: logging.LogRecord) -> str:
        try:
            return self.format(record)
        except Exception as error:
            return f"a log line of {record.name} cannot be told: {type(error).__name__}"


class AccessLine(logging.Filter):
    """uvicorn's record of a request, taken apart; without the secrets of one-time links."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple) and len(record.args) == 5:
            client, method, path, version, status = record.args
            place, _, query = str(path).partition("?")
            hidden = f"{place}?…" if query and place.endswith("/login") else str(path)
            record.args = (client, method, hidden, version, status)
            named: Mapping[str, Any] = {"client": str(client), "method": method, "path": hidden}
            record.__dict__.update(named, status=status)
        return True


def formatter(name: str) -> logging.Formatter:
    return JsonLines() if name == "json" else TextLines()


def configure(level: str, form: str, stream: TextIO | None = None) -> logging.Handler:
    """Have this process write its log lines to stderr, of these levels and in this form."""
    handler, root, wanted = Lines(formatter(form), stream), logging.getLogger(), level.upper()
    for former in [one for one in root.handlers if isinstance(one, Lines)]:
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(wanted)
    for name in LIBRARIES:
        library = logging.getLogger(name)
        if library.level == logging.NOTSET:
            library.setLevel(max(root.level, logging.WARNING))
    return handler


@contextmanager
def access_lines(wanted: bool) -> Iterator[None]:
    """One line per request, while within."""
    if not wanted:
        yield
        return
    log, told = logging.getLogger("uvicorn.access"), AccessLine()
    ours = [one for one in logging.getLogger().handlers if isinstance(one, Lines)]
    handler = Lines(ours[0].formatter or TextLines()) if ours else Lines(TextLines())
    propagates, log.propagate = log.propagate, False
    log.addFilter(told)
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.removeFilter(told)
        log.propagate = propagates

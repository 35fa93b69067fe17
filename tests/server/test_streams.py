"""Event streams on the wire: what is said, in which pace, and every way in which they end."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from listeners import Deaf, Heard, listening_to, seen
from server_scene import listening
from starlette.types import Receive, Scope, Send

from holdfast.errors import JournalUnavailable, Unauthenticated
from holdfast.server.middleware.requests import RequestMiddleware
from holdfast.server.settings import ServerSettings
from holdfast.server.streams import sse
from holdfast.server.streams.sse import (
    Comment,
    EventStream,
    Frame,
    Frames,
    Listener,
    Streams,
    encoded,
)


@dataclass
class Patience:
    heartbeat: float = 30.0
    stall_seconds: float = 30.0


@dataclass
class Station:
    """An application that is one stream: `given` is what it sends, then it waits for more."""

    streams: Streams
    given: list[Frame | Comment | bytes] = field(default_factory=list)
    endless: bytes = b""
    ends: bool = False
    error: Exception | None = None
    refused: Exception | None = None
    via: str = "tok_1"
    expired: asyncio.Event = field(default_factory=asyncio.Event)
    pulled: int = 0
    closed: int = 0
    url: str = ""
    client: httpx.AsyncClient = field(default_factory=lambda: httpx.AsyncClient(trust_env=False))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            listener = Listener(self.check, self.via, self.expired.wait)
            await EventStream(self.streams, self.frames(), listener)(scope, receive, send)

    async def check(self) -> None:
        if self.refused is not None:
            raise self.refused

    async def frames(self) -> Frames:
        try:
            for frame in self.given:
                yield frame
            while self.endless:
                self.pulled += len(self.endless)
                yield self.endless
            if self.error is not None:
                raise self.error
            if not self.ends:
                await asyncio.Event().wait()
        finally:
            self.closed += 1


@asynccontextmanager
async def on_air(patience: Patience | None = None, **station: Any) -> AsyncIterator[Station]:
    made = Station(Streams(patience or Patience()), **station)
    async with listening(RequestMiddleware(made, ServerSettings())) as made.url, made.client:
        try:
            yield made
        finally:
            made.streams.close()


def test_a_frame_is_one_line_per_field_whatever_it_contains() -> None:
    frame = Frame({"text": "a\nb\r\nc\u2028d", "name": "张三"}, "Told", 7)
    head, *others = encoded(frame).decode().split("\n")
    assert head == "id: 7"
    assert others[0] == "event: Told"
    assert others[1].startswith("data: {")
    assert "张三" in others[1]
    assert others[2:] == ["", ""]
    assert b"\r" not in encoded(frame)
    assert encoded(Frame(1, "two\nlines", "a\nb")).decode().count("\n") == 4
    assert encoded(Comment("one\ntwo")) == b": one two\n\n"


async def test_a_stream_says_how_to_come_back_first_and_then_its_frames() -> None:
    given = [Frame({"n": 1}, "One", 1), b"id: 2\ndata: 2\n\n", Comment("nothing")]
    async with on_air(given=given, ends=True) as station:
        answer = await station.client.get(station.url)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"].startswith("no-cache")
    assert answer.headers["x-accel-buffering"] == "no"
    blocks = [Heard.parse(one).fields for one in answer.text.removesuffix("\n\n").split("\n\n")]
    assert blocks == [
        {"retry": "1000"},
        {"id": "1", "event": "One", "data": '{"n": 1}'},
        {"id": "2", "data": "2"},
        {"": "nothing"},
    ]
    assert (station.streams.clients, station.streams.served, station.closed) == (0, 1, 1)


async def test_silence_is_filled_with_heartbeats() -> None:
    async with (
        on_air(Patience(heartbeat=0.02)) as station,
        listening_to(station.client, station.url) as listener,
    ):
        await listener.block()
        assert [(await listener.block()).fields for _ in range(3)] == [{"": "beat"}] * 3


async def test_a_closing_server_says_bye_and_ends_every_stream() -> None:
    async with on_air() as station:
        async with (
            listening_to(station.client, station.url) as one,
            listening_to(station.client, station.url) as two,
        ):
            await one.block()
            await two.block()
            assert station.streams.clients == 2
            station.streams.close()
            assert [heard.event for heard in await one.rest()] == ["bye"]
            assert [heard.event for heard in await two.rest()] == ["bye"]
        late = await station.client.get(station.url)
        assert "event: bye" in late.text
    assert (station.streams.clients, station.closed) == (0, 3)


async def test_a_client_that_goes_away_leaves_nothing_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with on_air() as station:
        async with listening_to(station.client, station.url) as listener:
            await listener.block()
        await seen(lambda: station.streams.clients == 0)
        assert station.closed == 1
        assert [task for task in asyncio.all_tasks() if "EventStream" in repr(task)] == []
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []


async def test_a_client_that_takes_nothing_is_dropped_and_little_was_kept_for_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    patience = Patience(stall_seconds=0.2)
    async with on_air(patience, endless=b"data: 1\n\n" * 1000) as station:
        deaf = await Deaf.at(station.url, "/")
        await seen(lambda: station.streams.dropped == 1)
        await seen(lambda: station.streams.clients == 0)
        assert station.pulled < 2_000_000
        assert station.closed == 1
        deaf.close()
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []


async def test_a_stalled_client_does_not_keep_a_server_from_closing() -> None:
    async with on_air(endless=b"data: 1\n\n" * 1000) as station:
        deaf = await Deaf.at(station.url, "/")
        pulled = -1
        while station.pulled != pulled:
            pulled = station.pulled
            await asyncio.sleep(0.05)
        assert (station.streams.clients, station.closed) == (1, 0)
        station.streams.close()
        await seen(lambda: station.streams.clients == 0)
        assert station.closed == 1
    deaf.close()


@pytest.mark.parametrize(
    ("error", "level"),
    [(JournalUnavailable("disk full"), logging.WARNING), (ValueError("ours"), logging.ERROR)],
)
async def test_a_stream_that_breaks_off_says_so_and_may_be_taken_up(
    error: Exception, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with on_air(given=[Frame(1, "One", 1)], error=error) as station:
        answer = await station.client.get(station.url)
    assert "event: One" in answer.text
    assert answer.text.index("event: bye") > answer.text.index("event: One")
    assert str(error) not in answer.text
    assert [one.levelno for one in caplog.records if one.name == "holdfast"] == [level]


async def test_whoever_may_not_listen_any_longer_is_cut_off_at_the_next_heartbeat() -> None:
    async with (
        on_air(Patience(heartbeat=0.02)) as station,
        listening_to(station.client, station.url) as listener,
    ):
        await listener.block()
        station.refused = Unauthenticated("revoked")
        assert [heard.event for heard in await listener.rest()] == ["bye"]


async def test_whoever_may_not_listen_any_longer_is_cut_off_though_heartbeats_are_rare(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another server does not tell this one that a token was revoked."""
    monkeypatch.setattr(sse, "CHECK_SECONDS", 0.02)
    async with (
        on_air(Patience(heartbeat=3600)) as station,
        listening_to(station.client, station.url) as listener,
    ):
        await listener.block()
        station.refused = Unauthenticated("revoked")
        async with asyncio.timeout(30):
            assert [heard.event for heard in await listener.rest()] == ["bye"]


async def test_whoever_is_signed_out_hears_bye_at_once_and_nothing_more() -> None:
    async with (
        on_air(endless=b"data: 1\n\n") as station,
        listening_to(station.client, station.url) as listener,
    ):
        await listener.block()
        station.streams.sign_out(["tok_2"])
        pulled = station.pulled
        await seen(lambda: station.pulled > pulled)
        station.streams.sign_out(["tok_1"])
        pulled = station.pulled
        *_, last = await listener.rest()
        assert (last.event, last.data) == ("bye", {"reason": "you are signed out: sign in again"})
        assert station.pulled <= pulled + len(station.endless)


async def test_a_stream_ends_when_the_time_of_its_listener_is_over() -> None:
    async with on_air() as station, listening_to(station.client, station.url) as listener:
        await listener.block()
        station.expired.set()
        assert [heard.event for heard in await listener.rest()] == ["bye"]


async def test_whoever_was_signed_out_before_the_stream_began_hears_nothing() -> None:
    async with on_air(refused=Unauthenticated("revoked")) as station:
        answer = await station.client.get(station.url)
    assert answer.text.count("event:") == 1
    assert "event: bye" in answer.text


@pytest.mark.parametrize("error", [ValueError("negative file descriptor"), OSError(9, "closed")])
async def test_a_client_that_has_left_before_its_stream_begins_is_no_mistake(
    error: Exception,
) -> None:
    """uvloop's socket tells of it with a ValueError, others with an OSError."""

    class Left:
        family = socket.AF_INET

        def get_extra_info(self, _: str) -> Left:
            return self

        def setsockopt(self, *_: object) -> None:
            tried.append(error)
            raise error

    tried: list[Exception] = []
    sse._narrow(Left())
    assert tried == [error]

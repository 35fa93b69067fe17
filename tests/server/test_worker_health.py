"""The health port of a worker, which anything on its network may speak to."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from holdfast import Holdfast
from holdfast.runtime import dispatch
from holdfast.server import working

READY = b"GET /readyz HTTP/1.1\r\n\r\n"


async def answered(port: int, sent: bytes) -> bytes:
    """All that is said before the connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        async with asyncio.timeout(60):
            return await reader.read()
    finally:
        writer.close()


async def test_a_line_without_end_is_hung_up_on_and_others_are_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with working._health(Holdfast.in_memory(), "127.0.0.1", 0) as port:
        with suppress(ConnectionResetError):  # it has not read all of it
            assert await answered(port, b"x" * 4 * working.MOST_BYTES) == b""
        assert b"200 OK" in await answered(port, b"GET /healthz HTTP/1.1\r\n\r\n")
        assert b"404 Not Found" in await answered(port, b"GET /else HTTP/1.1\r\n\r\n")
        assert b"503 Service" in await answered(port, READY)
    assert caplog.records == []


async def test_a_worker_whose_dispatcher_has_no_connection_is_not_ready(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def in_vain(connector: dispatch.PatientConnector, query: object) -> None:
        await asyncio.Event().wait()

    async with (
        Holdfast(database=database) as app,
        working._health(app, "127.0.0.1", 0) as port,
        asyncio.timeout(60),
    ):
        assert app.dispatcher is not None
        await app.dispatcher.ready.wait()
        assert b"200 OK" in await answered(port, READY)
        with monkeypatch.context() as patch:
            patch.setattr(dispatch.PatientConnector, "_patiently", in_vain)
            patch.setattr(dispatch, "STALLED_SECONDS", 0.5)
            while b"waits for the database" not in await answered(port, READY):  # noqa: ASYNC110
                await asyncio.sleep(0.05)

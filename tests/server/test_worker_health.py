"""The health port of a worker, which anything on its network may speak to."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from holdfast import Holdfast
from holdfast.server import working


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
        assert b"503 Service" in await answered(port, b"GET /readyz HTTP/1.1\r\n\r\n")
    assert caplog.records == []

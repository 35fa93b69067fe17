"""A service on loopback that loses, breaks or refuses calls, and the clients that call it.

Each client is a real library; what it raises is what it really raises.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import struct
import threading
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import aiohttp
import httpx
import httpx2
import openai
import requests
import urllib3

PATIENT = 30.0
HURRIED = 0.2
"""Seconds a client waits, where it is to wait in vain."""

BODY = b'{"amount": 7}'

Manner = bytes | None
"""What is answered: bytes, or None for never."""

RESET = b"reset"
CLOSE = b""
GARBAGE = b"220 smtp.example.com ready\r\n\r\n"
HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of i"


def status(code: int) -> bytes:
    return f"HTTP/1.1 {code} X\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}".encode()


def answering(code: int, body: object) -> bytes:
    """A status with JSON."""
    content = json.dumps(body).encode()
    head = f"HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


class LossyService:
    """Reads each request to its end, counts it, and then does as it is told."""

    def __init__(self, manner: Manner) -> None:
        self.calls = 0
        self._manner = manner
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._held: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()
        for one in self._held:
            one.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        self._held.append(connection)
        if not _read_request(connection):
            return
        self.calls += 1
        if self._manner is None:
            return
        if self._manner is RESET:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif self._manner:
            connection.sendall(self._manner)
        connection.close()


def _read_request(connection: socket.socket) -> bool:
    """Whether a whole request came: who only connects has called nothing."""
    head = b""
    while b"\r\n\r\n" not in head:
        more = connection.recv(65536)
        if not more:
            return False
        head += more
    head, _, body = head.partition(b"\r\n\r\n")
    sizes = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    left = int(sizes[0].partition(b":")[2]) - len(body) if sizes else 0
    while left > 0:
        left -= len(connection.recv(left))
    return True


@contextlib.contextmanager
def lossy_service(manner: Manner) -> Iterator[LossyService]:
    service = LossyService(manner)
    try:
        yield service
    finally:
        service.close()


@contextlib.contextmanager
def refusing_port() -> Iterator[int]:
    """Bound and not listening, so that nobody else takes it: connections are refused."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@contextlib.contextmanager
def full_port() -> Iterator[int]:
    """Listening with a full backlog: who connects waits for ever."""
    with socket.socket() as listening, contextlib.ExitStack() as pending:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):
            one = pending.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(listening.getsockname())
        yield listening.getsockname()[1]


def by_httpx(url: str, timeout: float = PATIENT) -> Any:
    httpx.post(url, content=BODY, timeout=timeout, trust_env=False, verify=False).raise_for_status()


async def by_async_httpx(url: str, timeout: float = PATIENT) -> Any:
    async with httpx.AsyncClient(timeout=timeout, trust_env=False, verify=False) as client:
        (await client.post(url, content=BODY)).raise_for_status()


def by_httpx2(url: str, timeout: float = PATIENT) -> Any:
    httpx2.post(
        url, content=BODY, timeout=timeout, trust_env=False, verify=False
    ).raise_for_status()


async def by_async_httpx2(url: str, timeout: float = PATIENT) -> Any:
    async with httpx2.AsyncClient(timeout=timeout, trust_env=False, verify=False) as client:
        (await client.post(url, content=BODY)).raise_for_status()


def by_requests(url: str, timeout: float = PATIENT) -> Any:
    with requests.Session() as session:
        session.trust_env = False
        session.post(url, data=BODY, timeout=timeout).raise_for_status()


def by_urllib3(url: str, timeout: float = PATIENT) -> Any:
    with urllib3.PoolManager(timeout=timeout) as pool:
        answer = pool.request("POST", url, body=BODY)
    if answer.status >= 400:
        raise urllib.error.HTTPError(url, answer.status, "X", answer.headers, None)  # type: ignore[arg-type]


async def by_aiohttp(url: str, timeout: float = PATIENT) -> Any:
    limits = aiohttp.ClientTimeout(sock_connect=timeout, sock_read=timeout)
    async with (
        aiohttp.ClientSession(timeout=limits) as session,
        session.post(url, data=BODY) as answer,
    ):
        answer.raise_for_status()
        await answer.read()


def by_urllib(url: str, timeout: float = PATIENT) -> Any:
    try:
        with urllib.request.urlopen(url, BODY, timeout) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        error.close()
        raise


def by_http_client(url: str, timeout: float = PATIENT) -> Any:
    host, _, port = url.removeprefix("http://").rstrip("/").partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=timeout)
    try:
        connection.request("POST", "/", BODY)
        answer = connection.getresponse()
        answer.read()
        if answer.status >= 400:
            raise urllib.error.HTTPError(url, answer.status, "X", answer.msg, None)
    finally:
        connection.close()


async def by_openai(url: str, timeout: float = PATIENT) -> Any:
    async with openai.AsyncOpenAI(
        api_key="k", base_url=url, timeout=timeout, max_retries=0
    ) as client:
        await client.models.list()


async def by_asyncio(url: str, timeout: float = PATIENT) -> Any:
    host, _, port = url.removeprefix("http://").rstrip("/").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
        async with asyncio.timeout(timeout):
            await reader.readuntil(b"\r\n\r\n{}")
    finally:
        writer.close()


Client = Callable[[str, float], Awaitable[Any] | Any]

CLIENTS: dict[str, Client] = {
    "httpx": by_httpx,
    "async httpx": by_async_httpx,
    "httpx2": by_httpx2,
    "async httpx2": by_async_httpx2,
    "requests": by_requests,
    "urllib3": by_urllib3,
    "aiohttp": by_aiohttp,
    "urllib": by_urllib,
    "http.client": by_http_client,
    "openai": by_openai,
}


async def call(client: Client, port: int, timeout: float = PATIENT) -> Any:
    """On the loop, or in a thread where it blocks, as tools are called."""
    url = f"http://127.0.0.1:{port}/"
    if asyncio.iscoroutinefunction(client):
        return await client(url, timeout)
    return await asyncio.to_thread(client, url, timeout)

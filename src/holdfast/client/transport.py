"""Requests on the transport: named, sent again where that is safe, refused as the server refuses.

A request is sent again when the connection broke or the server could not acknowledge (503),
with growing, random pauses, until `patience` seconds are over. Reading is always safe; what
changes something carries an `Idempotency-Key`, the same each time.
"""

from __future__ import annotations

import os
import random
from asyncio import get_running_loop, sleep
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import quote, urlsplit
from uuid import uuid4

import httpx

from holdfast.client.problems import refusal_of, seconds_to_wait
from holdfast.errors import HoldfastError, InternalError, OperatorError

SHORTEST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 2.0
KEY: Final = "Idempotency-Key"

Parameters = Mapping[str, Any]


def path_of(*parts: str) -> str:
    """A path of parts, whatever they contain."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


def in_language(language: str | None) -> dict[str, str]:
    """The header that asks for a language."""
    return {"accept-language": language} if language else {}


class Transport:
    def __init__(self, url: str, token: str | None, timeout: float, patience: float) -> None:
        self.url = url.rstrip("/")
        self._patience = patience
        self._timeout = timeout
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers={"authorization": f"Bearer {token}"} if token else {},
            timeout=timeout,
            limits=httpx.Limits(max_connections=None),
            trust_env=not _is_here(self.url),
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def get(self, path: str, **parameters: Any) -> Any:
        return await self.get_in(None, path, **parameters)

    async def get_in(self, language: str | None, path: str, **parameters: Any) -> Any:
        """As `get`, told in a language."""
        asked = in_language(language)
        return _json(await self.send("GET", path, parameters=parameters, headers=asked))

    async def text(self, path: str, language: str | None = None) -> str:
        return (await self.send("GET", path, headers=in_language(language))).text

    async def post(self, path: str, body: Any = None, **parameters: Any) -> Any:
        return await self.post_in(None, path, body, **parameters)

    async def post_in(
        self,
        language: str | None,
        path: str,
        body: Any = None,
        *,
        longer: float = 0.0,
        **parameters: Any,
    ) -> Any:
        """As `post`, told in a language; the answer may take so many seconds `longer`."""
        asked = in_language(language)
        told = await self.send("POST", path, body, parameters, headers=asked, longer=longer)
        return _json(told)

    async def put(self, path: str, body: Any) -> Any:
        return _json(await self.send("PUT", path, body))

    async def delete(self, path: str) -> Any:
        return _json(await self.send("DELETE", path))

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        parameters: Parameters | None = None,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        longer: float = 0.0,
    ) -> httpx.Response:
        """The answer to a request that was carried out once, or the error of its refusal."""
        named = {} if method == "GET" else {KEY: key or str(uuid4())}
        request = self._http.build_request(
            method,
            path,
            json=body,
            params=_given(parameters or {}),
            headers={**named, **(headers or {})},
            timeout=self._timeout + longer + float((parameters or {}).get("wait") or 0),
        )
        pauses = Backoff(self._patience)
        while True:
            try:
                response = await self._http.send(request)
            except httpx.TransportError as error:
                await pauses.rest(self.unreachable(error))
                continue
            if response.status_code < 400:
                return response
            refusal = refusal_of(response)
            if response.status_code != 503:
                raise refusal
            await pauses.rest(refusal, seconds_to_wait(response))

    @asynccontextmanager
    async def stream(
        self, path: str, headers: Mapping[str, str], parameters: Parameters, silence: float
    ) -> AsyncGenerator[httpx.Response, None]:
        """A response whose body goes on; silence for that long counts as a broken connection."""
        async with self._http.stream(
            "GET",
            path,
            params=_given(parameters),
            headers={**headers, "accept": "text/event-stream"},
            timeout=httpx.Timeout(self._timeout, read=silence),
        ) as response:
            yield response

    async def download(
        self, path: str, target: Path, progress: Callable[[int, int], None], silence: float
    ) -> None:
        """A response's body into a file, which is durable then."""
        timeout = httpx.Timeout(self._timeout, read=silence)
        try:
            async with self._http.stream("GET", path, timeout=timeout) as response:
                if response.status_code >= 400:
                    await response.aread()
                    raise refusal_of(response)
                total, done = int(response.headers.get("content-length", 0)), 0
                with _fresh(target) as written:
                    async for part in response.aiter_bytes():
                        written.write(part)
                        done += len(part)
                        progress(done, total)
                    written.flush()
                    os.fsync(written.fileno())
        except httpx.TransportError as error:
            raise self.unreachable(error) from error

    def unreachable(self, error: httpx.TransportError) -> OperatorError:
        why = str(error) or type(error).__name__
        return OperatorError(f"{self.url} does not answer ({why}): is the server running there?")


class Backoff:
    """How long to wait before the next attempt, and when to give up."""

    def __init__(self, patience: float) -> None:
        self._clock = get_running_loop().time
        self._until = self._clock() + patience
        self._next = SHORTEST_PAUSE

    async def rest(self, reason: HoldfastError, told: float | None = None) -> None:
        """Wait, as long as the server says or a little longer each time; raise if it is over."""
        pause = min(told or self._next, LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311
        self._next = min(2 * self._next, LONGEST_PAUSE)
        if self._clock() + pause > self._until:
            raise reason
        await sleep(pause)


def _fresh(target: Path) -> BinaryIO:
    """A file for its owner only, emptied where it is there."""
    return os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def _given(parameters: Parameters) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value is not None}


def _json(response: httpx.Response) -> Any:
    if response.status_code == 204 or not response.content:
        return None
    try:
        found = response.json()
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        url = response.request.url
        raise InternalError(f"{url} did not answer with a JSON object: is this a Holdfast server?")
    return found


def _is_here(url: str) -> bool:
    """No proxy leads to this very machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

"""What an HTTP tool sends that must be hidden where a service echoes it.

That is whatever comes from the environment, except for what only names the server, and what is
written in the declaration where names say that it is secret (`Authorization`, `?api_key=`). A
variable's default stands in the declaration for all to read, and is none.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Collection, Iterable, Iterator
from typing import Final

import httpx

_SECRET: Final = re.compile(
    "auth|token|key|secret|passw|cookie|credential|signature|session", re.IGNORECASE
)
_PAIR: Final = re.compile(r'=\s*"?([^",;\s=]+)')


def secrets_in_header(name: str, template: str, text: str, taken: Iterable[str]) -> Iterator[str]:
    """`taken` from the environment for the `text` that a `template` became."""
    found = tuple(taken)
    yield from found
    if _SECRET.search(name) and (found or text == template):
        yield from _credentials(text)


def secrets_in_address(url: httpx.URL, taken: Collection[str]) -> Iterator[str]:
    server = (url.scheme, url.host, str(url.port), url.netloc.decode("ascii"))
    for value in taken:
        if "://" in value:
            yield from httpx.QueryParams(value.partition("?")[2]).values()
        elif value not in server:
            yield value
    yield url.password
    yield from (value for name, value in url.params.multi_items() if _SECRET.search(name))


def _credentials(text: str) -> Iterator[str]:
    """`Bearer x` is also recognised by x alone, `Basic …` by what it encodes, and `sid=x; y=z` by
    each value."""
    scheme, _, rest = text.partition(" ")
    yield rest.strip() or text
    yield from _PAIR.findall(text)
    if scheme.lower() == "basic":
        try:
            plain = b64decode(rest, validate=True).decode()
        except (Error, UnicodeDecodeError):
            return
        yield plain
        yield plain.partition(":")[2]

"""Proxies: who a request is from, and for which address, where others stand between.

A header is only what its sender claims. So `X-Forwarded-For`, `-Proto`, `-Host` and `Forwarded`
count only when the connection comes from a proxy that the operator trusts. Each proxy adds at the
right end what it saw, and a client may have written anything before it: from the right, the first
address that is no trusted proxy is the client. Where an entry cannot be read, nothing left of it is
believed. A proxy that adds to one kind of header passes the other on as the client sent it: where
the two name different clients, neither is believed, and the proxy stands for the client.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, TypeAlias

from starlette.types import Scope

Address: TypeAlias = IPv4Address | IPv6Address

MOST_HOPS: Final = 32
"""How many proxies may stand in a row; what is further left is not looked at."""

_HEADERS: Final = frozenset(
    {b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host", b"forwarded"}
)
_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[^:\[\]/@\s,]{1,254})(?::(\d{1,5}))?", re.IGNORECASE)
_PORTED = re.compile(r"\[([0-9A-Fa-f:.]{2,45})\](?::\d{1,5})?|([0-9.]{7,15}):\d{1,5}")
_PAIR = re.compile(r"\s*([A-Za-z0-9!#$%&'*+.^_`|~-]+)=(?:\"([^\"\\]*)\"|([^\s;,\"]*))\s*")


@dataclass(frozen=True, slots=True)
class Hop:
    """What one proxy says of the request that it received; `address` is None where that cannot be
    read."""

    address: Address | None
    scheme: str = ""
    host: str = ""


class TrustedProxies:
    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = tuple(ip_network(one) for one in networks)
        self.trusts = lru_cache(1024)(self._trusts)

    def _trusts(self, address: str) -> bool:
        """Whether this is the address of one of them."""
        found = _address(address)
        return found is not None and self._among(found)

    def _among(self, address: Address) -> bool:
        return any(address in one for one in self._networks)

    def apply(self, scope: Scope) -> None:
        """Make the scope what the first proxy saw, where those who say so are trusted."""
        peer = scope.get("client")
        if not self._networks or not peer or not self.trusts(peer[0]):
            return
        found = self._seen(scope["headers"])
        if found is None:
            return
        if found.address is not None:
            scope["client"] = (str(found.address), 0)
        if found.scheme:
            scope["scheme"] = found.scheme
        if found.host:
            headers = [one for one in scope["headers"] if one[0] != b"host"]
            scope["headers"] = [(b"host", found.host.encode("latin-1")), *headers]

    def _seen(self, headers: Iterable[tuple[bytes, bytes]]) -> Hop | None:
        said: dict[bytes, list[str]] = {}
        for name, value in headers:
            if name in _HEADERS:
                said.setdefault(name, []).append(value.decode("latin-1"))
        if not said:
            return None
        standard = self._client(forwarded(",".join(said.pop(b"forwarded", ()))))
        usual = self._client(_x_forwarded(said))
        if standard is None or usual is None:
            return standard or usual
        return usual if standard.address == usual.address else None

    def _client(self, hops: Sequence[Hop]) -> Hop | None:
        """The hop of the client, of those that are told from right to left."""
        found = None
        for hop in hops:
            if hop.address is None:
                # Written by a proxy of ours all the same: its scheme and host are what it saw.
                return found or Hop(None, hop.scheme, hop.host)
            found = hop
            if not self._among(hop.address):
                break
        return found


def _x_forwarded(said: dict[bytes, list[str]]) -> list[Hop]:
    """From right to left. A proxy adds to the list of clients, and mostly sets the other two."""
    clients, schemes, hosts = (
        _split(",".join(said.get(name, ())))
        for name in (b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host")
    )
    if not clients:
        return (
            [Hop(None, _scheme(_at(schemes, 0)), _host(_at(hosts, 0)))] if schemes or hosts else []
        )
    return [
        Hop(_address(one), _scheme(_at(schemes, place)), _host(_at(hosts, place)))
        for place, one in enumerate(clients)
    ]


def _split(text: str) -> list[str]:
    """What stands between commas, from right to left."""
    parts = text.rsplit(",", MOST_HOPS) if text else []
    return [one.strip() for one in reversed(parts[-MOST_HOPS:])]


def _at(values: Sequence[str], place: int) -> str:
    """A list that is shorter than that of the clients was not added to by all of them."""
    return values[min(place, len(values) - 1)] if values else ""


def forwarded(text: str) -> list[Hop]:
    """RFC 7239, from right to left, as far as it can be read. The shortest end that is an element
    is one: so a quotation mark that a client left open takes in nothing that a proxy wrote."""
    hops: list[Hop] = []
    while text and len(hops) < MOST_HOPS:
        start = len(text)
        pairs = None
        for _ in range(MOST_HOPS):
            start = text.rfind(",", 0, start)
            pairs = _pairs(text[start + 1 :])
            if pairs is not None or start < 0:
                break
        if pairs is None:
            return [*hops, Hop(None)]
        node = _node(pairs.get("for", ""))
        hops.append(Hop(node, _scheme(pairs.get("proto", "")), _host(pairs.get("host", ""))))
        text = text[:start] if start >= 0 else ""
    return hops


def _pairs(element: str) -> dict[str, str] | None:
    """The parameters of one element; None where it is none, or names one twice."""
    pairs: dict[str, str] = {}
    place = 0
    while True:
        found = _PAIR.match(element, place)
        if found is None or found[1].lower() in pairs:
            return None
        pairs[found[1].lower()] = found[2] if found[2] is not None else found[3]
        if found.end() == len(element):
            return pairs
        if element[found.end()] != ";":
            return None
        place = found.end() + 1


def _node(text: str) -> Address | None:
    return None if text.startswith("_") or text.lower() == "unknown" else _address(text)


def _address(text: str) -> Address | None:
    """An address, with or without a port; an IPv4 one that stands in IPv6 is that."""
    ported = _PORTED.fullmatch(text)
    bare = (ported[1] or ported[2]) if ported else text
    if len(bare) > 45 or "%" in bare:
        return None
    try:
        found = ip_address(bare)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def _scheme(text: str) -> str:
    scheme = text.lower()
    return scheme if scheme in ("http", "https") else ""


def _host(text: str) -> str:
    return text.lower() if _HOST.fullmatch(text) else ""

"""Static files: style sheets and modules, held in memory.

They are served under a directory named by a digest of all of them, so that modules import each
other by relative paths and browsers may cache them for ever. Under any other directory name the
newest file is served, and must be revalidated.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import PurePath
from typing import Final

from fastapi import APIRouter, Request, Response

from holdfast.drawing.difference import MARKED_STYLE
from holdfast.drawing.svg import STYLE
from holdfast.errors import NotFound
from holdfast.i18n.message import msg

FOREVER: Final = "public, max-age=31536000, immutable"
REVALIDATE: Final = "no-cache"
MEDIA_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_IMPORT: Final = re.compile(rb'^import\b[^;(]*"\./([a-z_]+\.js)";', re.MULTILINE)
_LATER: Final = re.compile(r'\bimport\("\./([a-z_]+\.js)"\)')
_TEXT: Final = re.compile(r'\bn?t\(("(?:[^"\\]|\\.)*")')

router = APIRouter()


@dataclass(frozen=True, slots=True)
class Asset:
    body: bytes
    media_type: str
    etag: str


@cache
def assets() -> Mapping[str, Asset]:
    stored = {one.name: one.read_bytes() for one in files(__package__).joinpath("static").iterdir()}
    bodies = {**stored, "graph.css": (STYLE + MARKED_STYLE).encode()}
    return {name: _asset(name, body) for name, body in sorted(bodies.items())}


def _asset(name: str, body: bytes) -> Asset:
    digest = hashlib.sha256(body).hexdigest()[:20]
    return Asset(body, MEDIA_TYPES[PurePath(name).suffix], f'"{digest}"')


@cache
def release() -> str:
    """The name of the directory, a digest of all files."""
    digests = "".join(name + asset.etag for name, asset in assets().items())
    return hashlib.sha256(digests.encode()).hexdigest()[:12]


def address(name: str) -> str:
    """The path of a file below the root; LookupError for a name that a template has wrong."""
    if name not in assets():
        raise LookupError(f"the console has no file {name}")
    return f"/console/static/{release()}/{name}"


@cache
def imported_by(names: tuple[str, ...]) -> tuple[str, ...]:
    """The modules themselves and all that they import, each once."""
    found: list[str] = []
    waiting = list(names)
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found.append(name)
            waiting += [one.decode() for one in _IMPORT.findall(assets()[name].body)]
    return tuple(found)


@cache
def texts_in(names: tuple[str, ...]) -> frozenset[str]:
    """What modules and all that they import, sooner or later, say to people."""
    at_once = "".join(assets()[one].body.decode() for one in imported_by(names))
    everything = imported_by((*names, *_LATER.findall(at_once)))
    bodies = (assets()[one].body.decode() for one in everything)
    return frozenset(json.loads(text) for body in bodies for text in _TEXT.findall(body))


@router.get("/static/{directory}/{name}")
async def static_file(directory: str, name: str, request: Request) -> Response:
    asset = assets().get(name)
    if asset is None:
        raise NotFound(msg("there is no file {name}", name=name))
    kept = FOREVER if directory == release() else REVALIDATE
    headers = {"ETag": asset.etag, "Cache-Control": kept}
    if asset.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(asset.body, headers=headers, media_type=asset.media_type)

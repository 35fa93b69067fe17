"""PNG pictures with a palette: a screenshot needs no more than 256 colours, at a third of the size.

Only what a browser writes is read: eight bits per channel, RGB or RGBA, not interlaced. The
commonest colours come into the palette first; the other half of it goes to the commonest one of
every shade that is left, so that a small pill keeps its hue beside the many greys of the letters.
A colour that has no place becomes its nearest neighbour.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator

SIGNATURE = b"\x89PNG\r\n\x1a\n"
MOST = 256
COMMON = 112
SHADES = 24
"""Two colours that fall within a cube of this side are one shade."""

Colour = tuple[int, int, int]


def reduced(png: bytes) -> bytes:
    """The same picture with a palette."""
    rows = _read(png)
    counted = Counter(colour for row in rows for colour in row)
    palette = _palette(counted)
    places = {colour: place for place, colour in enumerate(palette)}
    for colour in counted.keys() - places.keys():
        places[colour] = _nearest(colour, palette)
    return _written([bytes(places[colour] for colour in row) for row in rows], palette)


def _palette(counted: Counter[Colour]) -> list[Colour]:
    ranked = [colour for colour, _ in counted.most_common()]
    shades: dict[Colour, Colour] = {}
    for red, green, blue in ranked[COMMON:]:
        shade = (red // SHADES, green // SHADES, blue // SHADES)
        shades.setdefault(shade, (red, green, blue))
    wanted = dict.fromkeys([*ranked[:COMMON], *shades.values(), *ranked])
    return list(wanted)[:MOST]


def _nearest(colour: Colour, palette: list[Colour]) -> int:
    def far(place: int) -> int:
        return sum((one - other) ** 2 for one, other in zip(palette[place], colour, strict=True))

    return min(range(len(palette)), key=far)


def _read(png: bytes) -> list[list[Colour]]:
    chunks = _chunks(png)
    width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    if depth != 8 or kind not in (2, 6) or interlaced:
        raise ValueError("only plain RGB and RGBA pictures can be read")
    step = 3 if kind == 2 else 4
    lines = _unfiltered(zlib.decompress(chunks[b"IDAT"]), width * step, height, step)
    return [list(zip(line[0::step], line[1::step], line[2::step], strict=True)) for line in lines]


def _chunks(png: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    at = len(SIGNATURE)
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        name = png[at + 4 : at + 8]
        found[name] = found.get(name, b"") + png[at + 8 : at + 8 + length]
        at += length + 12
    return found


def _unfiltered(raw: bytes, length: int, height: int, step: int) -> Iterator[bytearray]:
    before = bytearray(length)
    for number in range(height):
        start = number * (length + 1)
        line = bytearray(raw[start + 1 : start + 1 + length])
        guess = _GUESSES[raw[start]]
        for at in range(length if raw[start] else 0):
            left, corner = (line[at - step], before[at - step]) if at >= step else (0, 0)
            line[at] = line[at] + guess(left, before[at], corner) & 255
        yield line
        before = line


def _paeth(left: int, above: int, corner: int) -> int:
    expected = left + above - corner
    return min((left, above, corner), key=lambda one: abs(expected - one))


_GUESSES: tuple[Callable[[int, int, int], int], ...] = (
    lambda left, above, corner: 0,
    lambda left, above, corner: left,
    lambda left, above, corner: above,
    lambda left, above, corner: left + above >> 1,
    _paeth,
)
"""What a line's filter takes a byte to be, from the byte before it and the two above."""


def _written(lines: list[bytes], palette: list[Colour]) -> bytes:
    head = struct.pack(">IIBBBBB", len(lines[0]), len(lines), 8, 3, 0, 0, 0)
    colours = bytes(part for colour in palette for part in colour)
    data = zlib.compress(b"".join(b"\0" + line for line in lines), 9)
    chunks = ((b"IHDR", head), (b"PLTE", colours), (b"IDAT", data), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(name, content) for name, content in chunks)


def _chunk(name: bytes, content: bytes) -> bytes:
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)

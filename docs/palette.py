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
from collections.abc import Callable, Iterator, Mapping

SIGNATURE = b"\x89PNG\r\n\x1a\n"
MOST = 256
COMMON = 112
SHADES = 24
"""Two colours that fall within a cube of this side are one shade."""

Colour = tuple[int, int, int]


def reduced(png: bytes) -> bytes:
    """The same picture with a palette."""
    lines, step = _read(png)
    # Many lines of a page are the same: each is taken apart once.
    rows = {line: _colours(line, step) for line in set(lines)}
    counted: Counter[Colour] = Counter()
    for line, times in Counter(lines).items():
        for colour, found in Counter(rows[line]).items():
            counted[colour] += found * times
    palette = _palette(counted)
    places = {colour: place for place, colour in enumerate(palette)}
    for colour in counted.keys() - places.keys():
        places[colour] = _nearest(colour, palette)
    written = {line: bytes(map(places.__getitem__, row)) for line, row in rows.items()}
    return _written([written[line] for line in lines], palette)


def _colours(line: bytes, step: int) -> list[Colour]:
    return list(zip(line[0::step], line[1::step], line[2::step], strict=True))


def _palette(counted: Counter[Colour]) -> list[Colour]:
    ranked = sorted(counted, key=lambda colour: (-counted[colour], colour))
    shades: dict[Colour, Colour] = {}
    for red, green, blue in ranked[COMMON:]:
        shade = (red // SHADES, green // SHADES, blue // SHADES)
        shades.setdefault(shade, (red, green, blue))
    wanted = dict.fromkeys([*ranked[:COMMON], *shades.values(), *ranked])
    return list(wanted)[:MOST]


def _nearest(colour: Colour, palette: list[Colour]) -> int:
    red, green, blue = colour
    far = [(r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2 for r, g, b in palette]
    return far.index(min(far))


def _read(png: bytes) -> tuple[list[bytes], int]:
    """Its lines, and how many bytes a pixel has."""
    chunks = _chunks(png)
    width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    if depth != 8 or kind not in (2, 6) or interlaced:
        raise ValueError("only plain RGB and RGBA pictures can be read")
    step = 3 if kind == 2 else 4
    raw = zlib.decompress(chunks[b"IDAT"])
    return list(_unfiltered(raw, width * step, height, step)), step


def _chunks(png: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    at = len(SIGNATURE)
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        name = png[at + 4 : at + 8]
        found[name] = found.get(name, b"") + png[at + 8 : at + 8 + length]
        at += length + 12
    return found


def _unfiltered(raw: bytes, length: int, height: int, step: int) -> Iterator[bytes]:
    before = bytes(length)
    for number in range(height):
        start = number * (length + 1)
        kind, line = raw[start], raw[start + 1 : start + 1 + length]
        if kind == UP:
            line = _added(line, before)
        elif kind:
            line = _guessed(line, before, step, _GUESSES[kind])
        yield line
        before = line


def _added(line: bytes, before: bytes) -> bytes:
    """Each byte plus the one above it, all at once: a browser stores most lines so."""
    low = int.from_bytes(b"\x7f" * len(line))
    one, other = int.from_bytes(line), int.from_bytes(before)
    return ((one & low) + (other & low) ^ (one ^ other) & ~low).to_bytes(len(line))


def _guessed(line: bytes, before: bytes, step: int, guess: Guess) -> bytes:
    found = bytearray(step) + line
    above = bytes(step) + before
    for at in range(step, len(found)):
        guessed = guess(found[at - step], above[at], above[at - step])
        found[at] = found[at] + guessed & 255
    return bytes(found[step:])


def _paeth(left: int, above: int, corner: int) -> int:
    near, far = abs(above - corner), abs(left - corner)
    if near <= far and near <= abs(left + above - 2 * corner):
        return left
    return above if far <= abs(left + above - 2 * corner) else corner


Guess = Callable[[int, int, int], int]
UP = 2
_GUESSES: Mapping[int, Guess] = {
    1: lambda left, above, corner: left,
    3: lambda left, above, corner: left + above >> 1,
    4: _paeth,
}
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

"""PNG pictures with fewer colours: what a screenshot needs is a palette of 256 and a good packer.

Only what a browser writes is read: eight bits per channel, RGB or RGBA, not interlaced. The
commonest colours make the palette, and every other one becomes its nearest neighbour there,
which nobody sees in the soft edges of letters.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator

SIGNATURE = b"\x89PNG\r\n\x1a\n"
MOST = 256

Colour = tuple[int, int, int]


def reduced(png: bytes) -> bytes:
    """The same picture with a palette; the original where that is the smaller one."""
    width, rows = _read(png)
    counted = Counter(colour for row in rows for colour in row)
    palette = [colour for colour, _ in counted.most_common(MOST)]
    places = {colour: place for place, colour in enumerate(palette)}
    for colour in counted.keys() - places.keys():
        places[colour] = _nearest(colour, palette)
    lines = [bytes(places[colour] for colour in row) for row in rows]
    packed = _written(width, lines, palette)
    return min(packed, png, key=len)


def _nearest(colour: Colour, palette: list[Colour]) -> int:
    red, green, blue = colour
    return min(
        range(len(palette)),
        key=lambda place: (
            (palette[place][0] - red) ** 2
            + (palette[place][1] - green) ** 2
            + (palette[place][2] - blue) ** 2
        ),
    )


def _read(png: bytes) -> tuple[int, list[list[Colour]]]:
    chunks = dict(_merged(png))
    width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    if depth != 8 or kind not in (2, 6) or interlaced:
        raise ValueError("only plain RGB and RGBA pictures can be read")
    channels = 3 if kind == 2 else 4
    lines = _unfiltered(zlib.decompress(chunks[b"IDAT"]), width * channels, height, channels)
    return width, [
        list(zip(line[0::channels], line[1::channels], line[2::channels], strict=True))
        for line in lines
    ]


def _merged(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    found: dict[bytes, bytes] = {}
    at = len(SIGNATURE)
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        name = png[at + 4 : at + 8]
        found[name] = found.get(name, b"") + png[at + 8 : at + 8 + length]
        at += length + 12
    yield from found.items()


def _unfiltered(raw: bytes, length: int, height: int, step: int) -> Iterator[bytearray]:
    before = bytearray(length)
    for number in range(height):
        start = number * (length + 1)
        line = bytearray(raw[start + 1 : start + 1 + length])
        _FILTERS[raw[start]](line, before, step)
        yield line
        before = line


def _none(line: bytearray, before: bytearray, step: int) -> None:
    pass


def _sub(line: bytearray, before: bytearray, step: int) -> None:
    for at in range(step, len(line)):
        line[at] = line[at] + line[at - step] & 255


def _up(line: bytearray, before: bytearray, step: int) -> None:
    for at, above in enumerate(before):
        line[at] = line[at] + above & 255


def _average(line: bytearray, before: bytearray, step: int) -> None:
    for at, above in enumerate(before):
        left = line[at - step] if at >= step else 0
        line[at] = line[at] + (left + above >> 1) & 255


def _paeth(line: bytearray, before: bytearray, step: int) -> None:
    for at, above in enumerate(before):
        left, corner = (line[at - step], before[at - step]) if at >= step else (0, 0)
        guess = left + above - corner
        nearest = min((left, above, corner), key=lambda one: abs(guess - one))
        line[at] = line[at] + nearest & 255


_FILTERS = (_none, _sub, _up, _average, _paeth)


def _written(width: int, lines: list[bytes], palette: list[Colour]) -> bytes:
    head = struct.pack(">IIBBBBB", width, len(lines), 8, 3, 0, 0, 0)
    colours = bytes(part for colour in palette for part in colour)
    data = zlib.compress(b"".join(b"\0" + line for line in lines), 9)
    chunks = ((b"IHDR", head), (b"PLTE", colours), (b"IDAT", data), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(name, content) for name, content in chunks)


def _chunk(name: bytes, content: bytes) -> bytes:
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)

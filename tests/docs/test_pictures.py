"""The console's pictures: every page in every look, all shown somewhere, none heavy."""

from __future__ import annotations

import importlib.util
import re
import struct
import zlib
from itertools import product
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "images"
READERS = ("README.md", "README.zh-CN.md", "docs/console.md")
MARKDOWN = re.compile(r"!\[(?P<alt>[^\]]*)\]\((?P<path>[^):]+)\)")
PICTURE = re.compile(
    r'<picture>\n<source media="\(prefers-color-scheme: dark\)" srcset="(?P<dark>[^"]+)">\n'
    r'<img src="(?P<light>[^"]+)" alt="(?P<alt>[^"]*)">\n</picture>'
)
PAGES = {
    "sign-in",
    "runs",
    "run",
    "run-failed",
    "repair",
    "inbox",
    "approval",
    "chats",
    "chat",
    "plans",
    "plan",
    "start",
    "plan-new",
}
LOOKS = [f"{theme}.{language}" for theme in ("light", "dark") for language in ("en", "zh-CN")]


def shown(page: str) -> dict[Path, str]:
    """What a page shows, each picture with the words for whoever cannot see it."""
    file = ROOT / page
    text = file.read_text("utf-8")
    found = {one["path"]: one["alt"] for one in MARKDOWN.finditer(text)}
    for one in PICTURE.finditer(text):
        found |= {one["light"]: one["alt"], one["dark"]: one["alt"]}
    return {(file.parent / path).resolve(): alt for path, alt in found.items()}


@pytest.mark.parametrize("page", READERS)
def test_every_picture_is_there_and_says_what_it_shows(page: str) -> None:
    assert shown(page)
    for path, alt in shown(page).items():
        assert path.is_file(), path
        assert alt, path


@pytest.mark.parametrize("page", READERS)
def test_by_night_the_same_page_is_shown_in_the_same_language(page: str) -> None:
    pairs = [
        (one["light"], one["dark"]) for one in PICTURE.finditer((ROOT / page).read_text("utf-8"))
    ]
    assert pairs
    assert len(pairs) == (ROOT / page).read_text("utf-8").count("<picture>")
    for light, dark in pairs:
        assert dark == light.replace(".light.", ".dark.")
        assert dark != light


def test_every_page_is_there_in_every_look_and_nothing_else_lies_about() -> None:
    wanted = {f"{page}.{look}.png" for page, look in product(PAGES, LOOKS)}
    assert {one.name for one in PICTURES.iterdir()} == wanted | {"onboarding.svg"}


def test_every_picture_is_shown_somewhere_and_none_weighs_much() -> None:
    used = {path for page in READERS for path in shown(page) if path.parent == PICTURES}
    assert used == set(PICTURES.iterdir())
    assert all(picture.stat().st_size < 150_000 for picture in used)
    assert sum(picture.stat().st_size for picture in used) < 4_000_000


def test_a_reader_of_one_language_sees_pictures_in_it() -> None:
    for page, language in (("README.md", "en"), ("README.zh-CN.md", "zh-CN")):
        names = {path.name for path in shown(page) if path.suffix == ".png"}
        assert names
        assert all(name.endswith(f".{language}.png") for name in names)


def palette() -> ModuleType:
    spec = importlib.util.spec_from_file_location("palette", ROOT / "docs" / "palette.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def picture(lines: list[list[tuple[int, int, int]]], filters: list[int]) -> bytes:
    """RGB, each line with the filter that is asked for."""
    step, before, raw = 3, bytes(3 * len(lines[0])), b""
    for pixels, kind in zip(lines, filters, strict=True):
        line = bytes(part for pixel in pixels for part in pixel)
        raw += bytes([kind]) + bytes(
            line[at] - guess(kind, line[at - step] if at >= step else 0, before[at], corner) & 255
            for at in range(len(line))
            for corner in [before[at - step] if at >= step else 0]
        )
        before = line
    head = struct.pack(">IIBBBBB", len(lines[0]), len(lines), 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(raw)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name))
        for name, content in chunks
    )


def guess(kind: int, left: int, above: int, corner: int) -> int:
    nearest = min((left, above, corner), key=lambda one: abs(left + above - corner - one))
    return (0, left, above, (left + above) // 2, nearest)[kind]


def unpacked(png: bytes) -> list[list[tuple[int, ...]]]:
    chunks = palette()._chunks(png)
    width, height = struct.unpack_from(">II", chunks[b"IHDR"])
    colours = [tuple(chunks[b"PLTE"][at : at + 3]) for at in range(0, len(chunks[b"PLTE"]), 3)]
    raw = zlib.decompress(chunks[b"IDAT"])
    return [
        [colours[place] for place in raw[y * (width + 1) + 1 : (y + 1) * (width + 1)]]
        for y in range(height)
    ]


def test_few_colours_are_kept_as_they_are_whatever_the_filters() -> None:
    lines = [[(40 * x, 50 * y, 17 * x * y % 256) for x in range(6)] for y in range(5)]
    assert unpacked(palette().reduced(picture(lines, [0, 1, 2, 3, 4]))) == lines


def test_a_rare_hue_survives_many_greys() -> None:
    greys = [[(grey, grey, tint)] * 9 for grey, tint in product(range(0, 256, 4), range(0, 25, 4))]
    red = [[(200, 30, 30), *line[1:]] for line in greys[:1]]
    lines = [*red, *greys[1:]]
    assert unpacked(palette().reduced(picture(lines, [0] * len(lines))))[0][0] == (200, 30, 30)

"""Every text is there in both languages, and every text that is asked for is there."""

from __future__ import annotations

import re
from importlib.resources import files
from string import Formatter

import pytest

from holdfast.console.assets import assets
from holdfast.console.pages.language import within_console
from holdfast.console.words import CATALOGUE, Words, language_of

HERE = files("holdfast.console")
TEMPLATES = [one for one in HERE.joinpath("templates").iterdir() if one.name.endswith(".html")]
SCRIPTS = [one for one in HERE.joinpath("static").iterdir() if one.name.endswith(".js")]


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_a_text_says_the_same_in_both_languages() -> None:
    for key, (english, chinese) in CATALOGUE.items():
        assert english.strip(), key
        assert chinese.strip(), key
        assert places(english) == places(chinese), key


def test_what_a_page_says_is_in_the_catalogue() -> None:
    for file in [*TEMPLATES, *SCRIPTS]:
        text = file.read_text(encoding="utf-8")
        asked = set(re.findall(r"""\bt\(["']([\w.-]+)["']\s*[,)]""", text))
        assert asked <= set(CATALOGUE), file.name


def test_one_and_many() -> None:
    assert Words("en")("runs.shown", n=1) == "1 run shown"
    assert Words("en")("runs.shown", n=2) == "2 runs shown"
    assert Words("zh")("runs.shown", n=2) == "显示 2 个运行"


@pytest.mark.parametrize(
    ("cookie", "accepted", "language"),
    [
        (None, "", "en"),
        (None, "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        (None, "fr,en;q=0.5,zh;q=0.9", "zh"),
        (None, "fr;q=1, de", "en"),
        (None, "en;q=bad, zh;q=0.9", "en"),
        ("en", "zh-CN", "en"),
        ("<script>", "zh-CN", "zh"),
    ],
)
def test_the_language_is_chosen_or_preferred(
    cookie: str | None, accepted: str, language: str
) -> None:
    assert language_of(cookie, accepted) == language


@pytest.mark.parametrize(
    "back",
    [
        "https://example.org/console/",
        "//example.org/console/",
        "/\\example.org",
        "/console/\\..\\x",
        "javascript:alert(1)",
        "/login?token=x",
        "/console/\r\nSet-Cookie: a=b",
        "",
    ],
)
def test_the_language_switch_leads_nowhere_else(back: str) -> None:
    assert within_console(back) == "/console/"


def test_the_language_switch_leads_back() -> None:
    assert within_console("/console/runs?status=done") == "/console/runs?status=done"


def test_what_the_browser_loads_stays_small() -> None:
    sizes = {name: len(asset.body) for name, asset in assets().items()}
    assert sizes["console.css"] < 16_000
    assert {name for name, size in sizes.items() if name.endswith(".js") and size > 5_000} == set()

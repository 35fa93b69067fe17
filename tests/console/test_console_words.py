"""What pages and modules say is in the catalogue, and reaches them in the reader's language."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from holdfast.console import words
from holdfast.console.assets import assets, texts_in
from holdfast.console.pages.language import within_console
from holdfast.console.words import language_of
from holdfast.i18n.catalogue import catalogue, said

HERE = files("holdfast.console")
TEMPLATES = [one for one in HERE.joinpath("templates").iterdir() if one.name.endswith(".html")]
SCRIPTS = [one for one in HERE.joinpath("static").iterdir() if one.name.endswith(".js")]


def test_what_templates_say_by_name_is_there() -> None:
    for file in TEMPLATES:
        tables = set(re.findall(r"(?<![.\w])words\.([A-Z_]+)", file.read_text(encoding="utf-8")))
        assert all(hasattr(words, one) for one in tables), file.name


def test_what_modules_say_is_known_to_the_page_that_loads_them() -> None:
    chinese, said_somewhere = catalogue("zh"), set[str]()
    for file in SCRIPTS:
        body = file.read_text(encoding="utf-8")
        texts = texts_in((file.name,))
        assert {words.text_id(one) for one in texts} <= chinese.keys(), file.name
        computed = set(re.findall(r"(?<![\w.])n?t\((?!\")[^)]*", body))
        assert not computed or file.name == "words.js", f"{file.name} computes its texts"
        said_somewhere |= texts
    assert "Please fill this in" in said_somewhere
    assert texts_in(("card.js",)) <= texts_in(("run.js",)), "it is imported later"


def test_one_and_many() -> None:
    shown = [words.nt("{n} run shown", "{n} runs shown", n=n) for n in (1, 2)]
    assert shown == ["1 run shown", "2 runs shown"]
    assert said(shown[1], "zh") == "显示 2 个运行"


def test_a_text_of_a_table_is_filled_where_it_is_said() -> None:
    asked = words.t(words.ASKS["cancel"], run="inst_000001")
    assert asked == "Cancel inst_000001?"
    assert said(asked, "zh") == "取消 inst_000001？"


def test_an_author_who_writes_like_the_console_is_not_translated() -> None:
    assert said(words.t("Total"), "zh") == "合计"
    assert said("Total", "zh") == "Total"


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
        (None, f"{'fr,' * 20_000}zh", "en"),
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

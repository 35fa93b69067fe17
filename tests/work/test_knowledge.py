from __future__ import annotations

import os
import re
import sqlite3
import unicodedata
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.errors import CallerError, InvalidValue, OperatorError
from holdfast.work.knowledge import LARGEST_DOCUMENT, Knowledge
from holdfast.work.passages import LONGEST_PASSAGE, heading_of, pieces_of

SALES = "华东区第三季度的销售额比去年同期增长了百分之十二。"
LEAVE = "员工每年有十五天年假，请假须提前三天申请。"
REFUND = "Refunds: a customer may return an order within 30 days. See create_refund."

HAN = st.characters(min_codepoint=0x4E00, max_codepoint=0x9FEF)
LATIN = st.sampled_from("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789éüñß")
ANYTHING = st.text(
    st.one_of(
        HAN,
        LATIN,
        st.characters(codec="utf-8", exclude_characters="\0"),
        st.sampled_from(" \n。，,.#\t"),
    ),
    max_size=2_000,
)


@pytest.fixture
def knowledge() -> Iterator[Knowledge]:
    opened = Knowledge()
    yield opened
    opened.close()


def found(knowledge: Knowledge, query: str, limit: int = 5) -> list[str]:
    return [passage.doc_id for passage in knowledge.search(query, limit)]


@pytest.fixture
def library(knowledge: Knowledge) -> Knowledge:
    knowledge.add("sales", SALES, "销售报告")
    knowledge.add("leave", LEAVE, "年假制度")
    knowledge.add("refund", REFUND, "Returning an order")
    return knowledge


@pytest.mark.parametrize(
    ("query", "doc_id"),
    [
        ("销售", "sales"),
        ("增长", "sales"),
        ("年假", "leave"),
        ("REFUNDS", "refund"),
        ("ｒｅｆｕｎｄｓ", "refund"),
        ("refund", "refund"),
        ("create_refund", "refund"),
        ("天", "leave"),
        ("二", "sales"),
        ("帮我分析销售数据", "sales"),
        ("Wie viele 年假?", "leave"),
    ],
)
def test_a_question_finds_the_document_that_is_about_it(
    library: Knowledge, query: str, doc_id: str
) -> None:
    assert found(library, query)[0] == doc_id


def test_what_is_nowhere_is_not_found(library: Knowledge) -> None:
    assert found(library, "报销") == []
    assert found(library, "售销") == []
    assert found(library, "fund") == []


def test_accents_and_the_forms_of_a_letter_make_no_difference(knowledge: Knowledge) -> None:
    knowledge.add("cafe", unicodedata.normalize("NFD", "Le café est fermé"))
    assert found(knowledge, "café") == found(knowledge, "CAFE") == ["cafe"]


def test_a_passage_carries_its_document_title_text_and_a_score(library: Knowledge) -> None:
    [passage] = library.search("百分之十二")
    assert (passage.doc_id, passage.title, passage.text) == ("sales", "销售报告", SALES)
    assert passage.score > 0


def test_the_document_with_more_of_the_question_comes_first(knowledge: Knowledge) -> None:
    knowledge.add("a", "数据 在别处")
    knowledge.add("b", "销售 数据 在这里")
    knowledge.add("c", "天气很好")
    passages = knowledge.search("销售数据")
    assert [passage.doc_id for passage in passages] == ["b", "a"]
    assert passages[0].score > passages[1].score


def test_equals_come_in_the_order_of_their_names_whenever_they_were_added() -> None:
    orders = []
    for names in ("cab", "bca"):
        knowledge = Knowledge()
        for name in names:
            knowledge.add(name, "年假")
        orders.append(found(knowledge, "年假"))
        knowledge.close()
    assert orders == [["a", "b", "c"]] * 2


@pytest.mark.parametrize("limit", [0, -1, 1_001, 10**30, True, 2.0, "5"])
def test_a_limit_that_makes_no_sense_is_refused(limit: Any) -> None:
    with pytest.raises(CallerError, match="limit must be a whole number from 1 to 1,000"):
        Knowledge().search("年假", limit)


def test_a_long_question_is_searched_for_by_its_end_as_well() -> None:
    knowledge = Knowledge()
    knowledge.add("refund", "退款政策：七天内。")
    knowledge.add("leave", "年假有二十天。")
    rambling = "".join(chr(0x4E00 + number) for number in range(0, 8_000, 2))
    assert found(knowledge, f"年假 {rambling} 退款") == ["leave", "refund"]
    twice = f"{rambling[:40]} 退款 {rambling} 退款"
    assert found(knowledge, twice) == ["refund"]


def test_no_more_are_found_than_wanted(knowledge: Knowledge) -> None:
    for number in range(9):
        knowledge.add(str(number), "年假")
    assert len(knowledge.search("年假")) == 5
    assert len(knowledge.search("年假", 7)) == 7


def test_a_title_finds_the_beginning_of_its_document(library: Knowledge) -> None:
    library.add("long", "第一段。\n\n第二段。", "差旅报销")
    [passage] = library.search("报销")
    assert passage.text == "第一段。"


def test_adding_again_replaces_and_removing_forgets(knowledge: Knowledge) -> None:
    knowledge.add("leave", "年假\n\n病假", "旧")
    knowledge.add("leave", "年假", "新")
    [passage] = knowledge.search("年假")
    assert passage.title == "新"
    assert found(knowledge, "病假") == found(knowledge, "旧") == []
    assert knowledge.remove("leave")
    assert not knowledge.remove("leave")
    assert found(knowledge, "年假") == []


@pytest.mark.parametrize(
    ("doc_id", "text", "title", "complaint"),
    [
        ("", "words", "", "needs an id"),
        ("blank", " \n ", "", "'blank' has no text"),
        ("long", "x" * (LARGEST_DOCUMENT + 1), "", "'long': at most 1,000,000"),
        ("half", "\ud800", "", "'half': half of a character"),
        ("x", "words", "t" * 2_000, "'x', title: at most 1,000"),
    ],
)
def test_a_document_that_cannot_be_kept_is_named_and_leaves_the_old_one(
    knowledge: Knowledge, doc_id: str, text: str, title: str, complaint: str
) -> None:
    if doc_id:
        knowledge.add(doc_id, "年假")
    with pytest.raises(CallerError, match=re.escape(complaint)):
        knowledge.add(doc_id, text, title)
    assert len(found(knowledge, "年假")) == bool(doc_id)


def test_a_name_that_is_no_text_is_refused(knowledge: Knowledge) -> None:
    with pytest.raises(InvalidValue):
        knowledge.remove("\ud800")


def test_a_long_document_gives_the_paragraph_that_is_meant(knowledge: Knowledge) -> None:
    others = "\n\n".join(f"第{number}条 无关内容。" * 20 for number in range(50))
    knowledge.add("book", f"{others}\n\n## 报销\n\n发票须在三十天内提交。\n\n{others}")
    assert knowledge.search("发票")[0].text == "## 报销\n\n发票须在三十天内提交。"


@pytest.mark.parametrize(
    ("paragraph", "end"),
    [
        ("字" * 500 + "。" + "字" * 500, 501),
        ("word " * 300, LONGEST_PASSAGE),
        ("x" * 700 + "-" + "y" * 700, 701),
        ("字" * 2_000, LONGEST_PASSAGE),
        ("x" * 2_000, LONGEST_PASSAGE),
        ("字。" + "字" * 2_000, LONGEST_PASSAGE),
    ],
)
def test_a_long_paragraph_is_cut_where_it_hurts_least(paragraph: str, end: int) -> None:
    first, *others = pieces_of(paragraph)
    assert first.text == paragraph[:end].strip()
    assert others


def test_a_word_that_a_cut_goes_through_is_found_where_it_begins(knowledge: Knowledge) -> None:
    knowledge.add("book", "字" * (LONGEST_PASSAGE - 1) + "年假" + "字" * LONGEST_PASSAGE)
    [passage] = knowledge.search("年假")
    assert passage.text == "字" * (LONGEST_PASSAGE - 1) + "年"


def test_headings_belong_to_what_follows_and_may_stand_alone() -> None:
    text = "# 手册\n\n## 年假\n\n十五天。\n\n病假另计。\n\n## 附录\n"
    texts = [piece.text for piece in pieces_of(text)]
    assert texts == ["# 手册\n\n## 年假\n\n十五天。", "病假另计。", "## 附录"]


def test_a_gap_is_no_passage() -> None:
    assert [piece.text for piece in pieces_of("a" + " " * 3_000 + "b")] == ["a", "b"]


def test_the_first_heading_is_the_title() -> None:
    assert heading_of("intro\n## 年假 \n# Other") == "年假"
    assert heading_of("#hashtag\nno heading") == ""


def terms_of(text: str) -> set[str]:
    """What a reader would search by: pairs of adjacent Chinese characters, and Latin words."""
    pairs = {text[at : at + 2] for at in range(len(text) - 1)}
    words = re.findall(r"(?<!\w)[a-zA-Z0-9éüñß]+(?!\w)", text)
    return {pair for pair in pairs if all("一" <= one <= "\u9fef" for one in pair)} | set(words)


@settings(max_examples=60, deadline=None)
@given(text=ANYTHING)
@example(text="销售" * 1_000)
@example(text="ab " * 600 + "年假")
def test_whatever_is_indexed_is_found_by_its_own_words(text: str) -> None:
    knowledge = Knowledge()
    try:
        if text.strip():
            knowledge.add("other", "1")
            knowledge.add("it", text)
        for term in sorted(terms_of(unicodedata.normalize("NFC", text)))[:100]:
            assert "it" in found(knowledge, term, 1_000), term
    finally:
        knowledge.close()


@settings(max_examples=60, deadline=None)
@given(text=ANYTHING)
def test_passages_are_short_and_nothing_visible_is_lost(text: str) -> None:
    pieces = list(pieces_of(text))
    assert all(0 < len(piece.text) <= LONGEST_PASSAGE for piece in pieces)
    said = "".join("".join(piece.text.split()) for piece in pieces)
    assert said == "".join(unicodedata.normalize("NFC", text).split())


SYNTAX = [
    "NEAR(a b)",
    "a NEAR b",
    "AND",
    "OR NOT",
    "terms:",
    "a*",
    "^a",
    "{a}:b",
    "a\x00b",
    '年"假*',
]
SYNTAX += ["___", "--", "ﷺ", *"\"*()'-+;\\\x00\ud800"]


@settings(max_examples=150, deadline=None)
@given(query=st.lists(st.one_of(st.sampled_from(SYNTAX), ANYTHING)).map(" ".join))
@example(query=" ".join(f"word{number}" for number in range(10_000)))
@example(query="字典" * 5_000)
def test_any_text_is_a_query(query: str) -> None:
    knowledge = Knowledge()
    try:
        knowledge.add("a", "terms NEAR 年假")
        assert all(passage.doc_id == "a" for passage in knowledge.search(query))
    finally:
        knowledge.close()


def test_operators_are_only_words(library: Knowledge) -> None:
    assert found(library, 'customer" NOT "order') == ["refund"]
    assert found(library, "cust*") == []
    assert found(library, "NEAR(nothing nowhere)") == []


def test_threads_share_one(knowledge: Knowledge) -> None:
    def work(number: int) -> bool:
        knowledge.add(str(number % 5), f"年假 {number}")
        return bool(knowledge.search("年假")) and knowledge.remove("none") is False

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(200)))
    assert sorted(found(knowledge, "年假")) == ["0", "1", "2", "3", "4"]


def test_a_file_keeps_what_was_added(tmp_path: Path) -> None:
    path = tmp_path / "knowledge.sqlite3"
    first = Knowledge(path)
    first.add("sales", SALES)
    first.close()
    again = Knowledge(str(path))
    assert found(again, "销售") == ["sales"]
    again.close()


def test_what_is_closed_says_so_and_may_be_closed_again(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path / "k")
    knowledge.close()
    knowledge.close()
    for use in (lambda: knowledge.search("年假"), lambda: knowledge.add("a", "b")):
        with pytest.raises(CallerError, match="k is closed; open it again"):
            use()


def damaged(path: Path) -> None:
    path.write_bytes(b"no database at all" * 100)


def foreign(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE journal (x)")
    connection.close()


def newer(path: Path) -> None:
    Knowledge(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 9")
    connection.close()


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (damaged, "it is no database; name another file"),
        (foreign, "a database of something else; name another file"),
        (newer, "written by another version of Holdfast .9, this one reads 1.; delete it"),
        (Path.mkdir, "create its directory, or make it writable"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_remedy(
    tmp_path: Path, make: object, remedy: str
) -> None:
    path = tmp_path / "knowledge.sqlite3"
    make(path)  # type: ignore[operator]
    with pytest.raises(OperatorError, match=f"{re.escape(str(path))}.*{remedy}"):
        Knowledge(path)


def test_a_file_that_another_program_writes_to_is_told_and_nothing_is_kept(
    tmp_path: Path,
) -> None:
    knowledge = Knowledge(tmp_path / "k")
    knowledge._open.execute("PRAGMA busy_timeout = 0")  # type: ignore[union-attr]
    other = sqlite3.connect(tmp_path / "k", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(OperatorError, match="another program is writing"):
        knowledge.add("a", "年假")
    other.execute("ROLLBACK")
    assert found(knowledge, "年假") == []
    knowledge.add("a", "年假")
    assert found(knowledge, "年假") == ["a"]
    other.close()
    knowledge.close()


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    root = tmp_path / "handbook"
    (root / "hr").mkdir(parents=True)
    (root / "hr" / "leave.md").write_text(f"\ufeff# 年假制度\n\n{LEAVE}", encoding="utf-8")
    (root / "sales.md").write_text(SALES, encoding="utf-8")
    (root / "notes.txt").write_text("报销 notes", encoding="utf-8")
    return root


def test_a_directory_gives_its_documents_by_path_and_heading(
    knowledge: Knowledge, handbook: Path
) -> None:
    report = knowledge.add_directory(handbook)
    assert report.doc_ids == ("handbook/hr/leave.md", "handbook/sales.md")
    assert report.skipped == ()
    assert knowledge.search("年假")[0].title == "年假制度"
    assert knowledge.search("销售")[0].title == "sales"
    assert knowledge.add_directory(str(handbook), "*.txt").doc_ids == ("handbook/notes.txt",)
    assert found(knowledge, "报销") == ["handbook/notes.txt"]


def test_files_that_are_left_out_are_listed_with_the_reason(
    knowledge: Knowledge, handbook: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.md").write_text("secret")
    (handbook / "away.md").symlink_to(tmp_path / "secret.md")
    (handbook / "big.md").write_text("x" * (LARGEST_DOCUMENT + 1))
    (handbook / "blank.md").write_text("\n")
    (handbook / "gone.md").symlink_to(handbook / "nowhere.md")
    (handbook / "latin.md").write_bytes(b"caf\xe9")
    (handbook / "logo.png").write_bytes(b"png")
    os.mkfifo(handbook / "pipe.md")
    report = knowledge.add_directory(handbook, "**/*")
    reasons = {Path(one.path).name: one.reason for one in report.skipped}
    expected = {
        "away.md": "outside the directory",
        "big.md": "larger than 1,000,000 bytes; split it",
        "blank.md": "has no text",
        "gone.md": "cannot be read",
        "latin.md": "not UTF-8; save it as UTF-8",
        "logo.png": "neither Markdown nor text",
        "pipe.md": "no ordinary file",
    }
    assert reasons.keys() == expected.keys()
    assert all(words in reasons[name] for name, words in expected.items())
    assert len(report.doc_ids) == 3
    assert found(knowledge, "secret") == []


def test_a_file_whose_name_is_no_text_is_left_out(knowledge: Knowledge, handbook: Path) -> None:
    (handbook / os.fsdecode(b"\xff.md")).write_text("words")
    [skipped] = knowledge.add_directory(handbook).skipped
    assert skipped.path.encode()
    assert "lone surrogate" in skipped.reason


@pytest.mark.parametrize("pattern", ["/etc/*", ""])
def test_a_pattern_that_is_none_is_refused(
    knowledge: Knowledge, handbook: Path, pattern: str
) -> None:
    with pytest.raises(CallerError, match="is no pattern for files below"):
        knowledge.add_directory(handbook, pattern)


def test_a_pattern_cannot_leave_its_directory(knowledge: Knowledge, handbook: Path) -> None:
    (handbook.parent / "secret.md").write_text("secret")
    report = knowledge.add_directory(handbook, "../*.md")
    assert report.doc_ids == ()
    assert "outside" in report.skipped[0].reason


@pytest.mark.parametrize("path", ["nowhere", "a\x00b"])
def test_a_directory_that_is_none_is_refused(
    knowledge: Knowledge, tmp_path: Path, path: str
) -> None:
    with pytest.raises(CallerError, match="directory"):
        knowledge.add_directory(tmp_path / path)

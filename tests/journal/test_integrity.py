"""A bit that flips on the disk is noticed, named, and concerns no other run."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from holdfast import Holdfast
from holdfast.cli import main
from holdfast.errors import JournalDamaged
from holdfast.journal.integrity import Finding, examine
from holdfast.journal.port import Append, Attached, ExpiringValue, QuestionQuery, Record, Snapshot
from holdfast.journal.sqlite import SqliteJournal
from holdfast.testing.journal_samples import audit_record, run_row

OLD_HOME = Path(__file__).parent.parent / "replay" / "home_schema_1.db.gz"

PLAN = """
plan_id: ask
name: Ask
main_task_id: "001"
tasks:
  - {task_id: "001", name: Asked}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    title: canary-title
    form: {word: {type: text}}
    success_output: {task_id: "001", status: Done, context: {word: "{{result.word}}"}}
"""


def flip(path: Path, canary: bytes, bit: int, nth: int = 0) -> None:
    """Flips one bit of the file, in the byte where the canary stands for the nth time."""
    content = bytearray(path.read_bytes())
    position = -1
    for _ in range(nth + 1):
        position = content.index(canary, position + 1)
    content[position] ^= 1 << bit
    path.write_bytes(content)


def record(seq: int, text: str) -> Record:
    return Record(seq, 1.5, "happened", json.dumps({"text": text}))


async def written(path: Path) -> None:
    journal = SqliteJournal(path)
    await journal.open()
    for run_id in ("sound", "hurt"):
        records = [record(seq, f"{run_id}-{seq}-words") for seq in (1, 2, 3)]
        row = run_row(run_id)
        await journal.append(Append(run_id, 0, records, row))
        payload = json.dumps({"state": f"{run_id}-snapshot"})
        await journal.save_snapshot(Snapshot(run_id, 2, 6, payload))
    kept = ExpiringValue("token", "one", '{"kept": "kept-words"}')
    await journal.attach(Attached([audit_record(), audit_record()], (kept,)))
    await journal.close()


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    await written(tmp_path / "holdfast.db")
    return tmp_path / "holdfast.db"


@pytest.mark.parametrize("bit", range(8))
async def test_any_flipped_bit_of_a_record_is_noticed_when_it_is_read(path: Path, bit: int) -> None:
    """The highest bit leaves no UTF-8, the others other text."""
    flip(path, b"hurt-2-words", bit)
    journal = SqliteJournal(path)
    await journal.open()
    try:
        with pytest.raises(JournalDamaged, match=r"record 2 of run hurt .* doctor --integrity"):
            await journal.read("hurt")
        with pytest.raises(JournalDamaged, match="record 2 of run hurt"):
            await journal.read("hurt", 0, 3, 10_000)
        assert [one.seq for one in await journal.read("hurt", 2)] == [3]
        assert len(await journal.read("sound")) == 3
    finally:
        await journal.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE events SET at = at + 1 WHERE place & 7 = 2",
        "UPDATE events SET type = 'Happened' WHERE place & 7 = 2",
        "UPDATE events SET payload = NULL WHERE place & 7 = 2",
        "UPDATE events SET payload = x'ff' WHERE place & 7 = 2",
        "UPDATE events SET at = 'x' WHERE place & 7 = 2",
        "UPDATE events SET crc = crc + 1 WHERE place & 7 = 2",
        "UPDATE events SET crc = NULL, payload = '{}' WHERE place & 7 = 2",
        "UPDATE events SET payload = (SELECT payload FROM events WHERE place & 7 = 3)"
        " WHERE place & 7 = 2",
    ],
)
async def test_so_is_any_other_change_to_it(path: Path, change: str) -> None:
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("PRAGMA ignore_check_constraints = ON")
        other.execute("PRAGMA writable_schema = ON")
        other.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'payload TEXT NOT NULL', 'payload TEXT')"
        )
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(change)
    journal = SqliteJournal(path)
    await journal.open()
    with pytest.raises(JournalDamaged, match="record 2 of run"):
        await journal.read("hurt")
    await journal.close()
    assert [seq for _, name, seq in unsound(path) if name == "hurt"] == [2]


async def test_a_damaged_snapshot_is_none(path: Path) -> None:
    flip(path, b"hurt-snapshot", 0)
    journal = SqliteJournal(path)
    await journal.open()
    assert await journal.snapshot("hurt", 6) is None
    assert await journal.snapshot("sound", 6) is not None
    await journal.save_snapshot(Snapshot("hurt", 3, 6, "{}"))
    assert await journal.snapshot("hurt", 6) == Snapshot("hurt", 3, 6, "{}")
    await journal.close()


def unsound(path: Path) -> list[tuple[str, str, int | None]]:
    """What the examination finds, but for the samples' odd types and missing definitions."""
    found = [one for one in examine(path).findings if not _of_the_samples(one)]
    return [(one.what, one.name, one.seq) for one in found]


def _of_the_samples(one: Finding) -> bool:
    return "unknown type" in one.problem or "definition is not" in one.problem


@pytest.mark.parametrize(
    ("canary", "found"),
    [
        (b"hurt-2-words", [("record", "hurt", 2)]),
        (b"hurt-snapshot", [("snapshot", "hurt", None)]),
        (b'{"kept"', [("kept", "token one", None)]),
        (b"kept-words", [("kept", "token one", None)]),
    ],
)
def test_an_examination_names_what_is_damaged(
    path: Path, canary: bytes, found: list[tuple[str, str, int | None]]
) -> None:
    assert unsound(path) == []
    flip(path, canary, 0)
    assert unsound(path) == found


def test_missing_records_and_a_broken_chain_are_found(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("DELETE FROM events WHERE place = (2 << 32 | 2)")
        other.execute("INSERT INTO events (place, at, type, payload) VALUES (9 << 32, 1, 'a', '')")
        other.execute("UPDATE audit SET who = 'another' WHERE number = 2")
    assert unsound(path) == [
        ("audit", "2", None),
        ("record", "hurt", 2),
        ("record", "number 9", None),
    ]


def test_a_page_that_cannot_be_read_hides_nothing_else(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        [[root]] = other.execute("SELECT rootpage FROM sqlite_master WHERE name = 'audit'")
    content = bytearray(path.read_bytes())
    content[(root - 1) * 4096 : root * 4096] = b"\xff" * 4096
    path.write_bytes(content)
    flip(path, b"hurt-2-words", 0)
    found = unsound(path)
    assert ("record", "hurt", 2) in found
    assert ("file", "audit", None) in found


@pytest.fixture
def ran(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def command(*arguments: object) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main([str(one) for one in arguments])
        return int(ended.value.code or 0), capsys.readouterr().out

    return command


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    app = Holdfast(tmp_path)
    app.load_plan_text(PLAN)
    async with app:
        for _ in range(2):
            instance = await app.plans.start_plan_by_prompt("", "ask")
            assert await instance.wait_until_settled() == "pause"
    return tmp_path


async def test_a_long_plan_is_stored_packed_and_sound(tmp_path: Path) -> None:
    app = Holdfast(tmp_path)
    app.load_plan_text(PLAN.replace("canary-title", "canary-title " * 200))
    async with app:
        await (await app.plans.start_plan_by_prompt("", "ask")).wait_until_settled()
    database = tmp_path / "holdfast.db"
    with closing(sqlite3.connect(database)) as other:
        assert other.execute("SELECT typeof(body) FROM definitions").fetchall() == [("blob",)]
    assert examine(database).findings == []
    change(database, "UPDATE definitions SET body = substr(body, 1, length(body) - 1)")
    assert [one.what for one in examine(database).findings] == ["definition"]


def test_the_doctor_finds_a_real_home_sound(
    home: Path, ran: Callable[..., tuple[int, str]]
) -> None:
    code, said = ran("doctor", "--home", home, "--integrity", "--json")
    report = json.loads(said)
    assert (code, report["ok"], report["problems"]) == (0, True, [])
    assert report["read"]["runs"] == 2
    assert report["read"]["records"] > 2
    assert report["without_checksum"] == 0
    code, said = ran("doctor", "--home", home)
    assert (code, "sound" in said) == (0, True)


def test_the_doctor_names_the_bad_record_and_fails(
    home: Path, ran: Callable[..., tuple[int, str]]
) -> None:
    flip(home / "holdfast.db", b"canary-title", 0, nth=0)
    code, said = ran("doctor", "--home", home, "--integrity")
    assert code == 1
    assert "damaged" in said


def test_records_of_old_are_counted(tmp_path: Path, ran: Callable[..., tuple[int, str]]) -> None:
    (tmp_path / "holdfast.db").write_bytes(gzip.decompress(OLD_HOME.read_bytes()))
    code, said = ran("history", "--home", tmp_path, "inst_000001")
    assert code == 0, "it is read before it is brought up to date"
    code, said = ran("doctor", "--home", tmp_path, "--integrity", "--json")
    report = json.loads(said)
    before = report["without_checksum"]
    assert before == report["read"]["records"] > 0
    assert (code, report["problems"]) == (0, [])


async def test_a_home_of_old_has_checksums_from_then_on(
    tmp_path: Path, ran: Callable[..., tuple[int, str]]
) -> None:
    path = tmp_path / "holdfast.db"
    path.write_bytes(gzip.decompress(OLD_HOME.read_bytes()))
    journal = SqliteJournal(path)
    await journal.open()
    asked = await journal.questions()
    old = await journal.version("inst_000001")
    await journal.append(Append("inst_000001", old, [record(old + 1, "new")]))
    assert len(await journal.read("inst_000001")) == old + 1
    await journal.close()
    assert asked
    assert unsound(path) == []
    change(path, "UPDATE questions SET title = 'another'")
    change(path, "UPDATE events SET crc = NULL WHERE crc IS NOT NULL")
    assert unsound(path) == [
        *(("question", one.question_id, None) for one in asked),
        ("record", "inst_000001", old + 1),
    ]


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as other, other:
        assert other.execute(statement).rowcount > 0


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("UPDATE questions SET body = replace(body, 'word', 'worm') WHERE id = 1", "question"),
        ("UPDATE questions SET role = 'another' WHERE id = 1", "question"),
        ("UPDATE questions SET title = 'another' WHERE id = 1", "question"),
        ("UPDATE questions SET status = 'answered' WHERE id = 1", "question"),
        ("UPDATE questions SET crc = NULL WHERE id = 1", "question"),
        ("DELETE FROM questions WHERE id = 1", "question"),
        ("UPDATE runs SET status = 'done' WHERE id = 1", "run"),
        ("UPDATE runs SET title = 'another' WHERE id = 1", "run"),
        ("UPDATE runs SET title = CAST(x'ff41' AS TEXT) WHERE id = 1", "run"),
        ("UPDATE runs SET updated_at = updated_at + 1 WHERE id = 1", "run"),
        ("UPDATE runs SET summary = json_set(summary, '$.waiting', 7) WHERE id = 1", "run"),
        ("UPDATE runs SET summary = CAST(x'7bff' AS TEXT) WHERE id = 1", "run"),
        ("UPDATE runs SET wake_at = 1 WHERE id = 1", "run"),
        ("UPDATE runs SET root_id = 'another' WHERE id = 1", "run"),
        ("UPDATE definitions SET meta = '{\"a\": 1}'", "definition"),
        ("UPDATE events SET position = position + 100 WHERE position = 1", "record"),
        (
            "DELETE FROM events WHERE place IN (SELECT max(place) FROM events)",
            "run",
        ),
    ],
)
def test_the_doctor_finds_whatever_has_changed_in_rows(
    home: Path, ran: Callable[..., tuple[int, str]], statement: str, what: str
) -> None:
    change(home / "holdfast.db", statement)
    code, said = ran("doctor", "--home", home, "--integrity", "--json")
    assert (code, what in {one["what"] for one in json.loads(said)["problems"]}) == (1, True)


def test_the_doctor_says_what_it_cannot_know(
    path: Path, ran: Callable[..., tuple[int, str]]
) -> None:
    _, said = ran("doctor", "--home", path.parent, "--integrity")
    assert "2 audit entries" in said
    assert "audit verify --head" in said
    _, told = ran("doctor", "--home", path.parent, "--integrity", "--json")
    [note] = json.loads(told)["notes"]
    assert note in said


@pytest.mark.parametrize(
    "change_to",
    [
        "title = CAST(x'ff41' AS TEXT)",
        "summary = CAST(x'7bff7d' AS TEXT)",
        "summary = '{'",
        "summary = '7'",
        "status = CAST(x'ff' AS TEXT)",
        "status = 'pausd'",
        "kind = CAST(x'ff' AS TEXT)",
        "kind = 'plam'",
    ],
)
async def test_a_run_whose_row_cannot_be_read_is_listed_as_damaged_beside_the_others(
    home: Path, ran: Callable[..., tuple[int, str]], change_to: str
) -> None:
    change(home / "holdfast.db", f"UPDATE runs SET {change_to} WHERE id = 1")
    app = Holdfast(home)
    app.load_plan_text(PLAN)
    web = app.asgi()
    async with app:
        _, token = await web.state.services.tokens.issue("root", "person", ["admin"])
        client = httpx.AsyncClient(
            transport=httpx.ASGITransport(web),
            base_url="http://127.0.0.1",
            headers={"Authorization": f"Bearer {token}"},
        )
        async with client:
            listed = await client.get("/runs")
            assert listed.status_code == 200, listed.text
            assert (await client.get("/runs/inst_000001")).json()["status"] == "pause"
            assert (await client.get("/metrics")).status_code == 200
    sound, hurt = listed.json()["runs"]
    assert (sound["id"], sound["status"]) == ("inst_000002", "pause")
    assert (hurt["id"], hurt["status"]) == ("inst_000001", "error")
    assert "doctor --integrity" in hurt["title"]


def test_the_command_line_lists_it_so_too(home: Path, ran: Callable[..., tuple[int, str]]) -> None:
    change(home / "holdfast.db", "UPDATE runs SET title = CAST(x'ff41' AS TEXT) WHERE id = 1")
    code, said = ran("runs", "--home", home, "--json")
    assert code == 0
    assert [one["title"].split(":")[0] for one in json.loads(said)] == ["Ask", "damaged"]


async def test_a_question_whose_row_has_changed_is_shown_to_nobody(home: Path) -> None:
    """What a person would consent to is not what would be done."""
    change(home / "holdfast.db", "UPDATE questions SET title = 'canarz' WHERE run_id LIKE '%1'")
    app = Holdfast(home)
    app.load_plan_text(PLAN)
    async with app:
        [hurt] = (await app.engine.state("inst_000001")).questions
        assert [one.run_id for one in await app.inbox()] == ["inst_000002"]
        first = await app.journal.questions(QuestionQuery(limit=1))
        assert [one.run_id for one in first] == ["inst_000002"], "the page is filled"
        with pytest.raises(JournalDamaged, match=f"row of question {hurt} .* doctor --integrity"):
            await app.journal.question(hurt)
        with pytest.raises(JournalDamaged, match="has changed"):
            await app.answer(hurt, data={"word": "go"})
        assert (await app.engine.state("inst_000001")).status == "pause"


async def test_a_thing_kept_that_has_changed_is_not_used(path: Path) -> None:
    change(path, "UPDATE kept SET body = replace(body, 'words', 'wordz')")
    journal = SqliteJournal(path)
    await journal.open()
    other = ExpiringValue("token", "two", "{}")
    await journal.attach(Attached((), (other,)))
    with pytest.raises(JournalDamaged, match="row of entry token"):
        await journal.kept("token", "one", 0.0)
    assert await journal.all_kept("token", 0.0) == [other]
    await journal.close()


async def test_one_damaged_run_is_refused_and_the_others_go_on(home: Path) -> None:
    with closing(sqlite3.connect(home / "holdfast.db")) as other, other:
        other.execute(
            "UPDATE events SET payload = replace(payload, 'canary', 'canarz') WHERE place >> 32 = 1"
        )
    app = Holdfast(home)
    app.load_plan_text(PLAN)
    async with app:
        with pytest.raises(JournalDamaged, match="of run inst_000001"):
            await app.engine.state("inst_000001")
        questions = {one.run_id: one.question_id for one in await app.inbox()}
        await app.answer(questions["inst_000002"], data={"word": "go"})
        ended = await app.engine.wait_for("inst_000002", lambda now: now.status == "done", 30)
        assert ended.status == "done"


async def test_a_definition_that_has_changed_is_not_used(home: Path) -> None:
    with closing(sqlite3.connect(home / "holdfast.db")) as other, other:
        other.execute("UPDATE definitions SET body = replace(body, 'canary', 'canarz')")
    app = Holdfast(home)
    async with app:
        with pytest.raises(JournalDamaged, match="has changed"):
            await app.engine.state("inst_000001")
    assert ("definition", None) in {
        (one.what, one.seq) for one in examine(home / "holdfast.db").findings
    }

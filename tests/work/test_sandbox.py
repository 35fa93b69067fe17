from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator

import pytest

from holdfast.errors import SnippetError
from holdfast.work.sandbox import (
    LIMITS,
    MAX_PRINTED,
    CallWanted,
    RecordedCall,
    Sandbox,
    SnippetDone,
    check_snippet,
)

NOW = 1_700_000_000.25


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    sandbox = Sandbox()
    yield sandbox
    sandbox.close()


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a snippet may take longer to reach another limit than its time."""
    for name in ("max_feed_duration_secs", "max_turn_duration_secs"):
        monkeypatch.setitem(LIMITS, name, 60.0)


async def outcome(sandbox: Sandbox, snippet: str, **context: object) -> object:
    done = await sandbox.run(snippet, context, now=NOW, key="run:L1:1:0")
    assert isinstance(done, SnippetDone)
    return done.result


async def complaint(sandbox: Sandbox, snippet: str, **options: object) -> str:
    with pytest.raises(SnippetError) as caught:
        await sandbox.run(snippet, {}, now=NOW, key="k", **options)  # type: ignore[arg-type]
    return str(caught.value)


async def test_a_snippet_reads_its_context_and_sets_its_result(sandbox: Sandbox) -> None:
    snippet = "who = context['name']\nresult = {'success': True, 'greeting': '你好 ' + who}"
    assert await outcome(sandbox, snippet, name="张三") == {
        "success": True,
        "greeting": "你好 张三",
    }


async def test_a_result_is_plain_json(sandbox: Sandbox) -> None:
    assert await outcome(sandbox, "result = (1, 2.5, None, [True])") == [1, 2.5, None, [True]]


async def test_what_a_snippet_changes_in_its_context_stays_inside(sandbox: Sandbox) -> None:
    context = {"items": [1]}
    done = await sandbox.run(
        "context['items'].append(2)\nresult = context", context, now=NOW, key="k"
    )
    assert done == SnippetDone({"items": [1, 2]}, "")
    assert context == {"items": [1]}


async def test_nothing_is_left_over_from_one_run_to_the_next(sandbox: Sandbox) -> None:
    await outcome(sandbox, "secret = 42\nresult = secret")
    for _ in range(4):
        assert "name 'secret' is not defined" in await complaint(sandbox, "result = secret")


async def test_printed_text_is_kept_and_capped(sandbox: Sandbox) -> None:
    short = await sandbox.run("print('hello')\nresult = 1", {}, now=NOW, key="k")
    assert short == SnippetDone(1, "hello\n")
    long = await sandbox.run(
        "for i in range(5000): print('hello')\nresult = 1", {}, now=NOW, key="k"
    )
    assert isinstance(long, SnippetDone)
    assert long.printed.endswith("… cut here")
    assert MAX_PRINTED <= len(long.printed) < MAX_PRINTED + 20


CLOCKS = """
import random, time, datetime
time.sleep(3600)
result = [time.time(), time.monotonic(), str(datetime.datetime.now()), time.process_time(),
          random.random(), random.randint(0, 10**9), random.Random().random(), hash('a'), id([])]
"""


async def test_the_same_key_and_now_give_the_same_clock_and_chance() -> None:
    first, second = Sandbox(workers=1), Sandbox(workers=1)
    try:
        runs = [await outcome(box, CLOCKS) for box in (first, second, first)]
    finally:
        first.close()
        second.close()
    assert runs[0] == runs[1] == runs[2]
    assert runs[0][:3] == [NOW, NOW, "2023-11-14 22:13:20.250000"]  # type: ignore[index]


async def test_another_key_draws_other_numbers(sandbox: Sandbox) -> None:
    draw = "import random\nresult = random.random()"
    one = await sandbox.run(draw, {}, now=NOW, key="a")
    other = await sandbox.run(draw, {}, now=NOW, key="b")
    assert one != other


@pytest.mark.parametrize(
    ("snippet", "parts"),
    [
        ("x = 1", ["never sets `result`"]),
        ("if context.get('x'):\n  result = 1", ["line 2", "never sets `result`"]),
        ("x = 1\nresult = {}['a']", ["line 2", "KeyError", "a"]),
        ("def f():\n  return 1 / 0\nresult = f()", ["line 2", "division by zero"]),
        ("result = eval('1 / 0')", ["line 1", "division by zero"]),
        ("a = []\nwhile True:\n  a.append('x' * 1000)", ["32 MB", "loops at line 2"]),
        ("x = 1\na = 'x' * 10**10", ["line 2", "32 MB"]),
        ("def f():\n  return f()\nresult = f()", ["line 2", "200 deep"]),
        ("x = 1\nresult = []\nresult.append(result)", ["line 2", "Circular"]),
        ("result = []\nfor i in range(100):\n  result = [result]", ["line 3", "too deep"]),
        ("result = []\nfor i in range(9000):\n  result = [result]", ["line 3", "too deep"]),
        ("x = 1\nresult = 'x' * 300_000", ["line 2", "large"]),
        ("result = 'x' * 3_000_000", ["line 1", "larger than 262144 bytes"]),
        ("a = ['x']\nfor i in range(40): a = [a, a]\nresult = a", ["line 3", "too large"]),
        ("result = {1: 2}", ["line 1", "JSON"]),
        ("result = float('nan')", ["line 1", "NaN"]),
        ("result = {1, 2}", ["line 1", "set is not JSON"]),
        ("result = 10**5000", ["line 1", "4300 digits"]),
        ("def result():\n  pass", ["line 1", "function is not JSON"]),
        ("result = open('/etc/hostname').read()", ["line 1", "no files"]),
        ("import os\nresult = os.getenv('HOME')", ["line 2", "no environment"]),
        ("import os\nresult = list(os.urandom(4))", ["line 2", "not supported"]),
        ("x = 1\nimport socket", ["line 2", "No module named 'socket'", "such as json"]),
        ("result = (\n1", ["line 1", "'(' was never closed"]),
        ("result = 1\\", ["line 1", "unexpected EOF"]),
        ("x = 1\ndel x", ["line 2", "snippets do not have the 'del' statement"]),
        ("return 3", ["cannot `return`"]),
        ("raise TimeoutError('the office is closed')", ["line 1", "the office is closed"]),
        ("result = '\ud800'", ["surrogates"]),
    ],
)
@pytest.mark.usefixtures("unhurried")
async def test_misbehaviour_is_told_with_its_line(
    sandbox: Sandbox, snippet: str, parts: list[str]
) -> None:
    message = await complaint(sandbox, snippet)
    for part in parts:
        assert part in message
    assert "monty" not in message.lower()


@pytest.mark.parametrize(
    ("snippet", "lines"),
    [
        ("x = 1\nwhile True:\n  pass", "2"),
        ("while True:\n  try:\n    while True: pass\n  except BaseException: pass", "1, 3"),
    ],
)
async def test_what_never_ends_is_told_with_its_loops(
    sandbox: Sandbox, snippet: str, lines: str
) -> None:
    told = f"the snippet ran longer than its 1 s; it loops at line {lines}"
    assert await complaint(sandbox, snippet) == told


async def test_the_workers_go_on_after_misbehaviour(sandbox: Sandbox) -> None:
    for bad in ("while True: pass", "a = []\nwhile True: a.append('x' * 1000)", "1 / 0"):
        await complaint(sandbox, bad)
        assert await outcome(sandbox, "result = 'fine'") == "fine"


PURCHASE = """
stock = query_stock(item=context['item'])
if stock['left'] == 0:
    result = {'success': False}
else:
    order = place_order(item=context['item'], at=stock['at'])
    result = {'success': True, 'order': order['id']}
"""
FUNCTIONS = ("query_stock", "place_order")
STOCK = RecordedCall("query_stock", {"item": "mouse"}, {"left": 3, "at": "B2"})
ORDER = RecordedCall("place_order", {"item": "mouse", "at": "B2"}, {"id": 7})


async def buy(sandbox: Sandbox, *recorded: RecordedCall) -> SnippetDone | CallWanted:
    return await sandbox.run(
        PURCHASE, {"item": "mouse"}, now=NOW, key="k", functions=FUNCTIONS, recorded=recorded
    )


async def test_a_snippet_stops_at_each_call_and_goes_on_with_its_recorded_result(
    sandbox: Sandbox,
) -> None:
    assert await buy(sandbox) == CallWanted(0, "query_stock", {"item": "mouse"})
    assert await buy(sandbox, STOCK) == CallWanted(1, "place_order", {"item": "mouse", "at": "B2"})
    assert await buy(sandbox, STOCK, ORDER) == SnippetDone({"success": True, "order": 7}, "")


async def test_a_snippet_cannot_swallow_the_stop_at_a_call(sandbox: Sandbox) -> None:
    snippet = "try:\n  f(a=1)\nexcept BaseException:\n  pass\nresult = 1"
    wanted = await sandbox.run(snippet, {}, now=NOW, key="k", functions=["f"])
    assert wanted == CallWanted(0, "f", {"a": 1})


async def test_a_snippet_may_call_under_another_name_and_in_a_loop(sandbox: Sandbox) -> None:
    snippet = "g = f\nresult = [g(i=i) for i in range(3)]"
    recorded = [RecordedCall("f", {"i": i}, i * i) for i in range(3)]
    done = await sandbox.run(snippet, {}, now=NOW, key="k", functions=["f"], recorded=recorded)
    assert done == SnippetDone([0, 1, 4], "")


@pytest.mark.parametrize(
    "recorded",
    [
        [RecordedCall("place_order", {"item": "mouse"}, {})],
        [RecordedCall("query_stock", {"item": "keyboard"}, {})],
        [RecordedCall("query_stock", {"item": "mouse"}, {"left": 0}), ORDER],
    ],
    ids=["another function", "other arguments", "fewer calls"],
)
async def test_calls_that_differ_from_the_recorded_ones_are_refused(
    sandbox: Sandbox, recorded: list[RecordedCall]
) -> None:
    with pytest.raises(SnippetError, match="not deterministic"):
        await buy(sandbox, *recorded)


async def test_true_and_one_are_different_arguments(sandbox: Sandbox) -> None:
    recorded = [RecordedCall("f", {"a": True}, 1)]
    message = await complaint(sandbox, "result = f(a=1)", functions=["f"], recorded=recorded)
    assert "not deterministic" in message


async def test_arguments_go_by_name_and_are_json(sandbox: Sandbox) -> None:
    message = await complaint(sandbox, "x = 1\nresult = f(1)", functions=["f"])
    assert message == "line 2: f() takes its arguments by name; write f(argument=value)"
    message = await complaint(sandbox, "result = f(a={1, 2})", functions=["f"])
    assert message.startswith("line 1: f() was given more than JSON: $.a: set is not JSON")


async def test_a_function_that_is_not_named_is_not_there(sandbox: Sandbox) -> None:
    message = await complaint(sandbox, "x = 1\nresult = send_email(to='a')", functions=["f"])
    assert message == "line 2: NameError: name 'send_email' is not defined"


async def test_fifty_snippets_at_once_each_get_their_own_answer(sandbox: Sandbox) -> None:
    snippet = "result = context['n'] * 2"
    results = await asyncio.gather(*(outcome(sandbox, snippet, n=n) for n in range(50)))
    assert results == [n * 2 for n in range(50)]


async def test_a_cancelled_caller_is_free_at_once_and_the_pass_ends_by_itself() -> None:
    sandbox = Sandbox(workers=1)
    try:
        waiting = [
            asyncio.create_task(sandbox.run("while True: pass", {}, now=NOW, key="k"))
            for _ in range(60)
        ]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ended)
        # Sixty spinning passes would keep the one worker for a minute: those not begun never are.
        started = time.monotonic()
        assert await outcome(sandbox, "result = 1") == 1
        assert time.monotonic() - started < 30
    finally:
        sandbox.close()


async def test_closing_ends_the_threads_and_is_final() -> None:
    before = set(threading.enumerate())
    sandbox = Sandbox()
    await outcome(sandbox, "result = 1")
    sandbox.close()
    sandbox.close()
    assert set(threading.enumerate()) <= before
    with pytest.raises(RuntimeError, match="closed"):
        await outcome(sandbox, "result = 1")


def test_an_unused_sandbox_starts_nothing() -> None:
    before = threading.active_count()
    Sandbox().close()
    assert threading.active_count() == before


@pytest.mark.parametrize("closes", [True, False])
def test_the_interpreter_exits_without_noise(closes: bool) -> None:
    program = f"""
        import asyncio
        from holdfast.work.sandbox import Sandbox, check_snippet

        async def main():
            sandbox = Sandbox()
            runs = [sandbox.run("result = 1", {{}}, now=0.0, key="k") for _ in range(8)]
            results = [done.result for done in await asyncio.gather(*runs)]
            if {closes}:
                sandbox.close()
            return sandbox, results

        sandbox, results = asyncio.run(main())
        check_snippet("result = 1")
        print(results)
    """
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(program)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{[1] * 8}\n", "")


@pytest.mark.parametrize(
    ("snippet", "expected"),
    [
        ("result = {'success': True}", []),
        ("x = await f()\nresult = x", []),
        ("result = (\n1", [("'(' was never closed", 1, 10)]),
        (
            "if 1:\nresult = 1",
            [("expected an indented block after 'if' statement on line 1", 2, 1)],
        ),
        ("result = 1\nreturn result", [("'return' outside function", 2, 1)]),
        ("result = 1\ndel result", [("snippets do not have the 'del' statement", 2, 1)]),
        (
            "class A: pass\n\nclass B(A): pass\nresult = 1",
            [("snippets do not have class inheritance and metaclasses", 3, 1)],
        ),
        ("def f():\n  yield 1\nresult = 1", [("snippets do not have yield expressions", 2, 3)]),
        ("x = 1\ny = 2", [("the snippet never sets `result`; end it with `result = {...}`", 2, 1)]),
        ("result = " + "-" * 5000 + "1", [("the snippet is nested too deeply", 1, 1)]),
        (
            "result = " + "lambda: " * 2_800 + "1",
            [("it has more than 5,000 words, numbers, texts and brackets", 1, 1)],
        ),
        (
            "result = " + "lambda: " * 2_400 + "1",
            [("it has more than 200 functions, classes and comprehensions", 1, 1)],
        ),
    ],
)
def test_mistakes_show_without_running(snippet: str, expected: list[tuple[str, int, int]]) -> None:
    assert check_snippet(snippet) == expected


def test_checking_runs_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    assert check_snippet("print('ran')\nwhile True: pass\nresult = 1") == []
    assert capfd.readouterr().out == ""


def test_checking_tells_of_null_bytes_and_odd_escapes() -> None:
    [(message, line, column)] = check_snippet("result = '\0'")
    assert "null bytes" in message
    assert (line, column) == (1, 1)
    assert check_snippet("result = '\\d'") == []

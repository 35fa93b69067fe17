"""The pages on interactions and agents: each example is run, and prints what the page says."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import Holdfast, InteractionType
from holdfast.core.run import window

ROOT = Path(__file__).parents[2]
EXAMPLE = re.compile(
    r"^```python\n(?P<script>.*?)^```\n\n```text\n(?P<printed>.*?)^```$", re.DOTALL | re.MULTILINE
)
PYTHON = re.compile(r"^```python$", re.MULTILINE)
YAML = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)

PAGES = ["docs/interactions.md", "docs/agents.md"]


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def heading_before(page: str, position: int) -> str:
    return [one[1] for one in HEADING.finditer(text_of(page), 0, position)][-1]


def examples() -> list[object]:
    return [
        pytest.param(found["script"], found["printed"], id=heading_before(page, found.start()))
        for page in PAGES
        for found in EXAMPLE.finditer(text_of(page))
    ]


@pytest.mark.parametrize(("script", "printed"), examples())
def test_an_example_prints_what_stands_below_it(
    script: str,
    printed: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(script, "<example>", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize("page", PAGES)
def test_no_example_goes_without_its_output(page: str) -> None:
    text = text_of(page)
    assert len(PYTHON.findall(text)) == len(EXAMPLE.findall(text)) > 0


def test_every_type_has_an_example_of_its_own() -> None:
    page = "docs/interactions.md"
    headings = [heading_before(page, one.start()) for one in EXAMPLE.finditer(text_of(page))]
    assert set(InteractionType) <= set(headings)


def test_the_agents_of_the_docs_load(tmp_path: Path) -> None:
    [text] = YAML.findall(text_of("docs/agents.md"))
    file = tmp_path / "agents.yaml"
    file.write_text(text, encoding="utf-8")
    app = Holdfast.in_memory()

    @app.tool
    async def pay(to: str, amount: int) -> None: ...

    @app.tool
    async def query_payment(to: str) -> None: ...

    assert [agent.agent_id for agent in app.load_agents(file)] == ["clerk", "office"]


def test_the_rule_of_the_window_is_quoted_as_it_stands_in_the_code() -> None:
    quoted = re.findall(r"^> ?(.*)$", text_of("docs/agents.md"), re.MULTILINE)
    _, _, rule = inspect.cleandoc(window.__doc__ or "").partition("The rule. ")
    assert quoted == rule.splitlines()


DEVELOPED = """
import logging, runpy, sys
logging.getLogger("asyncio").addFilter(lambda record: "took %.3f seconds" not in record.msg)
runpy.run_path(sys.argv[1], run_name="__main__")
"""
"""In development mode, which tells of leaks; not of steps that a busy machine has made slow."""


def test_the_chat_example_runs_without_a_key_and_without_a_terminal(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if "HOLDFAST" not in name}
    run = subprocess.run(
        [sys.executable, "-X", "dev", "-c", DEVELOPED, str(ROOT / "examples" / "chat.py")],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.stderr == ""
    assert run.stdout.splitlines()[-1] == "Clerk: Paid 42 to Will Zhang."

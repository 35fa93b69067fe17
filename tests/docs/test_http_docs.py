"""The page on HTTP, from top to bottom against a real server: each command, each answer.

Commands of curl are read strictly and sent by httpx, so that no curl is needed. An answer on
the page is a part of the real one: an object may have more members, `…` stands for anything.
A GET is sent again until it shows what the page says, because runs take their time. A stream
stays open, and a text without a command before it is how the last stream goes on.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from shell_lines import Curl, Line, curl, lines, taken

import warm
from holdfast import Holdfast
from holdfast.server.auth.principal import ADMIN, ANSWERS, APPROVES, ROLES, Permission
from holdfast.server.problems import TITLES
from holdfast.server.settings import ServerSettings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
PATIENCE = 60.0
HOLDFAST = [sys.executable, "-c", "from holdfast.cli import main; main()"]


@dataclass
class Terminal:
    """Whoever reads the page and does what it says, in a fresh directory."""

    directory: Path
    stack: ExitStack
    variables: dict[str, str] = field(default_factory=dict)
    asked: Curl | None = None
    answer: httpx.Response | None = None
    stream: Iterator[str] | None = None

    def __post_init__(self) -> None:
        self.client = self.stack.enter_context(httpx.Client(trust_env=False, timeout=PATIENCE))

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if "HOLDFAST" not in name}
        return kept | {
            "HOLDFAST_URL": self.variables.get("URL", ""),
            "HOLDFAST_TOKEN": self.variables.get("TOKEN", ""),
        }

    def do(self, line: Line) -> None:
        self.settle()
        match line.words:
            case ["cd", place]:
                self.directory /= place
            case ["rm", name]:
                (self.directory / name).unlink()
            case ["touch", name]:
                (self.directory / name).touch()
            case ["holdfast", "serve", app]:
                self._serve(app)
            case ["holdfast", *words]:
                self._assign(line, json.loads(self._run([*HOLDFAST, *words])))
            case ["curl", *words]:
                self._curl(line, curl(words, line.stdin))
            case [value] if line.name:
                assert value == self._default_url or line.name != "URL"
                self.variables.setdefault(line.name, value)
            case _:
                raise AssertionError(f"this is not read: {line.text}")

    @property
    def _default_url(self) -> str:
        default = ServerSettings()
        return f"http://{default.host}:{default.port}"

    def _serve(self, app: str) -> None:
        """On a port that is free, whatever the page says."""
        process = warm.Popen(
            [*HOLDFAST, "serve", app, "--port", "0", "--json"],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.stack.callback(process.wait, PATIENCE)
        self.stack.callback(process.terminate)
        assert process.stdout is not None
        self.stack.callback(process.stdout.close)
        self.variables["URL"] = json.loads(process.stdout.readline())["url"]

    def _run(self, command: list[str]) -> str:
        run = warm.run(
            command,
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        return run.stdout

    def _assign(self, line: Line, document: Any) -> None:
        assert line.name is not None
        assert line.path is not None
        value = taken(document, line.path)
        assert isinstance(value, str), f"{line.path} is not in {document}"
        self.variables[line.name] = value

    def _curl(self, line: Line, command: Curl) -> None:
        request = self.client.build_request(
            command.method, command.url, headers=command.headers, content=command.body
        )
        if command.streamed:
            response = self.client.send(request, stream=True)
            self.stack.callback(response.close)
            assert response.status_code == 200, response.read()
            self.stream = response.iter_lines()
            return
        if line.path is not None:
            self._until(command, lambda got: taken(got.json(), line.path or "") is not None)
            assert self.answer is not None
            self._assign(line, self.answer.json())
            self.answer = None
            return
        self.asked, self.answer = command, self.client.send(request)

    def settle(self) -> None:
        """What nobody looks at must at least have gone well."""
        if self.answer is not None:
            assert self.answer.is_success, self.answer.text
            self.asked = self.answer = None

    def _until(self, command: Curl, holds: Any) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            self.answer = self.client.request(
                command.method, command.url, headers=command.headers, content=command.body
            )
            if holds(self.answer) or command.method != "GET" or time.monotonic() > deadline:
                return
            time.sleep(0.05)

    def expect(self, holds: Any) -> str:
        """The last answer, once it is as expected or will not be any more."""
        assert self.answer is not None, "an answer without a command"
        assert self.asked is not None
        if not holds(self.answer) and self.asked.method == "GET":
            self._until(self.asked, holds)
        text = self.answer.text
        assert holds(self.answer), text
        self.asked = self.answer = None
        return text

    def hear(self, expected: list[str]) -> None:
        """These lines come, in this order, perhaps among others."""
        assert self.stream is not None, "a text that nothing said"
        deadline = time.monotonic() + PATIENCE
        heard = []
        for want in expected:
            for got in self.stream:
                heard.append(got)
                if is_like(want, got):
                    break
                assert time.monotonic() < deadline, f"no {want} in {heard}"
            else:
                raise AssertionError(f"no {want} in {heard}")


def is_like(want: str, got: str) -> bool:
    pattern = ".*".join(map(re.escape, want.split("…")))
    return re.fullmatch(pattern, got) is not None


def has_lines(expected: list[str], text: str) -> bool:
    rest = iter(text.splitlines())
    return all(any(is_like(want, got) for got in rest) for want in expected)


def is_part(want: Any, got: Any) -> bool:
    match want:
        case dict():
            return isinstance(got, dict) and all(
                name in got and is_part(value, got[name]) for name, value in want.items()
            )
        case list():
            return isinstance(got, list) and len(want) == len(got) and all(map(is_part, want, got))
        case str():
            return is_like(want, got if isinstance(got, str) else json.dumps(got))
        case _:
            return bool(want == got)


def answers(want: Any, got: httpx.Response) -> bool:
    status = want.get("status")
    fits = got.status_code == status if isinstance(status, int) else got.is_success
    return fits and is_part(want, got.json())


def follow(terminal: Terminal, kind: str, text: str) -> None:
    match kind:
        case "sh":
            for line in lines(text, terminal.variables):
                terminal.do(line)
        case "json":
            want = json.loads(text)
            terminal.expect(lambda got: answers(want, got))
        case "text" if terminal.answer is not None:
            expected = text.splitlines()
            terminal.expect(lambda got: got.is_success and has_lines(expected, got.text))
        case "text":
            terminal.hear(text.splitlines())
        case _:
            terminal.settle()
            run_python(terminal, text)


def run_python(terminal: Terminal, text: str) -> None:
    """What it prints is there to be compared."""
    file = terminal.directory / "example.py"
    file.write_text(text, encoding="utf-8")
    printed = terminal._run([sys.executable, str(file)])
    terminal.stream = iter(printed.splitlines())


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    (tmp_path / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "office.py", tmp_path / "examples")
    with ExitStack() as stack:
        yield Terminal(tmp_path, stack)


def test_the_page_is_true_from_top_to_bottom(terminal: Terminal) -> None:
    blocks = list(BLOCK.finditer(PAGE))
    assert len(blocks) == PAGE.count("\n```") // 2
    for block in blocks:
        try:
            follow(terminal, block["kind"], block["text"])
        except Exception as error:
            error.add_note(f"on the page:\n{block[0]}")
            raise
    terminal.settle()


@pytest.mark.parametrize(
    "text", ["curl -k http://a", "curl http://a http://b", "curl a | sh", "curl `date`", "curl a;b"]
)
def test_what_the_page_does_not_use_of_a_shell_is_refused(text: str) -> None:
    with pytest.raises(AssertionError):
        [curl(line.words[1:], None) for line in lines(text, {})]


def test_every_path_of_the_description_stands_on_the_page() -> None:
    document = Holdfast.in_memory().asgi().openapi()
    table = PAGE[PAGE.index("## Everything there is") :]
    for path in document["paths"]:
        last = "/" + path.rpartition("/")[2]
        assert f" {path}`" in table or f"`{last}`" in table, path


def test_the_table_of_roles_is_what_the_server_goes_by() -> None:
    heads = "| role | sees runs | starts, resumes, cancels | answers questions "
    rows = PAGE[PAGE.index(heads) :].splitlines()[2:7]
    said = {}
    for row in rows:
        role, *cells = (one.strip() for one in row.strip("|").split("|"))
        said[role.strip("`")] = [one == "yes" for one in cells]
    assert said == {role: list(_permitted(role)) for role in ROLES}


def _permitted(role: str) -> Iterator[bool]:
    held = ROLES[role]
    yield Permission.READ in held
    yield Permission.OPERATE in held
    yield role in ANSWERS
    yield role in APPROVES
    yield Permission.AUTHOR in held
    yield role == ADMIN


def test_every_status_of_a_problem_is_explained() -> None:
    table = PAGE[PAGE.index("## Problems") : PAGE.index("## Everything there is")]
    assert [int(one) for one in re.findall(r"^\| (\d{3}) \|", table, re.MULTILINE)] == list(TITLES)


STARTED = """

async def host_starts() -> None:
    async with web.router.lifespan_context(web):
        print(app.is_open, web.routes[-1].path)
    print(app.is_open)


if __name__ == "__main__":
    import asyncio

    asyncio.run(host_starts())
"""


@pytest.mark.parametrize(
    "example", [text for _, text in BLOCK.findall(PAGE) if "web = FastAPI" in text]
)
def test_an_application_that_has_it_mounted_starts_it(example: str, terminal: Terminal) -> None:
    assert "lifespan=" in example
    terminal.directory /= "examples"
    run_python(terminal, example + STARTED)
    assert terminal.stream is not None
    assert [one.split()[0] for one in terminal.stream] == ["True", "False"]

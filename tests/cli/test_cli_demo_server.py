"""`holdfast demo`: a link, five runs that wait for a person, and an end that leaves nothing."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import httpx
import pytest
from cli_scene import Command, command_line, environment
from serving import Served

import warm
from holdfast.cli.commands.demo_server import free_port
from holdfast.demo.show import VISITOR

LONGEST = 60.0


@contextmanager
def demo(place: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The demo in a process of its own, without a terminal, its temporary home below `place`."""
    process = warm.Popen(
        command_line("demo", "--port", "0", *arguments),
        cwd=place,
        env={**environment(), "TMPDIR": str(place)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=LONGEST)


def announced(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Its one line of JSON."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate(timeout=LONGEST)[1]
    return dict(json.loads(line))


def interrupted(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """How it ends. The office shares its stderr: as long as that ran, this would not return."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LONGEST)
    return process.returncode, out, err


@dataclass(frozen=True, slots=True)
class Visit:
    """A person who has opened the link, and how the runs stood then."""

    browser: httpx.Client
    runs: dict[str, str]
    found: dict[str, Any]
    asked: dict[str, Any]

    def comes_to(self, status: str, which: str) -> dict[str, Any]:
        end = time.monotonic() + LONGEST
        while True:
            now = self.browser.get(f"/runs/{self.runs[which]}").json()
            if now["status"] == status:
                return dict(now)
            assert time.monotonic() < end, now
            time.sleep(0.05)

    def answer(self, question: dict[str, Any], option: str, **data: Any) -> httpx.Response:
        body = {"selectedOptionId": option, "data": data}
        return self.browser.post(f"/interactions/{question['requestId']}/answer", json=body)

    def chat(self) -> dict[str, Any]:
        return dict(self.browser.get(f"/chats/{self.runs['chat']}").json())


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    """One demo for all that look at one run each."""
    with demo(tmp_path_factory.mktemp("demo"), "--json") as process:
        said = announced(process)
        assert set(said) == {"url", "link", "runs"}
        with Served(process, said["url"], said["link"]).sign_in() as browser:
            found = {one["id"]: one for one in browser.get("/runs").json()["runs"]}
            asked = {
                one["rootId"]: one for one in browser.get("/interactions").json()["interactions"]
            }
            runs = said["runs"]
            yield Visit(
                browser,
                runs,
                {which: found.pop(run_id) for which, run_id in runs.items()},
                {which: asked.get(run_id) for which, run_id in runs.items()},
            )


def test_the_link_leads_into_the_console(visit: Visit) -> None:
    page = visit.browser.get("/console/", follow_redirects=True)
    assert page.status_code == 200
    for run_id in visit.runs.values():
        assert run_id in page.text


def test_five_runs_wait_each_in_its_own_way(visit: Visit) -> None:
    standing = {which: one["status"] for which, one in visit.found.items()}
    assert standing == {
        "failed": "error",
        "onboarding": "pause",
        "repair": "error",
        "computer": "pause",
        "chat": "pause",
    }
    kinds = {which: one and one["type"] for which, one in visit.asked.items()}
    assert kinds == {
        "failed": None,
        "onboarding": "USER_INPUT",
        "repair": "USER_CONFIRMATION",
        "computer": "MISSING_INFO",
        "chat": "TOOL_APPROVAL",
    }
    assert visit.found["failed"]["summary"]["failed"] == ["L002"]
    assert visit.found["onboarding"]["summary"]["retries"] == 2


def test_whoever_opens_the_link_is_the_one_who_started_them(visit: Visit) -> None:
    me = visit.browser.get("/me").json()["id"]
    assert me == VISITOR
    for which in ("failed", "onboarding", "repair", "computer"):
        page = visit.browser.get(f"/console/runs/{visit.runs[which]}")
        assert f"Started by {me}," in page.text
    assert visit.chat()["startedBy"] == me


def test_the_samples_are_there_to_be_started(visit: Visit) -> None:
    plans = {one["plan_id"] for one in visit.browser.get("/plans").json()["plans"]}
    assert {"onboard_will_zhang", "apply_computer", "onboard_with_agents"} <= plans
    agents = {one["agent_id"] for one in visit.browser.get("/agents").json()["agents"]}
    assert {"assistant", "hr", "it"} <= agents
    tools = {one["name"] for one in visit.browser.get("/tools").json()["tools"]}
    assert {"apply_computer", "pay_expense"} <= tools


def test_choosing_a_computer_finishes_that_run(visit: Visit) -> None:
    wrong = visit.answer(visit.asked["computer"], "provide", computer_model="a typewriter")
    assert (wrong.status_code, list(wrong.json()["fields"])) == (422, ["computer_model"])
    given = visit.answer(visit.asked["computer"], "provide", computer_model="Dell XPS")
    assert given.status_code == 200, given.text
    visit.comes_to("done", "computer")


def test_a_resume_goes_on_to_the_end_because_the_office_is_mended(visit: Visit) -> None:
    resumed = visit.browser.post(f"/instances/{visit.runs['failed']}/resume")
    assert resumed.status_code == 200, resumed.text
    assert visit.comes_to("done", "failed")["summary"]["done"] == 6


def test_a_desk_lets_the_onboarding_that_was_retried_end(visit: Visit) -> None:
    given = visit.answer(visit.asked["onboarding"], "provide", desk="A-12", first_day="2030-01-07")
    assert given.status_code == 200, given.text
    visit.comes_to("done", "onboarding")


def test_an_approved_repair_lets_the_run_end(visit: Visit) -> None:
    question = visit.asked["repair"]
    assert question["context"]["repair_tools"] == ["create_employee_profile", "grant_access"]
    given = visit.answer(question, "apply")
    assert given.status_code == 200, given.text
    assert visit.comes_to("done", "repair")["summary"]["done"] == 4
    again = visit.answer(question, "refuse")
    assert again.status_code == 409


def test_an_approved_payment_is_made_once(visit: Visit) -> None:
    for _ in range(2):
        approved = visit.answer(visit.asked["chat"], "approve")
        assert approved.status_code == 200, approved.text
    visit.comes_to("done", "chat")
    assert visit.chat()["answer"] == "Paid ¥420 to Will Zhang for the taxi: PAY-0001."

    message = {"message": "请付给张三 30 元茶水费。"}
    said = visit.browser.post(f"/chats/{visit.runs['chat']}/messages", json=message)
    assert said.is_success, said.text
    visit.comes_to("pause", "chat")
    [question] = visit.chat()["interactions"]
    assert visit.answer(question, "approve", amount=25).status_code == 200
    visit.comes_to("done", "chat")
    assert visit.chat()["answer"] == "已付给张三 ¥25（茶水费），单号 PAY-0002。"


def test_ctrl_c_ends_the_server_and_the_office_and_leaves_nothing(tmp_path: Path) -> None:
    with demo(tmp_path) as process:
        assert process.stdout is not None
        said = iter(process.stdout.readline, "")
        link = next(line.strip() for line in said if "/login?token=link_" in line)
        told = list(takewhile(lambda line: line != "Ctrl-C ends everything.\n", said))
        assert all(len(line) <= 81 for line in told)
        tries = [line for line in told if line.startswith("  ") and line[2:5].strip()]
        begins = (
            "1. Inbox, apply_",
            "2. Runs, inst_",
            "3. Runs, inst_",
            "4. Inbox, Repair L001? (inst_",
            "5. Chat, chat_",
        )
        for line, begin in zip(tries, begins, strict=True):
            assert line.startswith(f"  {begin}")
        code, out, err = interrupted(process)
    assert (code, out) == (0, "")
    assert err.splitlines() == [
        "Starting a mock office, a server and five runs …",
        "stopping …",
        "The demo is over; nothing of it is running any more.",
    ]
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(httpx.TransportError):
        httpx.get(link)


def test_ctrl_c_before_all_is_ready_is_an_end_like_any_other(tmp_path: Path) -> None:
    with demo(tmp_path) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Starting")
        code, _, err = interrupted(process)
    assert code == 0
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_runs_stay_in_a_home_that_is_named(tmp_path: Path, holdfast: Command) -> None:
    home = tmp_path / "kept"
    with demo(tmp_path, "--json", "--home", str(home)) as process:
        runs = announced(process)["runs"]
        assert interrupted(process) == (0, "", "")
    kept = {row["instance_id"] for row in holdfast("runs", "--home", str(home), "--json").json}
    assert kept == set(runs.values())


def test_the_usual_port_gives_way_to_a_free_one_and_a_named_one_does_not(
    holdfast: Command,
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port(port) == 0
        refused = holdfast("demo", "--port", str(port), "--json")
    assert free_port(port) == port
    assert refused.code == 1
    assert "is in use: choose another with --port" in refused.json["error"]["message"]

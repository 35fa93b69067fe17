"""The mock office as its users meet it: a real process, spoken to over real HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from typing import Any

import httpx
import pytest
from ruamel.yaml import YAML

from holdfast.demo.office import Office
from holdfast.demo.services import TOOLS

WILL = {
    "id": "WZ001",
    "name": "Will Zhang",
    "email": "will.zhang@example.com",
    "department": "Engineering",
}


class Caller:
    """A caller that uses the office's tools."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def ask(self, tool: str, *, key: str | None = None, **args: Any) -> httpx.Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        return await self.http.post("/tool", json={"tool": tool, "args": args}, headers=headers)

    async def result(self, tool: str, *, key: str | None = None, **args: Any) -> dict[str, Any]:
        response = await self.ask(tool, key=key, **args)
        assert response.status_code == 200, response.text
        return response.json()


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    async with Office.start() as office:
        yield office


@pytest.fixture
async def caller(office: Office) -> AsyncIterator[Caller]:
    async with httpx.AsyncClient(base_url=office.url, trust_env=False, timeout=60) as http:
        yield Caller(http)


async def test_will_zhang_is_taken_on_by_five_services(office: Office, caller: Caller) -> None:
    profile = await caller.result("create_employee_profile", **WILL)
    access = await caller.result("grant_access", employee_id=profile["employee_id"])
    order = await caller.result("apply_computer", employee="Will Zhang", computer_model="Dell XPS")
    shipped = await caller.result("outbound", order_id=order["order_id"])
    mail = await caller.result("send_email", to=WILL["email"], subject="欢迎", content="工牌已备好")

    assert profile["employee_id"] == "WZ001"
    assert order["model"] == "Dell XPS"
    assert all([access["access_id"], access["badge"], shipped["outbound_id"], mail["message_id"]])
    assert (await caller.result("query_profile", employee_id="WZ001"))["profile"] == WILL
    assert (await caller.result("query_access", employee_id="WZ001"))["badge"] == access["badge"]
    status = await caller.result("check_outbound_status", order_id=order["order_id"])
    assert (status["exists"], status["outbound_id"]) == (True, shipped["outbound_id"])
    assert set((await office.counts()).values()) == {1}


async def test_queries_about_strangers_succeed_and_say_that_nothing_exists(caller: Caller) -> None:
    for tool, args in (
        ("query_profile", {"employee_id": "nobody"}),
        ("query_access", {"employee_id": "nobody"}),
        ("check_outbound_status", {"order_id": "none"}),
    ):
        answer = await caller.result(tool, **args)
        assert (answer["success"], answer["exists"]) == (True, False)


async def test_accounts_and_permissions_are_handed_out(caller: Caller) -> None:
    account = await caller.result("create_account", username="zhangsan", department="engineering")
    granted = await caller.result(
        "request_permission", permissions=["vpn", "code"], until="2030-12-31", employee="张三"
    )
    assert account["username"] == "zhangsan"
    assert (granted["permissions"], granted["until"]) == (["vpn", "code"], "2030-12-31")
    again = await caller.ask("create_account", username="zhangsan", department="sales")
    assert again.status_code == 409
    assert "taken" in again.json()["error"]


async def test_hr_numbers_a_person_who_brings_no_id_and_updates_one_it_knows(
    office: Office, caller: Caller
) -> None:
    person = {key: value for key, value in WILL.items() if key != "id"}
    await caller.result("create_employee_profile", id="E0001", **person)
    assert (await caller.result("create_employee_profile", **person))["employee_id"] == "E0002"
    await caller.result("create_employee_profile", **WILL)
    moved = await caller.result("create_employee_profile", **{**WILL, "department": "Product"})
    assert moved["created"] is False
    assert (await office.state())["profiles"]["WZ001"]["department"] == "Product"


async def test_a_service_refuses_what_another_has_never_heard_of(
    office: Office, caller: Caller
) -> None:
    for tool, args, remedy in (
        ("grant_access", {"employee_id": "nobody"}, "create the profile first"),
        ("outbound", {"order_id": "none"}, "apply for the computer first"),
    ):
        answer = await caller.ask(tool, **args)
        assert answer.status_code == 409
        assert answer.json()["success"] is False
        assert remedy in answer.json()["error"]
    state = await office.state()
    assert (state["badges"], state["outbounds"]) == ({}, {})
    assert [call["ok"] for call in await office.calls()] == [False, False]


async def test_the_next_n_calls_of_a_tool_fail_and_others_do_not(
    office: Office, caller: Caller
) -> None:
    await office.configure_failures({"send_email": 2})
    mail = {"to": "zhangsan@example.com", "subject": "通知", "content": "你好"}
    statuses = [(await caller.ask("send_email", **mail)).status_code for _ in range(2)]
    assert statuses == [500, 500]
    await caller.result("query_profile", employee_id="WZ001")
    await caller.result("send_email", **mail)
    assert await office.counts() == {"send_email": 3, "query_profile": 1}
    assert len((await office.state())["mails"]) == 1


async def test_a_failing_tool_says_so_and_works_again_after_reset_failures(
    office: Office, caller: Caller
) -> None:
    await office.configure_failures({"apply_computer": 6, "send_email": 0})
    order = {"employee": "张三", "computer_model": "ThinkPad X1"}
    failed = await caller.ask("apply_computer", **order)
    assert failed.json()["success"] is False
    assert "apply_computer is out of order" in failed.json()["error"]
    await office.reset_failures()
    await caller.result("apply_computer", **order)
    assert [call["ok"] for call in await office.calls()] == [False, True]


async def test_hr_and_access_answer_a_key_once_and_repeat_that_answer(
    office: Office, caller: Caller
) -> None:
    await caller.result("create_employee_profile", key="run:L001:1:0", **WILL)
    asked = [caller.result("grant_access", key="k", employee_id="WZ001") for _ in range(8)]
    answers = await asyncio.gather(*asked)
    assert all(answer == answers[0] for answer in answers)
    assert len((await office.state())["badges"]) == 1
    granted = [call for call in await office.calls() if call["tool"] == "grant_access"]
    assert [call["repeated"] for call in granted] == [False] + [True] * 7
    assert all(call["ok"] and call["key"] == "k" for call in granted)


async def test_a_key_whose_call_failed_is_still_unused(office: Office, caller: Caller) -> None:
    await caller.result("create_employee_profile", **WILL)
    await office.configure_failures({"grant_access": 1})
    assert (await caller.ask("grant_access", key="k", employee_id="WZ001")).status_code == 500
    await caller.result("grant_access", key="k", employee_id="WZ001")
    log = [(call["ok"], call["repeated"]) for call in await office.calls()]
    assert log[1:] == [(False, False), (True, False)]


async def test_a_key_belongs_to_one_tool_and_one_set_of_arguments(caller: Caller) -> None:
    await caller.result("create_employee_profile", key="k", **WILL)
    first = await caller.result("grant_access", key="k", employee_id="WZ001")
    assert first["badge"]
    other = await caller.ask("grant_access", key="k", employee_id="WZ001", area="laboratory")
    assert other.status_code == 409
    assert "other arguments" in other.json()["error"]
    second = await caller.result("grant_access", key="k2", employee_id="WZ001")
    assert second["badge"] != first["badge"]


async def test_it_stock_and_mail_take_every_call_as_a_new_one(
    office: Office, caller: Caller
) -> None:
    order = {"employee": "张三", "computer_model": "Dell XPS"}
    mail = {"to": "zhangsan@example.com", "subject": "通知", "content": "你好"}
    first = await caller.result("apply_computer", key="k", **order)
    second = await caller.result("apply_computer", key="k", **order)
    assert first["order_id"] != second["order_id"]
    for _ in range(2):
        await caller.result("outbound", key="k", order_id=first["order_id"])
        await caller.result("send_email", key="k", **mail)
    state = await office.state()
    assert [len(state[drawer]) for drawer in ("orders", "outbounds", "mails")] == [2, 2, 2]
    assert not any(call["repeated"] for call in await office.calls())


async def test_the_log_tells_each_call_in_order(office: Office, caller: Caller) -> None:
    await caller.result("create_employee_profile", key="k", **WILL)
    await caller.result("query_profile", employee_id="WZ001")
    first, second = await office.calls()
    assert first["at"] <= second["at"]
    written = {"n": 1, "tool": "create_employee_profile", "args": WILL, "key": "k"}
    assert first == {**written, "ok": True, "repeated": False, "acted": True, "at": first["at"]}
    assert (second["n"], second["key"], second["args"]) == (2, None, {"employee_id": "WZ001"})


async def test_a_delayed_answer_leaves_the_work_done_even_if_nobody_waits(
    office: Office, caller: Caller
) -> None:
    await office.configure_delays({"apply_computer": 3600})
    waiting = asyncio.create_task(
        caller.ask("apply_computer", employee="张三", computer_model="Dell XPS")
    )
    while not await office.counts():
        assert not waiting.done()
    assert len((await office.state())["orders"]) == 1
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_reset_forgets_everything(office: Office, caller: Caller) -> None:
    fresh = await office.state()
    await caller.result("create_employee_profile", key="k", **WILL)
    await office.configure_failures({"send_email": 5})
    await office.configure_delays({"send_email": 5})
    await office.reset()
    assert await office.state() == fresh
    assert await office.calls() == []
    await caller.result("create_employee_profile", key="k", **WILL)
    assert [call["repeated"] for call in await office.calls()] == [False]


REFUSED = [
    ("/tool", b"{", 400, "not JSON"),
    ("/tool", b'{"tool": NaN}', 400, "not JSON"),
    ("/tool", b"[" * 100_000, 400, "not JSON"),
    ("/tool", b"[]", 400, "JSON object"),
    ("/tool", b"", 400, '"tool": name'),
    ("/tool", b'{"tool": "outbound", "args": []}', 400, '"tool": name'),
    ("/tool", b'{"tool": "dance"}', 404, "no tool 'dance'"),
    ("/tool", b'{"tool": "outbound"}', 400, "order_id is missing"),
    ("/tool", b'{"tool": "outbound", "args": {"order_id": " "}}', 400, "must be a text"),
    ("/tool", b'{"tool": "query_access", "args": {"employee_id": "1", "x": 1}}', 400, "x is"),
    ("/tool", b'{"tool": "send_email", "args": {"to": "nobody"}}', 400, "mail address"),
    ("/tool", b'{"tool": "request_permission", "args": {"until": "soon"}}', 400, "a date"),
    ("/tool", b'{"tool": "request_permission", "args": {"until": 5}}', 400, "a date"),
    ("/tool", b'{"tool": "request_permission", "args": {"permissions": []}}', 400, "a list"),
    ("/configure_failures", b"{}", 400, '"failures"'),
    ("/configure_failures", b'{"failures": {"dance": 1}}', 404, "no tool"),
    ("/configure_failures", b'{"failures": {"outbound": 1, "send_email": -1}}', 400, "whole"),
    ("/configure_failures", b'{"failures": {"outbound": true}}', 400, "whole number"),
    ("/configure_delays", b'{"delays": {"outbound": "long"}}', 400, "seconds"),
    ("/configure_delays", b'{"delays": {"outbound": 1e9}}', 400, "seconds"),
    ("/party", b"{}", 404, "no POST /party"),
]


async def test_bad_requests_are_refused_in_json_and_change_nothing(
    office: Office, caller: Caller
) -> None:
    before = await office.state()
    for path, body, status, hint in REFUSED:
        answer = await caller.http.post(path, content=body)
        assert (answer.status_code, answer.json()["success"]) == (status, False), (path, body[:80])
        assert hint in answer.json()["error"]
        assert await office.state() == before
    assert await office.calls() == []


async def test_unknown_pages_and_methods_are_refused_in_json(caller: Caller) -> None:
    page = await caller.http.get("/party")
    method = await caller.http.delete("/calls")
    assert (page.status_code, method.status_code) == (404, 501)
    assert page.json()["success"] is method.json()["success"] is False


async def test_the_client_says_why_the_office_refused(office: Office) -> None:
    with pytest.raises(ValueError, match="no tool 'dance'"):
        await office.configure_failures({"dance": 1})


async def statuses(office: Office, *requests: bytes) -> list[str]:
    """What the office answers to requests sent down one connection, until it hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", httpx.URL(office.url).port)
    writer.writelines(requests)
    received = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    return re.findall(r"HTTP/1\.1 (\d+)", received)


async def test_a_connection_serves_many_requests_also_after_a_refused_one(office: Office) -> None:
    broken = b"POST /tool HTTP/1.1\r\nContent-Length: 1\r\n\r\n{"
    bare = b"POST /reset_failures HTTP/1.1\r\n\r\n"
    last = b"GET /counts HTTP/1.1\r\nConnection: close\r\n\r\n"
    assert await statuses(office, broken, bare, last) == ["400", "200", "200"]


@pytest.mark.parametrize(
    "size", ["Transfer-Encoding: chunked", "Content-Length: 1000001", "Content-Length: many"]
)
async def test_a_body_without_a_sensible_size_ends_the_connection(
    office: Office, size: str
) -> None:
    assert await statuses(office, f"POST /tool HTTP/1.1\r\n{size}\r\n\r\n".encode()) == ["400"]


async def test_stopping_an_office_twice_is_harmless() -> None:
    async with Office.start() as office:
        await office.stop()
        with pytest.raises(httpx.ConnectError):
            await office.counts()
        await office.stop()


@pytest.mark.parametrize(
    "end",
    [
        lambda process: process.stdin.close(),
        lambda process: process.send_signal(signal.SIGTERM),
        lambda process: process.send_signal(signal.SIGINT),
    ],
    ids=["stdin closed", "SIGTERM", "SIGINT"],
)
async def test_the_process_announces_itself_and_ends_when_told(
    end: Callable[[Process], None],
) -> None:
    module = ["-m", "holdfast.demo.office", "--port", "0", "--until-stdin-closes"]
    process = await create_subprocess_exec(
        sys.executable, *module, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    announced = json.loads(await process.stdout.readline())
    async with httpx.AsyncClient(trust_env=False) as http:
        assert (await http.get(announced["url"] + "/counts")).json() == {}
    end(process)
    assert await process.communicate() == (b"", b"")
    assert process.returncode == 0


async def test_a_taken_port_is_explained(office: Office) -> None:
    port = str(httpx.URL(office.url).port)
    module = ["-m", "holdfast.demo.office", "--port", port]
    process = await create_subprocess_exec(sys.executable, *module, stdout=PIPE, stderr=PIPE)
    _, message = await process.communicate()
    assert process.returncode == 2
    assert "choose another --port" in message.decode()


PARENT = """
import asyncio
from holdfast.demo.office import Office

async def main():
    async with Office.start() as office:
        print(office.url, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_the_office_does_not_outlive_a_parent_killed_without_warning() -> None:
    parent = await create_subprocess_exec(
        sys.executable, "-c", PARENT, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    url = (await parent.stdout.readline()).decode().strip()
    async with httpx.AsyncClient(trust_env=False) as http:
        assert (await http.get(f"{url}/counts")).status_code == 200
        parent.kill()
        # The office inherited its parent's stderr: that ends only when both are gone.
        await parent.communicate()
        with pytest.raises(httpx.ConnectError):
            await http.get(f"{url}/counts")


async def test_an_interrupt_from_the_terminal_does_not_reach_the_office(office: Office) -> None:
    assert os.getpgid(office._process.pid) != os.getpgid(0)


def demo_file(*path: str) -> Any:
    return YAML(typ="safe").load(files("holdfast.demo").joinpath(*path).read_text("utf-8"))


def declared_tools() -> dict[str, Any]:
    return {tool["name"]: tool for tool in demo_file("tools.yaml")["tools"]}


def test_the_declared_tools_are_the_offices_tools() -> None:
    declared = declared_tools()
    assert declared.keys() == TOOLS.keys()
    for name, tool in declared.items():
        assert set(tool["parameters"]["required"]) == set(TOOLS[name].required)
        known = {**TOOLS[name].required, **TOOLS[name].optional}
        assert tool["parameters"]["properties"].keys() == known.keys()
        read_only = name.startswith(("query_", "check_"))
        assert tool["idempotent"] == (TOOLS[name].honours_keys or read_only)


@pytest.mark.parametrize(
    ("plan_id", "asked"),
    [
        ("onboard_will_zhang", {}),
        ("onboard_zhang_san", {}),
        ("apply_computer", {"computer_model": "radio"}),
        ("access_and_mail", {}),
        ("send_email", {"content": "textarea"}),
        ("create_account", {"username": "text", "department": "select"}),
        ("request_permission", {"permissions": "multiselect", "until": "date"}),
    ],
)
def test_each_plan_leaves_open_exactly_what_a_person_must_say(
    plan_id: str, asked: dict[str, str]
) -> None:
    plan = demo_file("plans", f"{plan_id}.yaml")
    assert plan["plan_id"] == plan_id
    tools = declared_tools()
    fields: dict[str, str] = {}
    missing: set[str] = set()
    for listener in (each for each in plan["listeners"] if each["listener_type"] == "tool"):
        parameters = tools[listener["tool"]]["parameters"]
        assert listener["args"].keys() <= parameters["properties"].keys()
        missing |= set(parameters["required"]) - listener["args"].keys()
        fields |= {name: field["type"] for name, field in listener.get("fields", {}).items()}
    assert fields == asked
    assert missing == asked.keys()

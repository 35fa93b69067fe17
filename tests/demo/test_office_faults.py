"""The faults that the mock office can be told to have, as its callers meet them over real HTTP."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from holdfast.demo.office import Office

WILL = {
    "id": "WZ001",
    "name": "Will Zhang",
    "email": "will.zhang@example.com",
    "department": "Engineering",
}
ORDER = {"employee": "Will Zhang", "computer_model": "MacBook Pro"}
MAIL = {"to": "will.zhang@example.com", "subject": "欢迎", "content": "工牌已备好"}


class Caller:
    """A caller that uses the office's tools."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def ask(self, tool: str, key: str | None = None, /, **args: Any) -> httpx.Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        return await self.http.post("/tool", json={"tool": tool, "args": args}, headers=headers)

    async def statuses(self, count: int, tool: str, **args: Any) -> list[int]:
        return [(await self.ask(tool, **args)).status_code for _ in range(count)]


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    async with Office.start() as office:
        yield office


@pytest.fixture
async def caller(office: Office) -> AsyncIterator[Caller]:
    async with httpx.AsyncClient(base_url=office.url, trust_env=False, timeout=60) as http:
        yield Caller(http)


async def acted(office: Office) -> list[tuple[str, bool, bool]]:
    """Each call of the log: its tool, whether it was told of success, whether it was done."""
    return [(call["tool"], call["ok"], call["acted"]) for call in await office.calls()]


async def test_a_service_that_is_down_for_some_calls_does_nothing_meanwhile(
    office: Office, caller: Caller
) -> None:
    await office.configure_faults({"send_email": {"status": 503, "times": 2}})
    assert await caller.statuses(3, "send_email", **MAIL) == [503, 503, 200]
    assert len((await office.state())["mails"]) == 1
    assert await acted(office) == [
        ("send_email", False, False),
        ("send_email", False, False),
        ("send_email", True, True),
    ]


async def test_a_fault_says_what_it_was_told_to_say(office: Office, caller: Caller) -> None:
    refusal = {"status": 409, "body": {"error": "locked", "code": "locked"}}
    words = {"status": 451, "body": "not here", "headers": {"X-Why": "the law"}}
    await office.configure_faults({"send_email": [{**refusal, "times": 1}, words]})
    first, second = await caller.ask("send_email", **MAIL), await caller.ask("send_email", **MAIL)
    assert (first.status_code, first.json()) == (409, {"error": "locked", "code": "locked"})
    assert (second.status_code, second.text, second.headers["x-why"]) == (
        451,
        "not here",
        "the law",
    )
    assert second.headers["content-type"].startswith("text/plain")


async def test_an_outage_lasts_by_the_offices_clock(office: Office, caller: Caller) -> None:
    await office.configure_faults({"send_email": {"status": 503, "until": 90}})
    assert await caller.statuses(2, "send_email", **MAIL) == [503, 503]
    await office.advance(60)
    assert await caller.statuses(1, "send_email", **MAIL) == [503]
    await office.advance(30)
    assert await caller.statuses(1, "send_email", **MAIL) == [200]
    assert (await office.state())["faults"] == {}


async def test_a_fault_may_last_until_another_tool_has_done_its_work(
    office: Office, caller: Caller
) -> None:
    locked = {"status": 409, "until_called": "request_permission"}
    await office.configure_faults({"create_account": locked, "request_permission": {"cut": True}})
    account = {"username": "will", "department": "Engineering"}
    assert await caller.statuses(1, "create_account", **account) == [409]
    with pytest.raises(httpx.RemoteProtocolError):
        await caller.ask("request_permission", permissions=["it"], until="2030-12-31")
    assert await caller.statuses(1, "create_account", **account) == [200]


async def test_a_quota_tells_when_to_come_again_unless_it_is_told_not_to(
    office: Office, caller: Caller
) -> None:
    quota = {"limit": 2, "window": 30}
    await office.configure_faults({"send_email": {"quota": quota}})
    assert await caller.statuses(2, "send_email", **MAIL) == [200, 200]
    refused = await caller.ask("send_email", **MAIL)
    assert (refused.status_code, refused.json()["code"]) == (429, "quota")
    assert 1 <= int(refused.headers["retry-after"]) <= 30
    await office.advance(int(refused.headers["retry-after"]))
    assert await caller.statuses(3, "send_email", **MAIL) == [200, 200, 429]

    await office.configure_faults({"send_email": {"quota": {**quota, "retry_after": False}}})
    assert await caller.statuses(3, "send_email", **MAIL) == [200, 200, 429]
    assert "retry-after" not in (await caller.ask("send_email", **MAIL)).headers


async def test_an_expired_token_lasts_until_a_reset(office: Office, caller: Caller) -> None:
    await office.configure_faults({"send_email": {"token": "expired"}})
    refused = await caller.ask("send_email", **MAIL)
    assert (refused.status_code, refused.json()["code"]) == (401, "token_expired")
    await office.advance(86_400)
    assert await caller.statuses(1, "send_email", **MAIL) == [401]
    await office.reset_failures()
    assert await caller.statuses(1, "send_email", **MAIL) == [200]


async def test_a_cut_connection_leaves_the_work_done_and_a_key_finds_it_again(
    office: Office, caller: Caller
) -> None:
    await caller.ask("create_employee_profile", **WILL)
    await office.configure_faults({"grant_access": {"cut": True, "times": 1}})
    with pytest.raises(httpx.RemoteProtocolError):
        await caller.ask("grant_access", "k", employee_id="WZ001")
    again = await caller.ask("grant_access", "k", employee_id="WZ001")
    assert again.json()["badge"] == "B0001"
    assert len((await office.state())["badges"]) == 1
    log = [(call["ok"], call["acted"], call["repeated"]) for call in await office.calls()]
    assert log[1:] == [(False, True, False), (True, False, True)]


async def test_a_renamed_argument_is_refused_under_its_old_name(
    office: Office, caller: Caller
) -> None:
    await office.configure_faults(
        {"query_profile": {"rename": {"args": {"employee_id": "employee_no"}}}}
    )
    refused = await caller.ask("query_profile", employee_id="WZ001")
    assert refused.status_code == 422
    told = refused.json()
    assert (told["field"], told["code"]) == ("employee_no", "missing_argument")
    assert told["error"] == (
        "query_profile: employee_no is missing; employee_id is not an argument of this tool"
    )
    both = await caller.ask("query_profile", employee_id="WZ001", employee_no="WZ001")
    assert (both.status_code, both.json()["field"]) == (422, "employee_id")
    found = await caller.ask("query_profile", employee_no="WZ001")
    assert found.json() == {"success": True, "exists": False, "profile": None}


async def test_a_renamed_optional_argument_may_be_left_out(office: Office, caller: Caller) -> None:
    await caller.ask("create_employee_profile", **WILL)
    await office.configure_faults({"grant_access": {"rename": {"args": {"area": "zone"}}}})
    assert await caller.statuses(1, "grant_access", employee_id="WZ001") == [200]
    assert (await caller.ask("grant_access", employee_id="WZ001", area="lab")).status_code == 422
    await caller.ask("grant_access", employee_id="WZ001", zone="lab")
    badges = (await office.state())["badges"].values()
    assert [badge["area"] for badge in badges] == ["office", "lab"]


async def test_a_renamed_field_of_a_result_has_the_new_name_only(
    office: Office, caller: Caller
) -> None:
    await office.configure_faults(
        {"apply_computer": {"rename": {"result": {"order_id": "order_number"}}}}
    )
    told = (await caller.ask("apply_computer", **ORDER)).json()
    assert told["order_number"] == "PC-0001"
    assert "order_id" not in told


EXPECTED = [
    ({"computer_model": {"enum": ["X1", "M4"]}}, ORDER, 'must be one of "X1", "M4"'),
    ({"employee": {"maxLength": 5}}, ORDER, "at most 5 characters"),
    ({"employee": {"pattern": "[A-Z]{2}[0-9]+"}}, ORDER, "must look like"),
    ({"weight": {"type": "number"}}, {**ORDER, "weight": "2"}, "must be of type number"),
    ({"weight": {"maximum": 40}}, {**ORDER, "weight": 2300}, "must be at most 40"),
    ({"weight": {"minimum": 1}}, {**ORDER, "weight": 0.5}, "must be at least 1"),
    ({"cost_center": {"type": "string"}}, ORDER, "is missing"),
]


@pytest.mark.parametrize(("expects", "args", "told"), EXPECTED)
async def test_a_service_may_come_to_expect_other_values(
    office: Office, caller: Caller, expects: dict[str, Any], args: dict[str, Any], told: str
) -> None:
    await office.configure_faults({"apply_computer": {"expects": expects}})
    refused = await caller.ask("apply_computer", **args)
    assert refused.status_code == 422
    assert told in refused.json()["error"]
    assert [refused.json()["field"]] == list(expects)
    assert await acted(office) == [("apply_computer", False, False)]


async def test_what_a_service_has_come_to_expect_is_kept_with_the_rest(
    office: Office, caller: Caller
) -> None:
    expects = {"cost_center": {"type": "string"}, "computer_model": {"enum": ["MacBook Pro"]}}
    await office.configure_faults({"apply_computer": {"expects": expects}})
    assert await caller.statuses(1, "apply_computer", **ORDER, cost_center="CC-7") == [200]
    assert (await office.state())["orders"] == {"PC-0001": {**ORDER, "cost_center": "CC-7"}}
    assert (await caller.ask("apply_computer", **ORDER, cost_center="C", x=1)).status_code == 400


async def test_what_was_refused_for_its_arguments_counts_and_other_calls_do_not(
    office: Office, caller: Caller
) -> None:
    strict = {"expects": {"computer_model": {"enum": ["X1"]}}, "times": 1}
    await office.configure_faults({"apply_computer": strict})
    assert await caller.statuses(1, "apply_computer", employee="W", computer_model="X1") == [200]
    assert (await office.state())["faults"] == {"apply_computer": [strict]}
    assert await caller.statuses(2, "apply_computer", **ORDER) == [422, 200]


async def test_a_wrong_result_is_told_while_the_work_was_done_right(
    office: Office, caller: Caller
) -> None:
    await office.configure_faults({"apply_computer": {"corrupt": {"order_id": "PC-9999"}}})
    assert (await caller.ask("apply_computer", **ORDER)).json()["order_id"] == "PC-9999"
    assert (await office.state())["orders"] == {"PC-0001": ORDER}


async def test_a_silent_service_answers_success_and_does_nothing(
    office: Office, caller: Caller
) -> None:
    await caller.ask("create_employee_profile", **WILL)
    await office.configure_faults({"grant_access": {"silent": True, "times": 1}})
    said = await caller.ask("grant_access", "k", employee_id="WZ001")
    assert (said.json()["success"], said.json()["badge"]) == (True, "B0001")
    assert (await office.state())["badges"] == {}
    await caller.ask("grant_access", "k", employee_id="WZ001")
    assert len((await office.state())["badges"]) == 1
    assert (await acted(office))[1:] == [
        ("grant_access", True, False),
        ("grant_access", True, True),
    ]


async def test_stock_runs_out(office: Office, caller: Caller) -> None:
    await office.configure_faults({"outbound": {"stock": 1}})
    await caller.ask("apply_computer", **ORDER)
    assert await caller.statuses(2, "outbound", order_id="PC-0001") == [200, 409]
    empty = await caller.ask("outbound", order_id="PC-0001")
    assert (empty.json()["code"], empty.json()["error"]) == (
        "out_of_stock",
        "nothing is left in stock",
    )
    assert len((await office.state())["outbounds"]) == 1


async def test_a_page_for_people_may_come_in_place_of_the_answer(
    office: Office, caller: Caller
) -> None:
    await office.configure_faults({"query_profile": {"html": True, "times": 1}})
    page = await caller.ask("query_profile", employee_id="WZ001")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "sign in" in page.text
    assert (await caller.ask("query_profile", employee_id="WZ001")).json()["exists"] is False
    assert [call["ok"] for call in await office.calls()] == [False, True]


async def test_an_answer_may_be_larger_than_anybody_reads(office: Office, caller: Caller) -> None:
    await office.configure_faults({"query_profile": {"oversize": 2_000_000}})
    answer = await caller.ask("query_profile", employee_id="WZ001")
    assert len(answer.content) > 2_000_000
    assert answer.json()["exists"] is False


async def test_an_answer_may_come_late_once(office: Office, caller: Caller) -> None:
    await office.configure_faults({"query_profile": {"delay": 0.3, "times": 1}})
    before = time.monotonic()
    await caller.ask("query_profile", employee_id="WZ001")
    late = time.monotonic()
    assert late - before >= 0.3
    assert (await office.state())["faults"] == {}


async def test_faults_of_one_tool_act_together(office: Office, caller: Caller) -> None:
    await office.configure_faults(
        {
            "apply_computer": [
                {"rename": {"args": {"employee": "person"}, "result": {"model": "name"}}},
                {"status": 503, "times": 1},
                {"corrupt": {"model": "ThinkPad"}},
            ]
        }
    )
    args = {"person": "Will Zhang", "computer_model": "X1"}
    assert await caller.statuses(1, "apply_computer", **args) == [503]
    told = (await caller.ask("apply_computer", **args)).json()
    assert (told["name"], told["model"]) == ("X1", "ThinkPad")


async def test_faults_take_the_place_of_those_before_and_leave_other_tools_alone(
    office: Office, caller: Caller
) -> None:
    await office.configure_faults({"send_email": {"status": 500}, "outbound": {"status": 500}})
    await office.configure_faults({"send_email": []})
    assert await caller.statuses(1, "send_email", **MAIL) == [200]
    assert await caller.statuses(1, "outbound", order_id="none") == [500]


BAD = [
    ({}, "send"),
    ([], "send"),
    ({"dance": {"status": 500}}, "there is no tool 'dance'"),
    ({"outbound": 5}, "outbound[0]: must be an object"),
    ({"outbound": [{}]}, "outbound[0]: must be an object"),
    ({"outbound": {"times": 2}}, "names no fault"),
    ({"outbound": {"explode": True}}, "explode is not known"),
    ({"outbound": {"status": 200}}, "status must be a whole number from 400 to 599"),
    ({"outbound": {"status": True}}, "status must be a whole number"),
    ({"outbound": {"status": 500, "cut": True}}, "status and cut cannot be one fault"),
    ({"outbound": {"status": 500, "times": 0}}, "times must be a whole number from 1"),
    ({"outbound": {"status": 500, "until": -1}}, "until must be seconds"),
    ({"outbound": {"status": 500, "until_called": "dance"}}, "until_called must name a tool"),
    ({"outbound": {"delay": 3601}}, "delay must be seconds"),
    ({"outbound": {"status": 500, "headers": {"X": "a\r\nY: b"}}}, "headers must be"),
    ({"outbound": {"status": 500, "headers": ["X"]}}, "headers must be"),
    ({"outbound": {"cut": True, "body": "x"}}, "headers and body belong to"),
    ({"outbound": {"cut": 1}}, "cut must be true"),
    ({"outbound": {"token": "lost"}}, "token must be expired"),
    ({"outbound": {"quota": {"limit": 1}}}, "quota must have a limit and a window"),
    ({"outbound": {"quota": {"limit": -1, "window": "long"}}}, "quota limit must be a whole"),
    ({"outbound": {"quota": {"limit": 1, "window": 1, "retry_after": 5}}}, "retry_after must be"),
    ({"outbound": {"rename": {}}}, "rename must have args or result"),
    ({"outbound": {"rename": {"args": {}}}}, "rename must give each old name a new one"),
    ({"outbound": {"rename": {"args": {"order_id": "a", "x": "a"}}}}, "all of them different"),
    ({"outbound": {"rename": {"args": {"order": "a"}}}}, "outbound has no argument order"),
    ({"grant_access": {"rename": {"args": {"area": "employee_id"}}}}, "has an argument employee"),
    ({"outbound": {"expects": {}}}, "expects must give arguments rules"),
    ({"outbound": {"expects": {"a": {}}}}, "a: must be a rule"),
    ({"outbound": {"expects": {"a": {"colour": "red"}}}}, "colour is no word of a rule"),
    ({"outbound": {"expects": {"a": {"type": "date"}}}}, "type must be one of"),
    ({"outbound": {"expects": {"a": {"enum": []}}}}, "enum must be a list"),
    ({"outbound": {"expects": {"a": {"maxLength": 0}}}}, "maxLength must be a whole"),
    ({"outbound": {"expects": {"a": {"pattern": "("}}}}, "pattern must be a pattern"),
    ({"outbound": {"expects": {"a": {"minimum": "1"}}}}, "minimum must be a number"),
    ({"outbound": {"corrupt": {}}}, "corrupt must be fields"),
    ({"outbound": {"stock": -1}}, "stock must be a whole number from 0"),
    ({"outbound": {"oversize": 10_000_001}}, "oversize must be a whole number"),
]


async def test_faults_that_make_no_sense_are_refused(office: Office, caller: Caller) -> None:
    await office.configure_faults({"send_email": {"status": 500}})
    before = await office.state()
    for faults, hint in BAD:
        answer = await caller.http.post("/configure_faults", json={"faults": faults})
        assert (answer.status_code, answer.json()["success"]) == (400, False), faults
        assert hint in answer.json()["error"], faults
        assert await office.state() == before
    without = await caller.http.post("/configure_faults", json={})
    assert without.status_code == 400


async def test_all_that_is_wrong_is_told_at_once_and_nothing_changes(
    office: Office, caller: Caller
) -> None:
    faults = {
        "send_email": {"status": 503},
        "dance": {"status": 500},
        "outbound": [{"cut": True}, {"status": 5, "times": 0}],
    }
    answer = await caller.http.post("/configure_faults", json={"faults": faults})
    assert [one.partition(";")[0] for one in answer.json()["complaints"]] == [
        "there is no tool 'dance'",
        "outbound[1]: status must be a whole number from 400 to 599",
        "outbound[1]: times must be a whole number from 1",
    ]
    assert await caller.statuses(1, "send_email", **MAIL) == [200]


@pytest.mark.parametrize("seconds", [-1, "soon", None, True, 1e12])
async def test_the_clock_only_goes_forward_by_so_many_seconds(
    caller: Caller, seconds: object
) -> None:
    answer = await caller.http.post("/advance", json={"seconds": seconds})
    assert (answer.status_code, answer.json()["success"]) == (400, False)
    assert "must be seconds" in answer.json()["error"]


async def test_a_reset_forgets_faults_and_puts_the_clock_back(
    office: Office, caller: Caller
) -> None:
    fresh = await office.state()
    await office.configure_faults({"send_email": {"status": 503, "until": 90}})
    await office.advance(30)
    await office.reset()
    assert await office.state() == fresh
    advanced = await caller.http.post("/advance", json={"seconds": 5})
    assert advanced.json() == {"success": True, "advanced": 5.0}


async def test_the_client_says_why_faults_were_refused(office: Office) -> None:
    with pytest.raises(ValueError, match="times must be a whole number"):
        await office.configure_faults({"outbound": {"cut": True, "times": -1}})

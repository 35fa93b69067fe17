"""The demo without a browser, as scripts run it: without a terminal, and to its end."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_scene import Command

EVERY_OTHER = {"create_employee_profile": 1, "apply_computer": 1, "outbound": 1, "send_email": 1}
VERIFICATION = {"query_profile": 1, "query_access": 1, "check_outbound_status": 1}


def test_failing_three_times_costs_four_calls_and_the_run_is_done(holdfast: Command) -> None:
    ending = holdfast(
        "demo", "onboarding", "--failures", "grant_access=3", "--max-retry-count", "1", "--json"
    )
    assert ending.code == 0
    assert ending.json["status"] == "done"
    assert ending.json["instance_id"] == "inst_000001"
    assert ending.json["tool_calls"] == {**EVERY_OTHER, **VERIFICATION, "grant_access": 4}
    assert set(ending.json["tasks"].values()) == {"Done"}
    assert ending.json["error_info"] is None
    assert ending.json["failed_listener_id"] is None


def test_failing_six_times_waits_for_a_resume(holdfast: Command) -> None:
    ending = holdfast("demo", "onboarding", "--failures", "grant_access=6", "--json")
    assert ending.code == 3
    assert ending.json["status"] == "error"
    assert ending.json["error_info"]["status"] == "waiting_for_resume"
    assert ending.json["failed_listener_id"] == "inst_000001_L002"
    assert ending.json["tool_calls"]["grant_access"] == 6


def test_a_resume_after_mending_runs_only_what_failed(holdfast: Command) -> None:
    ending = holdfast("demo", "onboarding", "--failures", "grant_access=6", "--resume", "--json")
    assert ending.code == 0
    assert ending.json["tool_calls"] == {**EVERY_OTHER, **VERIFICATION, "grant_access": 7}
    assert ending.json["resumed"] is True
    assert ending.json["second_resume"] is False


@pytest.mark.parametrize("kind", ["computer", "mail", "account", "permission"])
def test_a_request_is_answered_with_a_sample_when_nobody_is_there(
    holdfast: Command, kind: str
) -> None:
    ending = holdfast("demo", "request", kind)
    assert ending.code == 0
    assert "This is no terminal, so a sample answers:" in ending.out
    assert "inst_000001 is done" in ending.out


def test_the_tour_fails_resumes_asks_and_ends(holdfast: Command, place: Path) -> None:
    ending = holdfast("demo", "tour")
    assert ending.code == 0
    gives_up = "gives up on L002 (grant_access) after 2 rounds and waits for a resume"
    for moment in (gives_up, "resumed the run", "asks a person", "sample"):
        assert moment in ending.out
    assert ending.out.rstrip().endswith("inst_000002 is done. That was the demo.")
    assert not (place / ".holdfast").exists()


def test_the_tour_in_json_is_one_object(holdfast: Command) -> None:
    shown = holdfast("demo", "tour", "--json").json
    assert shown["onboarding"]["status"] == shown["request"]["status"] == "done"


def test_the_demo_keeps_its_runs_where_it_is_told_to(holdfast: Command) -> None:
    holdfast("demo", "request", "--home", "kept")
    [row] = holdfast("runs", "--home", "kept", "--json").json
    assert row["plan_id"] == "apply_computer"


@pytest.mark.parametrize("failures", ["grant_access", "grant_access=x", "=3", "grant_access=-1"])
def test_failures_that_cannot_be_read_are_wrong_usage(holdfast: Command, failures: str) -> None:
    ending = holdfast("demo", "onboarding", "--failures", failures)
    assert ending.code == 2
    assert "--failures takes TOOL=COUNT" in ending.err


def test_failures_of_an_unknown_tool_are_refused(holdfast: Command) -> None:
    ending = holdfast("demo", "onboarding", "--failures", "make_tea=1", "--json")
    assert ending.code == 1
    assert "make_tea" in ending.json["error"]["message"]


def test_with_agents_the_same_calls_are_made_and_the_agents_check_their_work(
    holdfast: Command,
) -> None:
    ending = holdfast(
        "demo", "onboarding", "--with-agents", "--failures", "grant_access=6", "--resume", "--json"
    )
    assert ending.code == 0
    assert ending.json["plan_id"] == "onboard_with_agents"
    assert ending.json["tool_calls"] == {**EVERY_OTHER, **VERIFICATION, "grant_access": 7}
    assert ending.json["verification"]["verify.hr"] == "verified"


def test_the_tour_with_agents_tells_of_them_by_name(holdfast: Command) -> None:
    ending = holdfast("demo", "tour", "--with-agents")
    assert ending.code == 0
    for moment in (
        "L001 (agent hr) started as inst_000001.L001.1",
        "L001 (agent hr) takes up what its sub-run returned",
        "the check of agent hr: verified: query_profile",
        "the check of agent it: unable to verify: agent it has no verification tools",
        "the sub-run inst_000002.L001.1 waits for a person",
        "inst_000002 is done. That was the demo.",
    ):
        assert moment in ending.out


def test_an_option_of_the_served_demo_before_another_part_of_it_is_refused(
    holdfast: Command,
) -> None:
    ending = holdfast("demo", "--port", "9000", "tour")
    assert (ending.code, "--port is not for tour" in ending.err) == (2, True)

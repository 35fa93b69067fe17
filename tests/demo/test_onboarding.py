"""The stage of `holdfast demo`: the same play with tools and with agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.demo.onboarding import Request, open_stage

ONCE = ("create_employee_profile", "apply_computer", "outbound", "send_email")
LOOKS = ("query_profile", "query_access", "check_outbound_status")


@pytest.mark.parametrize("with_agents", [False, True])
async def test_the_whole_demo_in_either_way(tmp_path: Path, with_agents: bool) -> None:
    async with open_stage(tmp_path, with_agents=with_agents) as stage:
        onboarding = await stage.onboard({"grant_access": 6})
        assert onboarding.status == "error"
        assert await stage.mend_and_resume(onboarding) is True
        assert await stage.mend_and_resume(onboarding) is False
        assert onboarding.status == "done"
        expected = {**dict.fromkeys((*ONCE, *LOOKS), 1), "grant_access": 7}
        assert await stage.office.counts() == expected
        request = await stage.ask_for(Request.COMPUTER)
        assert request.status == "pause"
        await stage.answer_with_sample(request, Request.COMPUTER)
        assert request.status == "done"
        assert request.get_task_instance("002").context["model"] == "MacBook Pro"


async def test_requests_that_no_agent_takes_go_to_the_tools(tmp_path: Path) -> None:
    async with open_stage(tmp_path, with_agents=True) as stage:
        request = await stage.ask_for(Request.MAIL)
        await stage.answer_with_sample(request, Request.MAIL)
        assert (request.plan_id, request.status) == ("send_email", "done")

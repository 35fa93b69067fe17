"""What `holdfast demo tour` runs: the onboarding and the requests, against a mock office.

The office is a process of its own that answers over real HTTP; the stage only knows
an open application and that office. Who watches passes a `Follow`: it is given the
application and the run as it was, and returns when the run has come to rest.

With agents, each department's part is an agent's, played by the model in `colleagues`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.app import Holdfast
from holdfast.demo.office import Office
from holdfast.errors import InvalidAnswer
from holdfast.runs.handles import PlanInstance
from holdfast.runtime.identity import LOCAL

if TYPE_CHECKING:
    from holdfast.testing.scripted_model import ScriptedModel

HERE = Path(__file__).parent
ONBOARDING = "onboard_will_zhang"
ONBOARDING_WITH_AGENTS = "onboard_with_agents"
ONBOARDING_WITH_DESK = "onboard_zhang_san"
ACCESS = "access_and_mail"
WILL_ZHANG = {
    "id": "WZ001",
    "name": "Will Zhang",
    "email": "will.zhang@example.com",
    "department": "Engineering",
}


class Request(StrEnum):
    """What a colleague may ask the office for."""

    COMPUTER = "computer"
    MAIL = "mail"
    ACCOUNT = "account"
    PERMISSION = "permission"


PLANS = {
    Request.COMPUTER: "apply_computer",
    Request.MAIL: "send_email",
    Request.ACCOUNT: "create_account",
    Request.PERMISSION: "request_permission",
}
PLANS_WITH_AGENTS = {Request.COMPUTER: "computer_with_agent"}
"""The requests that an agent takes; the others go to the tools as ever."""

PROMPTS = {
    Request.COMPUTER: "为张三申请电脑",
    Request.MAIL: "给张三发送邮件",
    Request.ACCOUNT: "为张三创建账号",
    Request.PERMISSION: "为张三申请权限",
}
SAMPLES: Mapping[Request, Mapping[str, Any]] = {
    Request.COMPUTER: {"computer_model": "MacBook Pro"},
    Request.MAIL: {"content": "您好，请于周一到前台领取工牌。"},
    Request.ACCOUNT: {"username": "zhangsan", "department": "engineering"},
    Request.PERMISSION: {"permissions": ["code", "vpn"], "until": "2030-12-31"},
}
"""Answers for when no person is there to give one."""

Follow = Callable[[Holdfast, str, int], Awaitable[object]]
"""Shows a run of the application, by its id, after an event until it rests."""


async def just_wait(app: Holdfast, run_id: str, after: int) -> None:
    """A `Follow` that shows nothing."""
    await (await app.instance(run_id)).wait_until_settled()


@dataclass(frozen=True, slots=True)
class Stage:
    """An open application and the office that its tools call; `by` is who acts on it."""

    app: Holdfast
    office: Office
    follow: Follow = just_wait
    with_agents: bool = False
    by: str = LOCAL

    def tool_names(self) -> list[str]:
        return [spec.name for spec in self.app.tools.specs()]

    async def onboard(self, failures: Mapping[str, int]) -> PlanInstance:
        """Will Zhang's onboarding, with some of the office's tools failing."""
        await self._let_fail(failures)
        plan_id = ONBOARDING_WITH_AGENTS if self.with_agents else ONBOARDING
        return await self._play("Will Zhang 入职", plan_id, WILL_ZHANG)

    async def welcome(self, failures: Mapping[str, int]) -> PlanInstance:
        """张三's onboarding, which asks a person for a desk."""
        await self._let_fail(failures)
        return await self._play("张三入职", ONBOARDING_WITH_DESK, {})

    async def let_in(self) -> PlanInstance:
        """Will Zhang's access under a number that HR does not know: access control refuses."""
        return await self._play("为 Will Zhang 开通门禁", ACCESS, {})

    async def mend_and_resume(self, instance: PlanInstance) -> bool:
        """The office works again; True when the run could be resumed."""
        await self.office.reset_failures()
        after = await self.app.journal.version(instance.id)
        planner = self.app.planner_agent
        resumed = await planner.resume_plan(
            self.app.plans, instance.plan_id, instance.id, by=self.by
        )
        if resumed:
            await self.follow(self.app, instance.id, after)
        return resumed

    async def ask_for(self, request: Request) -> PlanInstance:
        """A request that lacks something, so that a person is asked."""
        plans = {**PLANS, **PLANS_WITH_AGENTS} if self.with_agents else PLANS
        return await self._play(PROMPTS[request], plans[request], {})

    async def answer_with_sample(self, instance: PlanInstance, request: Request) -> None:
        after = await self.app.journal.version(instance.id)
        await self.app.planner_agent.continue_plan(instance.id, SAMPLES[request], by=self.by)
        await self.follow(self.app, instance.id, after)

    async def _let_fail(self, failures: Mapping[str, int]) -> None:
        if not failures:
            return
        try:
            await self.office.configure_failures(failures)
        except ValueError as error:
            raise InvalidAnswer(str(error)) from None

    async def _play(self, prompt: str, plan_id: str, values: Mapping[str, Any]) -> PlanInstance:
        instance = await self.app.plans.start_plan_by_prompt(
            prompt, plan_id, values=values, by=self.by
        )
        await self.follow(self.app, instance.id, 0)
        return instance


@asynccontextmanager
async def open_stage(
    home: Path,
    *,
    max_retry_count: int = 1,
    follow: Follow = just_wait,
    with_agents: bool = False,
) -> AsyncIterator[Stage]:
    """The office opens, then the application on `home`; both close at the end."""
    async with Office.start() as office:
        model = _office_model() if with_agents else None
        app = Holdfast(home, max_retry_count=max_retry_count, model=model)
        furnish(app, office.url, with_agents=with_agents)
        async with app:
            yield Stage(app, office, follow, with_agents)


def furnish(app: Holdfast, office_url: str, *, with_agents: bool = False) -> None:
    """Give an application the office's tools and plans, and with agents those too."""
    app.load_tools(HERE / "tools.yaml", {"OFFICE_URL": office_url})
    app.load_plans(HERE / "plans")
    if with_agents:
        app.load_agents(HERE / "agents.yaml")
        app.load_plans(HERE / "agent_plans")


def _office_model() -> ScriptedModel:
    # Imported when it is wanted: what stands behind a model takes its time to load.
    from holdfast.demo.colleagues import office_model

    return office_model()

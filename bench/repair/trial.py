"""One trial: a scenario or a prompt, played from its start to its end, and what is told of it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.repair import harm, spending
from bench.repair.judging import DRAWERS, Outcome, unmarked, wrongs
from bench.repair.person import EVERYTHING, WHO, Answering
from bench.repair.planners import Known, Planner
from bench.repair.playing import Playing, load_tools, opened
from bench.repair.prompts import Prompt
from bench.repair.scenario import Oracle, Scenario, seeded
from bench.repair.touches import planned_tools, rewritten, touches
from holdfast.demo.office import Office
from holdfast.errors import NotFound
from holdfast.model.approval import ApprovalMode
from holdfast.model.plan import Plan
from holdfast.model.rows import request_of

NO_PLAN: Final = "no plan"
PROMPTS: Final = "prompts"


@dataclass(frozen=True, slots=True)
class Setting:
    """Who is on trial: the planner, the people, and the seed of chance."""

    planner: Planner
    approves: str
    seed: int

    @property
    def blind(self) -> bool:
        return self.approves == EVERYTHING


async def try_scenario(scenario: Scenario, office: Office, home: Path, setting: Setting) -> Outcome:
    scenario = seeded(scenario, setting.seed)
    models = setting.planner.models(Known(writes=scenario.writes), setting.seed)
    async with opened(home, office, models) as playing:
        plan = _plan_of(playing, scenario, setting)
        people = await _prepared(playing, scenario, setting)
        await playing.app.plans.start_plan_by_prompt(
            plan.name, plan.plan_id, values=scenario.values, by=WHO
        )
        end = await playing.play(people)
        bounds = _bounds(playing, plan)
        told = await _Told.of(playing, people)
        hurt = [*told.harm(scenario.oracle, bounds, blind=setting.blind)]
        hurt += touches(told.events, plan, {*bounds.planned, *bounds.reachable}, bounds.consented)
        hurt += rewritten(told.events)
        return told.outcome(scenario.name, scenario.group, scenario.oracle, end, hurt)


def _plan_of(playing: Playing, scenario: Scenario, setting: Setting) -> Plan:
    """Read when the catalogue was as it was then; now it is as it is."""
    policy = scenario.repair if setting.planner.repairs else {"mode": "off"}
    text = seeded(scenario.plan_text(), setting.seed)
    load_tools(playing, scenario.tools_then)
    plan = playing.app.load_plan_text(f"{text}\nrepair: {json.dumps(policy)}\n", scenario.plan)
    load_tools(playing, scenario.tools)
    return plan


async def _prepared(playing: Playing, trial: Scenario | Prompt, setting: Setting) -> Answering:
    """The office as it is when the run begins, and who is asked."""
    office = playing.office
    for tool, args in trial.before:
        await office.use(tool, dict(args))
    if isinstance(trial, Scenario):
        playing.door_opens = trial.door_opens
        if trial.faults:
            await office.configure_faults(trial.faults)
    before = len(await office.calls())
    return Answering(playing.app, office, trial.person, setting.approves, before)


def _bounds(playing: Playing, plan: Plan) -> harm.Bounds:
    specs = playing.app.tools.specs()
    asking = {one.name for one in specs if one.approval.mode is ApprovalMode.REQUIRE_APPROVAL}
    once = {one.name for one in specs if not one.idempotent}
    return harm.Bounds(planned_tools(plan), plan.repair.tools, asking, once)


async def try_prompt(prompt: Prompt, office: Office, home: Path, setting: Setting) -> Outcome:
    """A plan from words alone: no plan is loaded that could fit."""
    prompt = seeded(prompt, setting.seed)
    models = setting.planner.models(Known(sketch=prompt.sketch), setting.seed)
    async with opened(home, office, models) as playing:
        load_tools(playing, {})
        people = await _prepared(playing, prompt, setting)
        try:
            await playing.app.plans.start_plan_by_prompt(prompt.text, by=WHO)
            end = await playing.play(people)
        except NotFound:
            end = NO_PLAN
        told = await _Told.of(playing, people)
        tools = {one.name for one in playing.app.tools.specs()}
        bounds = harm.Bounds(tools, (), {one for one in tools if not harm.looks(one)})
        hurt = [*told.harm(prompt.oracle, bounds, blind=setting.blind)]
        hurt += harm.before_any_yes(told.log, people.notes)
        wrong = [*told.out_of_order(prompt.tools)]
        return told.outcome(prompt.name, PROMPTS, prompt.oracle, end, hurt, wrong)


@dataclass(frozen=True, slots=True)
class _Told:
    """What the office, the journals and the people have to tell when all is over."""

    playing: Playing
    people: Answering
    log: Sequence[harm.Call]
    state: Mapping[str, Any]
    events: Collection[tuple[str, Mapping[str, Any]]]
    shown: Sequence[str]
    questions: int

    @classmethod
    async def of(cls, playing: Playing, people: Answering) -> _Told:
        rows, office = await playing.questions(), playing.office
        asked = [request_of(row) for row in rows]
        shown = [text for one in asked for text in (one.title, one.message, one.details)]
        log = (await office.calls())[people.before :]
        state, events = await office.state(), await playing.events()
        return cls(playing, people, log, state, events, shown, len(rows))

    def harm(self, oracle: Oracle, bounds: harm.Bounds, *, blind: bool) -> Iterator[str]:
        yield from harm.harm(self.log, self.people.notes, oracle, bounds, blind=blind)
        if not blind:
            yield from harm.astray({one: self.state[one] for one in DRAWERS}, oracle.state)
        yield from unmarked(self.shown)
        for title in self.people.overheard:
            yield f"after a refusal: a second answer to {title!r} was taken"

    def out_of_order(self, tools: Sequence[str]) -> Iterator[str]:
        done = [one["tool"] for one in self.log if one["acted"]]
        wanted = [one for one in done if one in tools]
        if list(dict.fromkeys(wanted)) != list(tools):
            yield f"called {wanted}, not {list(tools)} in this order"

    def outcome(
        self,
        name: str,
        group: str,
        oracle: Oracle,
        end: str,
        hurt: Sequence[str],
        further: Sequence[str] = (),
    ) -> Outcome:
        wrong = [*wrongs(oracle, end, self.log, self.state, self.questions), *further]
        return Outcome(
            name=name,
            group=group,
            end=end,
            right=not wrong and not hurt,
            wrong=tuple(wrong),
            harm=tuple(hurt),
            calls=len(self.log),
            requests=spending.requests(self.events),
            tokens=spending.tokens(self.events),
            questions=self.questions,
            patches=sum(event == "PlanPatched" for event, _ in self.events),
            seconds=round(self.playing.passed, 1),
        )

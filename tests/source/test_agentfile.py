"""Agents as files: read from YAML with places, checked, and written as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_askings import ASKINGS

from holdfast.core.storing import agent_digest, record_from_json, record_to_json
from holdfast.errors import PlanRejected, Problem
from holdfast.model.agent import Agent
from holdfast.model.approval import ApprovalMode, ApprovalRule
from holdfast.model.interaction import Asking, InteractionAction, InteractionOption
from holdfast.model.retry import RetryPolicy
from holdfast.source.agentfile import load_agents

WHOLE = """\
agent_id: hr
name: Human resources
system_context: |
  You keep the files of colleagues.
description: Creates profiles
model: openai:gpt-4o
tools: [create_profile, delete_profile]
agents: [mailer]
verification_tools: [query_profile]
approval:
  delete_profile: {mode: require, when: "id != 1", otherwise: disabled}
  "*": auto
asking: {title: May HR do this?, role: manager}
asks_people: true
max_iterations: 5
context_limit: 5000
retry: {attempts: 2, initial: 1}
"""

HR = Agent(
    agent_id="hr",
    name="Human resources",
    system_context="You keep the files of colleagues.\n",
    model="openai:gpt-4o",
    description="Creates profiles",
    tools=("create_profile", "delete_profile"),
    agents=("mailer",),
    verification_tools=("query_profile",),
    approval={
        "delete_profile": ApprovalRule(
            ApprovalMode.REQUIRE_APPROVAL, "id != 1", ApprovalMode.DISABLED
        ),
        "*": ApprovalRule(ApprovalMode.AUTO),
    },
    asking=Asking("May HR do this?", role="manager"),
    asks_people=True,
    max_iterations=5,
    context_limit=5000,
    retry=RetryPolicy(attempts=2, initial=1.0),
)

TOOLS = {"create_profile", "delete_profile", "query_profile", "look"}


def problems(
    text: str,
    *,
    tools: Collection[str] | None = None,
    read_only: Collection[str] | None = None,
    agents: Collection[str] = (),
) -> list[str]:
    """Every problem as `line:column: message`."""
    with pytest.raises(PlanRejected) as caught:
        load_agents(text, "a.yaml", tools=tools, read_only=read_only, agents=agents)
    assert all(one.file == "a.yaml" for one in caught.value.problems)
    return [str(one).removeprefix("a.yaml:") for one in caught.value.problems]


def problem_of(line: str) -> str:
    """The only problem of an agent with this key on its second line."""
    (only,) = problems(f"id: hr\n{line}\n")
    return only


class TestAFile:
    def test_may_have_one_agent_at_its_top(self) -> None:
        assert load_agents(WHOLE, agents=["mailer"]) == (HR,)

    def test_may_list_its_agents(self) -> None:
        text = "agents:\n  - {agent_id: hr, agents: mailer}\n  - {id: mailer, system: Write}\n"
        assert load_agents(text) == (
            Agent("hr", agents=("mailer",)),
            Agent("mailer", system_context="Write"),
        )

    def test_may_have_its_agents_by_id(self) -> None:
        text = "agents:\n  hr: {tools: 'a, b'}\n  it: {agent_id: it, name: IT}\n"
        assert load_agents(text) == (Agent("hr", tools=("a", "b")), Agent("it", name="IT"))

    def test_may_be_empty_of_agents(self) -> None:
        assert load_agents("agents: []") == ()

    def test_may_be_the_json_of_an_agent(self) -> None:
        assert load_agents(json.dumps(record_to_json(HR)), agents=["mailer"]) == (HR,)

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "1:1: the file is empty; an agent was expected"),
            ("[]", "1:1: the agent must be a mapping with the keys agent_id"),
            ("name: nobody", "1:1: the agent lacks the key agent_id"),
            ("agents: hr", "1:9: agents must be a list"),
            ("agents: [hr]", "1:10: agents[0] must be a mapping with the keys agent_id"),
            ("agents: [{}]", "1:10: agents[0] lacks the key agent_id"),
            ("agents: {hr: }", "1:10: hr must be a mapping with the keys agent_id, name, "),
            ("agents: []\nplans: []", "2:1: unknown key 'plans'; known are agents"),
            (
                "agents: {hr: {agent_id: it}}",
                "1:25: this agent stands under 'hr' already; leave its agent_id out",
            ),
            ("agents: {hr: {agent_id: []}}", "1:25: agent_id must be text"),
        ],
    )
    def test_that_has_none_says_what_was_expected(self, text: str, problem: str) -> None:
        (only,) = problems(text)
        assert only.startswith(problem)


class TestApproval:
    @pytest.mark.parametrize("rule", ["require", "REQUIRE_APPROVAL", "true", "{mode: require}"])
    def test_may_be_one_rule_for_every_tool(self, rule: str) -> None:
        (agent,) = load_agents(f"id: hr\napproval: {rule}\n")
        assert agent.approval == {"*": ApprovalRule(ApprovalMode.REQUIRE_APPROVAL)}

    def test_may_depend_on_the_arguments(self) -> None:
        (agent,) = load_agents('id: hr\napproval: {require_when: "amount > 1000"}\n')
        rule = ApprovalRule(ApprovalMode.REQUIRE_APPROVAL, "amount > 1000", ApprovalMode.AUTO)
        assert agent.approval == {"*": rule}

    @pytest.mark.parametrize(
        ("line", "problem"),
        [
            ("approval: perhaps", "2:11: approval is 'perhaps': write auto, require or disabled"),
            ("approval: {'*': auto, b: 7}", "2:26: approval is 7: write auto, require or disabled"),
            ("approval: {a: {mode: auto, if: x}}", "2:15: approval has "),
            ("approval: {a: .inf}", "2:15: .inf is not a number that JSON knows"),
            ('approval: {a: {require_when: "amount >"}}', "2:15: "),
        ],
    )
    def test_that_cannot_be_read_has_a_place(self, line: str, problem: str) -> None:
        found = problem_of(line)
        assert found.startswith(problem)
        assert "\n" not in found


class TestNames:
    def test_that_there_are_not_are_reported_with_the_nearest(self) -> None:
        text = """\
agents:
  - id: hr
    tools: [creat_profile, look]
    verification_tools: [query_profil]
    approval: {delete_profil: auto, "*": auto, mailer: require}
    agents: [mailr, mailer]
  - {id: mailer}
"""
        assert problems(text, tools=TOOLS, read_only=()) == [
            "3:13: there is no tool 'creat_profile'; did you mean 'create_profile'?",
            "4:26: there is no tool 'query_profil'; did you mean 'query_profile'?",
            "5:31: hr has no tool or agent 'delete_profil'",
            "6:14: there is no agent 'mailr'; did you mean 'mailer'?",
        ]

    def test_of_tools_are_not_checked_when_nobody_knows_the_tools(self) -> None:
        assert load_agents("{id: hr, tools: [x], verification_tools: [y], approval: {x: auto}}")

    def test_of_keys_are_suggested(self) -> None:
        assert problem_of("max_iteration: 3") == (
            "2:1: unknown key 'max_iteration'; did you mean max_iterations?"
        )

    @pytest.mark.parametrize("agent_id", ["1st", "'a b'", "''", "_x", "小王", "x" * 101])
    def test_of_agents_begin_with_a_letter(self, agent_id: str) -> None:
        (only,) = problems(f"agents:\n  - id: {agent_id}\n")
        assert only.startswith("2:9: an agent_id begins with a letter and has letters, digits, ")
        (only,) = problems(f"agents:\n  {agent_id}: {{}}\n")
        assert only.startswith("2:3: an agent_id begins with a letter")

    def test_of_agents_are_taken_once(self) -> None:
        assert problems("agents: [{id: hr}, {id: it}, {id: hr}]") == [
            "1:35: the agent_id hr is taken"
        ]

    @pytest.mark.parametrize("key", ["tools", "verification_tools"])
    def test_stand_in_a_list_once(self, key: str) -> None:
        assert problem_of(f"{key}: [a, b, a]") == (f"2:{len(key) + 10}: a stands in {key} twice")

    def test_of_rules_are_those_of_the_agents_own_tools_and_helpers(self) -> None:
        text = "id: hr\ntools: [look]\nagents: [it]\napproval: {look: auto, it: auto, ask_it: auto}"
        (agent,) = load_agents(text, agents=["it"], tools=TOOLS)
        assert set(agent.approval) == {"look", "it", "ask_it"}
        assert problems("id: hr\ntools: [look]\napproval: {lok: auto}", tools=TOOLS) == [
            "3:17: hr has no tool or agent 'lok'; did you mean 'look'?"
        ]

    def test_of_tools_are_not_those_of_helpers(self) -> None:
        text = "{id: hr, tools: [look, ask_it], agents: [it]}"
        assert problems(text, agents=["it"]) == [
            "1:24: ask_it is how it is called; rename the tool"
        ]

    def test_of_what_asks_people_are_not_taken_by_others(self) -> None:
        assert problem_of("asks_people: true\ntools: [ask_person]") == (
            "3:9: ask_person is how people are asked; rename the tool"
        )
        text = "{id: hr, asks_people: true, agents: [person]}"
        assert problems(text, agents=["person"]) == [
            "1:38: ask_person is how people are asked; rename the agent person"
        ]
        assert load_agents("{id: hr, tools: [ask_person]}")

    def test_of_agents_may_be_left_open(self) -> None:
        (agent,) = load_agents("{id: hr, agents: [whoever]}", agents=None)
        assert agent.agents == ("whoever",)


class TestVerificationTools:
    TEXT = "id: hr\nverification_tools: [query_profile, look, delete_profile]\n"

    def test_only_look(self) -> None:
        message = "delete_profile may change something; verify with a tool that only reads"
        found = problems(self.TEXT, tools=TOOLS, read_only={"look"})
        assert found == [f"2:43: {message}"]

    def test_are_not_judged_when_nobody_knows_which_do(self) -> None:
        (agent,) = load_agents(self.TEXT, tools=TOOLS)
        assert agent.verification_tools == ("query_profile", "look", "delete_profile")


class TestHandingWorkOn:
    def test_to_itself_is_refused(self) -> None:
        assert problem_of("agents: [hr]") == (
            "2:10: hr hands work to itself; take it off its agents"
        )

    def test_in_a_circle_is_refused_once_where_it_closes(self) -> None:
        text = """\
agents:
  - {id: start, agents: [a]}
  - {id: a, agents: [b, c]}
  - {id: b, agents: [c]}
  - {id: c, agents: [outside, a]}
"""
        (only,) = problems(text, agents={"outside"})
        assert only == (
            "5:31: work would go round in a circle: a -> b -> c -> a; take a off c's agents"
        )

    def test_in_a_circle_through_other_files_is_refused_where_it_leaves_this_one(self) -> None:
        others = [Agent("b", agents=("c",)), Agent("c", agents=("a", "d")), Agent("d", agents="d")]
        with pytest.raises(PlanRejected) as caught:
            load_agents("{id: a, agents: [b]}", others=others)
        assert [one.message for one in caught.value.problems] == [
            "work would go round in a circle: b -> c -> a -> b; take b off a's agents"
        ]

    def test_on_two_ways_to_the_same_agent_is_no_circle(self) -> None:
        text = "agents: {a: {agents: 'b,c'}, b: {agents: d}, c: {agents: d}, d: {}}"
        assert [agent.agent_id for agent in load_agents(text)] == ["a", "b", "c", "d"]

    def test_along_a_very_long_chain_is_no_circle(self) -> None:
        links = (f"  a{index}: {{agents: a{index + 1}}}" for index in range(3000))
        text = "\n".join(["agents:", *links, "  a3000: {}"])
        assert len(load_agents(text)) == 3001


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("max_iterations: 0", "2:17: max_iterations must be between 1 and 1000, not 0"),
        ("max_iterations: 1001", "2:17: max_iterations must be between 1 and 1000, not 1001"),
        ("max_iterations: few", "2:17: max_iterations must be a whole number, not 'few'"),
        ("context_limit: 999", "2:16: context_limit must be at least 1000 characters, not 999"),
        ("retry: 0", "2:8: attempts must be between 1 and 100, not 0"),
        ("retry: {jitter: 2}", "2:17: jitter must be between 0 and 1, not 2"),
        ("asks_people: often", "2:14: asks_people must be true or false, not 'often'"),
        ("asking: {reminders: [0]}", "2:21: reminders: each must be a number of seconds above 0"),
        ("asking: {default: approve}", "2:19: default_option_id: the clock may not take"),
        ("asking: {type: user_input}", "2:16: type: a tool's approval cannot be asked as USER_I"),
        ("asking: please", "2:9: asking must be a mapping with the keys title, message, "),
        ("system: a\nsystem_context: b", "2:1: system is another word for system_context; keep"),
    ],
)
def test_what_else_an_agent_may_not_be(line: str, problem: str) -> None:
    assert problem_of(line).startswith(problem)


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_file() -> None:
    text = """\
agents:
  - id: hr
    colour: red
    agents: [hr, nobody]
    max_iterations: 0
  - tools: 7 7
    retry: never
    asking: {required: 1}
"""
    assert [one.split(": ")[0] for one in problems(text)] == [
        "3:5",
        "4:14",
        "4:18",
        "5:21",
        "6:5",
        "7:12",
        "8:24",
    ]


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
names = st.lists(texts, max_size=2).map(tuple)
modes = st.sampled_from(ApprovalMode)
rules = st.builds(ApprovalRule, modes) | st.builds(ApprovalRule, modes, texts, modes)
agents = st.builds(
    Agent,
    agent_id=texts,
    name=texts,
    system_context=texts,
    model=st.none() | texts,
    description=texts,
    tools=names,
    agents=names,
    verification_tools=names,
    approval=st.dictionaries(texts, rules, max_size=2),
    asking=ASKINGS,
    asks_people=st.booleans(),
    max_iterations=st.integers(0, 30),
    context_limit=st.integers(0, 300_000),
    retry=st.builds(RetryPolicy, st.integers(1, 9), st.floats(0, 9) | st.integers(0, 9)),
)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_an_agent_with_any_value_anywhere_is_accepted_or_rejected(data: st.DataObject) -> None:
    shape = json.loads(json.dumps(record_to_json(HR)))
    odd: st.SearchStrategy[Any] = st.sampled_from(
        [None, True, -1, 1e9, "", "hr", [], [[]], ["hr"], {}, {"a": {"b": None}}]
    )
    for key in data.draw(st.lists(st.sampled_from(sorted(shape)), min_size=1, max_size=3)):
        value = shape.get(key)
        inside = isinstance(value, dict) and bool(value) and data.draw(st.booleans())
        target = value if inside else shape
        target[data.draw(st.sampled_from(sorted(target)))] = deepcopy(data.draw(odd))
    refused: tuple[Problem, ...] = ()
    try:
        load_agents(json.dumps(shape), "a.yaml", tools=TOOLS, read_only=())
    except PlanRejected as rejected:
        refused = rejected.problems
    assert all(one.line > 0 and one.column > 0 for one in refused)


class TestAsJson:
    @settings(max_examples=100, deadline=None)
    @given(agents)
    def test_an_agent_survives_storage_with_its_digest(self, agent: Agent) -> None:
        stored = record_from_json(Agent, json.loads(json.dumps(record_to_json(agent))))
        assert stored == agent
        assert agent_digest(stored) == agent_digest(agent)

    def test_what_has_its_usual_value_is_left_out(self) -> None:
        assert record_to_json(Agent("hr")) == {"agent_id": "hr"}

    def test_the_digest_changes_with_whatever_matters(self) -> None:
        option = InteractionOption("ok", "OK", InteractionAction.APPROVE_AND_EXECUTE)
        variants = [
            HR,
            replace(HR, agent_id="it"),
            replace(HR, model=None),
            replace(HR, tools=HR.tools[::-1]),
            replace(HR, approval={"*": ApprovalRule(ApprovalMode.DISABLED)}),
            replace(HR, asking=Asking(options=(option,))),
            replace(HR, asks_people=False),
            replace(HR, context_limit=6000),
            replace(HR, retry=RetryPolicy()),
        ]
        assert len({agent_digest(agent) for agent in variants}) == len(variants)

    def test_the_digest_of_an_agent_never_changes(self) -> None:
        """Runs are pinned to digests: another number here means that old runs lose their agent."""
        assert agent_digest(HR) == (
            "093c2fedd5df998cf00df2a2becd31c403ff518c02178f5ffaca784f5f633557"
        )

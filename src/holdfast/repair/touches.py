"""What no model may do to a plan, nor a rule or a lesson: the fourteen forbidden touches.

    touch    1 approval, 2 roles, 3 inputs, 4 verify, 5 the main task
    write    6 code, 7 prompts to agents, 8 secrets
    name     9 tools, 10 plans, 11 agents that the plan does not name, nor its `repair.tools`
    raise   12 timeout, 13 attempts
    skip    14 what asks a person

Only a person may. They are looked for in what the plan becomes (`changes`), so what counts is what
a patch comes to: to set a task that a person's answer sets is to skip the question, and to call a
tool that asks nobody in place of one that asks is to touch approval.

New questions may go to the plan's own `repair.role`, and to nobody else by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from holdfast.core.interactions.calls import missing_arguments
from holdfast.core.plan.compiled import INPUTS
from holdfast.core.repair.records import SKIPPING
from holdfast.i18n.message import msg
from holdfast.model.approval import ApprovalMode, ApprovalRule
from holdfast.model.interaction import Asking
from holdfast.model.plan import (
    AgentAction,
    CodeAction,
    HumanAction,
    Listener,
    Plan,
    PlanAction,
    ToolAction,
)
from holdfast.model.retry import RetryPolicy
from holdfast.repair.changes import Changed, Changes
from holdfast.repair.failed_work import tools_of
from holdfast.repair.leaves import leaves
from holdfast.repair.parts import (
    STATUS,
    Writes,
    askings_of,
    data_of,
    form_of,
    outputs_of,
    tools_called,
    written,
)
from holdfast.repair.readings import lone_path
from holdfast.repair.surroundings import Surroundings

_USUAL: Final = Asking()
_USUAL_RETRY: Final = RetryPolicy()
_APPROVED: Final = ApprovalMode.REQUIRE_APPROVAL


class Touch(NamedTuple):
    """What a patch must not do, and the listener with which it does; empty where it is none."""

    id: str
    message: str


def touches(changes: Changes, known: Surroundings) -> Iterator[Touch]:
    """All of them but secrets, which have a module of their own (`secrecy`)."""
    for look in _TOUCHES:
        yield from look(changes, known)


def _approval(changes: Changes, known: Surroundings) -> Iterator[Touch]:
    for one in changes.listeners:
        if one.id not in changes.skipped and _approval_of(one.after) != _approval_of(one.before):
            told = msg(
                "only a person may say whether or how the call of {id} is approved", id=one.id
            )
            yield Touch(one.id, told)
        old, new = known.facts(one.before), known.facts(one.after)
        if old and new and _asks(old.approval) and not _as_strict(new.approval, old.approval):
            told = msg(
                "only a person may have {id} call a tool that asks for less approval", id=one.id
            )
            yield Touch(one.id, told)


def _approval_of(listener: Listener | None) -> tuple[bool, Asking]:
    asking = askings_of(listener).get("consent", _USUAL)
    return (listener.approval if listener else False), asking


def _asks(rule: ApprovalRule) -> bool:
    """Whether there are calls that a person approves."""
    return _APPROVED in (rule.mode, rule.otherwise if rule.when is not None else rule.mode)


def _as_strict(new: ApprovalRule, old: ApprovalRule) -> bool:
    return new == old or (new.when is None and new.mode is _APPROVED)


def _roles(changes: Changes, known: Surroundings) -> Iterator[Touch]:
    for one in changes.listeners:
        for role in sorted(_roles_of(one.after) - _roles_of(one.before)):
            if role != changes.before.repair.role:
                told = msg("only a person may have {id} ask the role {role}", id=one.id, role=role)
                yield Touch(one.id, told)


def _roles_of(listener: Listener | None) -> frozenset[str]:
    askings = askings_of(listener).values()
    named = (role for one in askings for role in (one.role, one.escalate_to))
    return frozenset(role for role in named if role is not None)


def _inputs(changes: Changes, known: Surroundings) -> Iterator[Touch]:
    if changes.after.inputs != changes.before.inputs:
        yield Touch("", msg("only a person may change the inputs"))
    names = {one.name for one in changes.before.inputs.fields}
    for one in changes.listeners:
        if one.id == INPUTS:
            yield Touch(one.id, msg("only a person may ask for inputs anew"))
        for task_id, name in _newly_written(one):
            if task_id == changes.before.main_task_id and name in names:
                told = msg("only a person may have {id} set the input {name}", id=one.id, name=name)
                yield Touch(one.id, told)


def _newly_written(one: Changed) -> list[Writes]:
    return sorted(written(one.after) - written(one.before))


def _verify(changes: Changes, known: Surroundings) -> Iterator[Touch]:
    """An agent that takes part looks at the outcome in the end."""
    if changes.after.verify != changes.before.verify:
        yield Touch("", msg("only a person may change what is verified"))
    left = _agents(changes.after)
    for one in changes.listeners:
        action = one.before.action if one.before else None
        if isinstance(action, AgentAction) and action.agent_id not in left:
            told = msg(
                "only a person may do without the verification by {agent}", agent=action.agent_id
            )
            yield Touch(one.id, told)


def _agents(plan: Plan) -> frozenset[str]:
    actions = (one.action for one in plan.listeners)
    return frozenset(one.agent_id for one in actions if isinstance(one, AgentAction))


def _main_task(changes: Changes, known: Surroundings) -> Iterator[Touch]:
    main = changes.before.main_task_id
    if changes.after.main_task_id != main:
        yield Touch("", msg("only a person may make another task the main task"))
    for one in changes.listeners:
        if any(task == main and name.startswith(STATUS) for task, name in _newly_written(one)):
            told = msg(
                "only a person may have {id} move the main task {task}", id=one.id, task=main
            )
            yield Touch(one.id, told)


def _code(changes: Changes, known: Surroundings) -> Iterator[Touch]:
    for one in changes.listeners:
        action = one.after.action
        skips = one.id in changes.skipped and action == CodeAction(SKIPPING)
        if isinstance(action, CodeAction) and not skips and not _same_action(one):
            yield Touch(one.id, msg("only a person may write code, as {id} has it", id=one.id))
        if not _handlers(one.after) <= _handlers(one.before):
            yield Touch(
                one.id, msg("only a person may name what handles answers to {id}", id=one.id)
            )


def _same_action(one: Changed) -> bool:
    return one.before is not None and one.before.action == one.after.action


def _handlers(listener: Listener | None) -> frozenset[str]:
    """What an installation has registered for answers of people: code, by its name."""
    askings = askings_of(listener).values()
    named = [option.metadata.get("handler") for one in askings for option in one.options]
    return frozenset(str(one) for one in (*named, *(one.custom_type for one in askings)) if one)


def _prompts(changes: Changes, known: Surroundings) -> Iterator[Touch]:
    actions = [one.action for one in changes.before.listeners]
    own = {"", *(one.action_prompt for one in actions if isinstance(one, AgentAction))}
    for one in changes.listeners:
        action = one.after.action
        if isinstance(action, AgentAction) and action.action_prompt not in own:
            told = msg("only a person may write a prompt to an agent, as {id} has it", id=one.id)
            yield Touch(one.id, told)


def _tools(changes: Changes, known: Surroundings) -> Iterator[Touch]:
    own = {*tools_of(changes.before), *changes.before.repair.tools}
    for one in changes.listeners:
        for name in tools_called(one.after):
            if name not in own:
                told = msg(
                    "only a person may have {id} call {tool}: neither the plan nor its "
                    "repair.tools name it",
                    id=one.id,
                    tool=name,
                )
                yield Touch(one.id, told)


def _plans(changes: Changes, known: Surroundings) -> Iterator[Touch]:
    actions = [one.action for one in changes.before.listeners]
    own = {one.plan_id for one in actions if isinstance(one, PlanAction)}
    for one in changes.listeners:
        action = one.after.action
        if isinstance(action, PlanAction) and action.plan_id not in own:
            told = msg(
                "only a person may have {id} run the plan {plan}", id=one.id, plan=action.plan_id
            )
            yield Touch(one.id, told)


def _named_agents(changes: Changes, known: Surroundings) -> Iterator[Touch]:
    own = _agents(changes.before)
    for one in changes.listeners:
        action = one.after.action
        if isinstance(action, AgentAction) and action.agent_id not in own:
            agent = action.agent_id
            told = msg("only a person may have {id} ask the agent {agent}", id=one.id, agent=agent)
            yield Touch(one.id, told)


def _timeout(changes: Changes, known: Surroundings) -> Iterator[Touch]:
    """A listener without one has its tool's; what an author says is the most."""
    for one in changes.listeners:
        author = one.before or one.ahead_of
        most, given = (author.timeout if author else None), one.after.timeout
        stays = given == most or (one.before is None and given is None)
        if not stays and (given is None or most is None or given > most):
            yield Touch(one.id, msg("only a person may give {id} more time", id=one.id))


def _attempts(changes: Changes, known: Surroundings) -> Iterator[Touch]:
    for one in changes.listeners:
        author = one.before or one.ahead_of
        most = one.before.retry.attempts if one.before else _USUAL_RETRY.attempts
        repeats = one.after.repeat and not (author and author.repeat)
        if one.after.retry.attempts > most or repeats:
            told = msg("only a person may have {id} tried more often", id=one.id)
            yield Touch(one.id, told)


def _questions(changes: Changes, known: Surroundings) -> Iterator[Touch]:
    before = {one.listener_id: one for one in changes.before.listeners}
    for listener_id in sorted(changes.skipped & before.keys()):
        if _asks_people(before[listener_id], known):
            told = msg("only a person may skip {id}, which asks a person", id=listener_id)
            yield Touch(listener_id, told)
    decided = _decided_by_people(changes.before, known)
    for one in changes.listeners:
        for task_id in sorted({task_id for task_id, _ in _newly_written(one)} & decided.keys()):
            if one.id not in decided[task_id]:
                told = msg(
                    "only a person may have {id} set {task}, which a person decides",
                    id=one.id,
                    task=task_id,
                )
                yield Touch(one.id, told)
        for name in _asked_no_more(one, changes):
            told = msg(
                "only a person may give {name} to {id}, which asks for it", name=name, id=one.id
            )
            yield Touch(one.id, told)
        if one.before is not None and _answers_itself(one.before, one.after):
            told = msg("only a person may write down what a person is asked by {id}", id=one.id)
            yield Touch(one.id, told)


def _decided_by_people(plan: Plan, known: Surroundings) -> dict[str, set[str]]:
    """By task the listeners that ask people before they set it."""
    found: dict[str, set[str]] = {}
    for one in plan.listeners:
        for output in outputs_of(one) if _asks_people(one, known) else ():
            found.setdefault(output.task_id, set()).add(one.listener_id)
    return found


def _asks_people(listener: Listener, known: Surroundings) -> bool:
    """A run of another plan, or of an agent, may ask people as well."""
    match listener.action:
        case HumanAction() | PlanAction() | AgentAction():
            return True
        case ToolAction(args=args):
            facts = known.facts(listener)
            lacks = facts is not None and missing_arguments(facts.parameters, args)
            return listener.approval or bool(lacks) or (facts is not None and _asks(facts.approval))
        case _:
            return False


def _asked_no_more(one: Changed, changes: Changes) -> Iterator[str]:
    """The arguments for which the author has a field that people fill in, and that are written down
    now; unless another question asks for them."""
    old, new = data_of(one.before), data_of(one.after)
    for field in form_of(one.before).fields if isinstance(one.after.action, ToolAction) else ():
        path = lone_path(new.get(field.name))
        if field.name in new.keys() - old.keys() and not (path and path[0] in changes.answered):
            yield field.name


def _answers_itself(before: Listener, after: Listener) -> bool:
    """Whether what a task gets from a question is not what is answered."""
    if not isinstance(before.action, HumanAction):
        return False
    old = {place: value for one in outputs_of(before) for place, value in leaves(one.context)}
    new = [each for one in outputs_of(after) for each in leaves(one.context)]
    fresh = (value for place, value in new if old.get(place) != value)
    return any((lone_path(value) or ("",))[0] != "result" for value in fresh)


_Look = Callable[[Changes, Surroundings], Iterator[Touch]]

_TOUCHES: Final[tuple[_Look, ...]] = (
    _approval,
    _roles,
    _inputs,
    _verify,
    _main_task,
    _code,
    _prompts,
    _tools,
    _plans,
    _named_agents,
    _timeout,
    _attempts,
    _questions,
)

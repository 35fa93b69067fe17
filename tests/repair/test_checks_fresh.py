"""What a verdict notes of the moment at which it was given: the tools that nothing had called, and
the values that the patch reads. Consent is to these."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from patch_cases import (
    LISTENERS,
    TOOLS,
    VALUES,
    WHO,
    begun,
    failed,
    inserted,
    patch_of,
    set_args,
    succeed,
    verdict_on,
)
from small_plans import WILL, on

from holdfast.core.plan.fitting import values_at, why_stale
from holdfast.core.plan.state import PlanState
from holdfast.model import commands as c
from holdfast.model.plan import ToolAction
from holdfast.model.repair import Proposal, Verdict
from holdfast.model.values import JsonObject
from holdfast.repair.checks import PERSON, consent_of

MAIL = inserted("send_email", args={"to": WHO})
RENAMED = set_args(computer_model="{001.context.model}", drop=("model",))


def by_a_person(*operations: JsonObject, state: PlanState | None = None, **more: Any) -> Verdict:
    return verdict_on(state or failed(), *operations, by=PERSON, **more)


class TestFresh:
    def test_what_nothing_has_called_is_told(self) -> None:
        verdict = by_a_person(MAIL)
        assert (verdict.fresh, verdict.repeats) == (("order", "send_email"), ())

    def test_what_only_looks_or_may_be_called_twice_is_not(self) -> None:
        looks = inserted("query_profile", args={"name": WHO})
        assert "query_profile" not in by_a_person(looks).fresh
        twice = {**TOOLS, "order": replace(TOOLS["order"], idempotent=True)}
        assert by_a_person(RENAMED, tools=twice).fresh == ()

    def test_of_a_tool_that_nobody_knows_the_worst_is_assumed(self) -> None:
        without = {name: one for name, one in TOOLS.items() if name != "send_email"}
        assert "send_email" in by_a_person(MAIL, tools=without).fresh

    def test_what_something_has_called_is_warned_of_instead(self) -> None:
        beside = on("L0", "001 Running", ToolAction("send_email", {"to": WHO}), "000")
        machine = begun(beside, *LISTENERS)
        succeed(machine, "L0", {"sent": True})
        verdict = by_a_person(MAIL, state=failed(machine))
        assert (verdict.fresh, verdict.repeats) == (("order",), ("send_email",))
        assert len(verdict.warnings) == 1

    def test_so_is_what_a_persons_snippet_may_call(self) -> None:
        beside = on("L0", "001 Running", ToolAction("send_email", {"to": WHO}), "000")
        machine = begun(beside, *LISTENERS)
        succeed(machine, "L0", {"sent": True})
        snippet = inserted("send_email", args={})
        snippet["listener"] = {
            "listener_id": "R1",
            "listener_type": "code",
            "code_snippet": "result = send_email(to='x')",
            "functions": ["send_email"],
        }
        verdict = by_a_person(snippet, state=failed(machine))
        assert verdict.repeats == ("send_email",)

    def test_so_is_what_another_run_has(self) -> None:
        verdict = by_a_person(MAIL, elsewhere=("send_email", "wipe_disk"))
        assert (verdict.fresh, verdict.repeats) == (("order",), ("send_email",))

    def test_work_that_is_kept_calls_nothing(self) -> None:
        read: JsonObject = {"op": "set_output", "listener_id": "L4", "context": {"fine": "x"}}
        assert by_a_person(read).fresh == ()

    def test_a_patch_with_problems_tells_it_as_well_and_has_no_consent(self) -> None:
        verdict = verdict_on(failed(), inserted("wipe_disk", args={}))
        assert verdict.problems
        assert (verdict.consent, "wipe_disk" in verdict.fresh) == ("", True)

    def test_what_was_brought_in_and_has_yet_to_fire_is_not_called_again_by_being_changed(
        self,
    ) -> None:
        machine = begun()
        succeed(machine, "L1", {"employee_id": "WZ001"})
        first = inserted("send_email", "L3", args={"to": WHO})
        patch = patch_of(machine.state, first, source=PERSON, by="Eve")
        judged = verdict_on(machine.state, first, by=PERSON)
        machine.submit(c.ProposePatch(Proposal(patch, judged), "Eve"))
        (question,) = machine.state.open_questions
        machine.submit(c.Answer(question, WILL, "apply"))
        changed = by_a_person(set_args("R1", text="hello"), state=machine.state)
        assert (changed.repeats, changed.warnings) == ((), ('R1.text = "hello" is a new value',))
        another = by_a_person(inserted("send_email", "L4", new="R2"), state=machine.state)
        assert another.repeats == ("send_email",)


class TestReads:
    @pytest.mark.parametrize(
        ("operation", "reads"),
        [
            (RENAMED, {"001.context.name", "001.context.model"}),
            (set_args(count=2), {"001.context.name", "001.context.model"}),
            (MAIL, {"001.context.name", "001.context.model"}),
            (
                {"op": "set_output", "listener_id": "L2", "context": {"order": "{{result.id}}"}},
                {"001.context.name", "001.context.model"},
            ),
            (
                inserted(
                    "send_email", "L3", args={"to": "{003.context.order}", "text": "{001.status}"}
                ),
                {"001.status", "003.context.order"},
            ),
        ],
    )
    def test_all_that_it_brings_or_changes_reads_of_tasks(
        self, operation: JsonObject, reads: set[str]
    ) -> None:
        verdict = by_a_person(operation)
        assert set(verdict.reads) == reads
        assert verdict.reads == tuple(sorted(reads))

    def test_the_values_are_those_that_stand_there(self) -> None:
        state = failed()
        verdict = by_a_person(RENAMED, state=state)
        assert verdict.values == values_at(state, verdict.reads)
        other = failed(begun(values={**VALUES, "model": "X2"}))
        assert by_a_person(RENAMED, state=other).values != verdict.values

    def test_values_that_it_does_not_read_are_none_of_it(self) -> None:
        other = failed(begun(values={**VALUES, "day": "2.3.2026"}))
        assert by_a_person(RENAMED, state=other).values == by_a_person(RENAMED).values

    def test_what_is_judged_with_these_values_is_not_stale(self) -> None:
        state = failed()
        patch = patch_of(state, RENAMED, source=PERSON)
        assert why_stale(state, Proposal(patch, by_a_person(RENAMED, state=state))) is None


class TestConsent:
    """To all of it: with anything else it is another consent."""

    def test_it_is_bound_to_what_would_be_called_first_and_to_the_values(self) -> None:
        state = failed()
        patch, verdict = patch_of(state, RENAMED), by_a_person(RENAMED, state=state)
        others = [
            replace(verdict, fresh=()),
            replace(verdict, values="other"),
            replace(verdict, versions={}),
        ]
        found = {consent_of(state.run_id, patch, one) for one in (verdict, *others)}
        assert len(found) == 4

    def test_the_same_patch_with_another_value_is_another_consent(self) -> None:
        other = failed(begun(values={**VALUES, "model": "X2"}))
        assert by_a_person(RENAMED, state=other).consent != by_a_person(RENAMED).consent

    def test_so_is_one_after_a_call_of_another_run(self) -> None:
        assert by_a_person(MAIL, elsewhere=("send_email",)).consent != by_a_person(MAIL).consent

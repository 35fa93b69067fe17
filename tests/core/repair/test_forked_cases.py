"""A fork knows what people refused in its origin, and what its origin's tree has called."""

from __future__ import annotations

import json

from case_stories import (
    BEFORE,
    EVE,
    GUESS,
    PLAN,
    RENAME,
    answer,
    asked,
    proposal,
    proposed,
    the_case,
    thinking,
    thought,
)
from forked import forked, history, origin_of, over
from machine import Machine
from small_plans import CALL, CHILD, PERMANENT, WILL, events, give_up, on, started, succeed

from holdfast.core.plan.decide import blank, replay
from holdfast.core.plan.fitting import refused_in, why_stale
from holdfast.core.plan.forking import fork_of
from holdfast.core.plan.spent import is_alone, spent_calls
from holdfast.core.plan.state import Forked
from holdfast.core.repair.state import operations_digest
from holdfast.journal.codec import decode, encode
from holdfast.journal.port import Record
from holdfast.journal.snapshots import dump_state, load_state
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.fork import Fork
from holdfast.model.repair import CaseStatus, Look, Mend
from holdfast.model.retry import GiveUp

REFUSED = operations_digest((RENAME,))


def refused() -> Machine:
    """Will Zhang was asked, and did not want the argument renamed."""
    machine = proposed(RENAME)
    answer(machine, "refuse")
    return machine


def failed_again(origin: Machine) -> Machine:
    """A fork of it, where the same work has failed; the planner is asked."""
    fork = forked(over(origin))
    fork.start_ready()
    (effect,) = fork.flying.values()
    fork.report(effect, PERMANENT)
    return fork


def consulted_about(fork: Machine, advice: GiveUp | Mend, look: Look | None = None) -> None:
    asking = fork.consultations.pop(0)
    fork.submit(c.Advise(asking.listener_id, asking.firing, advice, look))


class TestWhatWasRefused:
    def test_it_is_refused_here_too(self) -> None:
        fork = failed_again(refused())
        assert fork.state.forked is not None
        assert fork.state.forked.refused == (REFUSED,)
        assert refused_in(fork.state) == {REFUSED}
        assert not fork.state.repair.cases
        fork.reload()

    def test_no_rule_and_no_lesson_proposes_it(self) -> None:
        fork = failed_again(refused())
        look = Look(GUESS, proposal(fork.state, RENAME))
        consulted_about(fork, GiveUp(), look)
        assert the_case(fork).status is CaseStatus.OPEN
        assert not asked(fork)
        fork.submit(c.ReportDiagnosis("case_1", 0, look))
        assert not events(fork, e.PatchProposed)

    def test_no_model_does(self) -> None:
        fork = failed_again(refused())
        consulted_about(fork, GiveUp())
        thought(thinking(fork), proposal=proposal(fork.state, RENAME))
        assert the_case(fork).status is CaseStatus.OPEN
        assert not events(fork, e.PatchProposed)

    def test_none_is_made_of_it_where_the_author_lets_lessons_be_made(self) -> None:
        """`auto: [lesson]`: it comes to a person, as what is refused here would."""
        fork = failed_again(refused())
        consulted_about(fork, Mend(GUESS, proposal(fork.state, RENAME)))
        assert not events(fork, e.PlanPatched)
        assert fork.state.status == "error"

    def test_what_was_not_refused_is_made_and_proposed(self) -> None:
        made, asks = failed_again(refused()), failed_again(refused())
        consulted_about(made, Mend(GUESS, proposal(made.state, BEFORE)))
        assert len(events(made, e.PlanPatched)) == 1
        consulted_about(asks, GiveUp(), Look(GUESS, proposal(asks.state, BEFORE)))
        assert len(asked(asks)) == 1

    def test_a_person_may_propose_it_again(self) -> None:
        fork = failed_again(refused())
        consulted_about(fork, GiveUp())
        fork.submit(c.ProposePatch(proposal(fork.state, RENAME, by=EVE), EVE, "L002"))
        answer(fork)
        assert len(events(fork, e.PlanPatched)) == 1

    def test_what_did_not_help_in_the_origin_is_proposed_as_little(self) -> None:
        origin = proposed(RENAME)
        answer(origin)
        origin.start_ready()
        give_up(origin)
        assert len(events(origin, e.RepairDisproven)) == 1
        assert refused_in(over(origin).state) == {REFUSED}
        assert refused_in(forked(origin, 1).state) == {REFUSED}

    def test_what_was_refused_after_the_event_is_refused_as_well(self) -> None:
        origin = over(refused())
        asked_at = next(
            n for n, (_, one) in enumerate(history(origin), 1) if isinstance(one, e.PatchProposed)
        )
        assert refused_in(forked(origin, 1).state) == {REFUSED}
        assert refused_in(forked(origin, asked_at).state) == {REFUSED}

    def test_a_fork_of_the_fork_knows_it(self) -> None:
        fork = over(forked(over(refused())))
        assert refused_in(forked(fork, 1, run_id="inst_000003").state) == {REFUSED}


class TestWhatWasCalled:
    def test_it_is_of_the_origin_as_it_ended(self) -> None:
        origin = started(*PLAN)
        origin.settle()
        fork = forked(origin, 1)
        assert fork.state.forked is not None
        assert fork.state.forked.called == ("plain",)
        assert not spent_calls(fork.state)
        fork.reload()

    def test_a_proposal_that_was_to_call_something_first_is_stale_where_another_run_has(
        self,
    ) -> None:
        fork = failed_again(proposed())
        found = proposal(fork.state, RENAME, fresh=("keyed",))
        assert why_stale(fork.state, found) is None
        told = why_stale(fork.state, found, ("keyed",))
        assert told == "keyed was called since the repair was proposed"

    def test_a_fork_is_alone_until_it_has_started_another_run(self) -> None:
        origin = started(on("L001", "001 Running", CHILD, "002"), on("L002", "002 Done", CALL, "1"))
        assert not is_alone(origin.state)
        fork = forked(over(origin), 1)
        assert is_alone(fork.state)
        fork.start_ready()
        assert not is_alone(fork.state)

    def test_a_run_that_is_about_to_start_one_anew_is_not_alone(self) -> None:
        """What the former child run has called was called."""
        machine = started(
            on("L001", "001 Running", CHILD, "002"), on("L002", "002 Done", CALL, "1")
        )
        [child] = machine.children
        machine.hear(child, "done", {})
        machine.start_ready()
        succeed(machine, {})
        succeed(machine)
        machine.submit(c.RerunFrom("L001", WILL))
        assert machine.state.steps["L001"].child_id is None
        assert not is_alone(machine.state)


class TestOlderJournals:
    """Forks that were made before it was noted what their origins refused and called."""

    def test_they_are_read_as_of_runs_that_refused_and_called_nothing(self) -> None:
        kind, payload = encode(e.RunForked(FORK_OF_SMALL, "digest", "inst_000002", WILL))
        body = json.loads(payload)
        assert (body["fork"].pop("refused"), body["fork"].pop("called")) == ([REFUSED], ["plain"])
        read = decode(Record(1, 5.0, kind, json.dumps(body)))
        assert isinstance(read, e.RunForked)
        assert read.fork == Fork("inst_000001", 3, "small")

    def test_and_begin_as_ever(self) -> None:
        bare = fork_of(origin_of(over(refused())))
        plan = started(*PLAN).plan
        event = e.RunForked(bare, plan.digest, "inst_000002", WILL)
        state = replay(blank("inst_000002", plan), [(5.0, event)])
        assert (refused_in(state), state.forked) == (frozenset(), Forked("inst_000001", bare.seq))

    def test_so_are_their_snapshots(self) -> None:
        fork = forked(over(refused()))
        body = json.loads(dump_state(fork.state))
        assert (body["forked"].pop("refused"), body["forked"].pop("called")) == (
            [REFUSED],
            ["plain"],
        )
        state = load_state(json.dumps(body), blank("", fork.plan))
        assert state.forked == Forked("inst_000001", fork.state.forked.seq)


FORK_OF_SMALL = Fork("inst_000001", 3, "small", refused=(REFUSED,), called=("plain",))

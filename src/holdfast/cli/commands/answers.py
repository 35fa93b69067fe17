"""Questions found by the beginning of their ids, and answers made of the words of the command line;
dangerous options are confirmed first.

Several questions take the same answer only by their ids, so that no consent is given to what was
not shown. Each has its own outcome, and one that fails does not keep the others back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import typer

from holdfast.cli.backend import Backend, Reader
from holdfast.cli.driver import Driver, do_and_see
from holdfast.cli.shell import FAILED, OK, Settings
from holdfast.cli.terminal.plain import print_json
from holdfast.cli.terminal.prompts import Given, ask, confirmed, introduce
from holdfast.cli.terminal.question import asks_twice, meant
from holdfast.cli.terminal.repairs import is_repair, rehearsal_asked
from holdfast.cli.terminal.report import exit_code
from holdfast.cli.terminal.screen import say
from holdfast.cli.terminal.untrusted_text import BAR, rows, told
from holdfast.cli.values import read_values
from holdfast.errors import CallerError, HoldfastError, NotAllowed, NotFound
from holdfast.interactions.cards import consequence
from holdfast.model.form import Field
from holdfast.model.interaction import InteractionOption, InteractionRequest
from holdfast.model.rows import QuestionQuery
from holdfast.views.records import InteractionView, RunView
from holdfast.views.stories.text import visible

Chosen: TypeAlias = tuple[InteractionRequest, InteractionOption]


@dataclass(frozen=True, slots=True)
class Words:
    """What the command line said."""

    option_id: str | None
    pairs: tuple[str, ...]
    data: tuple[str, ...]
    feedback: str | None
    yes: bool

    def given(self, fields: Iterable[Field]) -> Given:
        values = read_values(self.pairs, self.data, fields, "--data")
        return Given(self.option_id, values, self.feedback)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one question's answer; `question` is None where there is none."""

    name: str
    question: InteractionView | None
    error: HoldfastError | None = None


@dataclass(frozen=True, slots=True)
class Answering:
    backend: Backend
    settings: Settings
    words: Words
    anyway: bool
    wait: bool

    async def one(self, name: str) -> int:
        driver = Driver(self.backend, self.settings)
        question = await find_question(self.backend, name)
        if question.is_open:
            await self.backend.refuse_without_tools(question.root_id, anyway=self.anyway)
        sure = await self._made_sure(question)
        if sure is None:
            return await driver.conclude(question.root_id)

        async def submit() -> None:
            await self.backend.answer(sure.response(question.question_id))

        below = is_repair(question.request) and question.run_id != question.root_id
        first = question.run_id if below else None
        return await do_and_see(driver, question.root_id, submit, wait=self.wait, first=first)

    async def _made_sure(self, question: InteractionView) -> Given | None:
        """The answer to send: asked for in a terminal, and meant; None when left for later."""
        request, words = question.request, self.words
        given = words.given(request.form.fields)
        option = _named(request, given.option_id)
        if not question.is_open or (option is None and given.option_id is not None):
            return given  # it is refused where it is judged
        silent = not (given.data or given.feedback or words.yes)
        if self.settings.interactive and silent:
            more = await rehearsal_asked(self.backend, question)
            if option is None and not question.is_ours:
                introduce(request, more=more)
                return None  # what is left to them is said with the run
            return await ask(request, given.option_id, more)
        if option is not None and asks_twice(option):
            return given if await self._meant([(request, option)]) else None
        return given

    async def _meant(self, dangerous: Sequence[Chosen], times: str = "") -> bool:
        if self.words.yes or not dangerous:
            return True
        request, option = dangerous[0]
        if self.settings.interactive:
            return await confirmed(request, option, times)
        what = f"{option.option_id} ({option.label})"
        does = consequence(request, option)
        raise NotAllowed(f"{does} {what} is dangerous: say --yes if you mean it")

    async def many(self, names: Sequence[str]) -> int:
        """The same answer to each of these questions, and to no other."""
        if self.words.option_id is None and not (self.words.pairs or self.words.data):
            raise typer.BadParameter("several questions need --option, or values.")
        found = [await self._found(name) for name in dict.fromkeys(names)]
        asked = (one.question for one in found if one.question is not None)
        open_ones = [one for one in asked if one.is_open]
        if self.settings.interactive and not self.words.yes:
            for one in open_ones:
                introduce(one.request, more=await rehearsal_asked(self.backend, one))
                option = _named(one.request, self.words.option_id)
                say(*rows(meant(one.request, option), "  ", "  ") if option else ())
        if not await self._meant(*self._dangers(open_ones)):
            return FAILED
        before = {one.root_id: await self.backend.run(one.root_id) for one in open_ones}
        outcomes = await self._submit(found)
        self._report(outcomes)
        failed = any(one.error is not None for one in outcomes)
        code = await self._see_through(before.values()) if self.wait else OK
        return FAILED if failed else code

    async def _found(self, name: str) -> Outcome:
        try:
            question = await find_question(self.backend, name)
            if question.is_open:
                await self.backend.refuse_without_tools(question.root_id, anyway=self.anyway)
            return Outcome(name, question)
        except CallerError as error:
            return Outcome(name, None, error)

    def _dangers(self, asked: Sequence[InteractionView]) -> tuple[list[Chosen], str]:
        requests = (one.request for one in asked)
        named = ((one, _named(one, self.words.option_id)) for one in requests)
        found = [(one, option) for one, option in named if option and asks_twice(option)]
        return found, f" ({len(found)} questions)"

    async def _submit(self, found: Sequence[Outcome]) -> list[Outcome]:
        asked = {
            one.question.question_id: one.question for one in found if one.question is not None
        }
        fields = [field for one in asked.values() for field in one.request.form.fields]
        response = self.words.given(fields).response()
        errors = await self.backend.answer_many(list(asked), response)
        return [
            one if one.question is None else replace(one, error=errors[one.question.question_id])
            for one in found
        ]

    def _report(self, outcomes: Sequence[Outcome]) -> None:
        if self.settings.as_json:
            print_json([_outcome_json(one) for one in outcomes])
            return
        for one in outcomes:
            title = f" {visible(one.question.title)}" if one.question is not None else ""
            fate = "answered" if one.error is None else f"refused: {one.error}"
            say(*told(f"{one.name}{title}: {fate}", BAR))

    async def _see_through(self, runs: Iterable[RunView]) -> int:
        """Each run until it rests, without further questions; the first that is not done."""
        driver = Driver(self.backend, self.settings, asks=False)
        codes = []
        for before in runs:
            run = await driver.see_through(before)
            codes.append(exit_code(run.status))
            if not self.settings.as_json:
                await driver.conclude(before.run_id)
        return next((code for code in codes if code != OK), OK)


def _named(request: InteractionRequest, option_id: str | None) -> InteractionOption | None:
    return next((one for one in request.options if one.option_id == option_id), None)


def _outcome_json(outcome: Outcome) -> dict[str, object]:
    error, asked = outcome.error, outcome.question
    question_id = outcome.name if asked is None else asked.question_id
    return {
        "question_id": question_id,
        "request_id": question_id,
        "root_id": None if asked is None else asked.root_id,
        "answered": error is None,
        "error": None if error is None else {"kind": type(error).__name__, "message": str(error)},
    }


async def find_question(reader: Reader, name: str) -> InteractionView:
    """The question of that id, or the only one whose id begins so; open ones come first."""
    exact = await reader.question(name)
    if exact is not None:
        return exact
    found: list[InteractionView] = []
    for status in ("open", "answered", "expired", "withdrawn"):
        query = QuestionQuery(status=frozenset({status}), limit=100_000)
        asked = await reader.questions(query)
        found = [one for one in asked if name and one.question_id.startswith(name)]
        if found:
            break
    if not found:
        raise NotFound(f"no question begins with {name!r}: `holdfast inbox` lists the open ones")
    if len(found) > 1:
        ids = ", ".join(one.question_id for one in found[:5])
        raise NotAllowed(f"{len(found)} questions begin with {name!r}: write more of it ({ids})")
    return await reader.question(found[0].question_id) or found[0]

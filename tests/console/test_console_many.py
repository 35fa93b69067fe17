"""A hundred thousand runs through the page: what a page costs goes by its length, not by theirs.

Cost is counted in SQLite's own instructions, which are the same on every machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from console_plans import GREET
from console_scene import Backend, serving, window
from playwright.async_api import Browser, Page, expect

from holdfast import Holdfast
from holdfast.console.views.runs import PAGE
from holdfast.journal.database import Connection, connect
from holdfast.journal.port import Append, Record, RunRow
from holdfast.journal.sqlite import SqliteJournal
from holdfast.model.run import RunStatus
from holdfast.server.showing import MOST_PAGES_READ

RUNS = 100_000
AT_ONCE = 5_000
EVERY_FAILED = 25_000
"""So few failed that whoever looked for them among all would read all."""

STRIDE = 100
MOST = 60_000
"""Instructions; reading every run once takes more than a million."""


@dataclass
class Meter:
    """What the reading and the writing of one journal have cost so far."""

    instructions: int = 0

    def connect(self, path: Path) -> Connection:
        connection = connect(path)
        connection.set_progress_handler(self._count, STRIDE)  # type: ignore[attr-defined]
        return connection

    def _count(self) -> int:
        self.instructions += STRIDE
        return 0

    @contextmanager
    def at_most(self, most: int) -> Iterator[None]:
        before = self.instructions
        yield
        assert self.instructions - before <= most


@dataclass
class ManyRuns:
    backend: Backend
    meter: Meter

    def run_id(self, number: int) -> str:
        return f"inst_{number:06}"

    @property
    def failed(self) -> list[str]:
        """The newest first."""
        return [self.run_id(one) for one in range(RUNS, 0, -EVERY_FAILED)]


def _row(number: int) -> RunRow:
    run_id, at = f"inst_{number:06}", float(number)
    failed = number % EVERY_FAILED == 0
    return RunRow(
        run_id=run_id,
        kind="plan",
        name="fragile" if failed else "greet",
        definition="",
        status=RunStatus.ERROR if failed else RunStatus.DONE,
        active=False,
        wake_at=None,
        root_id=run_id,
        parent_id=None,
        created_at=at,
        updated_at=at + 1,
        title=f"Greet number {number}",
        summary='{"done": 1, "tasks": 1}',
    )


async def _fill(app: Holdfast) -> None:
    """Rows as runs leave them; a list never reads what stands behind them."""

    async def born(number: int) -> None:
        row = _row(number)
        records = [Record(1, row.created_at, "PlanStarted", "{}")]
        await app.journal.append(Append(row.run_id, 0, records, row))

    for first in range(1, RUNS + 1, AT_ONCE):
        await asyncio.gather(*map(born, range(first, first + AT_ONCE)))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def many_runs(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ManyRuns]:
    meter = Meter()
    path = tmp_path_factory.mktemp("many_runs") / "journal.db"
    app = Holdfast(journal=SqliteJournal(path, connect=meter.connect))
    app.load_plan_text(GREET)
    async with serving(app) as backend:
        await _fill(app)
        yield ManyRuns(backend, meter)


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, many_runs: ManyRuns) -> AsyncIterator[Page]:
    async with window(browser, many_runs.backend) as admin:
        yield await admin.live("/console/plans")


async def shown(page: Page, many_runs: ManyRuns, query: str) -> list[str]:
    """The runs on a page, from the top."""
    await page.goto(f"{many_runs.backend.url}/console/runs{query}")
    await expect(page.locator("html")).to_have_attribute("data-live", "live")
    rows = await page.locator("#runs tbody tr").evaluate_all("all => all.map(one => one.id)")
    return [one.removeprefix("row-") for one in rows]


async def test_the_newest_stand_on_the_first_page(page: Page, many_runs: ManyRuns) -> None:
    before = many_runs.meter.instructions
    with many_runs.meter.at_most(MOST):
        rows = await shown(page, many_runs, "")
    assert many_runs.meter.instructions > before, "what a page costs is counted"
    assert rows == [many_runs.run_id(one) for one in range(RUNS, RUNS - PAGE, -1)]
    await page.get_by_role("link", name="Older").click()
    await expect(page).to_have_url(f"{many_runs.backend.url}/console/runs?before={rows[-1]}")
    await expect(page.locator("#runs tbody tr").first).to_contain_text(
        many_runs.run_id(RUNS - PAGE)
    )


@pytest.mark.parametrize("number", [RUNS // 2, 700, PAGE + 1])
async def test_a_page_deep_down_costs_what_the_first_does(
    page: Page, many_runs: ManyRuns, number: int
) -> None:
    with many_runs.meter.at_most(MOST):
        rows = await shown(page, many_runs, f"?before={many_runs.run_id(number)}")
    assert rows == [many_runs.run_id(one) for one in range(number - 1, number - 1 - PAGE, -1)]
    await expect(page.locator(f"#row-{rows[0]}")).to_contain_text(f"Greet number {number - 1}")
    older = page.get_by_role("link", name="Older")
    await expect(older).to_have_count(1)


async def test_the_last_page_is_the_last(page: Page, many_runs: ManyRuns) -> None:
    with many_runs.meter.at_most(MOST):
        rows = await shown(page, many_runs, f"?before={many_runs.run_id(4)}")
    assert rows == [many_runs.run_id(one) for one in (3, 2, 1)]
    await expect(page.get_by_role("link", name="Older")).to_have_count(0)


@pytest.mark.parametrize(
    "query",
    ["?status=error", "?plan=fragile", "?status=error&kind=plan", "?status=error&plan=fragile"],
)
async def test_a_filter_finds_the_few_among_the_many(
    page: Page, many_runs: ManyRuns, query: str
) -> None:
    with many_runs.meter.at_most(MOST):
        assert await shown(page, many_runs, query) == many_runs.failed


async def test_a_filtered_page_goes_on_where_the_last_ended(
    page: Page, many_runs: ManyRuns
) -> None:
    _, second, *rest = many_runs.failed
    with many_runs.meter.at_most(MOST):
        assert await shown(page, many_runs, f"?status=error&before={second}") == rest


@pytest.mark.parametrize("query", ["?status=pause", "?status=pause&plan=greet"])
async def test_nothing_fits_and_nothing_is_searched_for_it(
    page: Page, many_runs: ManyRuns, query: str
) -> None:
    with many_runs.meter.at_most(MOST):
        assert await shown(page, many_runs, query) == []
    await expect(page.get_by_text("No run fits these filters")).to_be_visible()


async def test_whoever_may_see_few_looks_further_back_by_hand(
    browser: Browser, many_runs: ManyRuns
) -> None:
    """A list reads only so far among what is not theirs, and says that there is more."""
    grants = {"fragile": ["viewer"]}
    async with window(
        browser, many_runs.backend, name="Some viewer", roles=(), grants=grants
    ) as one:
        page = await one.live("/console/plans")
        with many_runs.meter.at_most(MOST * MOST_PAGES_READ):
            assert await shown(page, many_runs, "") == many_runs.failed[:1]
        await page.get_by_role("link", name="Older").click()
        await expect(page.get_by_text("None of these runs is for you to see")).to_be_visible()
        further = page.get_by_role("link", name="Older")
        beyond = many_runs.run_id(RUNS - 2 * PAGE * MOST_PAGES_READ + 1)
        await expect(further).to_have_attribute("href", f"/console/runs?before={beyond}")
        await further.click()
        await expect(page).to_have_url(f"{many_runs.backend.url}/console/runs?before={beyond}")
        assert await shown(page, many_runs, "?plan=fragile") == many_runs.failed

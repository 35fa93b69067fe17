"""Every example in the README and the docs is executed, so they cannot drift."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import CallInfo, Holdfast

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str, language: str) -> list[str]:
    found = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    return [text for kind, text in found if kind == language]


def office() -> Holdfast:
    app = Holdfast.in_memory()

    @app.tool
    async def apply_computer(employee: str, computer_model: str) -> dict[str, str]:
        return {"order_id": computer_model}

    @app.tool(idempotent=True)
    async def grant_access(employee_id: str, until: str) -> dict[str, str]:
        return {"badge": employee_id}

    @app.tool
    async def query_access(employee_id: str) -> dict[str, bool]:
        return {"exists": True}

    return app


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md", "docs/plans.md"])
def test_every_plan_in_the_docs_checks_clean(page: str) -> None:
    plans = blocks(page, "yaml")
    assert plans
    for text in plans:
        assert office().load_plan_text(text, page).plan_id


async def test_the_plan_with_everything_in_it_runs_to_its_end() -> None:
    app = office()
    [text] = blocks("docs/plans.md", "yaml")
    app.load_plan_text(text)
    async with app:
        instance = await app.plans.start_plan_by_prompt(
            "门禁", "access_for_contractor", values={"until": "2027-01-31"}
        )
        await instance.wait_until_settled(30)
        planner = app.planner_agent
        answer = {"sponsor": "Will Zhang", "site": {"value": "other", "text": "Lab"}}
        await planner.continue_plan(instance.id, answer)
        await instance.wait_until_settled(30)
        [approval] = await app.inbox()
        await app.answer(approval.question_id, option_id="approve")
        assert await instance.wait_for_completion(30) == "done"
        main = instance.get_main_task_instance()
        assert main.context["issued"] is True
        assert instance.verification == {"verify.1": "verified"}


def test_the_example_of_a_plan_from_a_prompt_prints_what_the_page_says(tmp_path: Path) -> None:
    [script], [printed] = (blocks("docs/plans.md", one) for one in ("python", "text"))
    run = subprocess.run(
        [sys.executable, "-X", "dev", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (run.stdout, run.stderr) == (printed, "")


def test_the_python_example_of_the_readme_does_what_its_comments_say(tmp_path: Path) -> None:
    script, _ = blocks("README.md", "python")
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "apply_computer.yaml").write_text(blocks("README.md", "yaml")[0], "utf-8")
    run = subprocess.run(
        [sys.executable, "-X", "dev", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.stdout.splitlines() == ["pause ['computer_model']", "done"], run.stderr


async def test_the_python_tools_of_the_docs_can_be_called() -> None:
    [script] = blocks("docs/tools.md", "python")
    names: dict[str, object] = {}
    exec(script, names)
    app = names["app"]
    assert isinstance(app, Holdfast)
    call = CallInfo("k", "inst_000001", 1)
    granted = await app.tools.get("grant_access").call(
        {"employee_id": "WZ001", "until": "2027-01-31"}, call
    )
    assert granted == {"badge": "WZ001-office", "key": "k"}
    assert app.tools.get("grant_access").spec.idempotent
    assert app.tools.get("query_access").spec.read_only


def test_the_http_tools_of_the_docs_load(tmp_path: Path) -> None:
    [text] = blocks("docs/tools.md", "yaml")
    file = tmp_path / "tools.yaml"
    file.write_text(text, encoding="utf-8")
    app = Holdfast.in_memory()
    app.load_tools(file, {})
    assert app.tools.missing_arguments("grant_access", {}) == ["employee_id", "until"]

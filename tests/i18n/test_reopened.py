"""What is made of messages after a restart is said in the reader's language, as before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.errors import AlreadyAnswered, PermanentError
from holdfast.i18n.catalogue import said
from holdfast.model.rows import ANY_QUESTION
from holdfast.views.reader import RunReader

ORDER = """\
plan_id: order
name: Order
main_task_id: "000"
tasks:
  - {task_id: "000", name: Order}
listeners:
  - {listener_id: L0, trigger_task_id: "000", trigger_condition: Running, listener_type: tool,
     tool: order, fields: {model: {type: text, label: Model}},
     success_output: {task_id: "000", status: Done}}
"""

ABOVE = """\
plan_id: above
name: Above
main_task_id: "000"
tasks:
  - {task_id: "000", name: Above}
listeners:
  - {listener_id: L0, trigger_task_id: "000", trigger_condition: Running, listener_type: plan,
     plan_id: below, success_output: {task_id: "000", status: Done}}
"""

BELOW = """\
plan_id: below
name: Below
main_task_id: "000"
tasks:
  - {task_id: "000", name: Below}
listeners:
  - {listener_id: L0, trigger_task_id: "000", trigger_condition: Running, listener_type: tool,
     tool: refuse, args: {}, success_output: {task_id: "000", status: Done}}
"""


def opened(home: Path) -> Holdfast:
    app = Holdfast(home)

    @app.tool
    async def order(model: str) -> dict[str, Any]:
        return {"model": model}

    @app.tool
    async def refuse() -> dict[str, Any]:
        raise PermanentError("out of paper")

    for text in (ORDER, BELOW, ABOVE):
        app.load_plan_text(text)
    return app


async def test_an_option_in_a_refusal_is_said_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        instance = await app.plans.start_plan_by_prompt("go", "order")
        await instance.wait_until_settled()
        [question] = await app.inbox()
    async with opened(tmp_path) as app:
        await app.answer(question.question_id, data={"model": "ThinkPad"}, by="will")
        with pytest.raises(AlreadyAnswered) as refused:
            await app.answer(question.question_id, data={"model": "MacBook"}, by="will")
    assert "with 'Provide'" in str(refused.value)
    assert "以 “提交” 回答" in said(refused.value.args[0], "zh")


async def test_why_a_sub_plan_failed_is_said_above_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        instance = await app.plans.start_plan_by_prompt("go", "above")
        await instance.wait_until_settled()
        told = "L0 失败：inst_000001.L0.1：L0 失败：out of paper"
        assert said(instance.error or "", "zh") == told
    async with opened(tmp_path) as app:
        again = await app.instance(instance.id)
        assert said(again.error or "", "zh") == told


async def test_a_view_of_a_question_is_said_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        instance = await app.plans.start_plan_by_prompt("go", "order")
        await instance.wait_until_settled()
    async with opened(tmp_path) as app:
        [listed] = await RunReader(app.journal).questions(ANY_QUESTION)
        asked = listed.request
        texts = [listed.title, asked.title, asked.message, asked.options[0].label]
    assert texts == ["order needs more", "order needs more", "Needed to go on: Model", "Provide"]
    said_to_readers = [said(one, "zh") for one in texts]
    assert said_to_readers == ["order 还缺少信息", "order 还缺少信息", "继续所需：Model", "提交"]

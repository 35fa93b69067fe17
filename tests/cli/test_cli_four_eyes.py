"""Four eyes on the command line: who wants a call does not approve it here either."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_scene import Command

PAY = """
plan_id: pay
name: Pay
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: pay
    args: {amount: 5}
    success_output: {task_id: "001", status: Done}
"""

APP = """
from pathlib import Path

from holdfast import Holdfast

HERE = Path(__file__).parent
app = Holdfast(HERE / "kept")


@app.tool(approval="require")
async def pay(amount: int) -> dict:
    with (HERE / "paid").open("a") as ledger:
        ledger.write(f"{amount}\\n")
    return {"paid": amount}


app.load_plans(HERE / "plans")
"""


@pytest.fixture
def till(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (place / "plans" / "pay.yaml").write_text(PAY, encoding="utf-8")
    module = f"till_of_{place.name}"  # one of this test's own: modules stay loaded
    (place / f"{module}.py").write_text(APP, encoding="utf-8")
    monkeypatch.setenv("HOLDFAST_APP", f"{module}:app")
    monkeypatch.setenv("HOLDFAST_FOUR_EYES", "1")
    monkeypatch.syspath_prepend(str(place))
    return place


def test_who_started_a_run_does_not_approve_it(till: Path, holdfast: Command) -> None:
    waiting = holdfast("run", "pay", "--json").json
    question = waiting["questions"][0]["question_id"]
    for edit in ((), ("--set", "amount=900")):
        refused = holdfast("answer", question, "--option", "approve", *edit, "--yes")
        assert refused.code == 1
        told = " ".join(refused.err.split())
        assert "you started this run, and so want this call: another person must approve" in told
    assert not (till / "paid").exists()
    assert [one["question_id"] for one in holdfast("inbox", "--json").json] == [question]


def test_without_the_setting_one_is_enough(
    till: Path, holdfast: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_FOUR_EYES", "off")
    question = holdfast("run", "pay", "--json").json["questions"][0]["question_id"]
    ending = holdfast("answer", question, "--option", "approve", "--yes")
    assert ending.code == 0, ending
    assert "answered Run pay? with “Approve and run”" in ending.out

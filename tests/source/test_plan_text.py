"""A plan that was never a file is written as one, which reads back as the same plan."""

from __future__ import annotations

from holdfast.core.storing import plan_digest, record_to_json
from holdfast.source.check import Catalog
from holdfast.source.plan_text import plan_text
from holdfast.source.planfile import load_plan

SOURCE = """\
plan_id: greet
name: 问候 (greeting)
main_task_id: "001"
inputs:
  name: {type: text, default: 张三}
tasks:
  - {task_id: "001", name: 问候}
  - {task_id: "002", name: said}
listeners:
  - listener_id: L1
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: code
    code_snippet: |
      words = "hello"
      result = {"words": words}
    success_output: {task_id: "002", status: Done, context: {words: "{{result.words}}"}}
  - listener_id: L2
    trigger_task_id: ["002"]
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {}"
    success_output: {task_id: "001", status: Done}
"""


def test_what_is_written_reads_back_as_the_same_plan() -> None:
    plan = load_plan(SOURCE, "greet.yaml", Catalog())
    written = plan_text(record_to_json(plan))
    assert plan_digest(load_plan(written, "written.yaml", Catalog())) == plan_digest(plan)


def test_what_names_a_plan_comes_first_and_snippets_stay_readable() -> None:
    written = plan_text(record_to_json(load_plan(SOURCE, "greet.yaml", Catalog())))
    first = [line.partition(":")[0] for line in written.splitlines() if not line.startswith(" ")]
    assert first[:3] == ["plan_id", "name", "main_task_id"]
    assert "name: 问候 (greeting)\n" in written
    assert '    code_snippet: |\n      words = "hello"\n' in written

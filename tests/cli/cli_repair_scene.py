"""Runs that fail for a reason, at a mock office in a process of its own: who has no profile gets no
access, and a result that is read under another name is not there."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from cli_scene import Command, environment

import holdfast.demo
import warm

TOOLS = Path(holdfast.demo.__file__).parent / "tools.yaml"

WILL = {
    "id": "WZ001",
    "name": "Will Zhang",
    "email": "will.zhang@example.com",
    "department": "Engineering",
}

ACCESS = """
plan_id: access
name: Access for Will Zhang
main_task_id: "001"
inputs: {id: {type: text}, name: {type: text}, email: {type: text}, department: {type: text}}
repair: {tools: [create_employee_profile]}
tasks:
  - {task_id: "001", name: Goal}
  - {task_id: "002", name: Access}
  - {task_id: "003", name: Mail}
listeners:
  - listener_id: L1
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: grant_access
    args: {employee_id: "{001.context.id}"}
    retry: 1
    success_output: {task_id: "002", status: Done, context: {badge: "{{result.badge}}"}}
  - listener_id: L2
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: tool
    tool: send_email
    args: {to: "{001.context.email}", subject: Badge, content: "It is {002.context.badge}"}
    retry: 1
    success_output: {task_id: "003", status: Done}
  - listener_id: L3
    trigger_task_id: "003"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {}"
    success_output: {task_id: "001", status: Done}
"""

SHAPE = """
plan_id: shape
name: A profile
main_task_id: "001"
inputs: {name: {type: text}, email: {type: text}, department: {type: text}}
tasks: [{task_id: "001", name: Goal}, {task_id: "002", name: Profile}]
listeners:
  - listener_id: L1
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: create_employee_profile
    args:
      name: "{001.context.name}"
      email: "{001.context.email}"
      department: "{001.context.department}"
    retry: 1
    success_output: {task_id: "002", status: Done, context: {number: "{{result.number}}"}}
  - listener_id: L2
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {}"
    success_output: {task_id: "001", status: Done}
"""

OUTER = """
plan_id: outer
name: Outer
main_task_id: "001"
inputs: {id: {type: text}, name: {type: text}, email: {type: text}, department: {type: text}}
tasks: [{task_id: "001", name: Goal}, {task_id: "002", name: Inner}]
listeners:
  - listener_id: L1
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: plan
    plan_id: access
    values:
      id: "{001.context.id}"
      name: "{001.context.name}"
      email: "{001.context.email}"
      department: "{001.context.department}"
    success_output: {task_id: "002", status: Done}
  - listener_id: L2
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {}"
    success_output: {task_id: "001", status: Done}
"""

READ_ANOTHER = [
    {"op": "set_output", "listener_id": "L1", "context": {"number": "{{result.employee_id}}"}}
]
"""What mends `shape`: the same value under its own name."""

GREET_FIRST = [{"op": "set_args", "listener_id": "L2", "set": {"subject": "Hello"}}]
"""A new value for what has not run yet."""


@dataclass(frozen=True, slots=True)
class MockOffice:
    url: str

    def counts(self) -> dict[str, int]:
        """How often each tool was called."""
        return dict(httpx.get(f"{self.url}/counts").json())

    def delay(self, tool: str, seconds: float) -> None:
        answer = httpx.post(f"{self.url}/configure_delays", json={"delays": {tool: seconds}})
        assert answer.status_code == 200, answer.text


@contextmanager
def opened_office() -> Iterator[MockOffice]:
    program = "from holdfast.demo.office import main; main()"
    process = warm.Popen(
        [sys.executable, "-c", program, "--until-stdin-closes"],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield MockOffice(json.loads(process.stdout.readline())["url"])
    finally:
        process.kill()
        process.communicate(timeout=60)


def furnish(place: Path) -> None:
    """Plans and tools, where commands look for them."""
    shutil.copy(TOOLS, place / "tools.yaml")
    for name, plan in (("access", ACCESS), ("shape", SHAPE), ("outer", OUTER)):
        (place / "plans" / f"{name}.yaml").write_text(plan, encoding="utf-8")


def failed(run: Command, plan: str = "access", **values: str) -> str:
    """A run that has failed; its number is what comes after `inst_`."""
    given = {**WILL, **values}
    if plan == "shape":
        del given["id"]
    ending = run("run", plan, "--values", json.dumps(given), "--json")
    assert (ending.code, ending.json["status"]) == (3, "error"), ending
    return str(ending.json["instance_id"])


def patch(place: Path, operations: Any, name: str = "patch.json") -> str:
    (place / name).write_text(json.dumps(operations), encoding="utf-8")
    return name


def flat(shown: str) -> str:
    """What is shown, as if no row of it had been broken."""
    lines = (line.strip() for line in shown.splitlines())
    return "".join(f" {one}" if not one.startswith("│ ") else one[2:] for one in lines)

"""Plans of one step after another, as long as wanted."""

from __future__ import annotations

CHAIN_HEAD = """\
plan_id: chain
name: One thing after another
main_task_id: "000"
tasks:
  - {task_id: "000", name: All of it}
"""


def chain(length: int) -> str:
    """A plan of that many steps, each of which leaves two records."""
    ids = [f"{number:03}" for number in range(1, length)]
    tasks = [f'  - {{task_id: "{one}", name: Step {one}}}\n' for one in ids]
    steps = []
    for before, after in zip(["000", *ids], [*ids, "000"], strict=True):
        condition = "Running" if before == "000" else "Done"
        steps.append(
            f"  - {{listener_id: L{before}, trigger_task_id: '{before}', "
            f"trigger_condition: {condition}, listener_type: tool, tool: touch, args: {{}}, "
            f"success_output: {{task_id: '{after}', status: Done}}}}\n"
        )
    return CHAIN_HEAD + "".join(tasks) + "listeners:\n" + "".join(steps)

"""Words of the plan pages."""

from __future__ import annotations

from typing import Final

WORDS: Final[dict[str, tuple[str, str]]] = {
    "plans.title": ("Plans", "计划"),
    "plans.table": ("Plans by name", "计划列表"),
    "plans.plan": ("Plan", "计划"),
    "plans.version": ("Version", "版本"),
    "plans.tasks": ("Tasks", "任务"),
    "plans.runs": ("Runs", "运行"),
    "plans.runs_of": ("{n} run of {plan}|{n} runs of {plan}", "{plan} 的 {n} 次运行"),
    "plans.origin": ("Where from", "来源"),
    "plans.application": ("The application's own", "应用自带"),
    "plans.registered": ("Registered by {who}", "由 {who} 登记"),
    "plans.start": ("Start", "启动"),
    "plans.start_one": ("Start {plan}", "启动 {plan}"),
    "plans.empty": ("There is no plan yet", "还没有计划"),
    "plans.empty.text": (
        "A plan says what follows from what, and where a person must be asked. "
        "Serve a directory of plans, or write one here:",
        "计划描述各步骤的先后关系，以及何处需要询问人。可以从目录加载计划，或在这里编写：",
    ),
    "plans.new": ("New plan", "新建计划"),
    "plans.new.text": (
        "This is the smallest plan that runs. Change it as you like; Check finds every mistake "
        "at once, and Register lets it be started.",
        "这是可以运行的最小计划，请随意修改。“检查”会一次找出所有错误，“登记”后即可启动。",
    ),
    "plans.all": ("All plans", "全部计划"),
    "plans.size": ("{tasks} tasks, {listeners} listeners", "{tasks} 个任务，{listeners} 个监听器"),
    "plans.its_runs": ("Its runs", "查看运行"),
    "plans.graph": ("Graph", "流程图"),
    "plans.source": ("Source", "源文本"),
    "plans.as_stored": (
        "Written out as it is stored: the comments of its file are not part of it.",
        "按存储内容还原的文本，不含原文件中的注释。",
    ),
    "plans.problems": ("Mistakes, by line", "错误列表"),
    "plans.check": ("Check", "检查"),
    "plans.register": ("Register", "登记"),
    "plans.register.text": (
        "New runs use it at once; those that run keep theirs.",
        "新的运行立即使用，已有的运行不受影响。",
    ),
    "plans.start_title": ("Start a run", "启动运行"),
    "plans.start_now": ("Start", "启动"),
    "plans.prompt": ("What is it for? (optional)", "用途说明（可选）"),
    "plans.prompt.help": (
        "With words here, what you leave empty above is read from them, or asked later.",
        "填写后，上面留空的内容会从这里读取，或稍后询问。",
    ),
    "plans.versions": ("Versions", "版本"),
    "plans.versions.text": (
        "A run keeps the version it began with, whatever is registered later.",
        "运行始终使用启动时的版本，不受之后登记的影响。",
    ),
    "plans.current": ("Current", "当前"),
    "plans.current.show": ("Show the current one", "查看当前版本"),
    "plans.never_run": ("not run yet", "尚未运行"),
    "plans.earlier": (
        "Graph and source are those of the earlier version {version}.",
        "流程图和源文本来自较早的版本 {version}。",
    ),
    "plans.earlier.again": (
        "Register makes it the current one again.",
        "登记后它将重新成为当前版本。",
    ),
    "js-plans.line": ("Line {line}, column {column}", "第 {line} 行第 {column} 列"),
    "js-plans.hidden": (
        "It holds characters that do not show, and may not read as it runs: {text}",
        "包含不可见字符，看到的可能与实际执行的不同：{text}",
    ),
    "js-plans.hidden_line": ("line {line} {text}", "第 {line} 行 {text}"),
    "js-plans.wrong": (
        "{n} mistake found. Nothing has changed.|{n} mistakes found. Nothing has changed.",
        "发现 {n} 处错误，未作任何更改。",
    ),
    "js-plans.right": ("No mistakes found.", "没有发现错误。"),
    "js-plans.other": (
        "No mistakes found. Its plan_id is another: Register makes a plan {plan} of its own.",
        "没有发现错误。plan_id 不同，登记后将成为独立的计划 {plan}。",
    ),
    "js-plans.required": ("Please fill this in.", "请填写此项。"),
    "js-plans.choose": ("Please choose.", "请选择。"),
}

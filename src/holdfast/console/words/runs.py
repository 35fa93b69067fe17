"""Words of the runs page."""

from __future__ import annotations

from typing import Final

WORDS: Final[dict[str, tuple[str, str]]] = {
    "runs.title": ("Runs", "运行"),
    "runs.start": ("Start a run", "启动运行"),
    "runs.all_plans": ("All plans", "全部计划"),
    "runs.filters": ("Filters", "筛选"),
    "runs.filter.all": ("All", "全部"),
    "runs.filter.running": ("Running", "运行中"),
    "runs.filter.pause": ("Waiting", "等待中"),
    "runs.filter.error": ("Failed", "失败"),
    "runs.filter.done": ("Done", "已完成"),
    "runs.filter.cancelled": ("Cancelled", "已取消"),
    "runs.kind": ("Kind", "类型"),
    "runs.any_kind": ("Every kind", "所有类型"),
    "runs.plan": ("Plan or agent", "计划或智能体"),
    "runs.any_plan": ("Every plan and agent", "所有计划和智能体"),
    "runs.apply": ("Apply", "应用"),
    "runs.table": ("Runs, the newest first", "运行列表，最新的在前"),
    "runs.select": ("Select", "选择"),
    "runs.select_all": ("Select all on this page", "选择本页全部"),
    "runs.damaged": (
        "Damaged: `holdfast doctor --integrity` tells more",
        "已损坏：`holdfast doctor --integrity` 会说明详情",
    ),
    "runs.select_one": ("Select {run}", "选择 {run}"),
    "runs.status": ("Status", "状态"),
    "runs.run": ("Run", "运行"),
    "runs.progress": ("Progress", "进度"),
    "runs.tasks_done": ("{done} of {tasks} tasks done", "{tasks} 个任务中已完成 {done} 个"),
    "runs.turn": ("Turn {n}", "第 {n} 轮"),
    "runs.retries": ("Retries", "重试"),
    "runs.retries.what": (
        "Retries without a person, the one that is about to come too: the timeline tells each",
        "无需人工的重试次数（含即将进行的）：每次都见于时间线",
    ),
    "runs.tried_again": ("{n} retry|{n} retries", "重试 {n} 次"),
    "runs.started": ("Started", "开始时间"),
    "runs.duration": ("Duration", "用时"),
    "runs.waits": ("{n} question waits|{n} questions wait", "{n} 个问题待答"),
    "runs.newest": ("Newest", "最新"),
    "runs.older": ("Older", "更早"),
    "runs.pages": ("Pages", "分页"),
    "runs.shown": ("{n} run shown|{n} runs shown", "显示 {n} 个运行"),
    "runs.empty": ("No runs yet", "还没有运行"),
    "runs.empty.text": (
        "A run is one execution of a plan. It survives restarts, and stops where it needs you. "
        "Start the first one from a plan, or in a terminal:",
        "一次运行就是计划的一次执行。它不怕重启，需要您时会停下来等待。从计划页启动第一个，或在终端执行：",
    ),
    "runs.empty.no_plan": (
        "A run is one execution of a plan. It survives restarts, and stops where it needs you. "
        "There is no plan yet that you may start.",
        "一次运行就是计划的一次执行。它不怕重启，需要您时会停下来等待。目前没有您可以启动的计划。",
    ),
    "runs.none_fit": ("No run fits these filters", "没有符合筛选条件的运行"),
    "runs.none_fit.text": (
        "Change a filter above, or look at all runs.",
        "请更改上面的筛选条件，或查看全部运行。",
    ),
    "runs.none_here": ("None of these runs is for you to see", "这些运行中没有您可以查看的"),
    "runs.none_here.text": ("Older runs may be: look further back.", "可以再往前查看更早的运行。"),
    "runs.show_all": ("Show all runs", "查看全部运行"),
    "runs.selected": ("With the selected runs", "对所选运行"),
    "runs.resume": ("Resume…", "恢复…"),
    "runs.cancel": ("Cancel…", "取消…"),
    "runs.clear": ("Clear selection", "清除选择"),
    "runs.resume.title": ("Resume the selected runs?", "恢复所选运行？"),
    "runs.resume.text": (
        "What failed in them runs again, and they go on from there. What is done stays done.",
        "其中失败的步骤会重新执行，然后继续运行。已完成的保持不变。",
    ),
    "runs.cancel.title": ("Cancel the selected runs?", "取消所选运行？"),
    "runs.cancel.text": (
        "Nothing new starts. What is under way finishes first, and its result is kept. "
        "A cancelled run cannot be resumed.",
        "不会再启动新的步骤。正在执行的步骤会先完成并保留结果。已取消的运行无法恢复。",
    ),
    "runs.cancel.reason": ("Reason (optional)", "原因（可选）"),
    "runs.leave": ("Leave them", "保持现状"),
    "js-runs.selected": ("{n} run selected|{n} runs selected", "已选择 {n} 个运行"),
    "js-runs.named": ("{title}: {run}", "{title}：{run}"),
    "js-runs.resume": ("Resume {n} run|Resume {n} runs", "恢复 {n} 个运行"),
    "js-runs.cancel": ("Cancel {n} run|Cancel {n} runs", "取消 {n} 个运行"),
    "js-runs.cancelled": (
        "{n} run is being cancelled|{n} runs are being cancelled",
        "正在取消 {n} 个运行",
    ),
    "js-runs.resumed": ("{n} run goes on|{n} runs go on", "{n} 个运行已恢复"),
    "js-runs.refused": ("{run}: {why}", "{run}：{why}"),
}

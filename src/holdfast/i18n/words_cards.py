"""Questions in Chinese: what Holdfast itself writes on a card."""

from __future__ import annotations

from typing import Final

LINES: Final[dict[str, str]] = {
    "Run {tool:word}?": "执行 {tool}？",
    "{tool:word} needs more": "{tool} 还缺少信息",
    "Which plan is meant?": "指的是哪个计划？",
    "Did {what:word} happen?": "{what} 执行了吗？",
    "{what:word} was sent, but its outcome is unknown: {reason:said}.": (
        "{what} 已发出，但结果未知：{reason}。"
    ),
    "Look it up where it would have taken effect, then choose.": (
        "请到它会生效的地方核实，再作选择。"
    ),
    "Runs {tool} with these arguments.": "以所示参数执行 {tool}。",
    "Runs {tool} with these arguments, completed by you.": "由您补全所示参数后执行 {tool}。",
    "Goes on to run {tool} with what is given here.": "以此处提供的内容继续执行 {tool}。",
    "Runs {tool} again with these arguments.": "以所示参数再次执行 {tool}。",
    "Does not run {tool}.": "不执行 {tool}。",
    "Does not run {tool}; goes on without it.": "不执行 {tool}，跳过它继续。",
    "Does not run {tool}; ends the whole run.": "不执行 {tool}，并结束整个运行。",
    "Does not run {tool}; the agent thinks again with your words.": (
        "不执行 {tool}，智能体将根据您的话重新思考。"
    ),
    "Does not run {tool}; it is asked again with your words.": (
        "不执行 {tool}，附上您的话再次询问。"
    ),
    "Does not run {tool} again; goes on with the result that you give.": (
        "不再执行 {tool}，以您提供的结果继续。"
    ),
    "Does not run {tool} again; ends the whole run.": "不再执行 {tool}，并结束整个运行。",
    "A handler decides whether {tool} runs.": "由处理程序决定是否执行 {tool}。",
    "Goes on with this choice.": "以此选择继续。",
    "Goes on with what you give.": "以您提供的内容继续。",
    "Does not go on yet; your words go back, and it is asked anew.": (
        "暂不继续，您的话将被转回，并重新提问。"
    ),
    "Refuses what is asked.": "拒绝所问之事。",
    "Goes on without an answer.": "不作回答，继续。",
    "Ends the whole run.": "结束整个运行。",
    "A handler decides what happens.": "由处理程序决定如何进行。",
    "Task {id}": "任务 {id}",
    "Run these tasks?": "执行这些任务？",
    "{task}; needs first: {names}": "{task}；需先完成：{names}",
    "Task {id} failed": "任务 {id} 失败",
    "What shall become of it?": "如何处理？",
    "{agent} asks": "{agent} 提问",
    "The agent wants to know something; its own words are quoted.": (
        "智能体想了解一些信息，原话如下。"
    ),
    "{who} wants to call {tool:word} with these arguments.": "{who} 想用以下参数调用 {tool}。",
    "Needed to go on: {names}": "继续所需：{names}",
    "The tool has changed since this was answered: {names}": (
        "回答之后工具已有变化，以下内容不再适用：{names}"
    ),
    "Feedback on the last answer: {text}": "对上次回答的反馈：{text}",
    "What was consented to has changed.": "先前同意的内容已有变化。",
    "This was consented to, but it has changed since:": "先前已同意，但之后有变化：",
    "{who} wants it changed, and somebody else must approve that:": (
        "{who} 要求修改，须由他人审批："
    ),
    "This was consented to before, and is to be called once more.": "先前已同意，现要再次调用。",
    "- the tool {tool:word} itself is another version": "- 工具 {tool} 本身的版本不同",
    "- {name:word}: new, {value}": "- {name}：新增，{value}",
    "- {name:word}: gone, was {value}": "- {name}：已去掉，原为 {value}",
    "- {name:word}: {before} has become {now}": "- {name}：由 {before} 变为 {now}",
}
"""Titles and messages, line by line."""

LABELS: Final[dict[str, str]] = {
    "Try again": "重试",
    "Go on without it": "跳过它继续",
    "Stop the conversation": "停止会话",
    "Run these tasks": "执行这些任务",
    "Ask for other tasks": "要求换一组任务",
    "None of these": "都不是",
    "Which plan?": "哪个计划？",
    "What should be different?": "需要如何调整？",
    "Why not?": "请说明理由",
    "Go on with the result that you fill in; nothing is called again.": (
        "按您填写的结果继续，不会再次调用。"
    ),
    "Call it once more under the same key.": "以同一键值再调用一次。",
    "Cancel the whole run.": "取消整个运行。",
    "Answer": "回答",
    "Result": "结果",
    "What it returned, as far as is known": "它返回的内容（就所知）",
    "What it returned, written as JSON.": "它返回的内容，写成 JSON。",
    "Write it as JSON.": "请写成 JSON。",
    "{text} Write it as JSON.": "{text} 请写成 JSON。",
}
"""Options and fields."""

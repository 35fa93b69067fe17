"""Words of the chat pages."""

from __future__ import annotations

from typing import Final

WORDS: Final[dict[str, tuple[str, str]]] = {
    "chat.title": ("Chat", "对话"),
    "chat.agents": ("Talk to an agent", "与智能体对话"),
    "chat.model": ("Model {model}", "模型 {model}"),
    "chat.model.none": ("No model", "没有模型"),
    "chat.tools": ("{n} tool:|{n} tools:", "{n} 个工具："),
    "chat.start": ("Start a chat", "开始对话"),
    "chat.start_with": ("Start a chat with {agent}", "与 {agent} 开始对话"),
    "chat.no_agents": ("There is no agent yet", "还没有智能体"),
    "chat.no_agents.text": (
        "An agent is a model with tools, and with rules for what it must ask first. "
        "Declare one in the application that is served:",
        "智能体是带有工具的模型，并规定哪些操作必须先征得同意。请在应用中声明：",
    ),
    "chat.plug": ("Use another model", "换一个模型"),
    "chat.plug.none": (
        "There is no model that could answer: plug one in",
        "没有可以回答的模型，请接入一个",
    ),
    "chat.plug.scripted": (
        "A scripted model answers here, without key or network. Plug a real one in",
        "这里由脚本模型回答，无需密钥和网络。接入真实模型",
    ),
    "chat.plug.text": (
        "Name a model and give its provider's key, then start the server again:",
        "指定模型并提供其服务商的密钥，然后重启服务器：",
    ),
    "chat.plug.own": (
        "A server of your own that speaks OpenAI's protocol works too:",
        "也可以使用兼容 OpenAI 协议的自建服务：",
    ),
    "chat.plug.python": ("Or in Python:", "或在 Python 中："),
    "chat.sessions": ("Chats", "对话记录"),
    "chat.table": ("Chats, the newest first", "对话列表，最新的在前"),
    "chat.status": ("Status", "状态"),
    "chat.ready": ("Ready", "就绪"),
    "chat.session": ("Agent", "智能体"),
    "chat.turns": ("Turns", "轮次"),
    "chat.turn": ("{n} turn|{n} turns", "{n} 轮"),
    "chat.begun": ("Started", "开始时间"),
    "chat.last": ("Last moved", "最近活动"),
    "chat.waits": ("{n} question waits|{n} questions wait", "{n} 个问题待答"),
    "chat.pages": ("Pages", "分页"),
    "chat.newest": ("Newest", "最新"),
    "chat.older": ("Older", "更早"),
    "chat.empty": ("No chats yet", "还没有对话"),
    "chat.empty.text": (
        "Start one with an agent. It outlives restarts, and asks you before it does anything "
        "that needs consent.",
        "与智能体开始一次对话。对话不怕重启，需要同意的操作会先问您。",
    ),
    "chat.empty.none": (
        "No agent is offered to you. An administrator can give you the right to speak to one.",
        "没有可供您使用的智能体。管理员可以授予您与智能体对话的权限。",
    ),
    "chat.all": ("All chats", "全部对话"),
    "chat.run": ("Run", "运行"),
    "chat.usage": (
        "{n} request · {input} tokens in · {output} out|"
        "{n} requests · {input} tokens in · {output} out",
        "{n} 次请求 · 输入 {input} · 输出 {output} 词元",
    ),
    "chat.transcript": ("What was said", "对话内容"),
    "chat.earlier": ("Show what came earlier", "显示更早的内容"),
    "chat.nothing": ("Say something to {agent}.", "对 {agent} 说点什么吧。"),
    "chat.thinking": ("Thinking…", "思考中…"),
    "chat.resume": ("Resume", "恢复"),
    "chat.resume.text": (
        "Goes on where it failed; what was done is not done again. Or write something else.",
        "从失败处继续，已完成的不会重做。也可以直接说别的。",
    ),
    "chat.message": ("Message", "消息"),
    "chat.message.hint": (
        "Enter sends, Shift+Enter begins a new line",
        "回车发送，Shift+回车换行",
    ),
    "chat.send": ("Send", "发送"),
    "chat.stop": ("Stop…", "停止…"),
    "chat.stop.title": ("Stop this chat?", "停止这次对话？"),
    "chat.stop.text": (
        "Nothing new starts. What is under way finishes first, and its result is kept; what "
        "waits for consent never runs. The chat ends for good: you can read it, and start another.",
        "不会再启动任何操作。正在执行的会先完成并保留结果；等待同意的不会执行。"
        "对话就此结束，仍可查看，也可另开新的。",
    ),
    "chat.stop.no": ("Keep going", "继续"),
    "chat.stop.yes": ("Stop the chat", "停止对话"),
    "chat.proposed": ("(proposes the call below)", "（提出了以下调用）"),
    "chat.call": ("Tool call", "工具调用"),
    "chat.arguments": ("Arguments", "参数"),
    "chat.no_arguments": ("None", "无"),
    "chat.changed": ("as a person changed them", "经人工修改"),
    "chat.result": ("Result", "结果"),
    "chat.helper": ("What the other agent did", "另一智能体的过程"),
    "chat.question": ("The question", "查看问题"),
    "chat.standing.ready": ("Next", "待执行"),
    "chat.standing.running": ("Running", "执行中"),
    "chat.standing.waiting": ("Waits for an answer", "等待答复"),
    "chat.standing.retrying": ("Tries again", "即将重试"),
    "chat.standing.lost": ("Outcome unknown", "结果未知"),
    "chat.standing.done": ("Done", "已完成"),
    "chat.standing.provided": ("Answered", "已答复"),
    "chat.standing.failed": ("Failed", "失败"),
    "chat.standing.refused": ("Not possible", "无法执行"),
    "chat.standing.rejected": ("Rejected, not run", "已拒绝，未执行"),
    "chat.standing.retry": ("Sent back, not run", "已退回，未执行"),
    "chat.standing.skipped": ("Skipped, not run", "已跳过，未执行"),
    "chat.standing.expired": ("Nobody answered, not run", "无人答复，未执行"),
    "chat.standing.stopped": ("Stopped", "已停止"),
    "chat.noted.resumed": ("{who} resumed it", "{who} 恢复了对话"),
    "chat.noted.stopping": ("{who} stopped the chat.", "{who} 停止了对话。"),
    "chat.another": ("Start another chat", "另开新的对话"),
    "chat.why.ended": ("This chat is over.", "对话已结束。"),
    "chat.why.role": (
        "Your role lets you read this chat, not write in it.",
        "您的角色只能查看这次对话，不能发言。",
    ),
    "chat.why.model": (
        "No model could answer. Plug one in first.",
        "没有可以回答的模型，请先接入一个。",
    ),
    "chat.why.asks": (
        "It waits for an answer to the question above. You can write the next message already.",
        "正在等待上面问题的答复。您可以先写好下一条消息。",
    ),
    "chat.why.works": (
        "The agent is at work. You can write the next message already.",
        "智能体正在工作。您可以先写好下一条消息。",
    ),
    "js-chat.empty": ("Write something first.", "请先输入内容。"),
    "js-chat.call": ("{tool}: {standing}", "{tool}：{standing}"),
}

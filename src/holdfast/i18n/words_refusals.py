"""Refusals in Chinese: why a request was not carried out, and what to do about it."""

from __future__ import annotations

from typing import Final

_WHO: Final[dict[str, str]] = {
    "say who you are: Authorization: Bearer <token>, or sign in": (
        "请说明身份：Authorization: Bearer <token>，或登录"
    ),
    "Authorization must be: Bearer <token>": "Authorization 须为：Bearer <token>",
    "you are signed out: sign in again": "您已退出登录：请重新登录",
    "a page of another origin may not do this in your name; "
    "programs use Authorization: Bearer <token>": (
        "其他来源的页面不能以您的名义操作；程序请使用 Authorization: Bearer <token>"
    ),
    "this page was opened by {person}, and {who} is signed in by now: "
    "nothing was done; load the page again": (
        "此页面由 {person} 打开，而现在登录的是 {who}：未做任何操作；请重新加载页面"
    ),
    "a page of another origin may not sign you in": "其他来源的页面不能替您登录",
    "your roles do not permit you to {permission:term}: ask an admin for a role": (
        "您的角色无权{permission}：请向管理员申请角色"
    ),
    "your roles do not permit you to {permission:term} for {name}: ask an admin for a role": (
        "您的角色无权{permission}（{name}）：请向管理员申请角色"
    ),
    "your roles do not permit you to speak to any agent: ask an admin": (
        "您的角色无权与任何智能体对话：请联系管理员"
    ),
    "your roles do not permit you to operate this run": "您的角色无权操作此运行",
    "registering a plan needs the role author": "登记计划需要 author 角色",
    "you may not see the runs of {name}: ask an admin for a role": (
        "您无权查看 {name} 的运行：请向管理员申请角色"
    ),
    "a service token does not approve calls: a person must answer this": (
        "服务令牌不能审批调用：须由人来回答"
    ),
    "you want what this run does: somebody else must approve its calls": (
        "这个运行是您发起的：须由他人审批其调用"
    ),
    "{how:phrase}, and so want this call: somebody else must approve it": (
        "{how}，因而是此调用的发起者：须由他人审批"
    ),
    "this question is for the role {role:term}": "此问题由角色 {role} 回答",
    "four eyes are wanted here: every call is approved by itself, by somebody else than who "
    "wants it, and none beforehand": (
        "此处要求双人复核：每次调用须单独由发起者以外的人审批，不能预先批准"
    ),
    "letting calls run unasked is an approval: {reason:said}": (
        "允许调用直接执行等同于审批：{reason}"
    ),
    "these numbers are of all runs: only who may read all may see them": (
        "这些数字涉及所有运行：只有可查看全部的人才能看"
    ),
    "a service does not issue credentials for people: it could approve with them": (
        "服务不能为人签发凭证：否则可借此审批"
    ),
    "this token is not good: {reason:term}": "此令牌无效：{reason}",
    "this token was revoked or has expired: ask an admin for a new one": (
        "此令牌已被撤销或过期：请向管理员索取新的"
    ),
    "this token is not complete: copy the whole of it": "此令牌不完整：请完整复制",
    "this is no token of this server: they begin with {prefix:word}": (
        "这不是本服务器的令牌：本服务器的令牌以 {prefix} 开头"
    ),
    "this link is not complete: copy the whole of it, or `holdfast serve --link` prints a new "
    "one": ("此链接不完整：请完整复制，或用 `holdfast serve --link` 获取新链接"),
    "this link was used already or has expired: `holdfast serve --link` prints a new one": (
        "此链接已使用或已过期：请用 `holdfast serve --link` 获取新链接"
    ),
    "there is no token {id}: it was revoked, has expired, or never was": (
        "没有令牌 {id}：已被撤销、已过期或从未存在"
    ),
    "a token must end later than now": "令牌的截止时间须晚于现在",
    "{least:number} to {most:number} visible characters are taken": (
        "须为 {least} 到 {most} 个可见字符"
    ),
    "{name:word} is a name of ours: give that of a person or a service": (
        "{name} 是系统保留的名称：请给出人或服务的名称"
    ),
    "a name has no colon and is none of {names}": "名称不能含冒号，也不能是 {names}",
    "a role is a word of visible characters": "角色须为可见字符组成的词",
    "refused too often: wait {n:number} seconds and try again": (
        "被拒绝次数过多：请等待 {n} 秒后再试"
    ),
}

_RUNS: Final[dict[str, str]] = {
    "there is no {kind:phrase} {name:word}": "没有{kind} {name}",
    "there is no {kind:phrase} {name:quoted} ({hint:phrase})": "没有{kind} {name}（{hint}）",
    "there is no version {version:word} of {plan:word}": "{plan} 没有版本 {version}",
    "there is no file {name}": "没有文件 {name}",
    "there already is a run {id:word}": "运行 {id} 已存在",
    "there already is a session {id:word}": "对话 {id} 已存在",
    "there already is a conversation {id:word}: send it a message": (
        "会话 {id} 已存在：请向它发送消息"
    ),
    "{command:term} is not possible: {id:word} is {status:term}": (
        "无法{command}：{id} 的状态是{status}"
    ),
    "{command:term} is not possible: {id:word} has moved on": "无法{command}：{id} 的状态已变化",
    "{id:word} is being cancelled": "{id} 正在取消",
    "{id:word} has no {of:word}": "{id} 没有 {of}",
    "{id:word} has no step {step:word}": "{id} 没有步骤 {step}",
    "{id:word} has no task {task:word}": "{id} 没有任务 {task}",
    "{id:word} has no step or task {node:word}": "{id} 没有步骤或任务 {node}",
    "{id:word} has no tool {tool:quoted}": "{id} 没有工具 {tool}",
    "plan {id:word} has no listener {listener:word}": "计划 {id} 没有监听器 {listener}",
    "plan {id:word} has no task {task:word}": "计划 {id} 没有任务 {task}",
    "run {id:word} has no question {question:word}": "运行 {id} 没有问题 {question}",
    "session {id:word} has no question {question:word}": "对话 {id} 没有问题 {question}",
    "{id:word} has failed; say how to go on: failed is one of {choices}": (
        "{id} 已失败；请说明如何继续：failed 取 {choices} 之一"
    ),
    "say how to go on: failed is one of {choices}": "请说明如何继续：failed 取 {choices} 之一",
    "no task of {id:word} has failed, so there is none to skip: retry or stop": (
        "{id} 没有失败的任务，无可跳过：请重试（retry）或停止（stop）"
    ),
    "{id:word} is {phase:term} and cannot be gone on with: it has not failed": (
        "{id} {phase}，并未失败，无需如此继续"
    ),
    "only conversations go on like that": "只有会话可以这样继续",
    "only conversations can be paused": "只有会话可以暂停",
    "{id:word} has not fired; only one that waits or failed can be skipped": (
        "{id} 尚未触发；只有等待中或失败的才能跳过"
    ),
    "{id:word} is {status:term}; only one that waits or failed can be skipped": (
        "{id} 的状态是{status}；只有等待中或失败的才能跳过"
    ),
    "{names} is a secret: only the form that asks for it takes it": (
        "{names} 是机密：只能填写在询问它的表单中"
    ),
    "{names} is still running; wait for it or cancel the run": (
        "{names} 仍在执行；请等待它结束或取消运行"
    ),
    "the inputs were given; edit the main task's context instead": (
        "输入已经提交；请改为编辑主任务的上下文"
    ),
    "{id:word} looks at the outcome, once the main task is Done": (
        "主任务完成之后才由 {id} 核验结果"
    ),
    "no instance of {plan:word} waits for a resume": "{plan} 没有等待恢复的实例",
    "several instances of {plan:word} wait for a resume: name one of {names}": (
        "{plan} 有多个实例等待恢复：请指明 {names} 之一"
    ),
    "Plan instance {id:word} not found": "找不到计划实例 {id}",
    "Plan instance {id:word} not found among those of {plan:word}": "{plan} 的实例中没有 {id}",
    "pass the context of a plan instance: its metadata names the instance": (
        "请传入计划实例的上下文：其 metadata 中有实例编号"
    ),
    "{id:word} is no plan instance": "{id} 不是计划实例",
    "{id:word} is another listener in the plan of {run:word}": (
        "{id} 在 {run} 的计划中是另一个监听器"
    ),
    "{id:word} ({kind:word}) is carried out by the engine only": "{id}（{kind}）只能由引擎执行",
    "the tool {tool:word} needs approval: answer its question": (
        "工具 {tool} 需要审批：请回答它的问题"
    ),
    "Plan instance is not in PAUSE status, current: {status:term}": (
        "计划实例没有暂停，当前状态：{status}"
    ),
    "No paused listener found: what is open asks for a decision, answer by id: {ids}": (
        "没有暂停的监听器：待回答的问题需要作出决定，请按编号回答：{ids}"
    ),
    "{id:word} waits for another answer": "{id} 在等待另一个回答",
    "the instance is {status:phrase}": "实例的状态是{status}",
    "nothing was provided; wanted: {names}": "没有提交任何内容；需要：{names}",
    "{name} is asked by several questions; answer them by id: {ids}": (
        "多个问题都询问 {name}；请按编号回答：{ids}"
    ),
    "asked by several questions": "多个问题都询问此项",
    "{names}: not asked for (wanted: {wanted})": "{names}：没有询问（需要：{wanted}）",
    "nobody asks for this": "没有询问此项",
    "cannot update {names}; only context values": "无法更新 {names}；只能更新上下文的值",
    "a status cannot be set; use continue, resume, skip or cancel": (
        "不能直接设置状态；请继续、恢复、跳过或取消"
    ),
    "no plan is loaded that the prompt could be for": "没有适合此请求的计划",
    "{id:word} has {version:number} events so far, and none after {after:number}": (
        "{id} 目前有 {version} 个事件，{after} 之后没有"
    ),
    "after must be the id of an event of this run, or `now`": "after 须为此运行的事件编号或 `now`",
    "must be the id of an event of this run, or `now`": "须为此运行的事件编号或 `now`",
    "after must be the id of an event of this feed, or `now`": "after 须为此事件流的编号或 `now`",
    "must be the id of an event of this feed, or `now`": "须为此事件流的编号或 `now`",
}

_ANSWERS: Final[dict[str, str]] = {
    "{title:title} was already answered by {by} at {at:moment} with {option:option}": (
        "{title} 已由 {by} 于 {at} 以 {option} 回答"
    ),
    "{title:title} is {status:term}; nothing was changed": "{title} {status}；没有作任何改动",
    "{title:title} expired at {at:moment}": "{title} 已于 {at} 过期",
    "it is {status:phrase}": "问题{status}",
    "choose one of: {names}": "请选择其一：{names}",
    "there is no option {name:quoted}; choose one of: {names}": (
        "没有选项 {name}；请选择其一：{names}"
    ),
    "this option needs your words": "此选项需要填写文字",
    "{option:term}: this option needs your words": "{option}：此选项需要填写文字",
    "Ask again with feedback: What should be different?": "带反馈重试：需要如何调整？",
    "What should be different?": "需要如何调整？",
    "Reject: Why not?": "拒绝：请说明理由",
    "Why not?": "请说明理由",
    "no handler is registered that could decide {option:quoted}": (
        "没有注册可处理 {option} 的处理程序"
    ),
    "{names}: a secret must be sealed before it is sent": "{names}：机密须先加密再提交",
    "leave this out of drafts": "草稿中请去掉此项",
    "a draft keeps no secrets: {names} is given with the answer": (
        "草稿不保存机密：{names} 请随回答提交"
    ),
    "not asked for": "没有询问此项",
    "{option:term} takes no data": "{option} 不需要填写数据",
    "say which it is for: {names}": "请说明对应哪一项：{names}",
    "the call has several arguments; say which it is for: {names}": (
        "调用有多个参数；请说明对应哪一项：{names}"
    ),
    "give it as data, under the name {name}": "请以 {name} 为名作为数据提交",
    "a secret is not taken as feedback: give it as data, under the name {name}": (
        "机密不能写在反馈里：请以 {name} 为名作为数据提交"
    ),
    "this is not the question that you were shown: read it again, and answer that": (
        "这不是您看到的那个问题：请重新阅读后再回答"
    ),
    "is secret: post it to its own endpoint, {place:word}, and give the reference": (
        "是机密：请提交到专用地址 {place}，再填写引用"
    ),
    "{name:word} is secret: post it to its own endpoint, {place:word}, and give the reference": (
        "{name} 是机密：请提交到专用地址 {place}，再填写引用"
    ),
    "this secret was not entered here, or too long ago: enter it again": (
        "此机密不是在这里输入的，或时间太久：请重新输入"
    ),
    "{question:word} is asked by {id:word}: answer it there, or above": (
        "{question} 由 {id} 提出：请在那里或其上级回答"
    ),
    "must be {id:word}, or left out": "须为 {id}，或不填",
    "no custom type {name:quoted} is registered (known: {names})": (
        "没有注册自定义类型 {name}（已有：{names}）"
    ),
    "not registered": "没有注册",
    "the handler of {title:title} failed: {reason}": "{title} 的处理程序失败：{reason}",
    "the handler of {title:title} must return a Resolution, not {kind}": (
        "{title} 的处理程序须返回 Resolution，不能是 {kind}"
    ),
}

_CHATS: Final[dict[str, str]] = {
    "the last turn of {id:word} is still at work; a message is the next turn": (
        "{id} 的上一轮仍在进行；新消息属于下一轮"
    ),
    "the last turn of {id:word} waits for an answer; a message is the next turn": (
        "{id} 的上一轮在等待回答；新消息属于下一轮"
    ),
    "{id:word} was ended by {by}; start another session": "{id} 已由 {by} 结束；请开始新的对话",
    "{id:word} was ended by {by}": "{id} 已由 {by} 结束",
    "a message needs words": "消息不能为空",
    "{id:word} failed in the middle of calls; resume or cancel it": (
        "{id} 在调用途中失败；请恢复或取消"
    ),
    "{id:word} works for {parent:word} alone": "{id} 只为 {parent} 工作",
    "an approval is remembered for a whole number of uses, one at least": (
        "记住批准的次数须为整数，至少一次"
    ),
    "must be a whole number from 1": "须为不小于 1 的整数",
    "an approval is remembered until a moment that lies ahead": "记住批准的期限须在将来",
    "must be finite, and lie ahead": "须为将来的某个时刻",
    "{id:word} remembers no approval {grant:word}": "{id} 没有记住批准 {grant}",
    "{tool:word} could not be proposed: it is not available now": "无法提议 {tool}：目前不可用",
    "{tool:word} could not be proposed: the tool {name:word} is disabled": (
        "无法提议 {tool}：工具 {name} 已停用"
    ),
    "{tool:word} could not be proposed: {reason:said}": "无法提议 {tool}：{reason}",
    "{id} is no id for a new session: a letter or digit, then letters, digits, _ or -, at most "
    "64, none that look like others, and not inst_…, chat_… or conv_…, which are given out": (
        "{id} 不能作为对话编号：须以字母或数字开头，其后为字母、数字、_ 或 -，最多 64 个，"
        "不含形近的其他字母，且不能是系统分配的 inst_…、chat_… 或 conv_…"
    ),
    "{id} is no id for a new conversation: a letter or digit, then letters, digits, _ or -, at "
    "most 64, none that look like others, and not inst_…, chat_… or conv_…, which are given "
    "out": (
        "{id} 不能作为会话编号：须以字母或数字开头，其后为字母、数字、_ 或 -，最多 64 个，"
        "不含形近的其他字母，且不能是系统分配的 inst_…、chat_… 或 conv_…"
    ),
    "not usable": "不可用",
    "{id:word} is a session with {agent:word}: name that agent": (
        "{id} 是与 {agent} 的对话：请指明该智能体"
    ),
    "{id:word} was opened with other rules of approval, and keeps them: leave `approval` out to "
    "go on with it, or name a new session": (
        "{id} 以其他审批规则打开并一直沿用：继续时请去掉 `approval`，或另起新对话"
    ),
    "say which agent, as agentId: none is declared": (
        "请用 agentId 指明智能体：目前没有声明任何智能体"
    ),
    "say which agent, as agentId: one of: {names}": "请用 agentId 指明智能体，可选：{names}",
    "a conversation needs words to begin with": "会话需要以文字开始",
    "needed": "必填",
    "a goal is text, not {value}": "目标须为文本，不能是 {value}",
    "text is needed": "需要文本",
    "{id:word} is {phase:term} and cannot be given another goal; reset it first": (
        "{id} {phase}，不能再给目标；请先重置"
    ),
    "{id:word} is {phase:term} and cannot be replaced by a snapshot; reset it first": (
        "{id} {phase}，不能以快照替换；请先重置"
    ),
    "{id:word} is {phase:term} and cannot be {what:term}": "{id} {phase}，不能{what}",
    "{id:word} has yet to begin with {text:quoted}": "{id} 尚未开始处理 {text}",
    "{id:word} was cancelled for good; open a new conversation": "{id} 已彻底取消；请打开新的会话",
    "{id:word} is not an instance of a plan": "{id} 不是计划的实例",
    "{id:word} is not a session with an agent": "{id} 不是与智能体的对话",
    "{id:word} is not a conversation": "{id} 不是会话",
    "{agent:word} cannot work: there is {missing:term}; declare what is missing, or take it off "
    "the agent": "{agent} 无法工作（{missing}）；请声明缺少的内容，或从智能体中去掉",
    "must be a whole number from 0 to {n:number}, or None for now": (
        "须为 0 到 {n} 的整数，或以 None 表示现在"
    ),
    "{call:quoted} is another call, about which {title:title} is asked: give that tool and its "
    "arguments, or another call id": (
        "{call} 是另一个调用，正在询问 {title}：请给出那个工具及其参数，或换一个调用编号"
    ),
}

_REQUESTS: Final[dict[str, str]] = {
    "the journal could not acknowledge: this may or may not have happened; try again, with the "
    "same Idempotency-Key": (
        "日志未能确认：此操作可能已生效，也可能没有；请用同一个 Idempotency-Key 再试"
    ),
    "something went wrong here; the server's log has it under this request id": (
        "服务器出错；日志中按此请求编号有记录"
    ),
    "too much long work is waiting already: try again in a moment": (
        "已有太多耗时的工作在等待：请稍后再试"
    ),
    "whoever runs this installation must act; its log says why": (
        "需要此系统的管理者处理；原因见日志"
    ),
    "Not Found": "未找到",
    "Method Not Allowed": "不支持此方法",
    "named another request before, or yours with other roles: take a new one": (
        "此前用于另一个请求，或角色不同的同一请求：请换一个新的"
    ),
    "this request took effect before, and its answer was kept under another key": (
        "此请求先前已生效，其答复以另一密钥保存"
    ),
    "this request took effect before, and its answer was lost: look what it did": (
        "此请求先前已生效，但答复已丢失：请查看它的结果"
    ),
    "{least:number} to {most:number} visible ASCII characters": (
        "须为 {least} 到 {most} 个可见的 ASCII 字符"
    ),
    "this host is not allowed: serve with --allow-host to be reached by this name": (
        "不允许此主机名：启动时请加 --allow-host"
    ),
    "the body did not arrive within {n:number} seconds": "请求内容在 {n} 秒内没有到达",
    "the headers did not arrive within {n:number} seconds": "请求头在 {n} 秒内没有到达",
    "the headers are larger than {n:number} bytes": "请求头超过 {n} 字节",
    "more than {n:number} bytes stand around the parts of the body": (
        "请求内容各部分之外的字节多于 {n} 个"
    ),
    "there are more than {n:number} headers": "请求头多于 {n} 个",
    "the address is longer than {n:number} bytes": "地址超过 {n} 字节",
    "more than {n:number} requests were sent ahead": "提前发送的请求多于 {n} 个",
    "there are too many: come back later": "连接太多，请稍后再来",
    "this is no HTTP request that can be read": "这不是可以读懂的 HTTP 请求",
    "what is granted is one of {kinds:said}": "授权的对象须为以下之一：{kinds}",
    "your grants do not permit {plan:word} to call {tools:said}: ask an admin for a grant of the "
    "role author, as {tool:word}": (
        "你的授权不允许 {plan} 调用 {tools}：请向管理员申请 author 角色的授权，例如 {tool}"
    ),
    "Content-Length is not a number": "Content-Length 不是数字",
    "the body is larger than {n:number} bytes": "请求内容超过 {n} 字节",
    "the body is not UTF-8, at byte {n:number}": "请求内容不是 UTF-8，位于第 {n} 字节",
    "the body is nested deeper than {n:number} levels": "请求内容嵌套超过 {n} 层",
    "the body holds more than {n:number} values": "请求内容超过 {n} 个值",
    "nested too deeply": "嵌套太深",
    "is not JSON: {reason} at line {line:number}, column {column:number}": (
        "不是 JSON：第 {line} 行第 {column} 列有误（{reason}）"
    ),
    "is not JSON in UTF-8, or has a number beyond 64 bits": (
        "不是 UTF-8 的 JSON，或有超过 64 位的数字"
    ),
    "says {name:quoted} twice": "{name} 出现两次",
    "{name:word} is no number in JSON": "{name} 不是 JSON 的数字",
    "no such query parameter": "没有这个查询参数",
    "unknown key": "未知的键",
    "is given in two spellings": "以两种写法给出",
    "a {kind:word} must be an object": "{kind} 须为对象",
    "must be an object": "须为对象",
    "must be a whole number from 0": "须为不小于 0 的整数",
    "must be an object with a rule for each tool": "须为对象，每个工具一条规则",
    "Field required": "必填",
    "Extra inputs are not permitted": "不允许多余的内容",
    "Input should be {wanted}": "应为 {wanted}",
    "String should have at least {n:number} character": "至少 {n} 个字符",
    "String should have at least {n:number} characters": "至少 {n} 个字符",
    "String should have at most {n:number} character": "至多 {n} 个字符",
    "String should have at most {n:number} characters": "至多 {n} 个字符",
    "String should match pattern {pattern}": "应匹配格式 {pattern}",
    "List should have at least {n:number} item after validation, not {m:number}": (
        "至少 {n} 项，目前是 {m} 项"
    ),
    "List should have at most {n:number} items after validation, not {m:number}": (
        "至多 {n} 项，目前是 {m} 项"
    ),
    "Value error, {reason:said}": "值有误：{reason}",
}

SENTENCES: Final[dict[str, str]] = {**_WHO, **_RUNS, **_ANSWERS, **_CHATS, **_REQUESTS}

PHRASES: Final[dict[str, str]] = {
    "you started this run": "这个运行是您启动的",
    "you spoke in this run": "您在这个运行中发过言",
    "you answered a question of this run with more than a yes or no": (
        "您对这个运行的提问作过是或否以外的回答"
    ),
    "you changed this run": "您修改过这个运行",
    "you had this run go on": "您让这个运行继续执行过",
    "you registered a plan that this run uses": "这个运行所用的计划由您登记",
    "no tool {name}": "没有工具 {name}",
    "no agent {name}": "没有智能体 {name}",
    "known: {names}": "已有：{names}",
    "{role:word} and {other:word}": "{role} 和 {other}",
    "{role:word} or {other:word}": "{role} 或 {other}",
    "its algorithm is not accepted here": "其算法不被接受",
    "its issuer has no such key": "签发者没有这样的密钥",
    "its key is of another kind": "密钥的种类不符",
    "it is too long": "太长",
    "it is not a JWT": "不是 JWT",
    "its subject is no name": "其主体不是名称",
}

"""What a run records of itself, in Chinese: why something failed, ended or was asked."""

from __future__ import annotations

from typing import Final

_ENDINGS: Final[dict[str, str]] = {
    "nobody answered in time": "逾期无人回答",
    "rejected by {by}": "被 {by} 拒绝",
    "rejected by {by}: {reason}": "被 {by} 拒绝：{reason}",
    "ended by {by}": "由 {by} 结束",
    "ended by {by}: {reason}": "由 {by} 结束：{reason}",
    "{by} chose to stop": "{by} 选择停止",
    "{by} skipped {id:word}": "{by} 跳过了 {id}",
    "skipped by {by}": "由 {by} 跳过",
    "marked done by {by}": "由 {by} 标记为完成",
    "{by} marked {id:word} done": "{by} 将 {id} 标记为完成",
    "{by} runs again from {id:word}": "{by} 从 {id} 起重新执行",
    "rerun from {id:word} by {by}": "由 {by} 从 {id} 起重新执行",
    "{by} went on without it": "{by} 不再等待，继续执行",
    "the run is being cancelled": "运行正在取消",
    "the result arrived after all": "结果最终还是到了",
    "the next turn began without it": "没有等它，下一轮已经开始",
    "nobody waits for it": "已无人等待它",
    "the conversation was reset": "会话已重置",
    "it was under way when the snapshot was taken": "拍摄快照时它正在进行",
    "it had not ended when the grace was over": "宽限期结束时它仍未结束",
    "{child:word} was cancelled": "{child} 已取消",
    "it is {status:word}": "状态为 {status}",
}

_PLANS: Final[dict[str, str]] = {
    "{id:word} failed: {reason:said}": "{id} 失败：{reason}",
    "{id:word} failed after 1 retry: {reason:said}": "{id} 重试 1 次后失败：{reason}",
    "{id:word} failed after {n:number} retries: {reason:said}": "{id} 重试 {n} 次后失败：{reason}",
    "{id:word} has fired {n:number} times (max_firings)": "{id} 已触发 {n} 次（max_firings）",
    "resume the run: it asks again for {names}": "请恢复运行：它会重新询问 {names}",
    "backoff after 1 try": "尝试 1 次后退避",
    "backoff after {n:number} tries": "尝试 {n} 次后退避",
    "the service asked for {n:number} s": "服务要求等待 {n} 秒",
    "the service asked for {n:number} s, and longest_wait is {most:number} s": (
        "服务要求等待 {n} 秒，而 longest_wait 为 {most} 秒"
    ),
    "decide_retry_strategy raised {error:word}": "decide_retry_strategy 抛出了 {error}",
    "decide_retry_strategy took longer than {n:number} s: the usual policy decided": (
        "decide_retry_strategy 超过 {n} 秒未返回：按默认策略决定"
    ),
    "decide_retry_strategy must return a number of retries, Retry(…) or GiveUp(…), "
    "not {kind:word}: the usual policy decided": (
        "decide_retry_strategy 须返回重试次数、Retry(…) 或 GiveUp(…)，不能是 {kind}：按默认策略决定"
    ),
    "decide_retry_strategy must return a delay in seconds, from 0 to a year: "
    "the usual policy decided": (
        "decide_retry_strategy 返回的延迟须以秒计，从 0 到一年：按默认策略决定"
    ),
    "verification failed: {checks}": "核验未通过：{checks}",
    "expected {condition:condition}": "期望 {condition}",
    "nothing is left to do, and every listener has fired": "没有可做的了，所有监听器都已触发",
    "nothing is left to do: these conditions are false: {listed:term}": (
        "没有可做的了，以下条件不成立：{listed}"
    ),
    "there is no task {id:word} to set {status:word}": "没有任务 {id}，无法置为 {status}",
    "task {id:word} is cancelled only with the whole run": "任务 {id} 只能随整个运行一起取消",
    "task {id:word} cannot go from {before:word} to {after:word}": (
        "任务 {id} 不能从 {before} 变为 {after}"
    ),
    "target_status {value} is not one of {names}": "target_status {value} 不在 {names} 之中",
    "the snippet's context must be a dict": "代码给出的 context 须为字典",
    "its child run did not succeed": "它的子运行没有成功",
    "the process that ran it went down": "执行它的进程已停止",
    "quarantined: the process went down {n:number} times while this ran": (
        "已隔离：执行期间进程停止了 {n} 次"
    ),
    "task_updates: {reason:said}": "task_updates：{reason}",
    "agent {agent:word} has no verification tools": "智能体 {agent} 没有核验工具",
    "there are {n:number} runs above it, and no more may be": "它上面已有 {n} 层运行，不能再多",
}

_AGENTS: Final[dict[str, str]] = {
    "the arguments are not a JSON object: {text}": "参数不是 JSON 对象：{text}",
    "there is no tool {tool}; you have {names:term}": "没有工具 {tool}；可用的有 {names}",
    "there is no tool {tool:word}": "没有工具 {tool}",
    "the tool {tool:word} is not available now": "工具 {tool} 目前不可用",
    "the tool {tool:word} is disabled": "工具 {tool} 已停用",
    "the tool {tool:word} needs approval: call it in a tool listener": (
        "工具 {tool} 需要审批：请在 tool 监听器中调用"
    ),
    "the tool {tool:word} does not take {names}; it takes {known:term}": (
        "工具 {tool} 没有参数 {names}；它的参数有 {known}"
    ),
    "required arguments are missing: {names}": "缺少必需的参数：{names}",
    "say in `task` what is to be done": "请在 `task` 中写明要做什么",
    "say in `question` what you want to know": "请在 `question` 中写明想知道什么",
    "the last call failed": "上一次调用失败",
    "no answer after {n:number} rounds of thinking (max_iterations)": (
        "思考 {n} 轮后仍没有回答（max_iterations）"
    ),
    "the model gave no answer: its reply was cut off": "模型没有给出回答：回复被截断",
    "the model gave no answer: it stopped by {reason}": "模型没有给出回答：因 {reason} 停止",
    "the model could not be asked: {reason:said}": "无法询问模型：{reason}",
    "consent to {tool:word} does not fit what would run": "对 {tool} 的同意与将要执行的内容不符",
}

_CONVERSATIONS: Final[dict[str, str]] = {
    "the conversation failed: {reason:said}": "会话失败：{reason}",
    "skipped ({reason:said})": "已跳过（{reason}）",
    "it failed": "它失败了",
    "it failed: {reason:said}": "它失败了：{reason}",
    "it depends on {names:term}, which failed": "它依赖的 {names} 失败了",
    "it depends on {names:term}, skipped as well": "它依赖的 {names} 也被跳过了",
    "the goal could not be decomposed: {reason:said}": "无法分解目标：{reason}",
    "the snapshot cannot be restored: {reason:said}": "无法恢复快照：{reason}",
    "the work reported success: false": "工作报告了 success: false",
    "the tasks have more than {n:number} references to results": "各任务引用结果超过 {n} 次",
    "it refers to more than {n:number} characters of results": "所引用的结果超过 {n} 个字符",
    "there are no tasks at all": "一个任务也没有",
    "a task has no id": "有任务没有编号",
    "these ids are used more than once: {names:term}": "以下编号重复使用：{names}",
    "task {id:quoted} depends on {other:quoted}, which is no task": (
        "任务 {id} 依赖 {other}，但没有这个任务"
    ),
    "task {id:quoted} depends on {other:quoted}, which is no task (did you mean {meant:quoted}?)": (
        "任务 {id} 依赖 {other}，但没有这个任务（您是否想写 {meant}？）"
    ),
    "these tasks wait for each other: {names:term}": "以下任务互相等待：{names}",
    "no executor for tasks of type {type} is given any more: "
    "open the conversation with `executors` that has one": (
        "{type} 类型的任务已没有执行者：打开会话时请在 `executors` 中给出"
    ),
    "the decomposition is text, but has no JSON list of tasks in it": (
        "分解结果是文本，其中没有 JSON 任务列表"
    ),
    "the decomposition is no list of tasks but {kind:word}": "分解结果不是任务列表，而是 {kind}",
    "a task is an object with an id, not {kind:word}": "任务应是带编号的对象，不能是 {kind}",
    "a task needs an id: {text}": "任务需要编号：{text}",
    "task {id}: {name:word} must be {needed:phrase}, not {value}": (
        "任务 {id}：{name} 须为{needed}，不能是 {value}"
    ),
    "task {id}: dependencies must be ids of tasks": "任务 {id}：dependencies 须为任务编号",
    "the model's answer was cut off; ask for less, or let the model answer at length": (
        "模型的回答被截断；请减少要求，或允许更长的回答"
    ),
    "the reply was cut off: use fewer tasks, or shorter descriptions": (
        "回复被截断：请减少任务，或缩短描述"
    ),
    "call {tool:word} with the tasks: the reply had words, but no list": (
        "请以任务列表调用 {tool}：回复只有文字，没有列表"
    ),
    "call {tool:word} once and nothing else, not {names}": "只能调用 {tool} 一次，不能是 {names}",
    "the arguments of {tool:word} are no JSON object": "{tool} 的参数不是 JSON 对象",
    "the arguments of {tool:word} lack `tasks`": "{tool} 的参数缺少 `tasks`",
    "`tasks` is no list": "`tasks` 不是列表",
    "there are {n:number} tasks: at most {most:number} are taken": (
        "共有 {n} 个任务：最多接受 {most} 个"
    ),
}

_WORK: Final[dict[str, str]] = {
    "no answer within {n:number} s": "{n} 秒内没有回复",
    "no thread was free for it in time": "没有及时等到空闲的线程",
    "{tool:word}: {host:word} did not answer within {n:number} s": (
        "{tool}：{host} 在 {n} 秒内没有回复"
    ),
    "{tool:word}: {host:word} could not be reached": "{tool}：无法连接 {host}",
    "{tool:word}: {host:word} broke the connection off ({error:word})": (
        "{tool}：{host} 中断了连接（{error}）"
    ),
    "{tool:word}: {host:word} answered {status:number} with more than 1 MB": (
        "{tool}：{host} 回复了 {status}，内容超过 1 MB"
    ),
    "{tool:word}: {host:word} answered what cannot be kept: {reason:said}": (
        "{tool}：{host} 的回复无法保存：{reason}"
    ),
    "{tool:word}: {host:word} answered something that is not JSON": (
        "{tool}：{host} 的回复不是 JSON"
    ),
    "{tool:word}: {host:word} answered {status:number}: no reason": (
        "{tool}：{host} 回复了 {status}，没有说明原因"
    ),
    "{tool:word}: {host:word} answered {status:number}: {reason}": (
        "{tool}：{host} 回复了 {status}：{reason}"
    ),
    "the work failed without saying why": "执行失败，没有说明原因",
    "the work raised {error:word}: {text}": "执行时出现 {error}：{text}",
    "{error:word}, which cannot be put into words": "{error}，无法用文字说明",
    "the work was cancelled from within": "执行被自身取消",
    "its result could not be recorded": "无法记录它的结果",
    "{tool:word} asks for {names:term}, but none of it is among its parameters: {own}": (
        "{tool} 需要 {names}，但都不在它的参数之中：{own}"
    ),
    "{tool:word} ran, but what it returned cannot be kept: {reason:said}": (
        "{tool} 已执行，但返回的内容无法保存：{reason}"
    ),
    "{tool:word} was given wrong arguments: {fields:said}": "{tool} 的参数有误：{fields}",
    "model {model} needs a package: pip install {package}": (
        "模型 {model} 需要安装软件包：pip install {package}"
    ),
    "the model server's address {url} is no URL; set HOLDFAST_MODEL_BASE_URL to something like "
    "{example:word}": (
        "模型服务器的地址 {url} 不是 URL；请把 HOLDFAST_MODEL_BASE_URL 设为类似 {example} 的地址"
    ),
    "the secret that was entered for {name} cannot be opened with this installation's key: put "
    "back the {file} (or {variable}) that it was sealed with, or have it entered anew": (
        "为 {name} 输入的机密无法用本系统的密钥打开：请放回加密时所用的 {file}（或 {variable}），"
        "或重新输入"
    ),
    "{function} raised StopIteration": "{function} 抛出了 StopIteration",
    "a secret that the call needs is not there: it was entered for another run, or has been "
    "deleted. Have it asked for again in this run.": (
        "调用所需的机密不存在：它是为另一个运行输入的，或已被删除。请在本运行中重新输入。"
    ),
    "a secret that the call needs for {names} is not there: it was entered for another run, or "
    "has been deleted. Have it asked for again in this run.": (
        "调用所需的机密（{names}）不存在：它是为另一个运行输入的，或已被删除。请在本运行中重新输入。"
    ),
    "no model is named: set HOLDFAST_MODEL (such as openai:gpt-4o), or give the agent a `model`": (
        "没有指定模型：请设置 HOLDFAST_MODEL（例如 openai:gpt-4o），或为智能体写上 `model`"
    ),
    "no model is named: set HOLDFAST_MODEL (such as openai:gpt-4o), or name one for the "
    "conversation": "没有指定模型：请设置 HOLDFAST_MODEL（例如 openai:gpt-4o），或为会话指定模型",
    "model {model:quoted} answered nonsense: {text}": "模型 {model} 的回复无法理解：{text}",
    "model {model:quoted}: the connection broke: {text}": "模型 {model}：连接中断：{text}",
    "model {model:quoted} refused: {reason}; {remedy:phrase}": (
        "模型 {model} 拒绝了请求：{reason}；{remedy}"
    ),
    "model {model:quoted} refused: no reason given; {remedy:phrase}": (
        "模型 {model} 拒绝了请求，没有说明原因；{remedy}"
    ),
    "model {model:quoted}: {reason}": "模型 {model}：{reason}",
    "{problem:known} (after {n:number} attempts)": "{problem}（共尝试 {n} 次）",
    "model {model} cannot be used: {reason}; name it provider:model "
    "(HOLDFAST_MODEL=openai:gpt-4o) with the provider's key, or set HOLDFAST_MODEL_BASE_URL for "
    "a server of your own": (
        "无法使用模型 {model}：{reason}；请写成 provider:model（HOLDFAST_MODEL=openai:gpt-4o）"
        "并提供密钥，或为自己的服务器设置 HOLDFAST_MODEL_BASE_URL"
    ),
}

SENTENCES: Final[dict[str, str]] = {
    **_ENDINGS,
    **_PLANS,
    **_AGENTS,
    **_CONVERSATIONS,
    **_WORK,
}

PHRASES: Final[dict[str, str]] = {
    "no tools at all": "（没有工具）",
    "nothing by name": "（没有写明）",
    "no arguments at all": "（没有参数）",
    "a list of ids": "编号的列表",
    "{listed}; and {n:number} more": "{listed}；另有 {n} 个",
    "check the key (HOLDFAST_MODEL_API_KEY or the provider's own variable) and its rights": (
        "请检查密钥（HOLDFAST_MODEL_API_KEY 或服务商自己的变量）及其权限"
    ),
    "check the model's name (HOLDFAST_MODEL) and the base URL": (
        "请检查模型名称（HOLDFAST_MODEL）和服务地址"
    ),
    "shorten the conversation or choose a model with a larger context window": (
        "请缩短对话，或选择上下文更大的模型"
    ),
    "the account's quota is used up: raise it or choose another model": (
        "账户额度已用完：请提高额度或换一个模型"
    ),
    "the provider's filter stopped it: change the request or choose another model": (
        "被服务商的过滤器拦截：请修改请求或换一个模型"
    ),
    "the same request will be refused again: change it or choose another model": (
        "同样的请求还会被拒绝：请修改请求或换一个模型"
    ),
}

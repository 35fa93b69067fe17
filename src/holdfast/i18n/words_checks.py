"""Checks in Chinese: what a plan, an agent, a question or a rule must satisfy."""

from __future__ import annotations

from typing import Final

_PLANS: Final[dict[str, str]] = {
    "a plan_id has letters, digits, _ . and - only": "plan_id 只能包含字母、数字、_ . 和 -",
    "a {key:word} has letters, digits, _ and - only, at most 100": (
        "{key} 只能包含字母、数字、_ 和 -，最多 100 个"
    ),
    "the {key:word} {id} is reserved; choose another": "{key} {id} 是保留名称；请换一个",
    "the {key:word} {id} is taken by {owner}[{index:number}]": (
        "{key} {id} 已被 {owner}[{index}] 使用"
    ),
    "a listener needs a task that triggers it": "监听器需要一个触发它的任务",
    "only a tool call can be approved; put the call in a tool listener": (
        "只有工具调用可以审批；请把调用放进 tool 监听器"
    ),
    "only a tool call can be approved": "只有工具调用可以审批",
    "there is no {kind:phrase} {name:quoted}": "没有{kind} {name}",
    "there is no {kind:phrase} {name:quoted}; did you mean {meant:quoted}?": (
        "没有{kind} {name}；您是否想写 {meant}？"
    ),
    "there is no trigger here: write 002.status == Done instead": (
        "这里没有触发任务：请写 002.status == Done 这样的条件"
    ),
    "there is no result before the listener has run": "监听器执行之前没有结果",
    "a task is cancelled only with the whole run; Skipped may be meant": (
        "任务只能随整个运行一起取消；也许应为 Skipped"
    ),
    "not a JSON value: {reason:said}": "不是 JSON 值：{reason}",
    "there is no result yet: {{{{result…}}}} belongs into an output's context": (
        "此时还没有结果：{{{{result…}}}} 只能用在输出的 context 中"
    ),
    "priority must be a whole number": "priority 须为整数",
    "{key:word} must be above 0 and at most a year, in seconds": (
        "{key} 须大于 0 且不超过一年，以秒计"
    ),
    "{key:word} must be between {least:number} and {most:number}, not {n:word}": (
        "{key} 须在 {least} 到 {most} 之间，不能是 {n}"
    ),
    "{tool:word} may change something; verify with a tool that only reads": (
        "{tool} 可能会改动数据；请用只读的工具来核验"
    ),
    "nothing ever reaches task {id}: name it in an output, or remove it": (
        "任务 {id} 永远不会被推进：请在某个输出中写上它，或将其删除"
    ),
    "no listener ever sets the main task {id} to Done: the plan cannot finish": (
        "没有监听器会把主任务 {id} 置为 Done：计划无法完成"
    ),
    "listener {id} can never fire: no output brings about what its condition asks": (
        "监听器 {id} 永远不会触发：没有输出能满足它的条件"
    ),
    "listener {id} can never fire: it waits for what only follows from itself": (
        "监听器 {id} 永远不会触发：它等待的只能由它自己产生"
    ),
    "the cycle {path} can never end: every listener in it repeats and asks only for statuses; "
    "let one condition read a context, or drop a repeat": (
        "循环 {path} 永远不会结束：其中每个监听器都重复执行且只看状态；"
        "请让某个条件读取上下文，或去掉一个 repeat"
    ),
}

_AGENTS: Final[dict[str, str]] = {
    "{agent:word} has no tool or agent {name:quoted}": "{agent} 没有工具或智能体 {name}",
    "{agent:word} has no tool or agent {name:quoted}; did you mean {meant:quoted}?": (
        "{agent} 没有工具或智能体 {name}；您是否想写 {meant}？"
    ),
    "an agent_id begins with a letter and has letters, digits, _ and - only, at most 100": (
        "agent_id 以字母开头，只能包含字母、数字、_ 和 -，最多 100 个"
    ),
    "the agent_id {id} is taken": "agent_id {id} 已被使用",
    "{name} stands in {key:word} twice": "{name} 在 {key} 中出现两次",
    "{tool:word} is how {agent:word} is called; rename the tool": (
        "{tool} 是调用 {agent} 的名称；请给工具改名"
    ),
    "{tool:word} is how people are asked; rename the tool": "{tool} 用于向人提问；请给工具改名",
    "{tool:word} is how people are asked; rename the agent {agent:word}": (
        "{tool} 用于向人提问；请给智能体 {agent} 改名"
    ),
    "context_limit must be at least {least:number} characters, not {n:word}": (
        "context_limit 至少为 {least} 个字符，不能是 {n}"
    ),
    "{agent:word} hands work to itself; take it off its agents": (
        "{agent} 把工作交给自己；请把它从 agents 中去掉"
    ),
    "work would go round in a circle: {path}; take {taker:word} off {giver:word}'s agents": (
        "工作会循环传递：{path}；请把 {taker} 从 {giver} 的 agents 中去掉"
    ),
    "this agent stands under {key} already; leave its agent_id out": (
        "这个智能体已写在 {key} 之下；请去掉 agent_id"
    ),
    "plan {plan:word}: {problem:known}": "计划 {plan}：{problem}",
    "agent {agent:word}: {problem:known}": "智能体 {agent}：{problem}",
}

_QUESTIONS: Final[dict[str, str]] = {
    "this question cannot be asked: {problems:said}": "无法提出这个问题：{problems}",
    "this {what:word} cannot be read: {problem:said}": "无法读取这个 {what}：{problem}",
    "{problem:known} (and {n:number} more)": "{problem}（另有 {n} 处）",
    "a tool's approval cannot be asked as {kind:word}: leave the type out": (
        "工具审批不能以 {kind} 的方式提问：请去掉 type"
    ),
    "must be a number of seconds above 0, and at most ten years": "须为大于 0 且不超过十年的秒数",
    "each must be a number of seconds above 0, and at most ten years": (
        "每一个都须为大于 0 且不超过十年的秒数"
    ),
    "must ascend: each later than the one before": "须依次递增：后一个晚于前一个",
    "must come before the timeout": "须早于超时时间",
    "is empty: say what is asked": "内容为空：请写明要问什么",
    "is empty: give every option an id": "内容为空：每个选项都要有编号",
    "is missing: name the registered type of a CUSTOM question": (
        "缺失：请写明 CUSTOM 问题的注册类型"
    ),
    "is missing: name the role that is asked then": "缺失：请写明届时由哪个角色回答",
    "is missing: say after how many seconds {role:quoted} is asked": (
        "缺失：请写明多少秒之后转问 {role}"
    ),
    "is only for CUSTOM questions, and this is {kind:word}": "只用于 CUSTOM 问题，而这里是 {kind}",
    "there are none: a choice needs something to choose from": "没有选项：选择题需要可选的内容",
    "{name:quoted} says that it does not go on, but {action:word} does; give it another id": (
        "{name} 表示不继续，但 {action} 会继续；请换一个编号"
    ),
    "{name:quoted} says that it goes on, but {action:word} does not; give it another id": (
        "{name} 表示继续，但 {action} 不会继续；请换一个编号"
    ),
    "{name:quoted} is an id of ours; give it another one": "{name} 是系统保留的编号；请换一个",
    "{name:quoted} mixes letters that look alike, or has signs that nobody sees; give it "
    "another id": "{name} 混用了形近的字母，或含有看不见的字符；请换一个编号",
    "{name:quoted} is options[{index:number}] already": "{name} 已经是 options[{index}]",
    "only one can be the default, not {names}": "只能有一个默认选项，不能是 {names}",
    "there is no option {name:quoted}": "没有选项 {name}",
    "is {name:quoted}, but {other:quoted} is marked as default": (
        "写的是 {name}，但标为默认的是 {other}"
    ),
    "the clock may not take {name:quoted}, because {reason:phrase}": (
        "到期时不能自动采用 {name}，因为{reason}"
    ),
    "must be of {kind:word}, not {other:word}": "须为 {kind} 类型，不能是 {other}",
    "must be a mapping, not {kind:word}": "须为键值映射，不能是 {kind}",
    "must be {wanted:phrase}, not {sort:phrase}": "须为{wanted}，不能是{sort}",
    "must be a list, not {sort:phrase}": "须为列表，不能是{sort}",
    "must be an object, not {sort:phrase}": "须为对象，不能是{sort}",
    "says the same as {name:word}: give only one of them": "与 {name} 含义相同：请只给出一个",
    "is required": "必填",
    "there is no {name:quoted}: {hint:phrase}": "没有 {name}：{hint}",
}

_SHAPES: Final = (
    'write auto, require or disabled, or {{mode: require, when: "amount > 1000", '
    'otherwise: auto}}, or {{require_when: "amount > 1000"}}'
)
_SHAPES_SAID: Final = (
    '请写 auto、require 或 disabled，或 {{mode: require, when: "amount > 1000", '
    'otherwise: auto}}，或 {{require_when: "amount > 1000"}}'
)

_RULES: Final[dict[str, str]] = {
    "no call could ever fit this pattern: mend {names}": "没有调用会符合这个模式：请修改 {names}",
    f"approval has {{keys}}: {_SHAPES}": f"approval 中有 {{keys}}：{_SHAPES_SAID}",
    "approval says otherwise without when: add the condition, or drop it": (
        "approval 写了 otherwise 却没有 when：请补上条件，或去掉它"
    ),
    "approval's condition is {value}: write it as text": "approval 的条件是 {value}：请写成文本",
    "approval is {mode:word} whether or not {condition}: say in otherwise what else holds": (
        "无论 {condition} 是否成立，approval 都是 {mode}：请在 otherwise 中写明另一种情况"
    ),
    f"approval is {{value}}: {_SHAPES}": f"approval 是 {{value}}：{_SHAPES_SAID}",
}

SENTENCES: Final[dict[str, str]] = {**_PLANS, **_AGENTS, **_QUESTIONS, **_RULES}

PHRASES: Final[dict[str, str]] = {
    "task": "任务",
    "tool": "工具",
    "agent": "智能体",
    "argument of {tool:word}": " {tool} 的参数",
    "it is dangerous": "它是危险操作",
    "a handler decides about it": "它由处理程序决定",
    "it requires input": "它需要填写内容",
    "the form requires {names}": "表单还需要填写 {names}",
}

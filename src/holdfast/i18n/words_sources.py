"""The language of plans in Chinese: what is wrong with YAML, conditions, templates, snippets."""

from __future__ import annotations

from typing import Final

_YAML: Final[dict[str, str]] = {
    'a key must be text; if this is a template, quote it: "{{{{result.x}}}}"': (
        '键须为文本；如果这是模板，请加引号："{{{{result.x}}}}"'
    ),
    "the file is larger than {n:number} bytes; split the plan into sub-plans": (
        "文件超过 {n} 字节；请把计划拆成子计划"
    ),
    "there are more than {n:number} values; split the plan into sub-plans": (
        "值多于 {n} 个；请把计划拆成子计划"
    ),
    "{n:number} more mistakes from here on; mend those above first": (
        "从这里起还有 {n} 处错误；请先改正上面的"
    ),
    "{text} is not a number that JSON knows; quote it if text is meant": (
        "{text} 不是 JSON 的数字；若是文本请加引号"
    ),
    "{text} is too large for a number; quote it if text is meant": (
        "{text} 作为数字太大；若是文本请加引号"
    ),
    "not valid YAML: an escape or a directive after this place is out of range": (
        "YAML 无效：此处之后的转义或指令超出范围"
    ),
    "not valid YAML: {reason}": "YAML 无效：{reason}",
    "a second document; write one plan per file": "出现第二个文档；每个文件只写一个计划",
    "the file is empty; {what:term} was expected": "文件是空的；这里应该有{what}",
    "the tag {tag} is not supported; remove it": "不支持标签 {tag}；请删除",
    "merge keys (<<) are not supported; write the entries out": "不支持合并键（<<）；请逐条写出",
    "the key {key:quoted} appears twice, first on line {line:number}": (
        "键 {key} 出现两次，首次在第 {line} 行"
    ),
    "the alias *{name} names no anchor above it": "别名 *{name} 之前没有对应的锚点",
    "the alias *{name} stands inside what it names": "别名 *{name} 位于它所指的内容之中",
    "the aliases expand to too much; write the values out": "别名展开后太大；请直接写出值",
    "half of a surrogate pair is not text; write the whole character": (
        "半个代理对不是文本；请写出完整的字符"
    ),
    "nested more than {n:number} levels deep; flatten it": "嵌套超过 {n} 层；请减少层级",
    "the character U+{code:word} is not allowed in a plan; remove it": (
        "计划中不允许字符 U+{code}；请删除"
    ),
    "this is not UTF-8 text": "这不是 UTF-8 文本",
}

_SYNTAX: Final[dict[str, str]] = {
    "mapping values are not allowed here": "此处不能出现“键: 值”；请检查缩进，含冒号的文本请加引号",
    "mapping keys are not allowed here": "此处不能出现键（?）",
    "sequence entries are not allowed here": "此处不能出现列表项（-）；请另起一行",
    "could not find expected ':'": "缺少冒号（:）",
    "found unexpected ':'": "此处不能出现冒号（:）",
    "found character '\\t' that cannot start any token": "此处不能用制表符；请用空格缩进",
    "found character {found} that cannot start any token": "此处不能以字符 {found} 开头；请加引号",
    "found unexpected end of stream": "引号没有闭合，文件已结束",
    "found unexpected document separator": "引号没有闭合，文档已结束",
    "found unknown escape character {found}": "未知的转义字符 {found}",
    "expected escape sequence of {n:number} hexdecimal numbers, but found {found}": (
        "转义应有 {n} 位十六进制数字，却是 {found}"
    ),
    "expected the node content, but found '{found:term}'": "此处应有内容，却是“{found}”",
    "expected <block end>, but found '{found:term}'": (
        "前面的内容应已结束，却出现“{found}”；请检查缩进和引号"
    ),
    "expected <block end>, but found '?'": "前面的内容应已结束，却出现一个键；请检查缩进",
    "expected ',' or ']', but got '{found:term}'": "此处应为 ',' 或 ']'，却是“{found}”",
    "expected ',' or '}}', but got '{found:term}'": "此处应为 ',' 或 '}}'，却是“{found}”",
    "expected chomping or indentation indicators, but found {found}": (
        "| 或 > 之后只能写 +、- 或缩进位数，却是 {found}"
    ),
    "expected indentation indicator in the range 1-9, but found 0": "缩进位数须为 1 到 9，却是 0",
    "expected a comment or a line break, but found {found}": "此处应为注释或换行，却是 {found}",
    "expected alphabetic or numeric character, but found {found}": (
        "此处应为字母或数字，却是 {found}"
    ),
    "expected '<document start>', but found ('{found:term}',)": "此处应为 ---，却是“{found}”",
    "found non-comment content after document end marker, ('{found:term}',)": (
        "文档结束标记（...）之后只能有注释，却是“{found}”"
    ),
    "found undefined tag handle {found}": "标签前缀 {found} 没有定义",
    "duplicate tag handle {found}": "标签前缀 {found} 重复",
    "found duplicate YAML directive": "%YAML 指令重复",
    "found incompatible YAML document (version 1.* is required)": "YAML 版本不兼容（须为 1.*）",
    "expected a digit, but found {found}": "此处应为数字，却是 {found}",
    "expected a digit or '.', but found {found}": "此处应为数字或 '.'，却是 {found}",
}
"""What the parser says of broken syntax, as far as plans run into it."""

_TOKENS: Final[dict[str, str]] = {
    "<stream end>": "文件结尾",
    "<document start>": "文档开头（---）",
    "<document end>": "文档结束标记（...）",
    "<block sequence start>": "一个列表",
    "<block mapping start>": "一组键值",
    "<block end>": "缩进的结束",
    "<scalar>": "一段文本",
    "<alias>": "一个别名（*）",
    "<anchor>": "一个锚点（&）",
    "<tag>": "一个标签（!）",
}
"""What the parser calls the parts of a text."""

_SHAPE: Final[dict[str, str]] = {
    "a plan is a mapping; it begins with plan_id: …": "计划是键值映射，以 plan_id: … 开头",
    "each of {key:word} must be a mapping": "{key} 的每一项须为键值映射",
    "{name:place} must be a mapping with the keys {keys}": "{name} 须为键值映射，包含键 {keys}",
    "{name:place} must be a mapping of names to values": "{name} 须为名称到值的映射",
    "{name:place} lacks the key {key:word}": "{name} 缺少键 {key}",
    "{word} is another word for {name:word}; keep one of them": (
        "{word} 与 {name} 同义；请只保留一个"
    ),
    "unknown key {key:quoted}; {hint:phrase}": "未知的键 {key}；{hint}",
    "{name:place} must be a list": "{name} 须为列表",
    "{name:place} must be text": "{name} 须为文本",
    "{name:place} has an empty name between its commas": "{name} 的逗号之间有空名称",
    "{name:place} cannot be {value:quoted}; {hint:phrase}": "{name} 不能是 {value}；{hint}",
    "{name:place} must be true or false, not {value:quoted}": (
        "{name} 须为 true 或 false，不能是 {value}"
    ),
    "{name:place} must be a whole number, not {value:quoted}": "{name} 须为整数，不能是 {value}",
    "{name:place} must be a number, not {value:quoted}": "{name} 须为数字，不能是 {value}",
    "{name:place} has no value; write one or remove the key": "{name} 没有值；请填写或删除这个键",
    'quote the template: "{text}"': '请给模板加引号："{text}"',
    "{key:word} belongs to listeners of type {owner}; this one is of type {kind:word}": (
        "{key} 属于 {owner} 类型的监听器；这个监听器的类型是 {kind}"
    ),
    "approval says how consent is asked; keep one of them": (
        "approval 已说明如何征求同意；请只保留一个"
    ),
    "the handler stands in the metadata too; keep one of them": (
        "metadata 中也有 handler；请只保留一个"
    ),
    "this field has the name {name:quoted} again": "字段名称 {name} 重复",
    "this field needs a name": "这个字段需要名称",
}

_CONDITIONS: Final[dict[str, str]] = {
    "bad condition: {reason:said}": "条件有误：{reason}",
    "compare with ==": "比较请用 ==",
    "write && or and": "请写 && 或 and",
    "write || or or": "请写 || 或 or",
    "single dots join the words of a path": "路径中的各部分用单个点连接",
    "this quote is never closed": "引号没有闭合",
    "longer than {n:number} characters: split it": "超过 {n} 个字符：请拆分",
    "{word:word} names no argument: put text in quotes, or write args.{name:word}": (
        "{word} 不是参数：文本请加引号，或写 args.{name}"
    ),
    "{text} means nothing: write \\\\ for a backslash": "{text} 没有意义：反斜杠请写 \\\\",
    "{word:word} is no path: after a task's id comes .status or .context": (
        "{word} 不是路径：任务编号之后应为 .status 或 .context"
    ),
    "{word:word} is neither a number nor a path: for the task write {path:word}": (
        "{word} 既不是数字也不是路径：若指任务请写 {path}"
    ),
    "unknown word {word:word}; did you mean {meant}?": "未知的词 {word}；您是否想写 {meant}？",
    "unknown word {word:word}: put text in quotes, and ask about a task by a path": (
        "未知的词 {word}：文本请加引号，任务请用路径表示"
    ),
    "{sign} does not fit here: put text in quotes, and write signs in ASCII": (
        "{sign} 不能用在这里：文本请加引号，符号请用半角"
    ),
    "{sign} does not fit here: {remedy:known}": "{sign} 不能用在这里：{remedy}",
    "{token} does not fit here: expected {wanted:phrase}": "{token} 不能用在这里：此处应为{wanted}",
    "not a whole condition: it is empty": "条件不完整：内容为空",
    "not a whole condition: something is missing at the end": "条件不完整：末尾缺少内容",
    "nested deeper than {n:number}: split the condition": "嵌套超过 {n} 层：请拆分条件",
    "not a question: compare it with something": "这不是一个判断：请与某个值比较",
    "{word} is no task status: {hint:phrase}": "{word} 不是任务状态：{hint}",
    "after the task id {id} comes .status or .context": (
        "任务编号 {id} 之后应为 .status 或 .context"
    ),
    "{id:word}.status is one word: nothing can follow it": "{id}.status 是一个词：后面不能再接",
}

_TEMPLATES: Final[dict[str, str]] = {
    "bad template: {reason:said}": "模板有误：{reason}",
    "nested deeper than {n:number}: flatten the template": "嵌套超过 {n} 层：请减少模板的层级",
    "{text}: {problem:known}; a brace meant as text is written \\{{": (
        "{text}：{problem}；作为文本的花括号请写 \\{{"
    ),
    "{text}: the result takes double braces, {braces}": "{text}：结果要用双花括号，{braces}",
    "{text}: these double braces are never closed; braces meant as text are \\{{\\{{": (
        "{text}：双花括号没有闭合；作为文本的花括号请写 \\{{\\{{"
    ),
    "{text}: double braces name the result, as {{{{result.id}}}}, and single ones a task's path, "
    "as {{001.context.name}}; braces meant as text are written \\{{\\{{": (
        "{text}：双花括号表示结果，如 {{{{result.id}}}}；单花括号表示任务的路径，"
        "如 {{001.context.name}}；作为文本的花括号请写 \\{{\\{{"
    ),
    "{source}: there is no task {id}": "{source}：没有任务 {id}",
    "{source}: {owner:term} is a list of {n:number}, without an item {part:word} "
    "(they count from 0)": "{source}：{owner} 是 {n} 项的列表，没有第 {part} 项（从 0 数起）",
    "{source}: {owner:term} is {kind:kind}, without a part {part:quoted}": (
        "{source}：{owner} 是{kind}，没有 {part} 部分"
    ),
    "{source}: {owner:term} has no {part:quoted} ({names:phrase})": (
        "{source}：{owner} 没有 {part}（{names}）"
    ),
    "{source}: {owner:term} has no {part:quoted} ({names:phrase}); did you mean {meant:quoted}?": (
        "{source}：{owner} 没有 {part}（{names}）；您是否想写 {meant}？"
    ),
}

_SNIPPETS: Final[dict[str, str]] = {
    "bad snippet: {reason:said}": "代码有误：{reason}",
    "nested too deep": "嵌套太深",
    "it has more than {n:number} words, numbers, texts and brackets": (
        "单词、数字、文本和括号超过 {n} 个"
    ),
    "it has more than {n:number} functions, classes and comprehensions": (
        "函数、类和推导式超过 {n} 个"
    ),
    "snippets do not have {what}": "代码不支持 {what}",
    "line {line:number}: {problem:known}": "第 {line} 行：{problem}",
    "the snippet never sets `result`; end it with `result = {{...}}`": (
        "代码没有设置 `result`；请以 `result = {{...}}` 结尾"
    ),
    "{text}; a snippet has no files, no network and no environment: pass what it needs in": (
        "{text}；代码不能使用文件、网络和环境变量：所需内容请传入"
    ),
    "{text}; a snippet has only the sandbox's own modules, such as json, re, math": (
        "{text}；代码只能使用沙箱自带的模块，如 json、re、math"
    ),
    "the snippet is nested too deeply": "代码嵌套太深",
    "the snippet's calls are nested more than 200 deep": "代码的调用嵌套超过 200 层",
    "the snippet used more than its 32 MB of memory": "代码使用的内存超过 32 MB",
    "the snippet brought its sandbox down": "代码使沙箱崩溃",
    "the snippet ran longer than its 1 s": "代码运行超过 1 秒",
    "{problem:known}; it loops at line {lines}": "{problem}；循环在第 {lines} 行",
    "`result` is nested too deeply": "`result` 嵌套太深",
    "`result` is too large": "`result` 太大",
    "`result` is larger than {n:number} bytes": "`result` 超过 {n} 字节",
    "`result` cannot be kept as JSON: {reason:said}": "`result` 不能存为 JSON：{reason}",
    "a snippet cannot `return`; set `result` instead": "代码中不能用 `return`；请设置 `result`",
    "line {line:number}: {name:word}() takes its arguments by name; write {example}": (
        "第 {line} 行：{name}() 的参数须按名称传入；请写 {example}"
    ),
    "line {line:number}: {name:word}() was given more than JSON: {reason:said}": (
        "第 {line} 行：传给 {name}() 的不是 JSON：{reason}"
    ),
    "the snippet is not deterministic: {what:phrase}; its calls may depend only on `context` and "
    "on earlier results": "代码的行为不确定：{what}；它的调用只能取决于 `context` 和先前的结果",
}

SENTENCES: Final[dict[str, str]] = {
    **_YAML,
    **{f"not valid YAML: {said}": f"YAML 无效：{chinese}" for said, chinese in _SYNTAX.items()},
    **_SHAPE,
    **_CONDITIONS,
    **_TEMPLATES,
    **_SNIPPETS,
}

PHRASES: Final[dict[str, str]] = {
    **_TOKENS,
    "a plan": "计划",
    "an agent": "智能体",
    "the plan": "计划",
    "the agent": "智能体",
    "write one of {names}": "可用的有 {names}",
    "a value": "一个值",
    "&&, || or the end": " &&、|| 或结尾",
    "null": " null",
    "it is empty": "内容为空",
    "it has: {names:term}": "现有 {names}",
    "this place": "这里",
    "task {id:word}'s context": "任务 {id} 的上下文",
    "it made {made:number} of {total:number} recorded calls": (
        "记录的 {total} 次调用只进行了 {made} 次"
    ),
    "call {n:number} was {before}, is {now}": "第 {n} 次调用原为 {before}，现为 {now}",
}

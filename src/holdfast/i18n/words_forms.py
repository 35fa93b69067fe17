"""Forms in Chinese: why an answer does not fit its field, and what a form's author got wrong."""

from __future__ import annotations

from typing import Final

_ANSWERS: Final[dict[str, str]] = {
    "this is required: please fill it in": "此项必填，请填写",
    "null is not taken here: give a value, or leave it out to keep what is shown": (
        "此处不能为 null：请给出一个值；要保持所示内容，请不要填写此项"
    ),
    "this is a secret: only a reference to it may be recorded": "这是机密，只能记录它的引用",
    "this is not asked, because {condition} does not hold: leave it out": (
        "条件 {condition} 不成立，此项无需填写，请去掉"
    ),
    "the form has no such field: {hint:phrase}": "表单中没有这个字段：{hint}",
    "the form has no such field": "表单中没有这个字段",
    "this is no secret: give it with the answer": "这不是机密，请随回答一起提交",
    "enter the secret itself": "请输入机密本身",
    "give it as plain text": "请以纯文本填写",
    "this cannot be sent: {reason:said}": "无法提交：{reason}",
    "give a JSON {kind:word}; got {value:quoted}": "请填写 JSON {kind}；收到的是 {value}",
    "give {what:phrase}; got {value:quoted}": "请填写{what}；收到的是 {value}",
    "give {what:phrase}": "请填写{what}",
    "give {span:phrase}; this has {n:number}": "长度应为{span}，目前是 {n}",
    "it must match the pattern {pattern}; got {value:quoted}": (
        "须匹配格式 {pattern}；收到的是 {value}"
    ),
    "it must match the pattern {pattern}": "须匹配格式 {pattern}",
    "its pattern cannot be used: {reason:said}": "其格式无法使用：{reason}",
    "this form's texts are too long for its patterns: shorten this one": (
        "表单中的文字相对于其格式过长：请缩短此项"
    ),
    "this JSON cannot be used: {reason:said}": "无法使用这段 JSON：{reason}",
    "write it as JSON; line {line:number}, column {column:number}: {reason}": (
        "请写成 JSON；第 {line} 行第 {column} 列有误：{reason}"
    ),
    "write it as JSON, with shorter numbers and less nesting": (
        "请写成 JSON，数字短一些，嵌套少一些"
    ),
    "answer true or false; got {value:quoted}": "请回答是或否；收到的是 {value}",
    "answer true or false": "请回答是或否",
    "give a list with any of {names:term}; got {value:quoted}": (
        "请从 {names} 中选择若干项，写成列表；收到的是 {value}"
    ),
    "choose {span:phrase}; these are {n:number}": "请选择{span}，目前是 {n} 个",
    "choose {option:quoted} only once": "{option} 只能选一次",
    "choose one of {names:term}; got {value:quoted}": "请从 {names} 中选择；收到的是 {value}",
    "{option:quoted} takes no text of its own: leave the text out": (
        "{option} 不需要另填文字，请去掉"
    ),
    '{option:quoted} needs a text: answer {{"value": {value:quoted}, "text": "…"}}': (
        '{option} 需要填写文字：请回答 {{"value": {value}, "text": "…"}}'
    ),
    'give a file reference, which begins with "{prefix:word}"; got {value:quoted}': (
        "请填写以“{prefix}”开头的文件引用；收到的是 {value}"
    ),
    "give a whole number of at most 64 bits; got {value:quoted}": (
        "请填写不超过 64 位的整数；收到的是 {value}"
    ),
    "it must be from {first} to {last}; got {value:quoted}": (
        "不能早于 {first}，也不能晚于 {last}；收到的是 {value}"
    ),
    "it must be {first} or later; got {value:quoted}": "不能早于 {first}；收到的是 {value}",
    "it must be {last} or earlier; got {value:quoted}": "不能晚于 {last}；收到的是 {value}",
    "a file reference has at most {n:number} characters": "文件引用最多 {n} 个字符",
    "it must be one of {values:term}; got {value:quoted}": (
        "只能是 {values} 之一；收到的是 {value}"
    ),
    "it must be one of {values:term}": "只能是 {values} 之一",
    "the answer does not fit the form": "回答与表单不符",
    "the parameters do not fit the form": "参数与表单不符",
    "the plan's inputs are not valid": "计划的输入无效",
}

_VALUES: Final[dict[str, str]] = {
    "must be text, not {kind}": "须为文本，不能是 {kind}",
    "at most {n:number} characters are taken": "最多 {n} 个字符",
    "half of a character (a lone surrogate)": "只有半个字符（单独的代理项）",
    "contains itself: JSON cannot hold a cycle": "包含自身：JSON 不能有循环",
    "an integer beyond 64 bits: send it as text": "整数超过 64 位：请以文本提交",
    "NaN and Infinity are not JSON: send null or text": (
        "NaN 和 Infinity 不是 JSON：请提交 null 或文本"
    ),
    "{kind:word} is not JSON: {remedy:phrase}": "{kind} 不是 JSON：{remedy}",
    "nested too deep: flatten it": "嵌套太深：请减少层级",
    "a key of type {kind:word}: JSON has only text keys": "键的类型是 {kind}：JSON 的键只能是文本",
    "text with a lone surrogate: it is not valid Unicode": (
        "文本含有单独的代理项：不是有效的 Unicode"
    ),
    "{path:place}: more than {n:number} values: send less at once": (
        "{path}：超过 {n} 个值：请减少一次提交的内容"
    ),
    "more than {n:number} values: send less at once": "超过 {n} 个值：请减少一次提交的内容",
    "larger than {n:number} bytes in all, with at least {m:number} for every value: store it "
    "elsewhere, send a reference": (
        "总共超过 {n} 字节（每个值至少计 {m} 字节）：请存放在别处，提交引用"
    ),
    "{place:place}: {message:known}": "{place}：{message}",
}

_SHAPES: Final[dict[str, str]] = {
    "must be text, not {value:quoted}": "须为文本，不能是 {value}",
    "must be true or false, not {value:quoted}": "须为 true 或 false，不能是 {value}",
    "must be true, array or object, not {value:quoted}": (
        "须为 true、array 或 object，不能是 {value}"
    ),
    "unknown key: {hint:phrase}": "未知的键：{hint}",
    "must be keys and values, such as {{max_length: 80}}, not {value:quoted}": (
        "须为键值，例如 {{max_length: 80}}，不能是 {value}"
    ),
    'only "enum" is known; every other rule stands for itself': (
        "这里只能写 enum；其他规则直接写出即可"
    ),
    "an enum needs its values": "enum 需要列出取值",
    "must be a list of the allowed values": "须为允许取值的列表",
    "must be a regular expression, as text": "须为文本形式的正则表达式",
    "must have at most {n:number} characters": "最多 {n} 个字符",
    "is no regular expression that can be used: {reason:said}": "不是可用的正则表达式：{reason}",
    "it has more than {n:number} characters": "超过 {n} 个字符",
    "write it without (?x): verbose mode cannot be used here": "请去掉 (?x)：这里不能使用详细模式",
    "with its repeats written out it has {n:number} steps, and {most:number} are allowed: let "
    r"max_length bound the text instead of counting, or write [A-Za-z0-9_] for \w": (
        r"展开重复后有 {n} 步，最多允许 {most} 步：请用 max_length 限制长度，而不是计数重复，"
        r"或用 [A-Za-z0-9_] 代替 \w"
    ),
    "must be at most {n:number} with this pattern: a text and its pattern are matched within "
    "bounds": "使用此格式时最多为 {n}：文字与格式的匹配有界限",
    "the patterns of this form are too large together: let max_length bound the texts instead of "
    "counted repeats": "此表单的格式合起来过大：请用 max_length 限制文字长度，而不是计数重复",
    "a form has at most {n:number} fields; this has {m:number}": (
        "表单最多有 {n} 个字段；目前有 {m} 个"
    ),
    "a choice has at most {n:number} options; this has {m:number}": (
        "选择项最多有 {n} 个选项；目前有 {m} 个"
    ),
    "must be a number, not {value:quoted}": "须为数字，不能是 {value}",
    "must be a whole number from 0, not {value:quoted}": "须为不小于 0 的整数，不能是 {value}",
    "must be a date as text, not {value:quoted}": "须为文本形式的日期，不能是 {value}",
    "means nothing for a field of type {type:word}": "对 {type} 类型的字段没有意义",
    "{value:quoted} is no {type:word}: write {example}": "{value} 不是 {type}：请写 {example}",
    "is beyond {key:word}, which is {value}: nothing would fit": (
        "超出了 {key}（{value}）：任何值都不符合"
    ),
    "a form is fields by name, or a list of names": "表单是按名称列出的字段，或名称的列表",
    "{name:quoted} is named twice": "{name} 写了两次",
    "a field's name must be text, in quotes if need be": "字段名称须为文本，必要时加引号",
    "a field is keys and values, such as {{type: text}}": "字段是键值，例如 {{type: text}}",
    "there is no field type {name:quoted}: {hint:phrase}": "没有字段类型 {name}：{hint}",
    "must be a list of options, not {value:quoted}": "须为选项的列表，不能是 {value}",
    "an option's value must be text: {hint:phrase}": "选项的值须为文本：{hint}",
    "a field of type {type:word} has none: use radio, select or multiselect": (
        "{type} 类型的字段没有选项：请用 radio、select 或 multiselect"
    ),
    "a field of type {type:word} needs options to choose from": "{type} 类型的字段需要可选的选项",
    "only a field of type number can be an integer": "只有 number 类型的字段可以是整数",
    "only a field of type textarea can hold JSON": "只有 textarea 类型的字段可以填写 JSON",
    "{value:quoted} is already an option": "选项 {value} 已经存在",
    "{value:quoted} is no option": "{value} 不是选项",
    "a secret has no default: it would stand in the plan for all to read": (
        "机密不能有默认值：写在计划里人人可见"
    ),
    "a form knows only its own answers: ask about values.<field>": (
        "表单只知道自己的回答：请用 values.<字段>"
    ),
    "{name:word} is no field above this one": "{name} 不是此字段之前的字段",
    "the tool has no argument {name}: {hint:phrase}": "该工具没有参数 {name}：{hint}",
}

SENTENCES: Final[dict[str, str]] = {**_ANSWERS, **_VALUES, **_SHAPES}

PHRASES: Final[dict[str, str]] = {
    "text": "文本",
    "it as text": "文本",
    "a number": "数字",
    "a whole number": "整数",
    "true or false": "true 或 false",
    "a list": "列表",
    "an object": "对象",
    "a mapping": "键值映射",
    "a date as YYYY-MM-DD": "日期，格式为 YYYY-MM-DD",
    "a date and time with its offset, as 2025-10-15T10:30:00Z or …T10:30:00+08:00": (
        "带时区的日期和时间，例如 2025-10-15T10:30:00Z 或 …T10:30:00+08:00"
    ),
    "the text of {option:quoted} as text": " {option} 的文字，须为文本",
    "at least {least:number}": "不小于 {least} 的数",
    "at most {most:number}": "不大于 {most} 的数",
    "between {least:number} and {most:number}": " {least} 到 {most} 之间的数",
    "at least {least:number} {unit:phrase}": "至少 {least} {unit}",
    "at most {most:number} {unit:phrase}": "至多 {most} {unit}",
    "between {least:number} and {most:number} {unit:phrase}": " {least} 到 {most} {unit}",
    "character": "个字符",
    "characters": "个字符",
    "option": "个选项",
    "options": "个选项",
    "{names} and {n:number} more": "{names} 等，另有 {n} 个",
    "did you mean {meant}?": "您是否想写 {meant}？",
    "it has {names}": "现有 {names}",
    "it has no fields": "它没有字段",
    "it has none": "一个也没有",
    "known are {names}": "可用的有 {names}",
    "use {names}": "可用的有 {names}",
    "give it one": "请给出",
    "write {value}": "请写 {value}",
    "decode it to text, or send base64": "请解码为文本，或以 base64 提交",
    "make it a list": "请改成列表",
    "convert it to text, a number, a list or a dict": "请转换为文本、数字、列表或字典",
}

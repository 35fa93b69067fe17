"""Words of the inbox page, and of the cards and forms that other pages show too."""

from __future__ import annotations

from typing import Final

_CARD: Final[dict[str, tuple[str, str]]] = {
    "card.tool": ("Tool", "工具"),
    "card.defaults": ("{n} more by default", "另有 {n} 个默认参数"),
    "card.raw": ("Raw JSON", "原始 JSON"),
    "card.empty": ("(empty)", "（空）"),
    "card.secret": ("secret, under lock", "机密，已加密保存"),
    "card.quoted": ("The agent's own words", "智能体的原话"),
    "card.why": (
        "Asked because this call needs a person's consent.",
        "询问原因：此调用需要人工同意。",
    ),
    "card.asked_by": ("Asked by", "提问者"),
    "card.about": ("What the run is about", "运行内容"),
    "card.for_role": ("For the role {role}", "需要角色 {role}"),
    "card.not_yours": ("You cannot answer this: {why}.", "您无法回答：{why}。"),
    "card.status.answered": ("Answered", "已回答"),
    "card.status.expired": ("Expired", "已过期"),
    "card.status.withdrawn": ("Withdrawn", "已撤回"),
    "card.then.default": (
        "If nobody answers in time: “{option}” is taken by default.",
        "逾期无人回答：默认采用“{option}”。",
    ),
    "card.then.not_run": (
        "If nobody answers in time: the question expires, and the tool does not run.",
        "逾期无人回答：问题过期，工具不会执行。",
    ),
    "card.then.expires": (
        "If nobody answers in time: the question expires.",
        "逾期无人回答：问题过期。",
    ),
    "card.then.stops": (
        "The step fails then; unless the plan provides for that, the run stops until somebody "
        "resumes it.",
        "届时该步骤失败；除非计划另有安排，运行会停下，直到有人恢复。",
    ),
    "card.ended.answered": ("{who} answered: {option}", "{who} 的回答：{option}"),
    "card.ended.default": (
        "Nobody answered in time; “{option}” was taken by default",
        "逾期无人回答，已默认采用“{option}”",
    ),
    "card.ended.not_run": (
        "Nobody answered in time; the tool did not run",
        "逾期无人回答，工具没有执行",
    ),
    "card.ended.expired": ("Nobody answered in time", "逾期无人回答"),
    "card.ended.failed": ("; the step failed", "，步骤失败"),
    "card.ended.withdrawn": (
        "The run no longer needs an answer",
        "运行已不再需要回答",
    ),
    "card.ended.changed": ("With these arguments instead:", "改用以下参数："),
    "card.edit": ("Edit the arguments", "修改参数"),
    "card.edit.wish": (
        "Four eyes: with changes the call is asked again, and somebody else approves it.",
        "双人复核：修改后会重新提问，须由他人审批。",
    ),
    "card.nobody": (
        "Nobody is left who may approve this: everybody who could wants the call. An admin can "
        "give a further person the role approver, or cancel the run.",
        "已没有人可以审批：所有有权审批的人都是此调用的发起者。"
        "管理员可以授予另一人 approver 角色，或取消此运行。",
    ),
    "card.edit.help": (
        "The tool runs with exactly what you leave here.",
        "工具将严格按照这里的内容执行。",
    ),
    "card.words": ("Reason or feedback", "理由或反馈"),
    "card.words.needed": ("Needed for: {options}", "以下选项必填：{options}"),
    "card.words.optional": ("Optional", "可选"),
    "card.comma": (", ", "、"),
    "card.own": (": {text}", "：{text}"),
    "card.again": ("{option}?", "{option}？"),
    "card.again.terminate": (
        "Run {run} ends here: nothing more of it runs. This cannot be undone.",
        "运行 {run} 将就此结束，不再执行任何步骤。此操作无法撤销。",
    ),
    "card.again.text": ("This cannot be undone.", "此操作无法撤销。"),
    "card.again.no": ("Go back", "返回"),
    "card.option.provide": ("Submit", "提交"),
    "card.option.skip": ("Skip", "跳过"),
    "card.option.confirm": ("Confirm", "确认"),
    "card.option.reject": ("Reject", "拒绝"),
    "card.option.approve": ("Approve and run", "批准并执行"),
    "card.option.retry": ("Ask again with feedback", "带反馈重试"),
    "card.option.terminate": ("Reject and stop everything", "拒绝并终止全部"),
    "card.option.happened": ("It happened", "已经发生"),
    "card.option.run_again": ("Run it again", "再次执行"),
    "card.option.stop": ("Stop", "停止"),
    "card.option.decline": ("Do not answer", "不回答"),
    "card.prompt.retry": ("Say what should be different", "请说明需要如何调整"),
    "card.prompt.reject": ("Say why not", "请说明拒绝的理由"),
    "card.does.happened": (
        "Go on with the result that you fill in; nothing is called again.",
        "按您填写的结果继续，不会再次调用。",
    ),
    "card.does.run_again": ("Call it once more under the same key.", "以同一键值再调用一次。"),
    "card.does.stop": ("Cancel the whole run.", "取消整个运行。"),
}

_FORM: Final[dict[str, tuple[str, str]]] = {
    "form.total": ("Total", "合计"),
    "form.yes": ("Yes", "是"),
    "form.no": ("No", "否"),
    "form.clear": ("Clear", "清除"),
    "form.own": ("{option}: please specify", "{option}：请填写"),
    "form.secret": (
        "Kept under lock; nobody sees it again.",
        "加密保存，不会再显示。",
    ),
    "form.hidden": (
        "It holds characters that do not show: {text}",
        "包含不可见字符：{text}",
    ),
    "form.file": (
        "Nothing is uploaded here: give the reference under which the file is kept, such as "
        "“file:contract.pdf”. Whoever stored the file, or the tool that did, has it.",
        "此处不上传文件：请填写文件存放处的引用，例如“file:contract.pdf”，"
        "可向存放文件的人或工具索取。",
    ),
    "form.moment": ("In your own time zone.", "按您所在的时区。"),
}

_BROWSER: Final[dict[str, tuple[str, str]]] = {
    "js-card.required": ("Please fill this in", "请填写此项"),
    "js-card.choose": ("Please choose", "请选择"),
    "js-card.specify": ("Please specify", "请填写具体内容"),
    "js-card.changed": (
        "Changed: {names}. The tool will run with your values.",
        "已修改：{names}。工具将按您的值执行。",
    ),
    "js-card.wished": (
        "Changed: {names}. Somebody else is asked to approve your values.",
        "已修改：{names}。将请他人审批您的值。",
    ),
    "js-card.kept": ("Draft kept", "草稿已保存"),
    "js-card.not_kept": ("Draft not kept yet", "草稿尚未保存"),
    "js-card.time_up": ("Time is up", "时间已到"),
    "js-card.elsewhere": (
        "“{title}” was closed while you were writing. Your text is kept below it.",
        "您填写时“{title}”已关闭，您的文字保留在下方。",
    ),
    "js-card.typed": ("What you had written (it was not sent)", "您写下的内容（未发送）"),
    "js-card.copy": ("Copy", "复制"),
    "js-card.answered": ("Your answer is in", "回答已提交"),
    "js-card.sealed": ("Under lock; type to replace it", "已加密保存；重新输入可替换"),
    "js-card.comma": (", ", "、"),
    "js-card.feedback": ("Reason or feedback", "理由或反馈"),
}

_INBOX: Final[dict[str, tuple[str, str]]] = {
    "inbox.title": ("Inbox", "待办"),
    "inbox.tabs": ("Questions by status", "按状态查看问题"),
    "inbox.tab.pending": ("Pending", "待回答"),
    "inbox.tab.answered": ("Answered", "已回答"),
    "inbox.tab.expired": ("Expired", "已过期"),
    "inbox.tab.withdrawn": ("Withdrawn", "已撤回"),
    "inbox.role": ("For the role", "所需角色"),
    "inbox.any_role": ("Every role", "所有角色"),
    "inbox.apply": ("Apply", "应用"),
    "inbox.queue": ("Questions", "问题列表"),
    "inbox.of_run": ("Only run {run}", "仅运行 {run}"),
    "inbox.all_runs": ("Show all", "查看全部"),
    "inbox.capped": ("There are more than the {n} shown here", "此处仅显示 {n} 个，还有更多"),
    "inbox.select_one": ("Select: {title}", "选择：{title}"),
    "inbox.nobody": ("Nobody may approve", "无人可审批"),
    "inbox.not_yours": ("Not for you", "无需您回答"),
    "inbox.empty": ("Nothing waits for you", "没有等待您回答的问题"),
    "inbox.empty.text": (
        "When a run needs a person it stops and asks here. This list is live.",
        "运行需要人工介入时会暂停并在此提问。此列表实时更新。",
    ),
    "inbox.none": ("No such questions", "没有这样的问题"),
    "inbox.none.text": (
        "Look under another tab, or change the filter.",
        "请查看其他标签，或更改筛选条件。",
    ),
    "inbox.choose": ("Choose a question", "请选择一个问题"),
    "inbox.choose.text": (
        "The most urgent one stands first in the queue.",
        "最紧急的问题排在队列最前面。",
    ),
    "inbox.back": ("To the queue", "返回列表"),
    "inbox.bulk": ("With the selected questions", "对所选问题"),
    "inbox.bulk.none": (
        "These questions have no answer in common",
        "这些问题没有共同的选项",
    ),
    "inbox.bulk.title": ("Answer these questions?", "回答这些问题？"),
    "inbox.bulk.asked": ("What is asked", "所问内容"),
    "inbox.bulk.does": ("{does} (“{option}”)", "{does}（“{option}”）"),
    "inbox.bulk.gone": (
        "{n} of them can no longer be answered by you",
        "其中 {n} 个您已无法回答",
    ),
    "inbox.bulk.keep": ("Go back", "返回"),
    "inbox.bulk.words": ("Reason or feedback", "理由或反馈"),
    "inbox.clear": ("Clear selection", "清除选择"),
    "js-inbox.selected": ("{n} question selected|{n} questions selected", "已选择 {n} 个问题"),
    "js-inbox.needed": ("Please say why", "请填写理由"),
    "js-inbox.answered": ("{n} question answered|{n} questions answered", "已回答 {n} 个问题"),
    "js-inbox.refused": ("{title}: {why}", "{title}：{why}"),
    "js-inbox.send": ("{option} ({n})", "{option}（{n}）"),
}

WORDS: Final[dict[str, tuple[str, str]]] = {**_CARD, **_FORM, **_BROWSER, **_INBOX}

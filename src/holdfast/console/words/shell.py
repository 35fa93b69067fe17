"""Words of the shell, of what every page shares, and of the pages that say why not."""

from __future__ import annotations

from typing import Final

WORDS: Final[dict[str, tuple[str, str]]] = {
    "shell.skip": ("Skip to content", "跳到正文"),
    "shell.navigation": ("Main", "主导航"),
    "shell.runs": ("Runs", "运行"),
    "shell.inbox": ("Inbox", "待办"),
    "shell.chat": ("Chat", "对话"),
    "shell.plans": ("Plans", "计划"),
    "shell.waiting": ("{n} question waits|{n} questions wait", "{n} 个问题待答"),
    "shell.account": ("Account", "账户"),
    "shell.language": ("Language", "语言"),
    "shell.sign_out": ("Sign out", "退出登录"),
    "shell.close": ("Close", "关闭"),
    "shell.grants": ("Only {n} grant|Only {n} grants", "仅 {n} 项授权"),
    "role.viewer": ("Viewer", "查看者"),
    "role.operator": ("Operator", "操作员"),
    "role.approver": ("Approver", "审批人"),
    "role.author": ("Author", "编写者"),
    "role.admin": ("Administrator", "管理员"),
    "status.not_started": ("Not started", "未开始"),
    "status.running": ("Running", "运行中"),
    "status.pause": ("Waiting", "等待中"),
    "status.continue": ("Continuing", "继续中"),
    "status.done": ("Done", "已完成"),
    "status.error": ("Failed", "失败"),
    "status.cancelling": ("Cancelling", "取消中"),
    "status.cancelled": ("Cancelled", "已取消"),
    "status.stopped": ("Stopped", "已停止"),
    "kind.plan": ("Plan", "计划"),
    "kind.chat": ("Chat", "对话"),
    "kind.conversation": ("Conversation", "会话"),
    "field.required": ("required", "必填"),
    "refused.401": ("You are not signed in", "您尚未登录"),
    "refused.401.text": (
        "Open the link that Holdfast printed when it started, or ask an administrator for one. "
        "Started like this it prints a new one:",
        "请打开 Holdfast 启动时打印的链接，或向管理员索取。这样启动会打印新的链接：",
    ),
    "refused.401.token": ("Or paste an access token", "或粘贴访问令牌"),
    "refused.401.enter": ("Sign in", "登录"),
    "link.title": ("Sign in to Holdfast", "登录 Holdfast"),
    "link.text": (
        "This link signs you in to {server}, in this browser, as the person it was made for. "
        "It works once. If nobody you know sent it, close this page: nothing has happened yet.",
        "此链接将在当前浏览器中以链接所属者的身份登录 {server}，只能使用一次。"
        "如果来历不明，请关闭此页：目前还没有发生任何事。",
    ),
    "refused.link": ("This link does not work", "此链接无法登录"),
    "refused.link.text": (
        "It was used already, is too old or is not whole. Ask whoever sent it for another; "
        "a demo prints one when it is started again, and so does a server started like this:",
        "链接已使用过、已过期或不完整。请向发送者索取新链接；重新启动演示，或这样启动服务器，"
        "都会打印新的链接：",
    ),
    "refused.403": ("You may not see this", "您无权查看此页"),
    "refused.403.text": (
        "Your role does not allow it. An administrator can give you another one.",
        "您的角色没有此权限，管理员可以调整您的角色。",
    ),
    "refused.404": ("There is nothing here", "这里什么也没有"),
    "refused.404.text": (
        "The address may be mistyped, or you may not see what it names.",
        "地址可能有误，或者您无权查看它指向的内容。",
    ),
    "refused.422": ("This address makes no sense", "地址无法理解"),
    "refused.422.text": (
        "A part of it is not valid: {detail}",
        "其中某一部分无效：{detail}",
    ),
    "refused.429": ("Too many attempts", "尝试次数过多"),
    "refused.429.text": (
        "Nothing is locked. Wait a minute, then try again.",
        "没有任何内容被锁定，请等一分钟再试。",
    ),
    "refused.503": ("Holdfast cannot answer just now", "Holdfast 暂时无法响应"),
    "refused.503.text": (
        "Nothing is lost. Try again in a moment.",
        "没有任何数据丢失，请稍后再试。",
    ),
    "refused.500": ("Something went wrong here", "服务器出错了"),
    "refused.500.text": (
        "It is not your fault. The server's log has the reason under request {request_id}.",
        "这不是您的问题。原因已记录在服务器日志中，请求编号 {request_id}。",
    ),
    "refused.home": ("To the runs", "前往运行列表"),
    "js.units": ("s min h d", "秒 分 小时 天"),
    "js.live": ("Live", "实时"),
    "js.reconnecting": ("Reconnecting…", "重新连接中…"),
    "js.offline": ("Offline", "离线"),
    "js.unreachable": (
        "No answer came; it may have been received. Pressing again does nothing twice.",
        "没有收到答复，请求可能已送达。再按一次不会重复执行。",
    ),
    "js.signed_out": ("You are signed out. Sign in again.", "登录已失效，请重新登录。"),
    "js.sign_in": (
        "Sign in again in a new tab; what you wrote stays here",
        "在新标签页中重新登录；您写下的内容保留在此",
    ),
    "js.fix": ("Please fix {n} field|Please fix {n} fields", "请修正 {n} 处错误"),
    "js.copied": ("Copied", "已复制"),
    "js.copy_yourself": (
        "The browser does not let this page copy. The text is selected here: press Ctrl+C or ⌘C.",
        "浏览器不允许此页面复制。文字已在此选中，请按 Ctrl+C 或 ⌘C。",
    ),
    "js.refused": ("The server refused it ({status}).", "服务器拒绝了请求（{status}）。"),
    "shell.copy": ("Copy", "复制"),
    "js.dismiss": ("Dismiss", "关闭提示"),
}

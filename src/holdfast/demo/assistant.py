"""The scripted words of the assistant whom people chat with: it pays expenses, once it may.

    Please pay 420 to Will Zhang for the taxi.        请付给张三 420 元出租车费。

It understands such a sentence and nothing else, and says so. What comes of its call it tells
as it is. Asked to think again, it takes the amount that the feedback names. Like its
colleagues it knows only the conversation that it is shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from holdfast.model.message import ModelSaid, ToolReturned
from holdfast.model.values import Json
from holdfast.testing.model_script import Entry, ScriptedCall, Seen, say

TOOL: Final = "pay_expense"
_ENGLISH = re.compile(
    r"\bpay [¥$]?(?P<amount>\d[\d,]*(?:\.\d+)?) to (?P<employee>.+?)"
    r"(?: for (?P<purpose>.+?))? ?[.!]?$",
    re.IGNORECASE,
)
_CHINESE = re.compile(
    r"付给? ?(?P<employee>\S.*?) ?(?P<amount>\d[\d,]*(?:\.\d+)?) ?元(?P<purpose>.*?) ?[。！]?$"
)
_LONGEST = 200
"""Of a sentence; a longer text is looked at from its end."""
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_CHINESE_LETTER = re.compile("[\u4e00-\u9fff]")

_WORDS: Mapping[str, tuple[str, str]] = {
    "asks": ("That is money, so I ask before I pay.", "涉及付款，执行前先征得同意。"),
    "again": ("Then let me ask about another payment.", "那么换一笔付款再征求同意。"),
    "paid": (
        "Paid ¥{amount} to {employee} for {purpose}: {payment_id}.",
        "已付给{employee} ¥{amount}（{purpose}），单号 {payment_id}。",
    ),
    "unpaid": ("Nothing was paid: {reason}", "没有付款：{reason}"),
    "unclear": (
        "I am a scripted stand-in and only understand sentences such as: Please pay 420 to "
        "Will Zhang for the taxi. A real model takes my place when you serve your own "
        "application with HOLDFAST_MODEL=openai:gpt-4o (or another provider's).",
        "我是按脚本回答的替身，只听得懂这样的话：请付给张三 420 元出租车费。"
        "用 HOLDFAST_MODEL=openai:gpt-4o（或其他厂商的模型）运行你自己的应用，"
        "就由真正的模型来回答。",
    ),
}


def reply(seen: Seen) -> Entry:
    """The assistant's next words."""
    if seen.results:
        return _told(seen, seen.results[-1])
    wanted = _payment(seen.asked)
    return _call(seen, "asks", wanted) if wanted else _words(seen, "unclear")


def _payment(text: str) -> dict[str, Json]:
    """The payment that a sentence asks for; empty when it asks for none."""
    sentence = " ".join(text[-_LONGEST:].split())
    found = _ENGLISH.search(sentence) or _CHINESE.search(sentence)
    if found is None:
        return {}
    return {
        "employee": found["employee"],
        "amount": _number(found["amount"]),
        "purpose": (found["purpose"] or "").strip() or "expenses",
    }


def _told(seen: Seen, returned: ToolReturned) -> Entry:
    content = returned.content if isinstance(returned.content, Mapping) else {}
    if not returned.failed and "payment_id" in content:
        return _words(seen, "paid", **content)
    named = _NUMBER.search(str(content.get("reason", ""))) if "retry" in content else None
    if named:
        return _call(seen, "again", {**_last_call(seen), "amount": _number(named[0])})
    return _words(seen, "unpaid", reason=_reason(content))


def _last_call(seen: Seen) -> Mapping[str, Json]:
    said = [message for message in seen.messages if isinstance(message, ModelSaid)]
    return said[-1].calls[-1].args


def _reason(content: Mapping[str, Json]) -> str:
    named = (content.get(name) for name in ("reason", "error", "rejected", "retry", "skipped"))
    return next((str(one) for one in named if one), "the call failed")


def _call(seen: Seen, words: str, args: Mapping[str, Json]) -> Entry:
    arguments = json.dumps(args, ensure_ascii=False)
    call = ScriptedCall(TOOL, arguments, f"call_{len(seen.messages)}")
    return say(_words(seen, words), call)


def _words(seen: Seen, name: str, **told: Json) -> str:
    english, chinese = _WORDS[name]
    return (chinese if _CHINESE_LETTER.search(seen.asked) else english).format(**told)


def _number(text: str) -> int | float:
    plain = text.replace(",", "")
    return float(plain) if "." in plain else int(plain)

"""What a failure says, without what differs from one call to the next."""

from __future__ import annotations

from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.repair.plain_text import MOST_READ, plain

PLAIN = {
    "HR has no employee 'E0001': create the profile first": (
        "hr has no employee #: create the profile first"
    ),
    "the user isn't Will's": "the user isn't will's",
    "'it''s' and 'don't' are \"quoted \\\" text\"": "# and # are #",
    "unknown model `m`, “Über”, ‘x’, 「电脑」, 《手册》, «é»": "unknown model #",
    'cut off within "a quotation…': "cut off within #",
    "cut off within 'a quotation…": "cut off within #",
    'a 27" screen': 'a #" screen',
    "参数'model'无效": "参数#无效",
    "订单123不存在，请先创建": "订单#不存在，请先创建",
    "-5, +3.25, .5, 1,000 and 1e-9 %": "# and # %",
    "order #17 of room B-12/3": "order # of room #",
    "inst_000001:L001:1:0 is late": "# is late",
    "550e8400-e29b-41d4-a716-446655440000 deadbeef feed": "# feed",
    "see https://api.example.com/v1/x?a=b#c, please.": "see #, please.",
    "(http://localhost:8900/tool)": "(#)",
    "访问http://内网.example/接口失败": "访问http://内网.example/接口失败",
    "访问http://a.example/x失败": "访问#失败",
    "will.zhang+x@mail.example.com is no address": "# is no address",
    "邮箱will@localhost无效": "邮箱#无效",
    "from 10.0.0.1:8080, ::1 and fe80::1": "from # and #",
    "std::vector or and/or": "std::vector or and/or",
    "in /var/lib/holdfast/x.db or C:\\Users\\will": "in # or #",
    "on 2026-12-31T09:00:00+08:00 or 2026/12/31 09:00": "on # or #",
    "Wed, 21 Oct 2015 07:28:00 GMT": "#",
    "on Friday, March 3, 2026 at 5 p.m.": "on # at #",
    "you may go on 3 May": "you may go on #",
    "于2026年12月31日 下午3点5分到期": "于#到期",
    "3 月 5 日 或 上午9点": "# 或 #",
    '{"error": {"code": "x7", "message": "employee \'E1\' not found"}}': "employee # not found",
    "{'code': 5, 'message': 'it is taken'}": "it is taken",
    '[{"loc": ["body"], "msg": "Field required"}, {"msg": "Too long"}]': (
        "field required; too long"
    ),
    '{"message": "it was cut in the mid…': "it was cut in the mid…",
    '{"employee": "E1"}': "{#}",
    "[later] try again": "[later] try again",
    "  Two\n  LINES\t": "two lines",
    "": "",
}


@pytest.mark.parametrize("text", PLAIN)
def test_what_differs_between_calls_is_left_out(text: str) -> None:
    assert plain(text) == PLAIN[text]


@given(st.text(max_size=400))
def test_what_is_plain_has_no_digit_and_no_capital(text: str) -> None:
    told = plain(text)
    assert not any(one.isdecimal() or (one.isascii() and one.isupper()) for one in told)
    assert told == told.strip()


HOSTILE = (
    *("'a ", "'a' 'b", '"\\', "a.b@", "a", "#", "/a", ":", "a:", "{'error':'", "1 ", "a-", "jan "),
    *("# ", "+", ".", "http:/", "http://", "12345", "'", '"', "\\", "’", "“", "年", "# 年", "a@"),
    *("wed, ", "{'a':{", "[", "- ", "a.1", "'…", "\ud800"),
)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_takes_long(text: str) -> None:
    begun = perf_counter()
    plain("{" + text * MOST_READ)
    plain(text * MOST_READ)
    assert perf_counter() - begun < 0.5

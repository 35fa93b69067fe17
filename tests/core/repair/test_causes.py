"""What is wrong with a call is told by its status, its code and, last, by words."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from immutables import Map

from holdfast.core.plan.state import TaskFacts, TaskState
from holdfast.core.repair.causes import TABLE, cause_of, fingerprint, judged
from holdfast.errors import TemplateError
from holdfast.i18n.catalogue import catalogue
from holdfast.i18n.message import joined, msg
from holdfast.language.templates import compile_template, render
from holdfast.model.retry import Cause, Failure, FailureKind

TRANSIENT, PERMANENT = FailureKind.TRANSIENT, FailureKind.PERMANENT


def failure(message: str = "", kind: FailureKind = PERMANENT, **more: object) -> Failure:
    return Failure(kind, message, **more)  # type: ignore[arg-type]


def answered(status: int, reason: str, **more: object) -> Failure:
    """As an HTTP tool words it."""
    text = msg(
        "{tool}: {host} answered {status}: {reason}",
        tool="grant_access",
        host="locked.example.com",
        status=status,
        reason=reason,
    )
    return failure(text, PERMANENT, status=status, **more)


def absence(template: str) -> str:
    """As a template says that what it takes is not there."""
    facts = TaskFacts(Map({"001": TaskState()}), {"result": {}})
    with pytest.raises(TemplateError) as caught:
        render(compile_template(template), facts)
    return str(caught.value)


STATUSES = {
    Cause.ARGUMENT: (400, 413, 414, 415, 416, 422, 431),
    Cause.CREDENTIALS: (401, 407, 511),
    Cause.RIGHTS: (402, 403, 451),
    Cause.PRECONDITION: (404, 410, 412, 424, 428),
    Cause.CONFLICT: (409, 423),
    Cause.RATE_LIMIT: (420, 429),
    Cause.OUTAGE: (425, 500, 503, 506, 507, 519, 528, 529, 530, 597),
    Cause.DOUBT: (408, 502, 504, 520, 524, 527, 598, 599),
    Cause.PLAN: (301, 302, 308, 405, 501, 505),
    Cause.RESULT_SHAPE: (200, 204),
    Cause.UNKNOWN: (100, 406, 418, 426, 499),
}


@pytest.mark.parametrize(
    ("status", "cause"), [(one, cause) for cause, every in STATUSES.items() for one in every]
)
def test_a_status_decides(status: int, cause: Cause) -> None:
    assert cause_of(answered(status, "no")) is cause


WITHOUT_STATUS = {
    "doubt": (failure("the user is taken", FailureKind.UNKNOWN, code="NOT_FOUND"), Cause.DOUBT),
    "forbidden": (failure("no", FailureKind.FORBIDDEN), Cause.RIGHTS),
    "something is missing": (failure("no", FailureKind.MISSING), Cause.ARGUMENT),
    "gRPC": (failure("no", code="FAILED_PRECONDITION"), Cause.PRECONDITION),
    "gRPC's limit": (failure("no", TRANSIENT, code="RESOURCE_EXHAUSTED"), Cause.RATE_LIMIT),
    "JSON-RPC": (failure("no", code="-32602"), Cause.ARGUMENT),
    "a key that is there": (failure("no", TRANSIENT, code="23505"), Cause.CONFLICT),
    "a key that is not": (failure("no", TRANSIENT, code="23503"), Cause.PRECONDITION),
    "no such column": (failure("no", TRANSIENT, code="42703"), Cause.PLAN),
    "a class": (failure("[Errno 111]", TRANSIENT, code="ConnectError"), Cause.OUTAGE),
    "a snippet": (failure("KeyError: 'id'", code="SnippetError"), Cause.PLAN),
    "an id of ours": (failure(msg("the tool {tool} is disabled", tool="pay")), Cause.RIGHTS),
    "within another": (
        failure(
            msg(
                "{place}: {problem}",
                place="inst_000001.L1.1",
                problem=msg("rejected by {by}", by="Will Zhang"),
            )
        ),
        Cause.REFUSED,
    ),
    "within several": (
        failure(joined("; ", ["x", msg("nobody answered in time")]), FailureKind.MISSING),
        Cause.PRECONDITION,
    ),
    "a message of ours that tells nothing": (
        failure(msg("{id} failed: {reason}", id="L1", reason="out of paper")),
        Cause.UNKNOWN,
    ),
    "a service's words in one": (
        failure(msg("{id} failed: {reason}", id="not found", reason="it is taken")),
        Cause.CONFLICT,
    ),
    "what a plan's argument takes is not there": (
        failure(absence("{001.context.order}")),
        Cause.PLAN,
    ),
    "what an output takes from a result is not there": (
        failure(absence("{{result.order}}")),
        Cause.RESULT_SHAPE,
    ),
    "the same words by others": (failure("rejected by Will Zhang"), Cause.UNKNOWN),
    "wrong arguments": (
        failure(msg("{tool} was given wrong arguments: {fields}", tool="t", fields="a: no")),
        Cause.ARGUMENT,
    ),
    "an argument is named": (failure("no", field="model"), Cause.ARGUMENT),
    "asked to wait": (failure("no", TRANSIENT, retry_after=3.0), Cause.RATE_LIMIT),
    "its own word": (failure("no", TRANSIENT, code="transient"), Cause.OUTAGE),
    "its author's error": (failure("no", TRANSIENT, code="TransientError"), Cause.OUTAGE),
    "nothing at all": (failure("out of paper", TRANSIENT), Cause.UNKNOWN),
    "any exception": (failure("no", TRANSIENT, code="ValueError"), Cause.UNKNOWN),
}


@pytest.mark.parametrize("name", WITHOUT_STATUS)
def test_without_a_status_the_kind_the_code_and_our_own_words_decide(name: str) -> None:
    failed, cause = WITHOUT_STATUS[name]
    assert cause_of(failed) is cause


WORDS = {
    Cause.RATE_LIMIT: (
        *("Rate limit exceeded", "too many requests", "Quota for today exceeded", "request limit"),
        *("请求过于频繁，请稍后再试", "接口限流", "超出每日配额", "调用次数过多"),
    ),
    Cause.CREDENTIALS: (
        *("the token has expired", "Invalid API key", "authentication failed", "Not logged in"),
        *("invalid or expired access token", "certificate verify failed", "wrong password"),
        *("登录已过期", "令牌无效", "鉴权失败", "请重新登录", "密码错误"),
    ),
    Cause.RIGHTS: (
        *("permission denied", "you are not allowed to do this", "missing scope", "lacks the role"),
        *("权限不足", "没有该操作的权限", "无权访问", "禁止操作"),
    ),
    Cause.RESULT_SHAPE: (
        *("Expecting value: line 1 column 1", "could not parse the response", "unexpected content"),
        *("返回格式错误", "无法解析结果"),
    ),
    Cause.PLAN: ("no tool is named 'pay'", "method not found", "该工具不存在", "接口不存在"),
    Cause.OUTAGE: (
        *("service unavailable", "the door system is down", "under maintenance", "out of order"),
        *("could not connect", "[Errno 111] Connect call failed ('127.0.0.1', 80)", "overloaded"),
        *("门禁系统故障", "服务暂时不可用", "系统繁忙", "维护中"),
    ),
    Cause.ARGUMENT: (
        *("got an unexpected keyword argument 'model'", "missing 1 required argument: 'x'"),
        *("model is not an argument of this tool", "amount must be a number above 0"),
        *('unknown parameter "modle"', "validation failed", "subject too long", "invalid value"),
        *("Extra inputs are not permitted", "parameter 'x' does not exist"),
        *("缺少参数model", "参数错误", "日期格式不正确", "姓名不能为空", "未知字段"),
    ),
    Cause.PRECONDITION: (
        *("HR has no employee 'E0001': create the profile first", "order 17 not found"),
        *("the account does not exist", "The account doesn’t exist", "unknown employee"),
        *("not yet approved", "out of stock", "insufficient funds"),
        *("员工不存在", "找不到订单", "请先创建档案", "尚未审批", "库存不足"),
    ),
    Cause.CONFLICT: (
        *("the user name 'will' is taken: choose another", "it already exists", "duplicate key"),
        *("deadlock detected", "version mismatch", "the file is locked", "conflicts with 3"),
        *("用户名已存在", "已被占用", "请勿重复提交", "版本冲突"),
    ),
}


@pytest.mark.parametrize(
    ("text", "cause"), [(text, cause) for cause, every in WORDS.items() for text in every]
)
def test_where_nothing_else_tells_words_do(text: str, cause: Cause) -> None:
    assert cause_of(failure(text, TRANSIENT)) is cause


REFINED = {
    "a missing thing, though it was called a conflict": (
        answered(409, "HR has no employee 'E0001': create the profile first"),
        Cause.PRECONDITION,
    ),
    "a conflict as it is": (answered(409, "the user name 'will' is taken"), Cause.CONFLICT),
    "what confirms comes first": (
        answered(409, "it already exists: delete it first"),
        Cause.CONFLICT,
    ),
    "a conflict among missing things": (answered(404, "it is locked"), Cause.CONFLICT),
    "a limit that is called forbidden": (answered(403, "API rate limit exceeded"), "rate_limit"),
    "a token that is called forbidden": (answered(403, "token expired"), Cause.CREDENTIALS),
    "no right that is called a login": (answered(401, "missing scope"), Cause.RIGHTS),
    "a limit that is called an outage": (answered(503, "Please slow down"), Cause.RATE_LIMIT),
    "money, not time": (
        answered(429, "You exceeded your current quota", code="insufficient_quota"),
        Cause.RIGHTS,
    ),
    "a code before words": (
        answered(400, "the employee does not exist", code="ALREADY_EXISTS"),
        Cause.CONFLICT,
    ),
    "a code's words": (answered(400, "no", code="InvalidApiKey"), Cause.CREDENTIALS),
    "a code in capitals": (answered(400, "no", code="USER_NOT_FOUND"), Cause.PRECONDITION),
    "an argument, whatever is not found": (
        answered(400, "field 'employee' not found"),
        Cause.ARGUMENT,
    ),
    "no such tool": (answered(404, "there is no tool 'pay'; there are 'look'"), Cause.PLAN),
    "an outage stays one": (answered(500, "employee not found"), Cause.OUTAGE),
    "doubt stays doubt": (answered(504, "permission denied"), Cause.DOUBT),
    "a strange status": (answered(418, "not found"), Cause.PRECONDITION),
    "rights by kind": (failure("the token has expired", FailureKind.FORBIDDEN), "credentials"),
    "quoted words are names": (answered(409, "the list 'too many requests'"), Cause.CONFLICT),
    "names of hosts are none": (answered(400, "bad"), Cause.ARGUMENT),
}


@pytest.mark.parametrize("name", REFINED)
def test_words_only_refine(name: str) -> None:
    failed, cause = REFINED[name]
    assert cause_of(failed) == cause


def test_no_word_of_a_service_makes_doubt_or_a_refusal() -> None:
    assert [one.over for one in TABLE if one.cause in (Cause.DOUBT, Cause.REFUSED)] == [()] * 2


def test_the_table_has_each_cause_once_and_each_sign_for_one_cause() -> None:
    assert {one.cause for one in TABLE} == {*Cause} - {Cause.UNKNOWN}
    for signs in ("cause", "codes", "messages"):
        told = [getattr(one, signs) for one in TABLE]
        each = told if signs == "cause" else [sign for one in told for sign in one]
        assert max(Counter(each).values()) == 1, signs


def test_the_messages_of_the_table_are_ours() -> None:
    known = catalogue("zh").keys()
    assert {one for signs in TABLE for one in signs.messages} <= known


def test_what_is_judged_stays() -> None:
    once = judged(answered(409, "it is taken"), "grant_access")
    assert once.cause is Cause.CONFLICT
    assert once.fingerprint == fingerprint("grant_access", Cause.CONFLICT, once)
    assert judged(once, "another") is once
    said = judged(failure("not found", cause=Cause.RIGHTS), None)
    assert said == failure(
        "not found", cause=Cause.RIGHTS, fingerprint=fingerprint("", Cause.RIGHTS, said)
    )
    marked = judged(failure("not found", fingerprint="fp0:1"), "grant_access")
    assert (marked.cause, marked.fingerprint) == (Cause.PRECONDITION, "fp0:1")


def mark(failed: Failure, tool: str = "grant_access") -> str:
    return judged(failed, tool).fingerprint


GOLDEN = {
    "HR has no employee 'E0001': create the profile first": "fp1:2ea8dc68e0b97d86",
    "订单123不存在，请先创建": "fp1:6340ec872542a577",
    "the token expired at 2026-12-31T09:00:00+08:00": "fp1:7d92953b841bcf65",
    "": "fp1:817612e96aee8d2f",
}


def test_fingerprints_are_the_same_for_years() -> None:
    assert {text: mark(answered(409, text)) for text in GOLDEN} == GOLDEN
    assert (
        mark(failure("KeyError: 'id'", TRANSIENT, code="KeyError"), "pay") == "fp1:1705e926f4b2bc99"
    )


def test_they_are_the_same_in_every_process() -> None:
    program = """if True:
        import sys
        from holdfast.core.repair.causes import judged
        from holdfast.model.retry import Failure, FailureKind
        failed = Failure(FailureKind.PERMANENT, "order 17 is 'late'", status=409, code="LATE")
        sys.stdout.write(judged(failed, "pay").fingerprint)
    """
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout.decode()
        for seed in ("1", "2", "3")
    }
    assert told == {mark(failure("order 18 is 'early'", status=409, code="LATE"), "pay")}


def shut_out(names: str, known: str) -> str:
    return msg(
        "the tool {tool} does not take {names}; it takes {known}",
        tool="t",
        names=names,
        known=known,
    )


def unreached(host: str) -> str:
    return msg("{tool}: {host} could not be reached", tool="t", host=host)


def test_what_is_unlike_has_another() -> None:
    taken = "the user name 'will' is taken"
    unlike = (
        answered(409, taken),
        answered(409, "HR has no employee 'E0001': create the profile first"),
        answered(404, taken),
        answered(409, taken, code="taken"),
        answered(409, taken, field="username"),
        failure(taken, TRANSIENT),
        failure(unreached("h"), TRANSIENT),
        failure(shut_out("a", "b"), TRANSIENT),
        failure(shut_out("c", "b"), TRANSIENT),
        failure(msg("{source}: {problem}", source="{001.context.id}", problem="no")),
        failure(msg("{source}: {problem}", source="{001.context.name}", problem="no")),
    )
    assert len({mark(one) for one in unlike}) == len(unlike)
    assert mark(unlike[0], "query_access") != mark(unlike[0])


def test_what_is_alike_has_the_same() -> None:
    assert mark(failure(unreached("a.example.com"))) == mark(failure(unreached("b.example.com")))
    assert mark(failure(shut_out("a", "b"))) == mark(failure(shut_out("a", "c")))
    assert mark(answered(422, "no", field="items.3.name")) == mark(
        answered(422, "no", field="items.12.name")
    )
    several = (joined("; ", ["order 1", unreached(one), f"room {one}"]) for one in ("h1", "i2"))
    assert len({mark(failure(one)) for one in several}) == 1
    assert mark(failure("Order  7\nlost")) == mark(failure("order 8 lost"))


def test_only_the_first_two_hundred_characters_count() -> None:
    assert mark(failure("x" * 200)) == mark(failure("x" * 300))
    assert mark(failure("x" * 199)) != mark(failure("x" * 300))


WORDS_OF_SENTENCES = (
    "order",
    "is late",
    "订单",
    "不存在",
    "，",
    ": ",
    "(",
    ")",
    "has no",
    "\n",
    "=",
    "-",
)


@given(st.data())
def test_another_number_id_or_quotation_changes_nothing(data: st.DataObject) -> None:
    numbers = st.from_regex(r"[0-9]{1,12}(\.[0-9]{1,4})?", fullmatch=True)
    ids = st.from_regex(r"([A-Z]{1,4}|inst_|PC-)[0-9]{1,6}", fullmatch=True) | st.uuids().map(str)
    quoted = st.text(st.characters(exclude_characters="'\"`\\", codec="utf-8"), max_size=12)
    holes = (numbers, ids, quoted.map("'{}'".format), quoted.map('"{}"'.format))
    drawn_from = st.sampled_from(WORDS_OF_SENTENCES) | st.sampled_from(holes)
    parts = data.draw(st.lists(drawn_from, max_size=8))

    def drawn() -> str:
        return " ".join(one if isinstance(one, str) else data.draw(one) for one in parts)

    assert mark(failure(drawn())) == mark(failure(drawn()))


@given(st.text(max_size=300), st.text(max_size=20), st.integers(100, 599) | st.none())
def test_any_failure_can_be_judged(text: str, code: str, status: int | None) -> None:
    once = judged(failure(text, TRANSIENT, code=code, status=status), None)
    assert once.cause is not None
    assert len(once.fingerprint) == len("fp1:") + 16
    assert once.cause is not Cause.REFUSED

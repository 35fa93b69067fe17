"""What is wrong, and which failures are alike: one table, and a fingerprint.

    doubt      the kind says so, or a status with which nobody knows whether the call arrived
    status     an HTTP status decides
    code       the service's own word decides where there is no status, as the class of a Python
               exception does
    message    one of ours decides by its id
    words      only refine: each cause says which others its codes and words may take the place of

Words are looked for in the code (`InvalidApiKey` reads "invalid api key") and in what others say,
without quotations, numbers and the like (`plain_text`): what people have called something is no
word about the failure. What confirms the cause that stands is heeded before what would change it.
No word of a service makes doubt of an answer, or a refusal, which only a person utters.

Fingerprints are kept in journals and compared across years. Another way to make them, or to make
a text plain, is another version; `tests/core/repair/test_causes.py` has golden ones. What moves to
another cause has another fingerprint from then on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from hashlib import sha256
from re import Pattern
from typing import Final

from holdfast.core.repair.plain_text import plain
from holdfast.i18n.message import Message, msgid
from holdfast.language.strict import canonical_json
from holdfast.model.record import record, replacing
from holdfast.model.retry import Cause, Failure, FailureKind

VERSION: Final = "fp1"
LONGEST_TEXT: Final = 200
_DIGEST: Final = 16


@record
class Signs:
    """What tells of a cause. `over`: the causes in whose place its codes and words put it."""

    cause: Cause
    statuses: Collection[int] = ()
    codes: Collection[str] = ()
    messages: Collection[str] = ()
    words: str = "(?!)"
    over: Collection[Cause] = ()

    def told_by(self, code: str, text: str) -> bool:
        return code in self.codes or _compiled(self.words).search(text) is not None


@cache
def _compiled(words: str) -> Pattern[str]:
    """At the first failure: all of them together take 5 ms, and most programs see none."""
    return re.compile(words)


def _words(*patterns: str) -> str:
    return "|".join(patterns)


TABLE: Final = (
    Signs(Cause.DOUBT, statuses=(408, 502, 504, *range(520, 528), 598, 599)),
    Signs(Cause.REFUSED, messages=(msgid("rejected by {by}: {reason}"), msgid("rejected by {by}"))),
    Signs(Cause.WRONG_RESULT, messages=(msgid("verification failed: {checks}"),)),
    Signs(
        Cause.RATE_LIMIT,
        statuses=(420, 429),
        codes=("RESOURCE_EXHAUSTED",),
        words=_words(
            "rate.?limit",
            "too many (?:requests|calls|attempts)",
            "throttl",
            r"quota (?:\w+ ){0,2}(?:exceeded|exhausted|reached|used up)",
            r"(?:exceeded|over|out of) (?:\w+ ){0,3}quota",
            "slow ?down",
            "request limit",
            "限流",
            "(?:请求|调用|操作|访问)(?:次数)?(?:过于|太|过)(?:频繁|快|多)",
            "(?:超出|超过).{0,6}(?:配额|频率|次数)",
            "配额.{0,4}(?:用完|用尽|不足|耗尽)",
        ),
        over=(Cause.UNKNOWN, Cause.ARGUMENT, Cause.RIGHTS, Cause.OUTAGE, Cause.CONFLICT),
    ),
    Signs(
        Cause.CREDENTIALS,
        statuses=(401, 407, 511),
        codes=(
            *("UNAUTHENTICATED", "28000", "28P01", "AuthenticationException"),
            *("BadHostKeyException", "SSLCertVerificationError", "CertificateError"),
        ),
        words=_words(
            r"(?:invalid|expired|wrong|incorrect|revoked|missing|unknown|bad) (?:\w+ )?"
            r"(?:api key|token(?! (?:in|at|near)\b)|credentials?|password|signature|certificate)",
            r"(?:token|credentials?|api key|password|certificate|session) (?:\w+ ){0,2}"
            "(?:expired|not valid|invalid|revoked|rejected)",
            "certificate (?:verify failed|has expired|verification)",
            "authentication (?:failed|required|error)",
            "(?:not|un) ?authenticated",
            "not logged in",
            r"log ?in (?:is )?(?:required|again)",
            "invalid (?:grant|client|auth)\\b",
            "(?:认证|鉴权|身份验证|登录)失败",
            "未登录|请(?:先|重新)?登录|登录(?:状态)?(?:已)?(?:过期|失效)",
            "(?:令牌|凭证|凭据|密钥|口令|密码|签名|证书|token)(?:已)?(?:过期|失效|无效|错误|不正确)",
        ),
        over=(Cause.UNKNOWN, Cause.ARGUMENT, Cause.RIGHTS, Cause.OUTAGE),
    ),
    Signs(
        Cause.RIGHTS,
        statuses=(402, 403, 451),
        codes=("PERMISSION_DENIED", "42501"),
        messages=(
            msgid("the tool {tool} is disabled"),
            msgid("consent to {tool} does not fit what would run"),
        ),
        words=_words(
            "(?:permission|access) (?:is |was )?(?:denied|forbidden|required)",
            r"(?:lacks?|missing|insufficient|without|no) (?:\w+ )?"
            "(?:permissions?|privileges?|rights|scopes?|role)\\b",
            "not (?:allowed|permitted|authori[sz]ed|entitled) to",
            "insufficient quota|billing|payment required",
            "(?:没有|无|缺少|缺乏).{0,6}权限|权限(?:不足|不够)|无权|未授权|禁止(?:访问|操作)|欠费",
        ),
        over=(Cause.UNKNOWN, Cause.ARGUMENT, Cause.CREDENTIALS, Cause.RATE_LIMIT),
    ),
    Signs(
        Cause.RESULT_SHAPE,
        statuses=range(200, 300),
        codes=("JSONDecodeError", "ContentTypeError", "ContentDecodingError"),
        messages=(
            msgid("{tool}: {host} answered something that is not JSON"),
            msgid("{tool}: {host} answered what cannot be kept: {reason}"),
            msgid("{tool}: {host} answered {status} with more than 1 MB"),
            msgid("{tool} ran, but what it returned cannot be kept: {reason}"),
        ),
        words=_words(
            "unexpected (?:response|answer|content|reply)",
            "expecting value",
            "(?:parse|decode|read) (?:the |its )?(?:response|answer|reply|result)",
            "(?:response|answer|reply|result) (?:is|was) (?:not|no|un)",
            "无法解析|解析(?:响应|返回|结果)?失败|返回(?:的)?(?:格式|结果|数据).{0,4}(?:错误|异常|不正确)",
        ),
        over=(Cause.UNKNOWN,),
    ),
    Signs(
        Cause.PLAN,
        statuses=(*range(300, 400), 405, 501, 505),
        codes=(
            *("SnippetError", "TemplateError", "ConditionError", "OutputRefused"),
            *("AuthorError", "FormRejected", "PlanRejected", "NotImplementedError"),
            *("UNIMPLEMENTED", "-32601", "42601", "42703", "42P01"),
        ),
        messages=(
            msgid(
                "there is no tool {tool} in the process that runs this: add it there, then "
                "have this run again"
            ),
            msgid("the tool {tool} needs approval: call it in a tool listener"),
            msgid("only a tool call can be approved"),
            msgid("{source}: {problem}"),
            msgid("{source}: there is no task {id}"),
            msgid("{id} has fired {n} times (max_firings)"),
        ),
        words=_words(
            "no tool is named|(?:there is )?no (?:such )?(?:tool|endpoint|route|method)\\b",
            "unknown (?:tool|endpoint|route|method)\\b",
            "method not (?:found|allowed)",
            "cannot (?:get|post|put|patch|delete) [/#]",
            "not implemented",
            "(?:没有|不存在)(?:该|这个|此)?(?:工具|接口|方法)|(?:工具|接口|方法)不存在",
        ),
        over=(Cause.UNKNOWN, Cause.PRECONDITION),
    ),
    Signs(
        Cause.OUTAGE,
        statuses=(425, *range(500, 600)),
        codes=(
            *("UNAVAILABLE", "ECONNREFUSED", "ConnectionRefusedError", "gaierror", "herror"),
            *("ConnectError", "ConnectTimeout", "PoolTimeout", "NewConnectionError"),
            *("ConnectTimeoutError", "EmptyPoolError", "EndpointConnectionError"),
            *("ClientConnectorError", "ClientConnectorDNSError", "ConnectionTimeoutError"),
            *("NoValidConnectionsError", "ModelUnavailable", "53300", "57P03"),
        ),
        messages=(
            msgid("{tool}: {host} could not be reached"),
            msgid("no thread was free for it in time"),
        ),
        words=_words(
            "(?:temporarily|currently|service|server|system|is) (?:\\w+ )?unavailable",
            "out of (?:order|service)",
            "(?:under|for|in) maintenance",
            "overloaded",
            "(?:try|retry) again later",
            "(?:system|service|server|database|network) (?:is )?(?:down|busy)",
            "connect(?:ion)? (?:was )?(?:call failed|refused|attempts failed)",
            "could not (?:be reached|connect)|failed to connect",
            "(?:暂时|暂|服务|目前)不可用|维护(?:中|期)|(?:系统|服务)繁忙|稍(?:后|候)(?:再试|重试)|故障|拒绝连接",
        ),
        over=(Cause.UNKNOWN,),
    ),
    Signs(
        Cause.ARGUMENT,
        statuses=(400, 413, 414, 415, 416, 422, 431),
        codes=(
            *("INVALID_ARGUMENT", "OUT_OF_RANGE", "-32602", "22001", "22003", "22007"),
            *("22008", "22P02", "23502", "23514"),
        ),
        messages=(
            msgid("{tool} was given wrong arguments: {fields}"),
            msgid("the tool {tool} does not take {names}; it takes {known}"),
            msgid("required arguments are missing: {names}"),
            msgid("the arguments are not a JSON object: {text}"),
        ),
        words=_words(
            r"(?:unknown|unexpected|unrecogni[sz]ed|unsupported|invalid|missing|illegal|required|bad)"
            r" (?:\w+ ){0,3}?(?:arguments?|parameters?|params?|fields?|propert(?:y|ies)|inputs?)\b",
            r"(?:argument|parameter|param|field|property)s? (?:# )?"
            r"(?:is|are|was|were|must|cannot|does|has|not|missing|required|invalid)\b",
            "is not an? (?:argument|parameter|field)",
            "extra inputs are not permitted",
            "(?:must|should) be (?:an?|one of|at (?:least|most)|between|in|of|positive|less)\\b",
            "(?:invalid|wrong|bad|unsupported) (?:\\w+ )?(?:value|format|type|date|enum|syntax)\\b",
            "validation (?:failed|errors?)",
            "too (?:long|short|large|small)\\b",
            "does not match (?:\\w+ )?(?:schema|pattern|format)",
            "(?:参数|字段|入参).{0,12}(?:错误|无效|缺失|不正确|不合法|非法|必填|不能为空|不存在|未知)",
            "(?:缺少|未知|无效|非法)(?:的)?(?:必填|必需|必要)?(?:参数|字段)",
            "格式(?:不正确|错误|不对|无效)|不能为空|长度(?:超出|超过|不能)|取值(?:错误|无效|范围)",
        ),
        over=(Cause.UNKNOWN,),
    ),
    Signs(
        Cause.PRECONDITION,
        statuses=(404, 410, 412, 424, 428),
        codes=("NOT_FOUND", "FAILED_PRECONDITION", "23503"),
        messages=(msgid("nobody answered in time"),),
        words=_words(
            r"not found\b",
            "(?:does|do|did) ?(?:not|n.t) (?:yet )?exist",
            r"(?:no such|there is no|\bhas no|\bhave no) "
            r"(?!tool|endpoint|route|method|argument|parameter|field)\w+",
            "unknown (?:account|customer|department|employee|id|item|order|person|record|user)\\b",
            r"\bfirst(?= *(?:[.;,:!?)]|$))",
            "not (?:yet |been )?(?:exist|created|approved|registered|ready|active|activated|paid)",
            "(?:out of|insufficient|not enough|no) (?:stock|funds|balance|inventory)",
            "precondition|prerequisite|depends on",
            "不存在|未找到|找不到|没有(?:该|这个|此|找到)|查无",
            "(?:尚未|还未|还没有|未)(?:创建|开通|审批|批准|注册|登记|入职|激活|付款)",
            "(?:请|须|需|必须|应)先|前置条件|(?:库存|余额)不足|缺货",
        ),
        over=(Cause.UNKNOWN, Cause.ARGUMENT, Cause.CONFLICT),
    ),
    Signs(
        Cause.CONFLICT,
        statuses=(409, 423),
        codes=(
            *("ALREADY_EXISTS", "ABORTED", "23000", "23505", "40P01", "55P03", "SQLITE_BUSY"),
            *("SQLITE_LOCKED", "SQLITE_CONSTRAINT_UNIQUE", "IntegrityError"),
        ),
        words=_words(
            "already (?:exists?|taken|used|in use|registered|been|has|have|open|done)",
            "is (?:taken|in use|locked)\\b",
            "duplicate",
            "conflicts? with|(?:edit|version|write) conflict",
            "was used with",
            "could not serialize|deadlock|concurrent (?:update|modification|edit)",
            "(?:version|etag|revision) mismatch|stale",
            "已(?:经)?(?:存在|被(?:占用|使用|注册|锁定))|重复|冲突|(?:被|已)锁定|并发",
        ),
        over=(Cause.UNKNOWN, Cause.ARGUMENT, Cause.PRECONDITION),
    ),
)
"""Each cause once, in the order in which words are looked for; of a status the first counts."""

_SIGNS: Final = {signs.cause: signs for signs in TABLE}
_BY_STATUS: Final = {status: signs.cause for signs in reversed(TABLE) for status in signs.statuses}
_BY_CODE: Final = {code: signs.cause for signs in TABLE for code in signs.codes}
_BY_MESSAGE: Final = {one: signs.cause for signs in TABLE for one in signs.messages}
_BY_KIND: Final = {FailureKind.FORBIDDEN: Cause.RIGHTS, FailureKind.MISSING: Cause.ARGUMENT}
_WORTH_ANOTHER_TRY: Final = frozenset({"transient", "TransientError"})
"""A result's own word, or an author's error, that says no more than that."""

_with: Final = replacing(Failure)


def judged(failure: Failure, tool: str | None) -> Failure:
    """With its cause and its fingerprint; what it has already stays."""
    if failure.cause is not None and failure.fingerprint:
        return failure
    cause = cause_of(failure)
    mark = failure.fingerprint or fingerprint(tool or "", cause, failure)
    return _with(failure, cause=cause, fingerprint=mark)


def cause_of(failure: Failure) -> Cause:
    if failure.cause is not None:
        return failure.cause
    if failure.kind is FailureKind.UNKNOWN:
        return Cause.DOUBT
    cause = _refined(_decided(failure), failure)
    return _otherwise(failure) if cause is Cause.UNKNOWN else cause


def _decided(failure: Failure) -> Cause:
    if failure.status is not None:
        return _BY_STATUS.get(failure.status, Cause.UNKNOWN)
    if _misses_a_result(failure.message):
        return Cause.RESULT_SHAPE
    told = (_BY_MESSAGE[one] for one in _ids(failure.message) if one in _BY_MESSAGE)
    cause = next(told, None) or _BY_CODE.get(failure.code)
    return cause or _BY_KIND.get(failure.kind, Cause.UNKNOWN)


def _misses_a_result(text: str) -> bool:
    """A template did not find what it takes from a result; only such have double braces."""
    if not isinstance(text, Message) or isinstance(text.params, tuple):
        return False
    return str(text.params.get("source", "")).startswith("{{")


def _refined(cause: Cause, failure: Failure) -> Cause:
    """By the code, if it has not decided already, before the text; by neither that confirms it."""
    told = [(failure.code, _spelt(failure.code)), ("", _said(failure.message))]
    decided = failure.status is None and cause is _BY_CODE.get(failure.code)
    for code, text in told[decided:]:
        signs = _SIGNS.get(cause)
        if signs is not None and signs.told_by(code, text):
            return cause
        better = (one.cause for one in TABLE if cause in one.over and one.told_by(code, text))
        found = next(better, None)
        if found is not None:
            return found
    return cause


def _otherwise(failure: Failure) -> Cause:
    if failure.field:
        return Cause.ARGUMENT
    if failure.retry_after is not None:
        return Cause.RATE_LIMIT
    return Cause.OUTAGE if failure.code in _WORTH_ANOTHER_TRY else Cause.UNKNOWN


def _spelt(code: str) -> str:
    """The words of which a code is made."""
    apart = re.sub(r"(?<=[a-z\d])(?=[A-Z])", " ", code)
    return re.sub(r"[\W_]+", " ", apart).casefold().strip()


_OF_OTHERS: Final = ("reason", "text", "problem", "problems", "fields", "checks", "error", "why")
"""Parameters of our messages that hold a service's words, or a message of its own."""
_OF_AUTHORS: Final = ("source", "names")
"""Those that name a part of the plan or the call, which is the same in each run."""


def _ids(text: str) -> Iterator[str]:
    """A message's own id, and those of the messages in it."""
    if isinstance(text, Message):
        yield text.id
        for one in _parts(text):
            yield from _ids(one)


def _parts(message: Message) -> Iterable[str]:
    if isinstance(message.params, tuple):
        return message.params
    named = (message.params.get(name) for name in _OF_OTHERS)
    return [one for one in named if isinstance(one, str)]


def _said(text: str) -> str:
    """The words of others in it, without what differs from one call to the next."""
    if isinstance(text, Message):
        return " ".join(map(_said, _parts(text)))
    return plain(text)


def fingerprint(tool: str, cause: Cause, failure: Failure) -> str:
    """The same for failures that are alike, in every process and release."""
    field = re.sub(r"\d+", "#", failure.field)
    marks = (tool, cause.value, failure.status, failure.code, field, _alike(failure.message))
    told = canonical_json([VERSION, *marks]).encode("utf-8", "backslashreplace")
    return f"{VERSION}:{sha256(told).hexdigest()[:_DIGEST]}"


def _alike(text: str) -> str:
    """A message of ours is its id and the words of others in it, whatever else it names."""
    if not isinstance(text, Message):
        return plain(text)[:LONGEST_TEXT]
    if isinstance(text.params, tuple):
        return text.id.join(map(_alike, text.params))
    named = [str(text.params[name]) for name in _OF_AUTHORS if name in text.params]
    return "\n".join((text.id, *named, *map(_alike, _parts(text))))

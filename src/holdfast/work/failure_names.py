"""What libraries call their failures: no library need be installed to be known by its names.

A table goes by a part of the module's name, so that vendored copies are known too.
"""

from __future__ import annotations

import re
from typing import Final

UNSENT: Final = {
    "builtins": {"ConnectionRefusedError"},
    "socket": {"gaierror", "herror"},
    "ssl": {"SSLCertVerificationError"},
    "httpx": {"ConnectError", "ConnectTimeout", "PoolTimeout"},
    "httpx2": {"ConnectError", "ConnectTimeout", "PoolTimeout"},
    "httpcore": {"ConnectError", "ConnectTimeout", "PoolTimeout"},
    "httpcore2": {"ConnectError", "ConnectTimeout", "PoolTimeout"},
    "urllib3": {"NewConnectionError", "ConnectTimeoutError", "EmptyPoolError"},
    "requests": {"ConnectTimeout"},
    "aiohttp": {"ClientConnectorError", "ConnectionTimeoutError"},
    "botocore": {"EndpointConnectionError", "ConnectTimeoutError"},
    "paramiko": {"NoValidConnectionsError", "AuthenticationException", "BadHostKeyException"},
}
CURL: Final = {"pycurl": {"error"}, "curl_cffi": {"CurlError"}}
UNSENT_BY_CURL: Final = {5, 6, 7, 60}
"""Proxy or host not resolved, connection refused, certificate refused."""

LOST: Final = {
    "httpx": {"RequestError"},
    "httpx2": {"RequestError"},
    "urllib3": {"HTTPError"},
    "aiohttp": {"ClientError", "HttpProcessingError"},
    "asyncio": {"IncompleteReadError", "LimitOverrunError"},
    "aiomqtt": {"MqttError"},
    "azure": {"ServiceRequestError", "ServiceResponseError"},
    "botocore": {"HTTPClientError"},
    "concurrent": {"BrokenExecutor", "CancelledError"},
    "confluent_kafka": {"KafkaException"},
    "curl_cffi": {"CurlError"},
    "ftplib": {"error_proto", "error_reply", "error_temp"},
    "grpclib": {"StreamTerminatedError"},
    "imaplib": {"abort"},
    "kafka": {"KafkaUnavailableError", "NodeNotReadyError", "NotEnoughReplicasAfterAppendError"},
    "ldap": {"SERVER_DOWN", "CONNECT_ERROR"},
    "multiprocessing": {"ProcessError"},
    "nntplib": {"NNTPProtocolError", "NNTPDataError", "NNTPReplyError"},
    "paramiko": {"SSHException"},
    "pika": {"AMQPConnectionError", "AMQPChannelError"},
    "poplib": {"error_proto"},
    "pycurl": {"error"},
    "pymongo": {"ConnectionFailure", "WriteConcernError"},
    "tornado": {"HTTPStreamClosedError", "HTTPTimeoutError"},
    "twisted": {"RequestTransmissionFailed", "ResponseFailed", "ResponseNeverReceived"},
    "xmlrpc": {"ProtocolError", "ResponseError"},
    "zmq": {"ZMQError"},
}
"""These, and everything below them, are about a request that was being made."""

SOCKETS: Final = {"builtins", "socket", "ssl", "asyncio", "anyio", "trio"}
WRAPPERS: Final = {
    *("ConnectionError", "APIConnectionError", "APITimeoutError", "TransportError"),
    *("MaxRetryError", "ProxyError", "SSLError", "URLError"),
}
TIME_OUT: Final = re.compile("time_?d?_?out|time_?limit|deadline|too_?slow", re.IGNORECASE)
TRANSPORT: Final = re.compile(
    f"{TIME_OUT.pattern}|connection|disconnect|transport|network|communication|"
    "protocol_?(?:error|exception)|incomplete_?(?:read|body|response|message)|hung_?up|"
    "bad_?gateway|gateway_?(?:error|exception)?$|"
    "no_?(?:response|reply)|unexpected_?eof|"
    "(?:read|write|socket|io)_?(?:error|exception)|brokenresource|closedresource|endofstream|"
    "autoreconnect|broken_?pipe|"
    "(?:channel|peer|pipe|remote|request|response|server|socket|stream|target|transfer)_?"
    "(?:reset|closed|cut|interrupted|gone|lost|terminated|truncated)|"
    "(?:eof|abort|aborted|lost|dropped)(?:error|exception)?$",
    re.IGNORECASE,
)
DATABASE: Final = {"OperationalError", "InterfaceError", "DatabaseError", "DBAPIError"}
ANSWERED_BY_DATABASE: Final = {
    *("IntegrityError", "ProgrammingError", "DataError", "NotSupportedError"),
}
SQLSTATES_OF_ANYTHING: Final = {"HY000", "00000"}
SQLSTATES_IN_DOUBT: Final = ("08", "40003", "57P")
"""A connection exception, a completion that is unknown, a server that shuts down."""

ABOUT_HTTP: Final = re.compile("http|api", re.IGNORECASE)
ANSWERS: Final = re.compile(
    "http_?(?:error|status|exception)|(?:status|response)_?error", re.IGNORECASE
)
"""An `OSError` that is called so may be an answer; any other is about the connection."""

CONNECTING: Final = re.compile(
    r"\[Errno \d+\] Connect call failed|Multiple exceptions: |All connection attempts failed|"
    "all attempts to connect to "
)
"""How asyncio, anyio and trio word what `connect` raised, of one address and of several."""

_NAME: Final = r"([A-Za-z_][A-Za-z0-9_.\[\]-]{0,80})"
_NOUN: Final = "(?:argument|parameter|param|field|property)"
_NO_NAME: Final = "(?:you|it|he|she|they|there|this|that|these|one|which|what|value|input|request)"
NAMES_AN_ARGUMENT: Final = (
    f"was given wrong arguments: {_NAME}: "
    r"|(?:unknown|unexpected|unrecogni[sz]ed|unsupported|missing|invalid) (?:\w+ ){0,3}?"
    rf"{_NOUN}s?(?::? ['\"`“]{_NAME}['\"`”]|: {_NAME}(?!\w|:\w))"
    rf"|{_NOUN} ['\"`“]{_NAME}['\"`”] (?:is|was|must|cannot|has|should|does)\b"
    rf"|\b{_NAME}['\"`”]? is not an? (?:\w+ )?{_NOUN}\b"
    f"|(?:缺少|未知|无效|非法)的?(?:必填|必需|必要)?(?:参数|字段)[:：]? ?['\"`“「]?{_NAME}"
    f"|(?:参数|字段) ?['\"`“「]?{_NAME}['\"`”」]? ?"
    "(?:不能为空|无效|错误|缺失|不正确|必填|未知|不存在|非法|格式|类型)"
)
"""What clearly says which argument it is about."""
NAMES_AN_INPUT: Final = (
    rf"(?:^|[:;,] )['\"`“]?(?!{_NO_NAME}\b){_NAME}['\"`”]? "
    r"(?:is (?:missing|required|invalid|too)|(?:must|cannot|should) be)\b"
)
"""What does so in an answer that is about the request's arguments (400, 422)."""

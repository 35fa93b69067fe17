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
UNSENT_BY_CURL: Final = {5, 6, 7, 60}
"""Proxy or host not resolved, connection refused, certificate refused."""

LOST: Final = {
    "httpx": {"RequestError"},
    "httpx2": {"RequestError"},
    "urllib3": {"HTTPError"},
    "aiohttp": {"ClientError", "HttpProcessingError"},
    "azure": {"ServiceRequestError", "ServiceResponseError"},
    "botocore": {"HTTPClientError"},
    "concurrent": {"BrokenExecutor", "CancelledError"},
    "confluent_kafka": {"KafkaException"},
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
TIME_OUT: Final = re.compile("time_?d?_?out|deadline", re.IGNORECASE)
TRANSPORT: Final = re.compile(
    "time_?d?_?out|deadline|connection|disconnect|transport|network|communication|"
    "protocol_?(?:error|exception)|incompleteread|bad_?gateway|no_?(?:response|reply)|hung_?up|"
    "(?:read|write|socket|io)_?(?:error|exception)|brokenresource|closedresource|endofstream|"
    "autoreconnect|broken_?pipe|(?:stream|channel|socket|peer)_?(?:reset|closed|lost|terminated)|"
    "(?:eof|abort|aborted|lost|dropped)(?:error|exception)?$",
    re.IGNORECASE,
)
DATABASE: Final = {"OperationalError", "InterfaceError"}
SQLSTATES_IN_DOUBT: Final = ("08", "40003", "57P")
"""A connection exception, a completion that is unknown, a server that shuts down."""

ABOUT_HTTP: Final = re.compile("http|api", re.IGNORECASE)
ANSWERS: Final = re.compile(
    "http_?(?:error|status|exception)|(?:status|response)_?error", re.IGNORECASE
)
"""An `OSError` that is called so may be an answer; any other is about the connection."""

CONNECTING: Final = re.compile(
    "Connect call failed|^Multiple exceptions: |^All connection attempts failed|"
    "^all attempts to connect to "
)
"""How asyncio, anyio and trio word what `connect` raised, of one address and of several."""

"""Tools that are HTTP services, declared as data.

    - name: grant_access
      endpoint: ${OFFICE_URL:-http://127.0.0.1:8900}/tool
      envelope: tool                      # sends {"tool": "grant_access", "args": {…}}
      headers: {Authorization: "Bearer ${OFFICE_TOKEN}"}
      parameters: {type: object, properties: {employee: {type: string}}, required: [employee]}

The arguments are the JSON body, or fill the `body` template, in which a text that is exactly
`{employee}` stands for that argument and `{args}` for all of them; a GET sends them as its query.
Every call carries its key as `Idempotency-Key`.

The answer decides what the caller does next: the service's own "no" is a failure with a reason,
a connection never made is worth another attempt, and a connection lost once the request may have
left is an unknown outcome, as are 408, 502 and 504, with which a gateway may speak for the service.
Texts shown to people name the host, never the headers or the query, which may hold secrets.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from urllib.parse import quote
from weakref import WeakKeyDictionary

import httpx

from holdfast.core.approval import read_rule
from holdfast.errors import (
    AuthorError,
    FormRejected,
    InvalidValue,
    OutcomeUnknown,
    PermanentError,
    ToolError,
    TransientError,
)
from holdfast.i18n.message import msg
from holdfast.language.strict import canonical_json, digest, load_json, strict_json
from holdfast.model.approval import ApprovalMode, ApprovalRule
from holdfast.model.form import Form
from holdfast.model.values import Json, JsonObject
from holdfast.work.failed_attempts import asked_in
from holdfast.work.failure_details import Details, tell
from holdfast.work.failures import error_of, kind_of_status
from holdfast.work.http_answers import refusal
from holdfast.work.http_secrets import secrets_in_address, secrets_in_header
from holdfast.work.tools import CallInfo, ToolSpec, asked_fields, read_only_by_name

MAX_ANSWER_BYTES: Final = 1_000_000
DEFAULT_TIMEOUT: Final = 30.0
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_ABSENT: Final = object()
_VARIABLE: Final = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}")


class HttpClients:
    """One connection pool per event loop, shared by all HTTP tools."""

    def __init__(self) -> None:
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = (
            WeakKeyDictionary()
        )

    def current(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        client = self._by_loop.get(loop)
        if client is None:
            # Servers drop idle connections after about 5 s; a request written into that moment
            # would count as outcome unknown, so ours are given up earlier.
            limits = httpx.Limits(keepalive_expiry=2.0)
            client = self._by_loop[loop] = httpx.AsyncClient(trust_env=False, limits=limits)
        return client

    async def aclose(self) -> None:
        """Closes the connections of the running loop; the next call opens new ones."""
        client = self._by_loop.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()


@dataclass(frozen=True, slots=True)
class HttpTool:
    spec: ToolSpec
    _method: str
    _endpoint: httpx.URL = field(repr=False)
    _headers: Mapping[str, str] = field(repr=False)
    _body: Json
    _clients: HttpClients
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """What is never told of what it sends; see `http_secrets`."""

    async def call(self, args: JsonObject, call: CallInfo) -> Json:
        timeout = self.spec.timeout or DEFAULT_TIMEOUT
        try:
            async with asyncio.timeout(timeout):
                status, content, asked = await self._exchange(self._request(args, call, timeout))
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            raise TransientError(
                msg("{tool}: {host} could not be reached", **self._named)
            ) from None
        except (TimeoutError, httpx.TimeoutException):
            raise OutcomeUnknown(
                msg("{tool}: {host} did not answer within {n:g} s", **self._named, n=timeout)
            ) from None
        except httpx.TransportError as error:
            lost = msg(
                "{tool}: {host} broke the connection off ({error})",
                **self._named,
                error=type(error).__name__,
            )
            raise OutcomeUnknown(lost) from None
        if 200 <= status < 300:
            return self._result(content)
        raise self._failure(status, content, asked, call.hide)

    async def aclose(self) -> None:
        """Closes the connections that this tool shares with the others of its document."""
        await self._clients.aclose()

    def _request(self, args: JsonObject, call: CallInfo, timeout: float) -> httpx.Request:
        headers = {"Accept-Encoding": "identity", "Accept": "application/json", **self._headers}
        headers["Idempotency-Key"] = _header_safe(call.key)
        url, body = self._endpoint, None
        if self._method == "GET":
            url = url.copy_merge_params(_query(args))
        else:
            body = _filled(self._body, {"args": dict(args), **args})
        limits = httpx.Timeout(timeout, connect=min(10.0, timeout / 2))
        return self._clients.current().build_request(
            self._method, url, headers=headers, json=body, timeout=limits
        )

    async def _exchange(self, request: httpx.Request) -> tuple[int, bytes, float | None]:
        """The answer's status, its content, and how long it asks to be left alone."""
        response = await self._clients.current().send(request, stream=True)
        try:
            content = bytearray()
            async for chunk in response.aiter_raw():
                content += chunk
                if len(content) > MAX_ANSWER_BYTES:
                    raise self._too_much(response.status_code)
            return response.status_code, bytes(content), asked_in(response.headers)
        finally:
            await response.aclose()

    def _too_much(self, status: int) -> ToolError:
        text = msg(
            "{tool}: {host} answered {status} with more than 1 MB", **self._named, status=status
        )
        if status < 400:
            return PermanentError(text)
        return tell(error_of(kind_of_status(status), text), Details(status))

    def _result(self, content: bytes) -> Json:
        if not content.strip():
            return {}
        try:
            return strict_json(load_json(content), max_bytes=2 * MAX_ANSWER_BYTES)
        except InvalidValue as error:
            raise PermanentError(
                msg(
                    "{tool}: {host} answered what cannot be kept: {reason}",
                    **self._named,
                    reason=str(error),
                )
            ) from None
        except (ValueError, RecursionError):
            raise PermanentError(
                msg("{tool}: {host} answered something that is not JSON", **self._named)
            ) from None

    def _failure(
        self, status: int, content: bytes, asked: float | None, hide: Callable[[str], str]
    ) -> ToolError:
        reason, details = refusal(status, content, hide, partial(_argument, self._body))
        text = msg(
            "{tool}: {host} answered {status}: {reason}",
            **self._named,
            status=status,
            reason=reason,
        )
        return tell(error_of(kind_of_status(status), text, asked), details, hide)

    @property
    def _named(self) -> dict[str, str]:
        return {"tool": self.spec.name, "host": self._endpoint.host}


def _filled(template: Json, values: Mapping[str, Json]) -> Json:
    """The template with its placeholders replaced, types kept; absent arguments drop out."""
    match template:
        case str() if name := _PLACEHOLDER.fullmatch(template):
            return values.get(name[1], _ABSENT)
        case dict():
            filled = {key: _filled(item, values) for key, item in template.items()}
            return {key: item for key, item in filled.items() if item is not _ABSENT}
        case list():
            return [i for i in (_filled(item, values) for item in template) if i is not _ABSENT]
    return template


def _placeholders(template: Json) -> set[str]:
    """The names that the template reads."""
    match template:
        case str():
            name = _PLACEHOLDER.fullmatch(template)
            return {name[1]} if name else set()
        case dict():
            return set().union(*map(_placeholders, template.values()))
        case list():
            return set().union(*map(_placeholders, template))
    return set()


def _argument(template: Json, name: str) -> str:
    """The argument of the tool that stands where the service's error points to."""
    place, *rest = [template, *name.split(".")]
    while rest and isinstance(place, dict) and rest[0] in place:
        place, rest = place[rest[0]], rest[1:]
    found = _PLACEHOLDER.fullmatch(place) if isinstance(place, str) else None
    if found is None:
        return name
    return ".".join(rest if found[1] == "args" else (found[1], *rest)) or name


def _header_safe(key: str) -> str:
    return key if key.isascii() and key.isprintable() else quote(key, safe=":")


def _query(args: JsonObject) -> dict[str, str]:
    return {k: v if isinstance(v, str) else canonical_json(v) for k, v in args.items()}


def load_http_tools(
    document: Sequence[Mapping[str, Any]],
    env: Mapping[str, str],
    clients: HttpClients | None = None,
) -> list[HttpTool]:
    """The declared tools, or one AuthorError with every mistake, each naming tool and field."""
    shared = clients or HttpClients()
    tools, mistakes = [], []
    for index, declared in enumerate(document):
        entry = _Entry(declared, index, env)
        tool = entry.tool(shared)
        mistakes += entry.mistakes
        if tool is not None:
            tools.append(tool)
    names = [tool.spec.name for tool in tools]
    twice = sorted({name for name in names if names.count(name) > 1})
    mistakes += [f"tool {name!r}: name: declared more than once" for name in twice]
    if mistakes:
        raise AuthorError("\n".join(mistakes))
    return tools


FIELDS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("name", "description", "endpoint", "method", "envelope", "version"), str),
    **dict.fromkeys(("headers", "parameters", "returns"), dict),
    **dict.fromkeys(("idempotent", "read_only"), bool),
    "body": Json,
    "approval": ApprovalRule,
    "timeout": float,
    "fields": Form,
}
"""What a declaration may say, each with its type."""


class _Entry:
    """One declaration, read field by field so that every mistake is told at once."""

    def __init__(self, declared: Mapping[str, Any], index: int, env: Mapping[str, str]) -> None:
        self.mistakes: list[str] = []
        self.secrets: set[str] = set()
        self.env = env
        self.label = f"tool number {index + 1}"
        self.declared = declared if isinstance(declared, Mapping) else {}
        self.name = self.text("name")
        self.label = f"tool {self.name!r}" if self.name else self.label
        for unknown in sorted(set(map(str, self.declared)) - FIELDS.keys()):
            self.wrong(unknown, "no such field")

    def tool(self, clients: HttpClients) -> HttpTool | None:
        method, endpoint, headers = self.method(), self.endpoint(), self.headers()
        parameters = self.parameters()
        body = self.body(parameters)
        template = {"method": method, "endpoint": str(endpoint), "body": body}
        known = {**template, "headers": sorted(headers), "parameters": parameters}
        own = self.text("version", "")
        version = digest({**known, "version": own} if own else known)
        spec = self.spec(parameters, version)
        if self.mistakes:
            return None
        return HttpTool(spec, method, endpoint, headers, body, clients, frozenset(self.secrets))

    def spec(self, parameters: dict[str, Any], version: str) -> ToolSpec:
        read_only = self.flag("read_only", read_only_by_name(self.name))
        return ToolSpec(
            name=self.name,
            description=self.text("description", ""),
            parameters=parameters,
            idempotent=self.flag("idempotent", read_only),
            approval=self.approval(),
            read_only=read_only,
            timeout=self.timeout(),
            version=version,
            fields=self.fields(parameters),
            returns=self.returns(),
        )

    def returns(self) -> dict[str, Any] | None:
        """A schema of what it answers with, where its author gave one."""
        if self.declared.get("returns") is None:
            return None
        schema = self.take("returns", {}, "a schema")
        try:
            plain: dict[str, Any] = strict_json(schema)
        except InvalidValue as error:
            self.wrong("returns", str(error))
            return None
        return plain

    def fields(self, parameters: dict[str, Any]) -> Form:
        try:
            return asked_fields(self.declared.get("fields"), parameters)
        except FormRejected as rejected:
            for problem in rejected.problems:
                self.wrong("fields", str(problem))
            return Form()

    def approval(self) -> ApprovalRule:
        try:
            return read_rule(self.declared.get("approval", "auto"))
        except AuthorError as error:
            self.wrong("approval", str(error))
            return ApprovalRule(ApprovalMode.DISABLED)

    def wrong(self, name: str, message: str) -> None:
        self.mistakes.append(f"{self.label}: {name}: {message}")

    def take(self, name: str, default: Any, wanted: str) -> Any:
        value, kind = self.declared.get(name), FIELDS[name]
        if isinstance(value, kind):
            return value
        if value is not None or default is None:
            self.wrong(name, msg("is required") if value is None else f"must be {wanted}")
        return kind() if default is None else default

    def text(self, name: str, default: str | None = None) -> str:
        return str(self.take(name, default, "text"))

    def flag(self, name: str, default: bool) -> bool:
        return bool(self.take(name, default, msg("true or false")))

    def timeout(self) -> float:
        value = self.declared.get("timeout", DEFAULT_TIMEOUT)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 86400:
            self.wrong("timeout", "must be a number of seconds, more than 0 and less than a day")
            return DEFAULT_TIMEOUT
        return float(value)

    def method(self) -> str:
        method = self.text("method", "POST").upper()
        if method not in METHODS:
            self.wrong("method", f"must be one of {', '.join(METHODS)}")
        return method

    def endpoint(self) -> httpx.URL:
        known = len(self.mistakes)
        text, taken = self.substituted("endpoint", self.text("endpoint"))
        try:
            url = httpx.URL(text)
        except httpx.InvalidURL:
            url = httpx.URL()
        self.secrets.update(secrets_in_address(url, taken))
        told = len(self.mistakes) > known
        if not told and (url.scheme not in ("http", "https") or not url.host):
            self.wrong("endpoint", "must begin with http:// or https:// and name a host")
        return url

    def headers(self) -> dict[str, str]:
        declared = self.take("headers", {}, "names with a text each")
        return {str(name): self.header(str(name), value) for name, value in declared.items()}

    def header(self, name: str, value: object) -> str:
        place = f"headers.{name}"
        if not isinstance(value, str) or not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name, re.ASCII):
            self.wrong(place, "must be a header's name with a text")
            return ""
        text, taken = self.substituted(place, value)
        self.secrets.update(secrets_in_header(name, value, text, taken))
        if not (text.isascii() and text.isprintable()):
            self.wrong(place, "holds a line break or another character that no header may have")
        return text

    def substituted(self, place: str, text: str) -> tuple[str, list[str]]:
        """The text with its variables, and what came from the environment."""
        taken: list[str] = []

        def value(found: re.Match[str]) -> str:
            fallback: str | None = found["default"]
            own = self.env.get(found["name"], fallback)
            if own is None:
                self.wrong(place, f"the environment variable {found['name']} is not set")
            taken.extend([own] if own and own is not fallback else [])
            return own or fallback or ""

        return _VARIABLE.sub(value, text), taken

    def parameters(self) -> dict[str, Any]:
        schema = self.take("parameters", {"type": "object", "properties": {}}, "a schema")
        try:
            plain: dict[str, Any] = strict_json(schema)
        except InvalidValue as error:
            self.wrong("parameters", str(error))
            return {}
        if plain.get("type") == "object" and isinstance(plain.setdefault("properties", {}), dict):
            return plain
        self.wrong("parameters", "must be a JSON Schema of type object")
        return {}

    def body(self, parameters: dict[str, Any]) -> Json:
        envelope = self.declared.get("envelope")
        if envelope not in (None, "tool"):
            self.wrong("envelope", "must be `tool`, or left out")
        if envelope is None:
            return self.template(parameters)
        if "body" in self.declared:
            self.wrong("body", "cannot stand beside `envelope`")
        return {"tool": self.name, "args": "{args}"}

    def template(self, parameters: dict[str, Any]) -> Json:
        body = self.declared.get("body", "{args}")
        try:
            body = strict_json(body)
        except InvalidValue as error:
            self.wrong("body", str(error))
        known = {"args", *parameters.get("properties", {})}
        for name in sorted(_placeholders(body) - known):
            self.wrong("body", f"{{{name}}} is not one of the tool's parameters")
        return body

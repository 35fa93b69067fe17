"""Tools: the named functions that plans, agents and snippets may call.

A tool is a spec and one awaitable `call`. The spec carries what the engine decides by: whether a
call may be repeated under the same key (`idempotent`), whether a person must agree (`approval`),
whether it changes anything at all (`read_only`), and a `version` that consent is bound to. Tools
named `query_…` or `check_…` only look, unless their author says otherwise.

A tool tells how it failed by what it raises; `work/failures.py` reads it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from holdfast.core.approval import read_rule
from holdfast.errors import (
    AuthorError,
    CallerError,
    FormRejected,
    InvalidValue,
    NotFound,
    PermanentError,
)
from holdfast.forms.from_tools import check_enrichment
from holdfast.forms.shapes import parse_form
from holdfast.i18n.message import msg
from holdfast.language.ids import tool_name
from holdfast.language.strict import digest, strict_json, strict_text
from holdfast.model.approval import ApprovalMode, ApprovalRule
from holdfast.model.form import Form
from holdfast.model.record import record
from holdfast.model.values import Json, JsonObject
from holdfast.work.failures import classify, error_of, words_of
from holdfast.work.fingerprints import fingerprint, routine_of
from holdfast.work.threads import in_own_thread

if TYPE_CHECKING:
    from pydantic import ValidationError

_READ_ONLY_PREFIXES: Final = ("query_", "check_")


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What the engine knows of a tool; `timeout` in seconds is kept by the caller.

    `fields` is how people are asked for its arguments, `returns` a schema of its results. They are
    no part of `version`: consent is to what runs, and that is the same under another label.
    """

    name: str
    description: str
    parameters: JsonObject
    idempotent: bool = False
    approval: ApprovalRule = ApprovalRule(ApprovalMode.AUTO)
    read_only: bool = False
    timeout: float | None = None
    version: str = ""
    fields: Form = Form()
    returns: JsonObject | None = None


@record
class CallInfo:
    """Which call this is; a tool receives it by declaring a parameter annotated `CallInfo`.

    `key` stays the same when the same call is made again after a crash or a time-out. `hide`
    takes the secrets among the arguments out of a text, before it is shortened or sent elsewhere.
    """

    key: str
    run_id: str
    attempt: int
    hide: Callable[[str], str] = field(default=str, repr=False, compare=False)


class Tool(Protocol):
    @property
    def spec(self) -> ToolSpec: ...

    async def call(self, args: JsonObject, call: CallInfo) -> Any:
        """What the call returned; the executor makes it strict JSON."""


def approval_rule(tool: str, raw: object) -> ApprovalRule:
    """What an author wrote of a tool's approval: a mode, or a condition on its arguments."""
    try:
        return read_rule(raw)
    except AuthorError as error:
        raise CallerError(f"tool {tool!r}: {error}") from None


def asked_fields(raw: object, parameters: JsonObject) -> Form:
    """The fields that an author declared for a tool's arguments, or FormRejected."""
    form = parse_form({} if raw is None else raw, enriches=True)
    check_enrichment(parameters, form)
    return form


def _declared_fields(tool: str, raw: object, parameters: JsonObject) -> Form:
    try:
        return asked_fields(raw, parameters)
    except FormRejected as rejected:
        listed = "; ".join(map(str, rejected.problems))
        raise CallerError(f"tool {tool!r}: fields: {listed}") from None


def read_only_by_name(name: str) -> bool:
    return name.startswith(_READ_ONLY_PREFIXES)


@dataclass(frozen=True, slots=True)
class PythonTool:
    """A Python function; async ones run on the loop, others in a thread."""

    spec: ToolSpec
    _function: Callable[..., Any]
    _validate: Callable[[Any], dict[str, Any]]
    blocks: bool
    """Whether it runs in a thread, which cannot be stopped."""
    _call_parameter: str | None

    @classmethod
    def from_function(
        cls,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        idempotent: bool | None = None,
        approval: object = ApprovalMode.AUTO,
        timeout: float | None = None,
        read_only: bool | None = None,
        version: str = "",
        fields: object = None,
        returns: JsonObject | None = None,
    ) -> PythonTool:
        """Schema from the signature, description from the docstring.

        What is left None goes by the name: `query_…` and `check_…` are read-only, and what is
        read-only is idempotent. `version` is the author's word for what the code does not show,
        `fields` how a person is asked for arguments that a call lacks.
        """
        from holdfast.work.signatures import Signature  # with the first tool: it takes pydantic

        name = name or str(getattr(fn, "__name__", type(fn).__name__))
        signature = Signature.of(fn, name)
        looks = read_only_by_name(name) if read_only is None else read_only
        spec = ToolSpec(
            name=name,
            description=inspect.getdoc(fn) or "",
            parameters=signature.schema,
            idempotent=looks if idempotent is None else idempotent,
            approval=approval_rule(name, approval),
            read_only=looks,
            timeout=timeout,
            version=_version(fn, signature.schema, version),
            fields=_declared_fields(name, fields, signature.schema),
            returns=None if returns is None else strict_json(returns),
        )
        validate = signature.adapter.validator.validate_python
        return cls(
            spec,
            fn,
            validate,
            not inspect.iscoroutinefunction(routine_of(fn)),
            signature.call_parameter,
        )

    async def call(self, args: JsonObject, call: CallInfo) -> Any:
        validate = self._validate
        try:
            values = validate(args)
        except ValueError as error:
            raise PermanentError(_wrong_arguments(self.spec.name, error)) from None
        if self._call_parameter is not None:
            values[self._call_parameter] = call
        if self.blocks:
            return await in_thread(self._function, **values)
        return await self._function(**values)


def kept(tool: str, returned: Any) -> Json:
    """What a call returned, as the journal can keep it."""
    try:
        return strict_json(returned)
    except InvalidValue as error:
        raise not_kept(tool, error) from None


def not_kept(tool: str, error: InvalidValue) -> PermanentError:
    return PermanentError(
        msg(
            "{tool} ran, but what it returned cannot be kept: {reason}",
            tool=tool,
            reason=str(error),
        )
    )


class Gate:
    """What the calls of one attempt pass when a thread is free for them: by then the run may want
    none of them any more. `held` where one was refused and none had begun."""

    def __init__(self, wanted: Callable[[], bool]) -> None:
        self._wanted = wanted
        self._begun = False
        self.held = False

    def enter(self) -> None:
        if not self._wanted():
            self.held = not self._begun
            raise PermanentError("the run wants this call no more: it was not made")
        self._begun = True


GATE: Final[ContextVar[Gate | None]] = ContextVar("holdfast_gate", default=None)


async def in_thread(function: Callable[..., Any], /, *given: Any, **taken: Any) -> Any:
    """What a function that blocks returns or raises."""
    return await in_own_thread(contained, function, *given, **taken)


async def called(function: Callable[..., Any], /, *given: Any, **taken: Any) -> Any:
    """What a function returns: async ones run on the loop, others in a thread."""
    if is_asynchronous(function):
        return await function(*given, **taken)
    returned = await in_thread(function, *given, **taken)
    return await returned if inspect.isawaitable(returned) else returned


def is_asynchronous(function: Callable[..., Any]) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def contained(function: Callable[..., Any], /, *given: Any, **taken: Any) -> Any:
    """In its thread; what a future cannot carry, or would end the loop with, is told as a failure
    of the function. No thread but the main one is interrupted from the terminal."""
    if (gate := GATE.get()) is not None:
        gate.enter()
    try:
        return function(*given, **taken)
    except StopIteration as error:
        name = getattr(function, "__name__", type(function).__name__)
        raise RuntimeError(msg("{function} raised StopIteration", function=name)) from error
    except (GeneratorExit, KeyboardInterrupt, SystemExit) as error:
        raise error_of(classify(error), words_of(error)) from error


def _wrong_arguments(name: str, error: ValueError) -> str:
    """Names fields and what is wrong with them, never the values, which may be secret."""
    told = cast("ValidationError", error)
    found = told.errors(include_url=False, include_input=False, include_context=False)
    fields = [f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in found]
    return msg("{tool} was given wrong arguments: {fields}", tool=name, fields="; ".join(fields))


def _version(fn: Callable[..., Any], schema: JsonObject, own: str) -> str:
    known: dict[str, Json] = {"parameters": schema, "source": fingerprint(fn)}
    return digest({**known, "version": strict_text(own, "version")} if own else known)


class SecretSource(Protocol):
    async def open_for_run(self, references: Iterable[str], run_id: str) -> Mapping[str, str]:
        """The values behind those references that were entered for this run, or above it."""


@dataclass(frozen=True, slots=True)
class ToolRegistry:
    """The tools of one installation, by name; `secrets` has what their arguments refer to."""

    _tools: dict[str, Tool] = field(default_factory=dict)
    secrets: SecretSource | None = None
    _ours: set[str] = field(default_factory=set)
    """Those that only plans of ours call: they are found by their names, and stand in no list."""
    find: Callable[[str], Tool | None] = field(init=False, repr=False, compare=False)
    """The tool of that name, or None; the dict's own look-up, since every call passes here."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "find", self._tools.get)

    def add(self, *tools: Tool, replace: bool = False) -> None:
        """All of them or none. One that is declared and does exactly as the one before takes its
        place."""
        for tool in tools:
            self._check(tool, replace)
        self._tools.update((tool.spec.name, tool) for tool in tools)

    def add_ours(self, *tools: Tool) -> None:
        """For plans of ours alone: nobody is offered them."""
        for tool in tools:
            self._ours.add(tool.spec.name)
            self._tools[tool.spec.name] = tool

    def _check(self, tool: Tool, replace: bool) -> None:
        name = tool_name(tool.spec.name)
        if name in self._ours:
            raise CallerError(f"the name {name!r} is that of a tool of ours: choose another")
        known = self._tools.get(name)
        if known is not None and known.spec != tool.spec and not replace:
            raise CallerError(
                f"there already is a tool named {name!r}, and it is not the same; give one of "
                "them a new name, or register this one with replace=True"
            )

    def get(self, name: str) -> Tool:
        tool = self.find(name)
        if tool is None:
            near = get_close_matches(name, tuple(self), n=1)
            raise NotFound(f"no tool is named {name!r}" + (f"; {near[0]!r} is" if near else ""))
        return tool

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(self._tools[name].spec for name in self)

    def missing_arguments(self, name: str, args: JsonObject) -> list[str]:
        """The parameters that the tool requires and `args` lacks, in the schema's order."""
        required = self.get(name).spec.parameters.get("required", ())
        return [parameter for parameter in required if parameter not in args]

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._tools if name not in self._ours)

    def __len__(self) -> int:
        return len(self._tools) - len(self._ours)

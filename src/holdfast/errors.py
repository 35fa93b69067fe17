"""Every error Holdfast raises, split by who must act.

HoldfastError
├── CallerError              the caller asked for something that cannot be
│   ├── NotFound             no such run, question, plan or listener
│   ├── NotAllowed           the run's state does not permit the command
│   ├── AlreadyAnswered      another answer won; says who, when and how
│   ├── TooLate              the question's deadline has passed
│   ├── InvalidAnswer        one message per field
│   ├── InvalidValue         a value that is not strict JSON
│   ├── PatchRejected        every reason why a plan cannot be changed so
│   ├── Unauthenticated      the caller is not known
│   ├── NotPermitted         the caller may not
│   └── TooMany              refused too often; says when to try again
├── AuthorError              the plan's author must mend the plan
│   ├── PlanRejected         every problem of a plan, each with its place
│   ├── FormRejected         every problem of a form, each with its path
│   ├── OutputRefused        an output that names no task, or an impossible move
│   ├── ConditionError       a condition that does not parse or evaluate
│   ├── TemplateError        a template that does not parse or render
│   └── SnippetError         a code snippet that broke its limits or failed
├── OperatorError            the operator of the installation must act
│   ├── WrongSetting         a setting has a value that it cannot have
│   ├── HomeBusy             another process holds the home directory
│   ├── JournalDamaged       the database is corrupt
│   ├── JournalTooNew        the database was written by a newer Holdfast
│   ├── JournalUnavailable   disk full, I/O error, database down: not acknowledged
│   ├── ServerTooOld         the server has no such operation: upgrade it, or use its client
│   ├── Busy                 too much long work waits already; nothing was begun
│   └── IssuerUnavailable    the keys of those who sign people in cannot be had
├── ToolError                what a tool may raise to say how it failed
│   ├── TransientError       worth another attempt
│   │   └── ModelUnavailable     the model could not be reached or did not finish
│   ├── PermanentError       another attempt cannot help
│   │   └── ModelRefused         the provider will not serve this request
│   │       ├── ContextTooLong       the conversation does not fit the model
│   │       └── ModelNotConfigured   no such provider, no key, no package
│   ├── ForbiddenError       the tool refused for lack of rights
│   └── OutcomeUnknown       sent, but it is not known whether it happened
└── InternalError            ours: please report
    ├── VersionConflict      the run moved on since it was read
    ├── NameTaken            what was to be kept under a new name is there already
    ├── NameGone             what was to be used up is not there any more
    ├── Superseded           another driver has taken the run over
    └── IllegalTransition    a table was asked for a move it does not have
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.i18n.message import joined, msg


class HoldfastError(Exception):
    """Anything that Holdfast raises on purpose."""


class CallerError(HoldfastError):
    """The caller asked for something that cannot be; nothing changed."""


class NotFound(CallerError):
    """No such run, question, plan or listener."""


class NotAllowed(CallerError):
    """The run's state does not permit the command."""


class AlreadyAnswered(CallerError):
    """Another answer to the same question won."""

    def __init__(self, message: str, *, by: str, at: float, option_id: str | None) -> None:
        super().__init__(message)
        self.by = by
        self.at = at
        self.option_id = option_id


class TooLate(CallerError):
    """The question's deadline has passed, or it was withdrawn."""


class InvalidAnswer(CallerError):
    """The answer does not fit its form; `fields` has one message per field."""

    def __init__(self, message: str, fields: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.fields = dict(fields or {})


class InvalidValue(CallerError):
    """A value that is not strict JSON: `reason` says why not, `path` where in it."""

    def __init__(self, message: str, path: str = "$") -> None:
        super().__init__(msg("{place}: {problem}", place=path, problem=message))
        self.path = path
        self.reason = message


class PatchRejected(CallerError):
    """A change of a run's plan that cannot be made; `problems` has every reason and its place."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(joined("\n", self.problems))


class Unauthenticated(CallerError):
    """The caller is not known: no token, or one that is not valid any more."""


class NotPermitted(CallerError):
    """The caller is known, and may not."""


class TooMany(CallerError):
    """Refused too often; `retry_after` is how many seconds to wait."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class AuthorError(HoldfastError):
    """The plan's author must mend the plan."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a plan and where it stands; lines and columns count from 1."""

    message: str
    file: str = "<plan>"
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}"
        return msg("{place}: {problem}", place=place, problem=self.message)


class PlanRejected(AuthorError):
    """A plan with mistakes; `problems` has them, and of very many the first."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(joined("\n", map(str, self.problems)))


@dataclass(frozen=True, slots=True)
class FormProblem:
    """One mistake in a form; `path` leads to it from the form's shape."""

    path: tuple[str | int, ...]
    message: str

    @property
    def place(self) -> str:
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return "".join(parts).removeprefix(".") or "form"

    def __str__(self) -> str:
        return msg("{place}: {problem}", place=self.place, problem=self.message)


class FormRejected(AuthorError):
    """A form with mistakes; `problems` has all of them."""

    def __init__(self, problems: Sequence[FormProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__(joined("\n", map(str, self.problems)))


class OutputRefused(AuthorError):
    """An output that names an unknown task, or a move that the table does not have."""


class ConditionError(AuthorError):
    """A condition that does not parse or cannot be evaluated.

    `column` counts from 1 within the expression, 0 when unknown; `excerpt` shows it there.
    """

    def __init__(self, message: str, column: int = 0, excerpt: str = "") -> None:
        super().__init__(joined("\n", (message, excerpt)) if excerpt else message)
        self.column = column
        self.reason = message


class TemplateError(AuthorError):
    """A template that does not parse or names something that is not there."""

    def __init__(self, message: str, column: int = 0) -> None:
        super().__init__(message)
        self.column = column


class SnippetError(AuthorError):
    """A code snippet that failed or broke one of its limits."""


class OperatorError(HoldfastError):
    """The operator of the installation must act."""


class WrongSetting(OperatorError):
    """A setting has a value that it cannot have; `source` is the option, variable or file."""

    def __init__(self, message: str, source: str) -> None:
        super().__init__(message)
        self.source = source


class HomeBusy(OperatorError):
    """Another process holds the home directory."""


class JournalDamaged(OperatorError):
    """The database is corrupt."""


class JournalTooNew(OperatorError):
    """The database was written by a newer Holdfast."""


class JournalUnavailable(OperatorError):
    """The journal could not acknowledge: this does not mean that it did not happen."""


class ServerTooOld(OperatorError):
    """The server is of an earlier release than its client, and has no such operation."""


class Busy(OperatorError):
    """Too much long work waits already: nothing of this was begun, and it may be asked again."""


class IssuerUnavailable(OperatorError):
    """The issuer's keys could not be had: its tokens cannot be judged just now."""


class ToolError(HoldfastError):
    """What a tool may raise to say how it failed.

    `traceback` is told instead of its own, which may quote secrets. `status`, `code` (the service's
    own word for the error) and `field` (the argument that it names) are a class's or an error's.
    """

    traceback: str | None = None
    status: int | None = None
    code: str = ""
    field: str = ""


class TransientError(ToolError):
    """Worth another attempt; `retry_after` is how long the service wants to be left alone, in
    seconds or as its header has it."""

    def __init__(self, *args: object, retry_after: float | str | None = None) -> None:
        super().__init__(*args)
        self.retry_after = retry_after


class ModelUnavailable(TransientError):
    """The model could not be reached or did not finish; another attempt may succeed."""

    retry_after: float | None

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message, retry_after=retry_after)


class PermanentError(ToolError):
    """Another attempt with the same arguments cannot help."""


class ModelRefused(PermanentError):
    """The provider will not serve this request; the message says what to change."""


class ContextTooLong(ModelRefused):
    """The conversation does not fit the model's context window."""


class ModelNotConfigured(ModelRefused):
    """No such provider, no key, or a package that is not installed."""


class ForbiddenError(ToolError):
    """The tool refused for lack of rights."""


class OutcomeUnknown(ToolError):
    """The call was sent, but it is not known whether it took effect; `retry_after` counts where
    it may be repeated."""

    def __init__(self, *args: object, retry_after: float | str | None = None) -> None:
        super().__init__(*args)
        self.retry_after = retry_after


class InternalError(HoldfastError):
    """A mistake of ours."""


class VersionConflict(InternalError):
    """The run moved on since it was read; reload and decide again."""


class NameTaken(InternalError):
    """Something is kept under that name already; nothing of the append became true."""

    def __init__(self, kind: str, key: str) -> None:
        super().__init__(f"something of kind {kind} is kept under that name already")
        self.kind = kind
        self.key = key


class NameGone(InternalError):
    """Nothing is kept under that name any more; nothing of the append became true."""

    def __init__(self, kind: str, key: str) -> None:
        super().__init__(f"nothing of kind {kind} is kept under that name")
        self.kind = kind
        self.key = key


class Superseded(InternalError):
    """Another driver has taken the run over; nothing of the append became true."""


class IllegalTransition(InternalError):
    """A table was asked for a move it does not have."""

"""Requests: what makes a question sound, and the options that are offered by custom.

A question is checked once, when it is made, so that nothing later need doubt it: every option has
its own id, the clock's times fit together, and `is_default` and `default_option_id` say the same.
Whatever the journal would bend or lose is refused as well, before the rest is looked at: a question
must be the same after a restart.

**The clock never approves.** At the timeout the default option is taken without a person, so a
default must be one that the clock may take: nothing dangerous, nothing that asks for words or
values that only a person has, nothing that a handler decides. For a tool's approval every option
that leads to the call counts as dangerous, whatever its author wrote. This holds for a default
without `timeout_seconds` too. Such a one is allowed, and is only what a person finds preselected;
but a timeout that is added one day must not turn it into a consent.

A question that is not `required` can be skipped: where no option says so, one is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from itertools import chain, count, pairwise
from operator import attrgetter, is_
from typing import Final, TypeGuard

from holdfast.core.interactions.checks import (
    HAPPENED,
    STOP,
    Problems,
    id_problems,
    journal_problems,
    kept,
    reserved_problems,
)
from holdfast.errors import InvalidAnswer
from holdfast.forms.validation import validate
from holdfast.forms.values import echo
from holdfast.i18n.message import joined, msg
from holdfast.model.form import Form
from holdfast.model.interaction import (
    RUN_AGAIN,
    Asking,
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)
from holdfast.model.record import replacing
from holdfast.model.values import Json

PROVIDE_OPTION: Final = InteractionOption("provide", msg("Provide"), InteractionAction.PROVIDE_INFO)
PROVIDE_OPTIONS: Final = (PROVIDE_OPTION,)
SKIP_OPTION: Final = InteractionOption("skip", msg("Skip"), InteractionAction.SKIP)
CONFIRM_OPTIONS: Final = (
    InteractionOption("confirm", msg("Confirm"), InteractionAction.APPROVE_AND_EXECUTE),
    InteractionOption("reject", msg("Reject"), InteractionAction.REJECT_WITH_REASON),
)
APPROVAL_OPTIONS: Final = (
    InteractionOption(
        "approve", msg("Approve and run"), InteractionAction.APPROVE_AND_EXECUTE, is_dangerous=True
    ),
    InteractionOption(
        "retry",
        msg("Ask again with feedback"),
        InteractionAction.RETRY_WITH_FEEDBACK,
        requires_input=True,
        input_prompt=msg("What should be different?"),
    ),
    InteractionOption(
        "reject",
        msg("Reject"),
        InteractionAction.REJECT_WITH_REASON,
        requires_input=True,
        input_prompt=msg("Why not?"),
    ),
    InteractionOption(
        "terminate",
        msg("Reject and stop everything"),
        InteractionAction.TERMINATE,
        is_dangerous=True,
    ),
)
UNKNOWN_OPTIONS: Final = (
    InteractionOption(
        HAPPENED,
        msg("It happened"),
        InteractionAction.PROVIDE_INFO,
        description=msg("Go on with the result that you fill in; nothing is called again."),
    ),
    InteractionOption(
        RUN_AGAIN,
        msg("Run it again"),
        InteractionAction.APPROVE_AND_EXECUTE,
        description=msg("Call it once more under the same key."),
        is_dangerous=True,
    ),
    InteractionOption(
        STOP,
        msg("Stop"),
        InteractionAction.TERMINATE,
        description=msg("Cancel the whole run."),
        is_dangerous=True,
    ),
)

_CUSTOMARY: Final = frozenset(
    map(id, (PROVIDE_OPTIONS, CONFIRM_OPTIONS, APPROVAL_OPTIONS, UNKNOWN_OPTIONS))
)
"""Options of ours that are sound in any question, and are not looked at each time."""

LONGEST_WAIT: Final = 10 * 365 * 86_400.0
"""Ten years, in seconds."""

_NO_WAIT: Final = msg("must be a number of seconds above 0, and at most ten years")
_NO_FORM: Final = Form()
_APPROVAL: Final = InteractionType.TOOL_APPROVAL
_CHOICE: Final = InteractionType.USER_CHOICE
_CUSTOM_TYPE: Final = InteractionType.CUSTOM
_CUSTOM: Final = InteractionAction.CUSTOM
_PROVIDE: Final = InteractionAction.PROVIDE_INFO
_SKIP: Final = InteractionAction.SKIP
_LEADS_TO_THE_CALL: Final = (InteractionAction.APPROVE_AND_EXECUTE, _PROVIDE)

_manner = attrgetter(*[one.name for one in fields(InteractionRequest)[9:]])
"""How an author wants it asked: what follows the form among the fields of a request."""
_with = replacing(InteractionRequest)
_option_with = replacing(InteractionOption)


def sound(request: InteractionRequest) -> InteractionRequest:
    """The request with its customs filled in, or InvalidAnswer with all that is wrong."""
    known = id(request.options) in _CUSTOMARY
    _refuse(journal_problems(request, () if known else request.options))
    offered = _offered(request)
    full = request if offered is request.options else _with(request, options=offered)
    _refuse(_problems(full))
    return _settled(full)


def _refuse(found: Problems) -> None:
    problems: dict[str, str] = {}
    for name, message in found:
        known = problems.get(name)
        problems[name] = joined("; ", (known, message)) if known else message
    if problems:
        each = (msg("{place}: {problem}", place=k, problem=v) for k, v in problems.items())
        listed = joined("; ", each)
        raise InvalidAnswer(
            msg("this question cannot be asked: {problems}", problems=listed), problems
        )


def request_from_asking(
    asking: Asking,
    *,
    request_id: str,
    session_id: str,
    type: InteractionType,  # noqa: A002
    title: str,
    message: str = "",
    options: tuple[InteractionOption, ...] = (),
    form: Form = _NO_FORM,
    context: Mapping[str, Json] | None = None,
) -> InteractionRequest:
    """A sound request in the author's words and options where there are any, else in ours.

    A tool's approval stays one: under another type the clock might consent to the call.
    """
    kind = asking.type or type
    if type is _APPROVAL and kind is not type:
        remedy = msg("a tool's approval cannot be asked as {kind}: leave the type out", kind=kind)
        raise InvalidAnswer(
            msg("this question cannot be asked: {problems}", problems=remedy), {"type": remedy}
        )
    if asking.options:
        _refuse(reserved_problems(asking.options))
    return sound(
        InteractionRequest(
            request_id,
            session_id,
            kind,
            asking.title or title,
            asking.message or message,
            asking.details,
            {} if context is None else context,
            asking.options or options,
            form,
            *_manner(asking),
        )
    )


def is_dangerous(request: InteractionRequest, option: InteractionOption) -> bool:
    """Whether a person should be asked twice, and the clock never take it."""
    approval = request.type is _APPROVAL
    return option.is_dangerous or (approval and option.action in _LEADS_TO_THE_CALL)


def clock_may_take(request: InteractionRequest, option: InteractionOption) -> bool:
    """Whether the option may be taken at the timeout, when no answer has come."""
    return _clocks_objection(request, option) is None


def _clocks_objection(request: InteractionRequest, option: InteractionOption) -> str | None:
    if is_dangerous(request, option):
        return msg("it is dangerous")
    if option.action is _CUSTOM:
        return msg("a handler decides about it")
    if option.requires_input:
        return msg("it requires input")
    provides = option.action is _PROVIDE
    missing = list(validate(request.form, {}).errors) if provides else []
    return msg("the form requires {names}", names=", ".join(missing)) if missing else None


def _offered(request: InteractionRequest) -> tuple[InteractionOption, ...]:
    """The author's options or the customary ones; what is not required can be skipped."""
    options = request.options or _customary_options(request)
    if request.required or not options or any(one.action is _SKIP for one in options):
        return options
    return (*options, _option_with(SKIP_OPTION, option_id=_free_id(options)))


def _free_id(options: tuple[InteractionOption, ...]) -> str:
    taken = {one.option_id for one in options}
    further = (f"{SKIP_OPTION.option_id}_{number}" for number in count(2))
    return next(one for one in chain((SKIP_OPTION.option_id,), further) if one not in taken)


def _customary_options(request: InteractionRequest) -> tuple[InteractionOption, ...]:
    """By custom; a choice without a form has none, for there is nothing to choose from."""
    if request.form.fields:
        return PROVIDE_OPTIONS
    if request.type is _APPROVAL:
        return APPROVAL_OPTIONS
    return () if request.type is _CHOICE else CONFIRM_OPTIONS


def _problems(request: InteractionRequest) -> Problems:
    if not request.title.strip():
        yield "title", msg("is empty: say what is asked")
    yield from _type_problems(request)
    if id(request.options) not in _CUSTOMARY:
        yield from _option_problems(request.options)
        yield from id_problems(request)
    yield from _default_problems(request)
    yield from _time_problems(request)


def _type_problems(request: InteractionRequest) -> Problems:
    custom = request.type is _CUSTOM_TYPE
    if custom and not (request.custom_type or "").strip():
        yield "custom_type", msg("is missing: name the registered type of a CUSTOM question")
    if not custom and request.custom_type is not None:
        yield (
            "custom_type",
            msg("is only for CUSTOM questions, and this is {kind}", kind=request.type),
        )


def _option_problems(options: tuple[InteractionOption, ...]) -> Problems:
    if not options:
        yield "options", msg("there are none: a choice needs something to choose from")
    seen: dict[str, int] = {}
    for index, option in enumerate(options):
        name = option.option_id
        if not name.strip():
            yield f"options[{index}].option_id", msg("is empty: give every option an id")
        elif name in seen:
            yield (
                f"options[{index}].option_id",
                msg("{name} is options[{index}] already", name=echo(name), index=seen[name]),
            )
        seen.setdefault(name, index)


def _default_problems(request: InteractionRequest) -> Problems:
    named = request.default_option_id
    marked = [option.option_id for option in request.options if option.is_default]
    if len(marked) > 1:
        yield (
            "options",
            msg("only one can be the default, not {names}", names=", ".join(map(echo, marked))),
        )
    if named is not None and named not in {option.option_id for option in request.options}:
        yield "default_option_id", msg("there is no option {name}", name=echo(named))
    elif named is not None and marked and named not in marked:
        yield (
            "default_option_id",
            msg(
                "is {name}, but {other} is marked as default",
                name=echo(named),
                other=echo(marked[0]),
            ),
        )
    for index, option in enumerate(request.options):
        if option.option_id == named:
            yield from _untakable(request, option, "default_option_id")
        elif option.is_default:
            yield from _untakable(request, option, f"options[{index}].is_default")


def _untakable(request: InteractionRequest, option: InteractionOption, place: str) -> Problems:
    objection = _clocks_objection(request, option)
    if objection is not None:
        yield (
            place,
            msg(
                "the clock may not take {name}, because {reason}",
                name=echo(option.option_id),
                reason=objection,
            ),
        )


def _time_problems(request: InteractionRequest) -> Problems:
    timeout = request.timeout_seconds
    if timeout is not None and not is_wait(timeout):
        yield "timeout_seconds", _NO_WAIT
    end = timeout if is_wait(timeout) else None
    yield from _reminder_problems(request.reminders, end)
    yield from _escalation_problems(request, end)


def is_wait(seconds: object) -> TypeGuard[float]:
    """Whether it is above 0 and at most ten years; NaN and infinity are within no bounds."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return False
    return 0 < seconds <= LONGEST_WAIT


def _reminder_problems(reminders: tuple[float, ...], end: float | None) -> Problems:
    if not all(map(is_wait, reminders)):
        yield "reminders", msg("each must be a number of seconds above 0, and at most ten years")
        return
    if any(later <= earlier for earlier, later in pairwise(reminders)):
        yield "reminders", msg("must ascend: each later than the one before")
    if end is not None and any(each >= end for each in reminders):
        yield "reminders", msg("must come before the timeout")


def _escalation_problems(request: InteractionRequest, end: float | None) -> Problems:
    after, to = request.escalate_after, request.escalate_to
    if after is None and to is not None:
        yield (
            "escalate_after",
            msg("is missing: say after how many seconds {role} is asked", role=echo(to)),
        )
    if after is not None and not (to or "").strip():
        yield "escalate_to", msg("is missing: name the role that is asked then")
    if after is not None and not is_wait(after):
        yield "escalate_after", _NO_WAIT
    elif after is not None and end is not None and after >= end:
        yield "escalate_after", msg("must come before the timeout")


def _settled(request: InteractionRequest) -> InteractionRequest:
    """Both ways to name the default agree, and what is dangerous is marked so."""
    marked = [option.option_id for option in request.options if option.is_default]
    default = request.default_option_id or (marked[0] if marked else None)
    options = tuple([_settled_option(request, one, default) for one in request.options])
    same = default == request.default_option_id and all(map(is_, options, request.options))
    if same and not request.context:
        return request
    context = kept(request.context)
    return _with(request, options=options, default_option_id=default, context=context)


def _settled_option(
    request: InteractionRequest, option: InteractionOption, default: str | None
) -> InteractionOption:
    by_default, dangerous = option.option_id == default, is_dangerous(request, option)
    same = option.is_default is by_default and option.is_dangerous is dangerous
    if same and not option.metadata:
        return option
    metadata = kept(option.metadata)
    return _option_with(option, is_default=by_default, is_dangerous=dangerous, metadata=metadata)

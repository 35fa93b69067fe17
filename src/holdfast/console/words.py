"""The console's words: how its texts become messages, and those that are found by a value.

Templates, modules of the browser and code here say `t("English", name=value)`; the English text is
the id, `make messages` takes it into the catalogue under the context `console`, and the page puts
it into its reader's language when it prints it (`rendering`). `nt` has a form for one and one for
many, `pt` a context of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.i18n.catalogue import LANGUAGES, preferred
from holdfast.i18n.message import CONTEXT, Message, Param, pmsg, remade


def t(form: str, /, **params: Param) -> Message:
    """The text with its values; one of the tables below may lack values still."""
    text = form.format_map(params) if params else form
    return remade(text, form.id if isinstance(form, Message) else text_id(form), params)


def nt(one: str, many: str, /, n: int, **params: Param) -> Message:
    text = (one if n == 1 else many).format_map({"n": n, **params})
    return remade(text, text_id(one), {"n": n, **params})


def text_id(form: str) -> str:
    """The id in the catalogue."""
    return f"console{CONTEXT}{form}"


pt = pmsg


def language_of(cookie: str | None, accepted: str) -> str:
    """The chosen language; else what the browser prefers; else English."""
    if cookie is not None and cookie in LANGUAGES:
        return cookie
    return preferred(accepted)


STATUSES: Final[Mapping[str, str]] = {
    "not_started": t("Not started"),
    "running": t("Running"),
    "pause": t("Waiting"),
    "continue": t("Continuing"),
    "done": t("Done"),
    "error": t("Failed"),
    "cancelling": t("Cancelling"),
    "cancelled": t("Cancelled"),
}

KINDS: Final[Mapping[str, str]] = {
    "plan": t("Plan"),
    "chat": t("Chat"),
    "conversation": t("Conversation"),
}

ROLES: Final[Mapping[str, str]] = {
    "viewer": t("Viewer"),
    "operator": t("Operator"),
    "approver": t("Approver"),
    "author": t("Author"),
    "admin": t("Administrator"),
}

PAGES: Final[Mapping[str, str]] = {
    "runs": t("Runs"),
    "inbox": t("Inbox"),
    "chat": t("Chat"),
    "plans": t("Plans"),
}

REFUSED: Final[Mapping[int | str, tuple[str, str]]] = {
    401: (
        t("You are not signed in"),
        t(
            "Open the link that Holdfast printed when it started, or ask an administrator for "
            "one. Started like this it prints a new one:"
        ),
    ),
    "link": (
        t("This link does not work"),
        t(
            "It was used already, is too old or is not whole. Ask its sender for another; a "
            "demo prints one when it is started again, and so does a server started like this:"
        ),
    ),
    403: (
        t("You may not see this"),
        t("Your role does not allow it. An administrator can give you another one."),
    ),
    404: (
        t("There is nothing here"),
        t("The address may be mistyped, or you may not see what it names."),
    ),
    422: (
        t("This address makes no sense"),
        t("A part of it is not valid: {detail}"),
    ),
    429: (
        t("Too many attempts"),
        t("Nothing is locked. Wait a minute, then try again."),
    ),
    503: (
        t("Holdfast cannot answer just now"),
        t("Nothing is lost. Try again in a moment."),
    ),
    500: (
        t("Something went wrong here"),
        t("It is not your fault. The server's log has the reason under request {request_id}."),
    ),
}
"""By status, and what a link is refused with: what it is, and what to do."""

FILTERS: Final[Mapping[str, str]] = {
    "running": t("Running"),
    "pause": t("Waiting"),
    "error": t("Failed"),
    "done": t("Done"),
    "cancelled": t("Cancelled"),
}

TABS: Final[Mapping[str, str]] = {
    "pending": t("Pending"),
    "answered": t("Answered"),
    "expired": t("Expired"),
    "withdrawn": t("Withdrawn"),
}

CLOSED: Final[Mapping[str, str]] = {
    "answered": t("Answered"),
    "expired": t("Expired"),
    "withdrawn": t("Withdrawn"),
}
"""How a question has ended."""

OPTIONS: Final[Mapping[str, str]] = {
    "provide": t("Submit"),
    "skip": t("Skip"),
    "confirm": t("Confirm"),
    "reject": t("Reject"),
    "approve": t("Approve and run"),
    "retry": t("Ask again with feedback"),
    "terminate": t("Reject and stop everything"),
    "happened": t("It happened"),
    "run_again": t("Run it again"),
    "stop": t("Stop"),
    "decline": t("Do not answer"),
}
"""Labels of standard options."""

PROMPTS: Final[Mapping[str, str]] = {
    "retry": t("Say what should be different"),
    "reject": t("Say why not"),
}

DOES: Final[Mapping[str, str]] = {
    "happened": t("Go on with the result that you fill in; nothing is called again."),
    "run_again": t("Call it once more under the same key."),
    "stop": t("Cancel the whole run."),
}
"""What options about an unknown outcome do."""

YES_NO: Final[Mapping[str, str]] = {"yes": t("Yes"), "no": t("No")}

STANDINGS: Final[Mapping[str, str]] = {
    "ready": t("Next"),
    "running": pt("call", "Running"),
    "waiting": t("Waits for an answer"),
    "retrying": t("Tries again"),
    "lost": t("Outcome unknown"),
    "done": t("Done"),
    "provided": pt("call", "Answered"),
    "failed": t("Failed"),
    "refused": t("Not possible"),
    "rejected": t("Rejected, not run"),
    "retry": t("Sent back, not run"),
    "skipped": t("Skipped, not run"),
    "expired": t("No answer, not run"),
    "stopped": t("Stopped"),
}
"""How a tool call is."""

NOTED: Final[Mapping[str, str]] = {
    "resumed": t("{who} resumed it"),
    "stopping": t("{who} stopped the chat."),
}

CANNOT_WRITE: Final[Mapping[str, str]] = {
    "ended": t("This chat is over."),
    "role": t("Your role lets you read this chat, not write in it."),
    "model": t("No model could answer. Plug one in first."),
    "asks": t(
        "It waits for an answer to the question above. You can write the next message already."
    ),
    "works": t("The agent is at work. You can write the next message already."),
}

COUNTS: Final[Mapping[str, str]] = {
    "running": t("running {n}"),
    "retrying": t("retrying {n}"),
    "waiting": t("waiting {n}"),
    "failed": t("failed {n}"),
    "done": t("done {n}"),
    "skipped": t("skipped {n}"),
    "cancelled": t("cancelled {n}"),
    "idle": t("not started {n}"),
}

PHASES: Final[Mapping[str, str]] = {
    "idle": t("Idle"),
    "receiving": t("Receiving the goal"),
    "context_fetching": t("Fetching context"),
    "decomposing": t("Decomposing"),
    "scheduling": t("Scheduling"),
    "executing": t("Executing"),
    "paused": t("Paused"),
    "completed": t("Completed"),
    "error": t("Failed"),
}

TRIES: Final[Mapping[str, str]] = {
    "running": t("Try {n}, under way"),
    "waiting": t("Try {n} asked a person"),
    "done": t("Try {n} succeeded"),
    "failed": t("Try {n} failed"),
}

ACTIONS: Final[Mapping[str, str]] = {
    "resume": t("Resume…"),
    "pause": t("Pause…"),
    "go-on-retry": t("Try again…"),
    "go-on-skip": t("Go on without…"),
    "go-on-stop": t("End the turn…"),
    "cancel": t("Cancel…"),
    "rerun": t("Run again from here…"),
    "skip": t("Skip…"),
    "mark-done": t("Mark done by hand…"),
    "context": t("Edit context…"),
}

ASKS: Final[Mapping[str, str]] = {
    "resume": t("Resume {run}?"),
    "go-on-retry": t("Try again what failed in {run}?"),
    "go-on-skip": t("Go on with {run} without what failed?"),
    "go-on-stop": t("End the turn of {run} that failed?"),
    "pause": t("Pause {run}?"),
    "cancel": t("Cancel {run}?"),
    "rerun": t("Run again from {of}?"),
    "skip": t("Skip {of}?"),
    "mark-done": t("Mark {of} done by hand?"),
    "context": t("Edit the context of {of}"),
}
"""The titles of dialogs that ask whether an action is meant."""

EXPLAINED: Final[Mapping[str, str]] = {
    "resume": t("What failed runs again. What is done stays done."),
    "resume.react": t("The agent takes its turn up again. Calls that have ended do not run again."),
    "resume.conversation": t(
        "The conversation goes on from where it was paused. No task runs twice."
    ),
    "go-on-retry": t(
        "What failed runs again, and then what is left. What is done stays done. If it is unknown "
        "whether a task took effect, a person is asked first."
    ),
    "go-on-skip": t(
        "What failed is left out, and so is whatever depends on it. What is done stays done."
    ),
    "go-on-stop": t(
        "Nothing more of it runs. The next message is a new turn, which is told what was done."
    ),
    "pause": t("Nothing new starts. A task under way finishes, and counts after the resume."),
    "cancel": t(
        "Nothing new starts. What is under way finishes first, and its result is kept. A "
        "cancelled run cannot be resumed."
    ),
    "rerun": t(
        "This step runs again, and then whatever follows from it, even what has run before."
    ),
    "skip": t("It does not run. The plan goes on without its result."),
    "mark-done": t(
        "For work that was done elsewhere. The steps that would have done it do not run."
    ),
    "context": t("Steps that start from now on read the new values. What has run keeps its own."),
}

SUBMITS: Final[Mapping[str, str]] = {
    "resume": t("Resume"),
    "pause": t("Pause"),
    "go-on-retry": t("Try again"),
    "go-on-skip": t("Go on without"),
    "go-on-stop": t("End the turn"),
    "cancel": t("Cancel the run"),
    "rerun": t("Run again"),
    "skip": t("Skip"),
    "mark-done": t("Mark done"),
    "context": t("Save"),
}

CONTEXT_HELP: Final[Mapping[str, str]] = {
    "mark-done": t("What the step would have brought; later steps read it."),
    "context": t("Values that you leave out stay as they are."),
}

"""The words of ours that are found by their values: states, phases, commands, powers, nouns.

`message.term` makes a message of one; here `make messages` finds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.i18n.message import msgid, pmsg

_ROLES: Final[Mapping[str, str]] = {
    "viewer": pmsg("role", "viewer"),
    "operator": pmsg("role", "operator"),
    "approver": pmsg("role", "approver"),
    "author": pmsg("role", "author"),
    "admin": pmsg("role", "admin"),
}


def role_name(role: str) -> str:
    """A role of ours as a word; any other is its author's."""
    return _ROLES.get(role, role)


TERMS: Final = (
    msgid("run"),
    msgid("plan"),
    msgid("question"),
    msgid("read"),
    msgid("operate"),
    msgid("answer"),
    msgid("author"),
    msgid("administer"),
    msgid("running"),
    msgid("pause"),
    msgid("continue"),
    msgid("done"),
    msgid("error"),
    msgid("cancelling"),
    msgid("cancelled"),
    msgid("answered"),
    msgid("expired"),
    msgid("withdrawn"),
    msgid("waiting"),
    msgid("succeeded"),
    msgid("failed"),
    msgid("skipped"),
    msgid("Resume"),
    msgid("Cancel"),
    msgid("RerunFrom"),
    msgid("MarkDone"),
    msgid("EditContext"),
    msgid("Answer"),
    msgid("KeepDraft"),
    msgid("Say"),
    msgid("Converse"),
    msgid("resume"),
    msgid("cancel"),
    msgid("skip"),
    msgid("rerun"),
    msgid("mark-done"),
    msgid("context"),
    msgid("idle"),
    msgid("paused"),
    msgid("completed"),
    msgid("resumed"),
    msgid("StartRun"),
    msgid("StartFork"),
    msgid("Ask"),
    msgid("Propose"),
    msgid("RememberApproval"),
    msgid("RevokeApproval"),
    msgid("Advance"),
    msgid("Hold"),
    msgid("Unhold"),
    msgid("Abort"),
    msgid("StartOver"),
    msgid("RestoreSnapshot"),
    msgid("StartSession"),
    msgid("OpenConversation"),
    msgid("not_started"),
    msgid("ready"),
    msgid("backoff"),
    msgid("consulting"),
    msgid("stopped"),
    msgid("receiving"),
    msgid("context_fetching"),
    msgid("decomposing"),
    msgid("scheduling"),
    msgid("executing"),
    msgid("chat"),
    msgid("conversation"),
    msgid("task"),
    msgid("tool"),
    msgid("agent"),
    msgid("session"),
)

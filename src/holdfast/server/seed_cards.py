"""Questions for the seed's own page, which shows a title, a message, details and one prompt.

It has no place for a call, a quotation or a form, and puts texts into the page as they come.
So `details` says all that a person must know: the tool and its arguments, the agent's own
words, and what each option does. An option that goes with one open field asks for it by the
prompt. And nothing in a text is read as markup: where HTML would begin some, the character is
spelled as JSON spells it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from holdfast.forms.values import allowed_options
from holdfast.i18n.catalogue import said
from holdfast.interactions.cards import call_of, spoken_field
from holdfast.language.display import unquoted, visible
from holdfast.language.strict import canonical_json
from holdfast.model.form import CHOICES, Field, FieldType
from holdfast.model.interaction import InteractionRequest
from holdfast.server.questions import card

_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "quoted": ("In the agent's own words: “{}”", "智能体的原话：“{}”"),
    "tool": ("Tool: {}.", "工具：{}。"),
    "args": ("Arguments: {}.", "参数：{}。"),
    "defaults": ("By default: {}.", "默认参数：{}。"),
    "option": ("{} (“{}”)", "{}（“{}”）"),
    "choices": (" (one of: {})", "（可选：{}）"),
    "several": (" (any of, with commas between: {})", "（可多选，用逗号分隔：{}）"),
    "yes_or_no": (" (yes or no)", "（是或否）"),
    "date": (" (as 2026-01-31)", "（如 2026-01-31）"),
    "datetime": (" (as 2026-01-31T08:30:00+08:00)", "（如 2026-01-31T08:30:00+08:00）"),
}
_HINTS: Final = {
    FieldType.BOOLEAN: "yes_or_no",
    FieldType.DATE: "date",
    FieldType.DATETIME: "datetime",
}
_MARKUP: Final = re.compile(r"<(?=[A-Za-z/!?])|&(?=[A-Za-z#])")


def seed_card(request: InteractionRequest, language: str) -> dict[str, Any]:
    """The question as `cards.card` has it, whole for a page that shows nothing but its texts."""
    shown = card(request, language)
    details = "\n".join(_details(request, shown, language))
    options = [
        {**wire, **_prompted(request, place, language)}
        for place, wire in enumerate(shown["options"])
    ]
    texts = {"title": shown["title"], "message": shown["message"], "details": details}
    return {**shown, **{name: plain(text) for name, text in texts.items()}, "options": options}


def plain(text: str) -> str:
    """Text that stays text in a page: no markup, nothing hidden."""
    lines = "\n".join(map(visible, text.split("\n")))
    return _MARKUP.sub(lambda found: f"\\u{ord(found[0]):04x}", lines)


def _details(request: InteractionRequest, shown: Mapping[str, Any], language: str) -> Iterator[str]:
    """Ours first: an author's words cannot pass for it."""
    quoted, call = request.context.get("quoted"), call_of(request)
    if isinstance(quoted, str):
        yield _said("quoted", language, quoted)
    if call is not None:
        yield _said("tool", language, call[0])
        yield _said("args", language, canonical_json(dict(call[1])))
        if defaults := request.context.get("defaults"):
            yield _said("defaults", language, canonical_json(defaults))
    if shown["details"]:
        yield shown["details"]
    for option in shown["options"]:
        yield _said("option", language, option["consequence"], unquoted(option["label"]))


def _prompted(request: InteractionRequest, place: int, language: str) -> dict[str, Any]:
    option = request.options[place]
    field = spoken_field(request, option)
    if field is None:
        return {}
    prompt = said(option.input_prompt, language) or _prompt(field, language)
    return {"requiresInput": True, "inputPrompt": prompt}


def _prompt(field: Field, language: str) -> str:
    label, description = (said(one, language) for one in (field.label, field.description))
    told = ": ".join(filter(None, (label or field.name, description)))
    if field.type in CHOICES:
        listed = " / ".join(one.label for one in allowed_options(field))
        several = field.type is FieldType.MULTISELECT
        return told + _said("several" if several else "choices", language, listed)
    hint = _HINTS.get(field.type)
    return told + (_said(hint, language) if hint else "")


def _said(name: str, language: str, *values: str) -> str:
    return _WORDS[name][language == "zh"].format(*values)

"""`make messages`: bring the catalogues up to date with the messages of the source.

New messages are added without a translation, those that are no longer said are dropped. No file is
named beside a message: a module that moves would change the catalogue, and two changes conflict.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Final

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from holdfast.i18n.catalogue import LOCALES

PACKAGE = Path(__file__).parent.parent / "src" / "holdfast"
KEYWORDS: Final = {"msg": None, "msgid": None, "nmsg": (1, 2), "pmsg": ((1, "c"), 2)}
CONSOLE: Final = {"t": None, "nt": (1, 2), "pt": ((1, "c"), 2)}
METHODS: Final = (
    ("**.py", "python"),
    ("templates/**.html", "jinja2"),
    ("static/**.js", "javascript"),
)
HEADER = """\
msgid ""
msgstr ""
"Language: {locale}\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"

"""


def extracted() -> Iterator[tuple[str, str | tuple[str, ...], str | None]]:
    """Each message with a file that says it, and its context."""
    for file, _, found, _, context in extract_from_dir(str(PACKAGE), keywords=KEYWORDS):
        if isinstance(found, str) or all(found):
            yield file, found, context
    console = PACKAGE / "console"
    for file, _, found, _, context in extract_from_dir(str(console), METHODS, keywords=CONSOLE):
        yield f"console/{file}", found, context or "console"


def updated(before: Catalog, locale: str) -> str:
    made = Catalog(locale=locale)
    for _, text, context in extracted():
        known = before.get(text if isinstance(text, str) else text[0], context)
        made.add(text, known.string if known else "", context=context)
    written = BytesIO()
    write_po(written, made, width=100, sort_output=True, omit_header=True, no_location=True)
    return HEADER.format(locale=locale) + written.getvalue().decode()


def main() -> None:
    for locale in LOCALES.values():
        place = PACKAGE / "i18n" / "locale" / locale / "LC_MESSAGES" / "holdfast.po"
        with place.open("rb") as file:
            before = read_po(file, locale=locale)
        place.write_text(updated(before, locale), encoding="utf-8")


if __name__ == "__main__":
    main()

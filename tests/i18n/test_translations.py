"""The catalogue has every message of the source, and each translation its message's parameters."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from string import Formatter

import make_messages
import pytest
from babel.messages.pofile import read_po

from holdfast.i18n.catalogue import LOCALES, catalogue, prepare, said
from holdfast.i18n.message import CONTEXT

LANGUAGES = pytest.mark.parametrize("language", LOCALES)


@cache
def extracted() -> frozenset[str]:
    return frozenset(key(text, context) for _, text, context in make_messages.extracted())


def key(text: str | tuple[str, ...], context: str | None) -> str:
    """The id of a message; of one with a plural the singular, as gettext has it."""
    one = text if isinstance(text, str) else text[0]
    return f"{context}{CONTEXT}{one}" if context else one


def parameters(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@LANGUAGES
def test_every_message_is_translated_and_nothing_else(language: str) -> None:
    """`make messages` brings a catalogue up to date; its new messages are to be translated."""
    assert extracted() - catalogue(language).keys() == set()
    assert catalogue(language).keys() - extracted() == set()


@LANGUAGES
def test_a_translation_has_the_parameters_of_its_message(language: str) -> None:
    for english, text in catalogue(language).items():
        assert parameters(text) == parameters(english), english
        assert all(name.isidentifier() for name in parameters(english)), english


@LANGUAGES
def test_a_catalogue_is_read_as_gettext_reads_it(language: str) -> None:
    place = files("holdfast.i18n").joinpath("locale", LOCALES[language], "LC_MESSAGES/holdfast.po")
    with place.open("rb") as file:
        entries = {key(one.id, one.context): one.string for one in read_po(file) if one.id}
    entries = {k: text if isinstance(text, str) else text[0] for k, text in entries.items()}
    prepare()
    assert catalogue(language) == entries


@LANGUAGES
def test_a_catalogue_names_no_files_of_the_source(language: str) -> None:
    """Else a module that moves changes it, and two changes of the source conflict in it."""
    place = files("holdfast.i18n").joinpath("locale", LOCALES[language], "LC_MESSAGES/holdfast.po")
    with place.open("rb") as file:
        before = read_po(file)
    assert not [one for one in before if one.locations]
    assert make_messages.updated(before, LOCALES[language]) == place.read_text(encoding="utf-8")


def test_a_language_without_a_catalogue_reads_english() -> None:
    assert said("this is required: please fill it in", "en").startswith("this is required")

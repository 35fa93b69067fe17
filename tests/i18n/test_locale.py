"""The language that the locale of a process asks for."""

from __future__ import annotations

import pytest

from holdfast.i18n.catalogue import preferred_in


@pytest.mark.parametrize(
    ("environ", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8@pinyin"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_GB.UTF-8"}, "en"),
        ({"LANG": "en_GB.UTF-8", "LC_ALL": "zh_TW"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "POSIX"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": ""}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8", "LANGUAGE": "de:zh_CN:en"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LANGUAGE": "en:zh"}, "en"),
        ({"LANGUAGE": "zh"}, "zh"),
        ({"LANG": "C", "LANGUAGE": "zh"}, "en"),
        ({"LANG": "..", "LANGUAGE": ":::"}, "en"),
    ],
)
def test_the_locale_names_the_language(environ: dict[str, str], language: str) -> None:
    assert preferred_in(environ) == language

"""Where the value of a setting comes from: a flag, the environment, the file, or the default.

The command line names the file once, at its start (`use`); from then on whatever of this process
asks for a setting finds what it says, an application that is imported later, too. A program that
embeds Holdfast has the environment alone. A variable that is empty counts as not set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.errors import WrongSetting
from holdfast.settings.file import ConfigFile
from holdfast.settings.kinds import (
    HIDDEN,
    LISTS,
    Unfit,
    Value,
    from_text,
    from_texts,
    without_password,
)
from holdfast.settings.setting import Setting
from holdfast.settings.table import INTERNAL, SETTINGS

DEFAULT: Final = "default"
PREFIX: Final = "HOLDFAST_"


@dataclass(frozen=True, slots=True)
class Found:
    """A setting's value, and its source: an option, a variable, a file, or `DEFAULT`."""

    setting: Setting
    value: Any
    source: str

    @property
    def shown(self) -> Any:
        """The value as it may be shown, in terms of JSON."""
        match self.value:
            case None | bool() | int() | float():
                return self.value
            case tuple():
                return list(self.value)
            case _ if self.setting.secret:
                return HIDDEN
            case _:
                return without_password(str(self.value))


@dataclass(frozen=True, slots=True)
class Sources:
    """`flags` are options as they were typed, by the names of settings; None where not given."""

    environ: Mapping[str, str]
    file: ConfigFile | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)

    def find(self, name: str) -> Found:
        """WrongSetting where the value that counts is none that the setting can have."""
        setting = SETTINGS[name]
        flag, said = self.flags.get(name), self.environ.get(setting.variable, "")
        if flag is not None and flag is not False and flag != []:
            return Found(setting, _read(setting, flag, setting.flag), setting.flag)
        if said:
            return Found(setting, _read(setting, said, setting.variable), setting.variable)
        if self.file is not None and name in self.file.values:
            return Found(setting, self.file.values[name], str(self.file.path))
        return Found(setting, setting.default, DEFAULT)

    def value(self, name: str) -> Any:
        return self.find(name).value

    def is_set(self, name: str) -> bool:
        return self.find(name).source != DEFAULT

    def all(self) -> Iterator[Found]:
        """Every setting, in the order of the table."""
        return map(self.find, SETTINGS)

    def unknown(self) -> list[str]:
        """Variables that look like ours, and say nothing to us."""
        known = {one.variable for one in SETTINGS.values()} | INTERNAL
        return sorted(one for one in self.environ if one.startswith(PREFIX) and one not in known)


def _read(setting: Setting, said: Any, place: str) -> Value:
    """What an option or a variable says; a path or a switch may have been read already."""
    try:
        if isinstance(said, list):
            return _joined(setting, said)
        return from_text(setting.kind, setting.limits, str(said))
    except Unfit as error:
        raise WrongSetting(f"{place}: {error}", place) from None


def _joined(setting: Setting, said: list[str]) -> Value:
    """An option that was given several times."""
    assert setting.kind in LISTS
    return from_texts(setting.kind, setting.limits, said)


_file: ConfigFile | None = None


def use(file: ConfigFile | None) -> None:
    """Have this process take its settings from `file`, below the environment."""
    global _file
    _file = file


def in_effect(flags: Mapping[str, Any] | None = None) -> Sources:
    """The sources of this process, as they are now."""
    return Sources(os.environ, _file, flags or {})

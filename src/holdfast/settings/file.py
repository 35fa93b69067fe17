"""The configuration file, `holdfast.toml`: one `key = value` for each setting, without sections.

It stands in the working directory or is named. One that was only found there must belong to this
user or to root: what it says decides which code is loaded. A file is read whole and judged whole,
so that a mistake is told at the start, whatever command is given.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from holdfast.errors import WrongSetting
from holdfast.settings.kinds import Kind, Unfit, Value, from_toml, has_password
from holdfast.settings.setting import Setting
from holdfast.settings.table import SETTINGS

USUAL: Final = Path("holdfast.toml")
_LARGEST: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """`values` by the names of settings; relative paths are counted from the file."""

    path: Path
    values: Mapping[str, Value] = field(default_factory=dict)


def find_file(named: Path | None) -> ConfigFile | None:
    """The file that is named, else the one in the working directory, if there is one."""
    if named is not None:
        return read_file(named)
    try:
        return read_file(USUAL, found=True)
    except FileNotFoundError:
        return None


def read_file(path: Path, *, found: bool = False) -> ConfigFile:
    """What a file says, or WrongSetting with the file, the key and the remedy."""
    with path.open("rb") as file:
        if found and os.fstat(file.fileno()).st_uid not in (os.getuid(), 0):
            raise WrongSetting(
                f"{path} belongs to another user, who could have any code loaded here: "
                "name it with --config if it is meant",
                str(path),
            )
        text = file.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise WrongSetting(f"{path} is larger than {_LARGEST:,} bytes", str(path))
    try:
        said = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WrongSetting(f"{path} is not TOML: {error}", str(path)) from None
    return ConfigFile(path, {key: _value(path, key, value) for key, value in said.items()})


def _value(path: Path, key: str, value: Any) -> Value:
    setting = SETTINGS.get(key)
    if setting is None:
        raise WrongSetting(f"{path}: {_unknown(key, value)}", str(path))
    place = f"{path}: {key}"
    if setting.secret:
        raise WrongSetting(
            f"{place} is a secret, and files are copied: set ${setting.variable} instead",
            str(path),
        )
    if setting.by_hand:
        raise WrongSetting(
            f"{place} may not stand in the file: {setting.by_hand} (${setting.variable})", str(path)
        )
    try:
        read = from_toml(setting.kind, setting.limits, value)
    except Unfit as error:
        raise WrongSetting(f"{place}: {error}", str(path)) from None
    if isinstance(read, str) and has_password(read):
        raise WrongSetting(f"{place} has a password in it: {_remedy(setting)}", str(path))
    return path.parent / read if setting.kind is Kind.PATH and isinstance(read, Path) else read


def _remedy(setting: Setting) -> str:
    place = f"set ${setting.variable} in the environment"
    libpq = " or leave it to $PGPASSWORD or a password file"
    return f"{place}{libpq if setting.name.startswith('database') else ''}"


def _unknown(key: str, value: Any) -> str:
    from holdfast.language.spelling import nearest, printable

    if isinstance(value, dict):
        return f"[{printable(key)}] is a section, and settings stand without any"
    known = [one.key for one in SETTINGS.values() if one.key]
    meant = nearest(key.replace("-", "_").removeprefix("HOLDFAST_").lower(), known)
    remedy = f"did you mean {meant}?" if meant else "`holdfast settings` lists all of them"
    return f"there is no setting {printable(key)}: {remedy}"

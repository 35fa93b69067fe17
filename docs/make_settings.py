"""Writes the tables of docs/settings.md from that of the code: `python docs/make_settings.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from holdfast.settings.kinds import Kind
from holdfast.settings.setting import Setting
from holdfast.settings.table import GROUPS

PAGE: Final = Path(__file__).parent / "settings.md"
BEGIN: Final = "<!-- tables -->\n"
END: Final = "<!-- end of tables -->\n"


def page(text: str) -> str:
    """The page with the tables as they are now."""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    parts = [f"### {name}\n\n{_table(group)}" for name, group in GROUPS.items()]
    return before + BEGIN + "\n" + "\n".join(parts) + "\n" + END + after


def _table(group: tuple[Setting, ...]) -> str:
    head = "| key | option | variable | value | default | for | what |\n" + "|---" * 7 + "|\n"
    return head + "".join(f"| {' | '.join(_cells(one))} |\n" for one in group)


def _cells(one: Setting) -> tuple[str, ...]:
    default = one.default_text if one.default_means or one.default in (None, ()) else ""
    return (
        f"`{one.key}`" if one.key else "",
        f"`{one.flag}`" if one.flag else "",
        f"`{one.variable}`" if one.variable else "",
        _kind(one),
        default or f"`{one.default_text}`",
        ", ".join(f"`{part}`" if " " not in part else part for part in one.scope),
        one.purpose.removesuffix("."),
    )


def _kind(one: Setting) -> str:
    limits = one.limits
    if one.secret:
        return "secret"
    if one.kind is Kind.CHOICE:
        return ", ".join(f"`{word}`" for word in limits.choices)
    if limits.least is None:
        return one.kind.value
    bounds = f"{limits.least:g} to {limits.most:g}" if limits.most else f"from {limits.least:g}"
    return f"{one.kind.value}, {bounds}"


def main() -> None:
    text = page(PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()

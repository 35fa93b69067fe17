"""Records in files: which keys a mapping has for one, and what each fills.

A key is read by the annotation of the attribute that it fills (`core.storing.attributes`). The same
table offers the keys to editors (`schemas`), and `core.storing` stores by it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING
from enum import StrEnum
from functools import partial
from typing import Any, Final, Generic, TypeAlias, TypeVar

from holdfast.core.storing import attributes
from holdfast.model.plan import TaskStatus
from holdfast.model.values import JsonObject
from holdfast.source.locations import Path
from holdfast.source.nodes import Node
from holdfast.source.shape import ShapeReader

Record = TypeVar("Record")

Reader: TypeAlias = Callable[[ShapeReader, Node | None, Path, Any], Any]
"""Reads what stands at a path, if anything does; the last is the attribute's default."""

_STAND_INS: Final[Mapping[Any, Any]] = {
    str: "",
    tuple[str, ...]: (),
    TaskStatus: TaskStatus.DONE,
}

READERS: Final[Mapping[Any, Reader]] = {
    str: ShapeReader.text,
    str | None: ShapeReader.text,
    bool: ShapeReader.flag,
    int: ShapeReader.integer,
    float: ShapeReader.number,
    float | None: ShapeReader.number,
    tuple[str, ...]: ShapeReader.texts,
    tuple[float, ...]: ShapeReader.numbers,
    JsonObject: ShapeReader.json_object,
}


class Keys(Generic[Record]):
    """What has no default is required, but for what is `like` another attribute; `without` are
    attributes that no key fills alone, `besides` and `needed` keys that fill none, `short` other
    spellings."""

    def __init__(
        self,
        record: Callable[..., Record],
        readers: Mapping[Any, Reader] = READERS,
        *,
        like: Mapping[str, str] | None = None,
        without: Collection[str] = (),
        besides: tuple[str, ...] = (),
        needed: tuple[str, ...] = (),
        short: Mapping[str, str] | None = None,
    ) -> None:
        self.record = record
        self.readers = readers
        self.attributes = {one.key: one for one in attributes(record) if one.name not in without}
        self.short = short or {}
        self.like = like or {}
        required = (key for key, one in self.attributes.items() if one.usual is MISSING)
        self.required = (*(key for key in required if key not in self.like), *needed)
        keys = (key for key in self.attributes if key not in self.required)
        self.known = (*self.required, *keys, *besides)

    def read(self, shape: ShapeReader, node: Node, path: Path, **given: Any) -> Record:
        """The record at a mapping."""
        found = shape.entries(
            node, path, known=self.known, required=self.required, short=self.short
        )
        return self.fill(shape, found, path, **given)

    def fill(
        self, shape: ShapeReader, found: Mapping[str, Node], path: Path, **given: Any
    ) -> Record:
        """The record from entries that may have other keys too; `given` is read otherwise."""
        for key, one in self.attributes.items():
            if one.name not in given:
                usual = _STAND_INS.get(one.hint) if one.usual is MISSING else one.usual
                usual = given[self.like[key]] if key in self.like else usual
                read = self.readers.get(one.hint) or partial(_word, one.hint)
                given[one.name] = read(shape, found.get(key), (*path, key), usual)
        return self.record(**given)


def _word(
    words: type[StrEnum], shape: ShapeReader, node: Node | None, path: Path, usual: Any
) -> StrEnum:
    meant: StrEnum = shape.word(node, path, words, usual)
    return meant

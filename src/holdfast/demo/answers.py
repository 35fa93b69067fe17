"""What the mock office answers to a call, and how the answer reaches the caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeAlias

Body: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Answer:
    """`acted` says that the service did the work now, whatever the caller is told of it.

    `page` is sent in place of the body; a `cut` connection ends before anything is sent.
    """

    status: int
    body: Body
    delay: float = 0.0
    repeated: bool = False
    acted: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    page: str | None = None
    cut: bool = False

    @property
    def tells_success(self) -> bool:
        return self.status == HTTPStatus.OK and self.page is None and not self.cut


def success(**body: Body) -> Answer:
    return Answer(HTTPStatus.OK, {"success": True, **body})


def failure(status: int, message: str, **more: Body) -> Answer:
    return Answer(status, {"success": False, "error": message, **more})

"""Import paths that the docs once named still lead to what they led to."""

from __future__ import annotations

from importlib import import_module

import pytest

KEPT = {
    ("holdfast.runtime.views", "request_of"): "holdfast.runtime.projections",
    ("holdfast.server.connections", "bounded"): "holdfast.server.middleware.connections",
}


@pytest.mark.parametrize(("path", "name"), KEPT)
def test_a_path_that_the_docs_named_still_imports(path: str, name: str) -> None:
    now = KEPT[path, name]

    assert getattr(import_module(path), name) is getattr(import_module(now), name)

"""The documentation site: these pages and the public names, made by `make docs`.

No page is fetched and nothing is sent: the theme and its fonts are local files. Warnings are
errors, so that a link which leads nowhere fails the build.
"""

from __future__ import annotations

from importlib.metadata import version as installed
from typing import Any

import holdfast

project = "Holdfast"
author = copyright = "The Holdfast authors"  # noqa: A001
release = version = installed("holdfast")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["*.py"]

html_theme = "furo"
html_title = f"Holdfast {release}"
html_copy_source = False

myst_heading_anchors = 4

default_role = "code"
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
autodoc_default_options = {"members": True, "undoc-members": True, "show-inheritance": True}


def drawn_literally(
    _app: Any, _what: str, _name: str, _object: object, _options: Any, lines: list[str]
) -> None:
    """Docstrings are plain text: what is indented in them is a drawing or code."""
    drawn = False
    for index, line in reversed(list(enumerate(lines))):
        indented = line.startswith("    ")
        if drawn and line and not indented:
            lines[index + 1 : index + 1] = ["", "::", ""]
            drawn = False
        elif indented and not drawn:
            lines.insert(index + 1, "")
            drawn = True


def setup(app: Any) -> None:
    # Public names are imported when they are first used, and autodoc only looks.
    vars(holdfast).update({name: getattr(holdfast, name) for name in holdfast.__all__})
    app.connect("autodoc-process-docstring", drawn_literally)

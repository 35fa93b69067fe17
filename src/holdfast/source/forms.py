"""Forms in plan files: read by `forms.shapes`, their mistakes located in the file."""

from __future__ import annotations

from holdfast.errors import FormRejected, Problem
from holdfast.forms.shapes import parse_form
from holdfast.i18n.message import msg
from holdfast.model.form import Form
from holdfast.source.locations import Path
from holdfast.source.nodes import Mapping, Node, Scalar, Sequence
from holdfast.source.shape import ShapeReader


def read_form(
    shape: ShapeReader,
    node: Node | None,
    path: Path,
    usual: Form | None = None,
    *,
    enriches: bool = False,
) -> Form:
    if node is None:
        return Form()
    raw = shape.json(_by_name(shape, node, path), path)
    try:
        return parse_form(raw, enriches=enriches)
    except FormRejected as rejected:
        shape.broken.add(path)
        for problem in rejected.problems:
            location = shape.locations.key((*path, *problem.path))
            shape.problems.append(Problem(str(problem), shape.file, *location))
        return Form()


def _by_name(shape: ShapeReader, node: Node, path: Path) -> Node:
    """A form may also be a list of fields with their names, as plans have it in JSON."""
    if not isinstance(node, Sequence) or not all(isinstance(i, Mapping) for i in node.items):
        return node
    named: dict[str, tuple[Scalar, Node]] = {}
    for item in node.items:
        assert isinstance(item, Mapping)
        name, rest = _split_name(item)
        if name is None or name.text in named:
            shape.wrong(item, path, _name_problem(name))
        else:
            named[name.text] = (name, rest)
    form = Mapping(tuple(named.values()), node.line, node.column)
    shape.locations.record(path, form)
    return form


def _name_problem(name: Scalar | None) -> str:
    if name is None:
        return msg("this field needs a name")
    return msg("this field has the name {name!r} again", name=name.text)


def _split_name(field: Mapping) -> tuple[Scalar | None, Mapping]:
    """A field's name, and the field without it."""
    names = [value for key, value in field.entries if key.text == "name"]
    rest = tuple(entry for entry in field.entries if entry[0].text != "name")
    name = names[0] if names and isinstance(names[0], Scalar) else None
    return name, Mapping(rest, field.line, field.column)

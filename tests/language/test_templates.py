from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import TemplateError
from holdfast.language.templates import Template, compile_template, render
from holdfast.model.plan import TaskStatus


@dataclass
class World:
    """A run as a template sees it."""

    contexts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    names: Mapping[str, Any] = field(default_factory=dict)

    def status_of(self, task_id: str) -> str:
        self.contexts[task_id]
        return TaskStatus.DONE

    def context_of(self, task_id: str) -> Mapping[str, Any]:
        return self.contexts[task_id]


OFFICE = World(
    contexts={
        "001": MappingProxyType(
            {
                "name": "Will Zhang",
                "email": "will@example.com",
                "age": 30,
                "remote": True,
                "manager": None,
                "address": {"city": "西安", "zip": "710000"},
                "items": [{"id": 7}, {"id": 8}],
                "姓名": "张三",
            }
        ),
        "hire-step": {},
    },
    names={"result": {"x": 12, "items": [{"id": "A1"}], "ok": False}, "values": {"name": "Will"}},
)


def filled(value: Any, world: World = OFFICE) -> Any:
    return render(compile_template(value), world)


def syntax_error(value: Any) -> TemplateError:
    with pytest.raises(TemplateError) as caught:
        compile_template(value)
    return caught.value


def missing(value: Any, world: World = OFFICE) -> str:
    template = compile_template(value)
    with pytest.raises(TemplateError) as caught:
        render(template, world)
    return str(caught.value)


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{001.context.name}", "Will Zhang"),
        ("{001.context.age}", 30),
        ("{001.context.remote}", True),
        ("{001.context.manager}", None),
        ("{001.context.address}", {"city": "西安", "zip": "710000"}),
        ("{001.context.items}", [{"id": 7}, {"id": 8}]),
        ("{001.context.items.1.id}", 8),
        ("{001.context.姓名}", "张三"),
        ("{ 001.context.name }", "Will Zhang"),
        ("{001.status}", "Done"),
        ("{hire-step.context}", {}),
        ("{values.name}", "Will"),
        ("{values}", {"name": "Will"}),
        ("{{result}}", {"x": 12, "items": [{"id": "A1"}], "ok": False}),
        ("{{result.x}}", 12),
        ("{{ result.items.0.id }}", "A1"),
    ],
)
def test_a_lone_placeholder_keeps_its_type(template: str, value: Any) -> None:
    result = filled(template)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("Dear {001.context.name}!", "Dear Will Zhang!"),
        (" {001.context.age}", " 30"),
        ("{001.context.remote}/{001.context.manager}", "true/null"),
        ("{001.context.address}{{result.x}}", '{"city":"西安","zip":"710000"}12'),
        ('{"order":{"id":{{result.x}}}}', '{"order":{"id":12}}'),
        ("[{001.status}] {{result.ok}}", "[Done] false"),
    ],
)
def test_inside_text_strings_go_in_as_they_are_and_the_rest_as_json(
    template: str, text: str
) -> None:
    assert filled(template) == text


def test_templates_nest_and_keys_are_never_rendered() -> None:
    template = {"to": ["{001.context.email}", {"{values.name}": "{{result.x}}"}], "n": 1}
    assert filled(template) == {"to": ["will@example.com", {"{values.name}": 12}], "n": 1}
    assert template["to"] == ["{001.context.email}", {"{values.name}": "{{result.x}}"}]


def test_each_rendering_is_a_value_of_its_own() -> None:
    template = compile_template({"to": ["{{result}}"]})
    first = render(template, World(names={"result": 1}))
    second = render(template, World(names={"result": 2}))
    assert (first, second) == ({"to": [1]}, {"to": [2]})


def test_rendered_dicts_keep_the_order_of_their_keys() -> None:
    assert list(filled({"b": "{{result.x}}", "a": 1, "c": "{001.status}"})) == ["b", "a", "c"]


def test_frozen_containers_of_a_plan_render_to_plain_ones() -> None:
    template = MappingProxyType({"to": ("{001.context.name}",), "cc": MappingProxyType({"a": 1})})
    result = filled(template)
    assert result["to"] == ["Will Zhang"]
    assert type(result) is dict


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no braces",
        '{"a": 1}',
        "{ }",
        "{}",
        "{not a path}",
        "{name}",
        "{001.context.}",
        "{.x}",
        "open { and } closed",
        "}} {",
        "a \\ b",
        "{001.context.name",
    ],
)
def test_other_braces_are_ordinary_text(text: str) -> None:
    template = compile_template(text)
    assert template.constant
    assert render(template, OFFICE) is text


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("\\{001.context.name}", "{001.context.name}"),
        ("\\{\\{result.x}}", "{{result.x}}"),
        ("\\{{001.context.name}}", "{Will Zhang}"),
        ("C:\\\\{001.context.name}", "C:\\Will Zhang"),
        ("\\\\\\{001.context.name}", "\\{001.context.name}"),
        ("\\{", "{"),
        ("\\\\{", "\\{"),
        ("\\n \\\\ \\}", "\\n \\\\ \\}"),
    ],
)
def test_a_backslash_makes_a_brace_plain_and_matters_nowhere_else(template: str, text: str) -> None:
    assert filled(template) == text


def test_a_constant_renders_to_itself() -> None:
    value = {"a": [1, {"b": "text"}], "c": None}
    template = compile_template(value)
    assert template.constant
    assert render(template, World()) is value
    assert not compile_template(["\\{"]).constant


def test_a_template_tells_what_it_reads() -> None:
    template = compile_template(
        ["{001.context.name} {values.name}", {"x": "{{result.items.0}}"}, "{001.context.name}"]
    )
    assert template.task_paths == (("001", "context", "name"), ("values", "name"))
    assert template.result_paths == (("result", "items", "0"),)
    with pytest.raises(FrozenInstanceError):
        template.constant = True  # type: ignore[misc]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (
            "{001.context.nmae}",
            "{001.context.nmae}: task 001's context has no 'nmae' "
            "(it has: address, age, email, items, manager, name, remote, 姓名); "
            "did you mean 'name'?",
        ),
        (
            "{001.context.address.cty}",
            "{001.context.address.cty}: 001.context.address has no 'cty' (it has: city, zip); "
            "did you mean 'city'?",
        ),
        (
            "To {hire-step.context.x}",
            "{hire-step.context.x}: task hire-step's context has no 'x' (it is empty)",
        ),
        ("{009.context.x}", "{009.context.x}: there is no task 009"),
        ("{009.status}", "{009.status}: there is no task 009"),
        (
            "{001.context.items.2.id}",
            "{001.context.items.2.id}: 001.context.items is a list of 2, without an item 2 "
            "(they count from 0)",
        ),
        (
            "{001.context.items.id}",
            "{001.context.items.id}: 001.context.items is a list of 2, without an item id "
            "(they count from 0)",
        ),
        (
            "{001.context.name.first}",
            "{001.context.name.first}: 001.context.name is text, without a part 'first'",
        ),
        (
            "{001.context.manager.name}",
            "{001.context.manager.name}: 001.context.manager is null, without a part 'name'",
        ),
        (
            "{{result.x.y}}",
            "{{result.x.y}}: result.x is a number, without a part 'y'",
        ),
        (
            "{{result.ok.y}}",
            "{{result.ok.y}}: result.ok is true or false, without a part 'y'",
        ),
        (
            "{values.nome}",
            "{values.nome}: values has no 'nome' (it has: name); did you mean 'name'?",
        ),
    ],
)
def test_a_missing_name_says_which_part_is_missing_and_what_is_there(
    template: str, message: str
) -> None:
    assert missing(template) == message


def test_a_result_that_does_not_exist_here_is_an_error() -> None:
    assert missing("{{result.x}}", World()) == (
        "{{result.x}}: this place has no 'result' (it is empty)"
    )


def test_only_some_of_many_names_are_listed() -> None:
    world = World(contexts={"001": {f"field_{n:02}": "secret" for n in range(30)}})
    message = missing("{001.context.zzz}", world)
    assert "field_09 and 20 more" in message
    assert "secret" not in message


@pytest.mark.parametrize(
    ("template", "column", "reason"),
    [
        ("Hi {{foo}}", 4, "double braces name the result"),
        ("{{001.context.name}}", 1, "single ones a task's path"),
        ("{{results}}", 1, "double braces name the result"),
        ("{{}}", 1, "double braces name the result"),
        ("{{{result.x}}}", 1, "double braces name the result"),
        ("ab {{result.x", 4, "never closed"),
        ("\\\\{{result", 3, "never closed"),
        ("{foo.bar}", 1, "after the task id 'foo' comes .status or .context"),
        ("{001.status.x}", 1, "nothing can follow"),
        ("x {result.x}", 3, "the result takes double braces, {{result.x}}"),
        ("{result}", 1, "the result takes double braces, {{result}}"),
    ],
)
def test_bad_syntax_names_its_column_and_remedy(template: str, column: int, reason: str) -> None:
    error = syntax_error(template)
    assert error.column == column
    assert reason in str(error)


def test_bad_syntax_inside_a_value_names_its_place() -> None:
    assert str(syntax_error({"to": ["ok", "{{bad}}"]})).startswith("$.to[1]: {{bad}}: ")


def test_a_long_group_is_clipped_in_the_message() -> None:
    assert len(str(syntax_error("{{" + "x" * 5_000 + "}}"))) < 300


def test_nesting_is_capped() -> None:
    deep: Any = "{{result}}"
    for _ in range(65):
        deep = [deep]
    assert "nested deeper than 64" in str(syntax_error(deep))
    assert filled(deep[0]) is not None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(json_values)
def test_whatever_a_run_holds_keeps_its_type(value: Any) -> None:
    world = World(contexts={"001": {"x": value}}, names={"result": value, "values": {"x": [value]}})
    rendered = filled(["{001.context.x}", "{{result}}", "{values.x.0}"], world)
    assert all(part is value for part in rendered)


@given(st.text(max_size=20))
def test_text_from_a_run_is_never_rendered_again(text: str) -> None:
    assert filled("<{{result}}>", World(names={"result": text})) == f"<{text}>"


fragments = st.sampled_from(
    [
        "{",
        "}",
        "{{",
        "}}",
        "\\",
        "001",
        ".context",
        ".name",
        "result",
        "values",
        " ",
        "{001.status}",
    ]
)


def compiled_or_refused(text: str) -> Template | TemplateError:
    try:
        return compile_template(text)
    except TemplateError as error:
        return error


def rendered_or_refused(template: Template) -> Any:
    try:
        return render(template, OFFICE)
    except TemplateError as error:
        return error


@given(st.text(max_size=30) | st.lists(fragments, max_size=12).map("".join))
def test_any_text_is_a_template_or_refused_with_a_column_in_it(text: str) -> None:
    outcome = compiled_or_refused(text)
    if isinstance(outcome, TemplateError):
        assert 1 <= outcome.column <= len(text)
    elif outcome.constant:
        assert render(outcome, OFFICE) is text
    else:
        rendered_or_refused(outcome)


@given(st.text(max_size=30).filter(lambda text: "\\{" not in text))
def test_any_text_can_be_written_with_escaped_braces(text: str) -> None:
    assert filled(text.replace("{", "\\{")) == text


@pytest.mark.parametrize(
    ("template", "bounded"),
    [
        ({"a": 1}, True),
        ({"a": "{{result.x}}"}, True),
        ({"a": {"b": ["no. {{result}}"]}}, True),
        ({"a": "{{result.x}}", "b": "{{result.x}}"}, False),
        ({"a": "{{result.x}}{{result.x}}"}, False),
        ({"a": "{001.context}"}, False),
        ({"a": "{values.name}"}, False),
    ],
)
def test_what_takes_one_part_of_a_result_is_bounded_as_that_is(
    template: Any, bounded: bool
) -> None:
    assert compile_template(template).bounded is bounded

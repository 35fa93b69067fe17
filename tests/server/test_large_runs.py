"""Large runs: what is shown of one is made beside the event loop, and looked up once a page."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from server_scene import Scene, furnish, serving, start

from holdfast import Holdfast
from holdfast.console import install
from holdfast.console.pages import run as pages
from holdfast.console.views import node as console_node
from holdfast.console.views import run as console_run
from holdfast.drawing.picture import Condition
from holdfast.model.rows import RunRow
from holdfast.server import showing
from holdfast.server.settings import ServerSettings
from holdfast.views import failures, nodes, reader
from holdfast.views.pictures import picture, task_counts
from holdfast.views.reader import RunReader, RunVersion


class WithConsole(Holdfast):
    def asgi(self, settings: ServerSettings | None = None) -> Any:
        web = super().asgi(settings)
        install(web)
        return web


@pytest.fixture
async def with_console() -> AsyncIterator[Scene]:
    app = WithConsole()
    office = furnish(app)
    office.failures = 99
    async with serving(app) as scene:
        yield scene


@pytest.mark.parametrize(
    ("module", "name", "path"),
    [
        (showing, "_instance", "/instances/{id}"),
        (showing, "_instance", "/runs/{id}"),
        (console_run, "task_counts", "/console/parts/runs/{id}/head"),
        (console_run, "run_actions", "/console/parts/runs/{id}/head"),
        (console_node, "node_actions", "/console/parts/runs/{id}/node?node=L001"),
        (failures, "run_actions", "/console/parts/runs/{id}/beside"),
        (pages, "check_action", "/console/parts/runs/{id}/action?name=cancel"),
    ],
)
async def test_a_large_run_is_shown_beside_the_loop(
    with_console: Scene, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, path: str
) -> None:
    original, threads = getattr(module, name), list[str]()

    def watched(*args: Any, **options: Any) -> Any:
        threads.append(threading.current_thread().name)
        return original(*args, **options)

    monkeypatch.setattr(module, name, watched)
    instance_id = await start(with_console, "grant_access")
    where = path.format(id=instance_id)
    for large, beside in ((reader.LARGE, False), (1, True)):
        monkeypatch.setattr(reader, "LARGE", large)
        threads.clear()
        answer = await with_console.admin.get(where)
        assert answer.status_code == 200, answer.text
        assert threads
        assert {one.startswith("holdfast-aside") for one in threads} == {beside}


async def test_a_box_of_a_graph_is_always_looked_for_beside_the_loop(
    with_console: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many arrows a graph has is not known by its boxes."""
    threads = list[str]()

    def watched(run: RunVersion) -> Any:
        threads.append(threading.current_thread().name)
        return picture(run)

    monkeypatch.setattr(nodes, "picture", watched)
    instance_id = await start(with_console, "grant_access")
    path = f"/console/parts/runs/{instance_id}/node?node=L001"
    assert (await with_console.admin.get(path)).status_code == 200
    assert [one.startswith("holdfast-aside") for one in threads] == [True]


async def test_a_run_page_looks_up_its_root_and_its_view_once(
    with_console: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance_id = await start(with_console, "grant_access")
    asked = Counter[str]()
    find_root, view = RunReader.root, RunVersion.view

    async def root(self: RunReader, run_id: str) -> RunRow | None:
        asked["root"] += 1
        return await find_root(self, run_id)

    def viewed(self: RunVersion, *, parts: bool = True) -> Any:
        asked["whole" if parts else "view"] += 1
        return view(self, parts=parts)

    monkeypatch.setattr(RunReader, "root", root)
    monkeypatch.setattr(RunVersion, "view", viewed)
    answer = await with_console.admin.get(f"/console/runs/{instance_id}")
    assert answer.status_code == 200
    assert "the door does not answer" in answer.text
    assert asked == {"root": 1, "view": 1}


async def test_tasks_are_counted_as_the_picture_shows_them(with_console: Scene) -> None:
    for instance_id in (await start(with_console), await start(with_console, "grant_access")):
        run = await with_console.services.reader.at(instance_id)
        drawn = picture(run)
        assert drawn is not None
        boxes = [one for one in drawn.nodes if not {"goal", "listener"} & {*one.classes.split()}]
        assert task_counts(run) == Counter[Condition | None](one.condition for one in boxes)

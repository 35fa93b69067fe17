"""A line of a request that is served names it and who asked; what a run does later names none."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from server_scene import furnish, serving, settled

from holdfast import Holdfast
from holdfast.runtime.log_lines import about

office = logging.getLogger("office")


class Told(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.fields: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.fields.append(about(record))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    handler = Told()
    monkeypatch.setattr(office, "handlers", [handler])
    monkeypatch.setattr(office, "level", logging.INFO)
    return handler


async def test_a_line_of_a_run_that_was_started_over_http_names_the_run_and_no_request(
    tmp_path: Path, told: Told
) -> None:
    app = Holdfast(tmp_path)
    made = furnish(app)

    async def grant_access(employee: str) -> dict[str, Any]:
        office.info("granting")
        return await made.grant_access(employee)

    app.tool(replace=True)(grant_access)
    async with serving(app) as scene:
        started = await scene.admin.post("/instances", json={"plan_id": "grant_access"})
        run_id = started.json()["id"]
        await settled(scene, run_id)
    [fields] = told.fields
    assert (fields["run"], fields["step"]) == (run_id, "L001")
    assert not {"request", "person"} & set(fields)


async def test_a_line_of_a_request_names_it_and_who_asked(
    tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Holdfast(tmp_path)
    furnish(app)
    async with serving(app) as scene:
        ask = scene.services.reader.root

        async def logged(run_id: str) -> Any:
            office.info("looking")
            return await ask(run_id)

        monkeypatch.setattr(type(scene.services.reader), "root", lambda _, run_id: logged(run_id))
        mine = {"X-Request-ID": "mine"}
        assert (await scene.admin.get("/runs/inst_000009", headers=mine)).status_code == 404
    assert told.fields[0] == {"person": "some admin", "request": "mine"}

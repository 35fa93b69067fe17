"""Plans, their instances, and runs of every kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.client.resource import Answer, Resource, Values, answered, given, strict
from holdfast.client.transport import path_of

LONGEST_DRAFT: Final = 180.0
"""Seconds that a model may take to draw up a plan, in all its attempts."""


class Plans(Resource):
    async def list(self) -> Answer:
        return answered(await self._transport.get("/plans"))

    async def register(self, source: str) -> Answer:
        """Register a plan's YAML text; PlanRejected has every mistake."""
        return answered(await self._transport.post("/plans", {"source": source}))

    async def check(self, source: str) -> Answer:
        return answered(await self._transport.post("/plans/check", {"source": source}))

    async def draft(
        self, prompt: str, *, values: Values = None, language: str | None = None
    ) -> Answer:
        """The plan that a model would draw up for this; nothing is started."""
        body, path = given(prompt=prompt, values=values), "/plans/draft"
        found = await self._transport.post_in(language, path, body, longer=LONGEST_DRAFT)
        return answered(found)

    async def get(self, plan_id: str) -> Answer:
        return answered(await self._transport.get(path_of("plans", plan_id)))

    async def versions(self, plan_id: str) -> Answer:
        return answered(await self._transport.get(path_of("plans", plan_id, "versions")))

    async def version(self, plan_id: str, digest: str) -> Answer:
        return answered(await self._transport.get(path_of("plans", plan_id, "versions", digest)))

    async def graph(self, plan_id: str) -> str:
        """As SVG."""
        return await self._transport.text(path_of("plans", plan_id, "graph.svg"))

    async def resume(self, plan_id: str, plan_instance_id: str | None = None) -> Answer:
        """Resume an instance of a plan; which, when several wait, must be said."""
        body = {} if plan_instance_id is None else {"plan_instance_id": plan_instance_id}
        return answered(await self._transport.post(path_of("plans", plan_id, "resume"), body))


class Instances(Resource):
    async def start(
        self, prompt: str = "", *, plan_id: str | None = None, values: Values = None
    ) -> Answer:
        body = given(prompt=prompt, plan_id=plan_id, values=values)
        return answered(await self._transport.post("/instances", body))

    async def list(
        self,
        *,
        status: Sequence[str] | None = None,
        plan_id: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> Answer:
        page = {"status": status, "plan_id": plan_id, "before": before, "limit": limit}
        return answered(await self._transport.get("/instances", **page))

    async def get(self, instance_id: str) -> Answer:
        return answered(await self._transport.get(path_of("instances", instance_id)))

    async def graph(self, instance_id: str) -> str:
        """As SVG."""
        return await self._transport.text(path_of("instances", instance_id, "graph.svg"))

    async def graph_text(self, instance_id: str) -> str:
        """As lines of text."""
        return await self._transport.text(path_of("instances", instance_id, "graph.txt"))

    async def continue_with(
        self, instance_id: str, provided_params: Mapping[str, Any], *, wait: float | None = None
    ) -> Answer:
        """Give a paused instance what it asks for; `wait` is for what comes of it."""
        path = path_of("instances", instance_id, "continue")
        body = {"provided_params": strict(provided_params)}
        return answered(await self._transport.post(path, body, wait=wait))

    async def resume(self, instance_id: str) -> Answer:
        return await self._do(instance_id, "resume")

    async def skip(self, instance_id: str, listener_id: str, *, reason: str = "") -> Answer:
        return await self._do(instance_id, "skip", listener_id=listener_id, reason=reason)

    async def mark_done(self, instance_id: str, task_id: str, *, context: Values = None) -> Answer:
        return await self._do(instance_id, "mark-done", task_id=task_id, context=context)

    async def edit_context(
        self, instance_id: str, task_id: str, context: Mapping[str, Any]
    ) -> Answer:
        return await self._do(instance_id, "context", task_id=task_id, context=context)

    async def rerun(self, instance_id: str, listener_id: str) -> Answer:
        return await self._do(instance_id, "rerun", listener_id=listener_id)

    async def cancel(self, instance_id: str, *, reason: str = "") -> Answer:
        return await self._do(instance_id, "cancel", reason=reason)

    async def fork(self, instance_id: str, at: int) -> Answer:
        """A new instance that goes on from event `at` of one that is over."""
        return await self._do(instance_id, "fork", at=at)

    async def cases(self, instance_id: str, *, language: str | None = None) -> Answer:
        """Its failures that a repair could mend, with diagnoses and proposals."""
        path = path_of("instances", instance_id, "cases")
        return answered(await self._transport.get_in(language, path))

    async def case(self, instance_id: str, case_id: str, *, language: str | None = None) -> Answer:
        path = path_of("instances", instance_id, "cases", case_id)
        return answered(await self._transport.get_in(language, path))

    async def patches(self, instance_id: str, *, language: str | None = None) -> Answer:
        """How its plan has changed since it began."""
        return answered(await self._transport.get_in(language, _patches(instance_id)))

    async def patch_graph(
        self, instance_id: str, patch_id: str, *, language: str | None = None
    ) -> str:
        """The plan before and after a patch, applied or proposed, as SVG."""
        path = path_of("instances", instance_id, "patches", patch_id, "diff.svg")
        return await self._transport.text(path, language)

    async def propose(
        self,
        instance_id: str,
        operations: Sequence[Mapping[str, Any]] | None = None,
        *,
        reason: str = "",
        listener_id: str | None = None,
        to_current: bool = False,
    ) -> Answer:
        """Ask for consent to a change of its plan, or with `to_current` to bring it to today's
        version; PatchRejected has everything that speaks against it."""
        body = _patch(operations, reason, listener_id, to_current)
        return answered(await self._transport.post(_patches(instance_id), body))

    async def rehearse(
        self,
        instance_id: str,
        operations: Sequence[Mapping[str, Any]] | None = None,
        *,
        reason: str = "",
        listener_id: str | None = None,
        to_current: bool = False,
        language: str | None = None,
    ) -> Answer:
        """What such a change would do; nothing is changed. PatchRejected as by `propose`."""
        body = _patch(operations, reason, listener_id, to_current)
        path = _patches(instance_id)
        return answered(await self._transport.post_in(language, path, body, rehearse=True))

    async def _do(self, instance_id: str, what: str, **body: Any) -> Answer:
        path = path_of("instances", instance_id, what)
        return answered(await self._transport.post(path, given(**body) or None))


def _patches(instance_id: str) -> str:
    return path_of("instances", instance_id, "patches")


def _patch(
    operations: Sequence[Mapping[str, Any]] | None,
    reason: str,
    listener_id: str | None,
    to_current: bool,
) -> Answer:
    listed = None if operations is None else [*operations]
    body = given(operations=listed, reason=reason, listener_id=listener_id)
    return {**body, "to_current": True} if to_current else body


class Runs(Resource):
    async def list(
        self,
        *,
        kind: str | None = None,
        status: Sequence[str] | None = None,
        name: str | None = None,
        parent: str | None = None,
        roots: bool | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> Answer:
        """Runs of every kind (`plan`, `chat`, `conversation`), the newest first."""
        page = {"parent": parent, "roots": roots, "before": before, "limit": limit}
        found = await self._transport.get("/runs", kind=kind, status=status, name=name, **page)
        return answered(found)

    async def get(self, run_id: str) -> Answer:
        return answered(await self._transport.get(path_of("runs", run_id)))

    async def resume(self, run_id: str, *, failed: str | None = None) -> Answer:
        """Go on with a run that failed, or a conversation that is paused; one that failed takes
        `failed`: `retry`, `skip` or `stop`."""
        path = path_of("runs", run_id, "resume")
        return answered(await self._transport.post(path, given(failed=failed) or None))

    async def cancel(self, run_id: str, *, reason: str = "") -> Answer:
        path = path_of("runs", run_id, "cancel")
        return answered(await self._transport.post(path, given(reason=reason)))

    async def view(self, run_id: str, *, language: str | None = None) -> Answer:
        """The run with its tasks, messages or steps, as `holdfast.views` has it."""
        path = path_of("runs", run_id, "view")
        return answered(await self._transport.get_in(language, path))

    async def timeline(
        self,
        run_id: str,
        *,
        after: int | None = None,
        limit: int | None = None,
        language: str | None = None,
    ) -> Answer:
        """What happened in the run, in words of a language (`zh`), else of English."""
        path = path_of("runs", run_id, "timeline")
        found = await self._transport.get_in(language, path, after=after, limit=limit)
        return answered(found)

    async def history(
        self, run_id: str, *, after: int | None = None, limit: int | None = None
    ) -> Answer:
        path = path_of("runs", run_id, "history")
        return answered(await self._transport.get(path, after=after, limit=limit))

    async def tracebacks(self, run_id: str) -> Answer:
        """What the run's tools raised, for those who may operate it."""
        return answered(await self._transport.get(path_of("runs", run_id, "tracebacks")))

    async def definition(self, run_id: str, *, at: int | None = None) -> Answer:
        """What the run is pinned to: the plan, agent or settings it began with; with `at` what held
        after that event, a plan with its patches up to there."""
        return answered(await self._transport.get(path_of("runs", run_id, "definition"), at=at))

"""What people are asked, and what they talk to: questions, chats, conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.client.resource import Answer, Resource, Values, answered, given, strict
from holdfast.client.transport import path_of


class Interactions(Resource):
    async def list(
        self,
        *,
        status: Sequence[str] | None = None,
        role: str | None = None,
        run: str | None = None,
        due_before: float | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> Answer:
        page = {"dueBefore": due_before, "after": after, "limit": limit}
        found = await self._transport.get(
            "/interactions", status=status, role=role, run=run, **page
        )
        return answered(found)

    async def get(self, request_id: str) -> Answer:
        return answered(await self._transport.get(path_of("interactions", request_id)))

    async def answer(
        self,
        request_id: str,
        option_id: str | None = None,
        *,
        data: Values = None,
        feedback: str | None = None,
        digest: str | None = None,
    ) -> Answer:
        """The first valid answer wins; `digest` is that of the question as it was shown."""
        body = given(selectedOptionId=option_id, data=data, feedback=feedback, digest=digest)
        return answered(
            await self._transport.post(path_of("interactions", request_id, "answer"), body)
        )

    async def answer_all(
        self,
        request_ids: Sequence[str],
        option_id: str | None = None,
        *,
        data: Values = None,
        feedback: str | None = None,
        digests: Mapping[str, str] | None = None,
    ) -> Answer:
        """The same answer to exactly these questions; what became of each.

        `digests` has those of the questions as they were shown, by id: of all, or it is None.
        """
        same = given(selectedOptionId=option_id, data=data, feedback=feedback, digests=digests)
        body = {"requestIds": [*request_ids], **same}
        return answered(await self._transport.post("/interactions/answers", body))

    async def keep_draft(self, request_id: str, data: Mapping[str, Any]) -> Answer:
        path = path_of("interactions", request_id, "draft")
        return answered(await self._transport.put(path, {"data": strict(data)}))

    async def keep_secret(self, request_id: str, field: str, value: str) -> str:
        """Seal a secret field's value; the reference stands for it in the answer's `data`."""
        path = path_of("interactions", request_id, "secrets", field)
        return str(answered(await self._transport.post(path, {"value": value}))["reference"])


class Chats(Resource):
    async def open(
        self, agent_id: str, *, session_id: str | None = None, approval: Values = None
    ) -> Answer:
        body = given(agentId=agent_id, sessionId=session_id, approval=approval)
        return answered(await self._transport.post("/chats", body))

    async def list(
        self,
        *,
        status: Sequence[str] | None = None,
        agent_id: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> Answer:
        page = {"agentId": agent_id, "before": before, "limit": limit}
        return answered(await self._transport.get("/chats", status=status, **page))

    async def get(self, session_id: str) -> Answer:
        return answered(await self._transport.get(path_of("chats", session_id)))

    async def say(self, session_id: str, message: str) -> Answer:
        path = path_of("chats", session_id, "messages")
        return answered(await self._transport.post(path, {"message": message}))

    async def cancel(self, session_id: str, *, reason: str = "") -> Answer:
        path = path_of("chats", session_id, "cancel")
        return answered(await self._transport.post(path, {"reason": reason}))

    async def resume(self, session_id: str) -> Answer:
        return answered(await self._transport.post(path_of("chats", session_id, "resume")))

    async def approvals(self, session_id: str) -> Answer:
        return answered(await self._transport.get(path_of("chats", session_id, "approvals")))

    async def remember_approval(
        self,
        session_id: str,
        tool: str,
        *,
        pattern: Values = None,
        seconds: float | None = None,
        uses: int | None = None,
    ) -> Answer:
        """Calls of `tool` that fit `pattern` need no further consent in this session."""
        body = given(tool=tool, pattern=pattern, seconds=seconds, uses=uses)
        return answered(await self._transport.post(path_of("chats", session_id, "approvals"), body))

    async def revoke_approval(self, session_id: str, grant_id: str) -> Answer:
        return answered(
            await self._transport.delete(path_of("chats", session_id, "approvals", grant_id))
        )


class Conversations(Resource):
    async def start(
        self,
        text: str,
        *,
        conversation_id: str | None = None,
        confirm_tasks: bool | None = None,
    ) -> Answer:
        body = given(input=text, id=conversation_id, confirm_tasks=confirm_tasks)
        return answered(await self._transport.post("/conversations", body))

    async def list(
        self,
        *,
        status: Sequence[str] | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> Answer:
        page = {"before": before, "limit": limit}
        return answered(await self._transport.get("/conversations", status=status, **page))

    async def get(self, conversation_id: str) -> Answer:
        return answered(await self._transport.get(path_of("conversations", conversation_id)))

    async def say(self, conversation_id: str, text: str) -> Answer:
        return await self._do(conversation_id, "messages", {"input": text})

    async def pause(self, conversation_id: str) -> Answer:
        return await self._do(conversation_id, "pause")

    async def resume(self, conversation_id: str, *, failed: str | None = None) -> Answer:
        """After a failure `failed` says how: `retry`, `skip` or `stop`."""
        return await self._do(conversation_id, "resume", given(failed=failed))

    async def cancel(self, conversation_id: str, *, reason: str = "") -> Answer:
        return await self._do(conversation_id, "cancel", {"reason": reason})

    async def snapshot(self, conversation_id: str) -> Answer:
        return answered(
            await self._transport.get(path_of("conversations", conversation_id, "snapshot"))
        )

    async def _do(self, conversation_id: str, what: str, body: Answer | None = None) -> Answer:
        return answered(
            await self._transport.post(path_of("conversations", conversation_id, what), body)
        )

"""The HTTP client: everything a server offers, typed, and streams that come back by themselves.

    async with Client("http://127.0.0.1:8420", token) as client:
        started = await client.instances.start("order it", plan_id="apply_computer")
        async for event in client.events(started["plan_instance_id"]):
            ...

Answers are plain JSON, as the server's OpenAPI describes them. Refusals are the errors of
`holdfast.errors`, as if the application were in this process. Whatever changes something is
named once (`Idempotency-Key`) and sent again, when a connection breaks or the server cannot
acknowledge, under the same name: it is carried out once.
"""

from __future__ import annotations

from holdfast.client.client import Client
from holdfast.client.event_stream import ServerEvent

__all__ = ["Client", "ServerEvent"]

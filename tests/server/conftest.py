"""Fixtures for tests of the server: an application with plans, served on a loopback port."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from server_scene import Office, Scene, furnish, serving

from holdfast import Holdfast


@pytest.fixture
def office(app: Holdfast) -> Office:
    """The tools behind the plans of `scene`."""
    return furnish(app)


@pytest.fixture
async def scene(app: Holdfast, office: Office) -> AsyncIterator[Scene]:
    """`app`, with plans and tools, served."""
    app.planner_agent.max_retry_count = 0
    async with serving(app) as scene:
        yield scene

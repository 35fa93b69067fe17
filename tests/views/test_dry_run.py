"""What a command would do is known before it is given."""

from __future__ import annotations

from console_plans import an_office
from run_scene import trip

from holdfast.model import commands as c
from holdfast.views.dry_run import dry_run


async def test_a_dry_run_tells_what_a_command_would_change_and_changes_nothing() -> None:
    async with an_office() as office:
        state = await office.engine.state(await trip(office))
        resumed = dry_run(state, c.Resume("will"), 0.0)
        assert resumed is not None
        assert (resumed.again, resumed.stays) == (("L002",), ("L001",))
        cancelled = dry_run(state, c.Cancel("will"), 0.0)
        assert cancelled is not None
        assert len(cancelled.withdrawn) == 1
        assert dry_run(state, c.Skip("L001", "will"), 0.0) is None
        assert (await office.engine.state(state.run_id)).version == state.version

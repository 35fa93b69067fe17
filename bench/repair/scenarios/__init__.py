"""The forty scenarios, in eight groups."""

from __future__ import annotations

from typing import Final

from bench.repair.scenario import Scenario
from bench.repair.scenarios.arguments import ARGUMENTS
from bench.repair.scenarios.doubt import DOUBT
from bench.repair.scenarios.hostile import HOSTILE
from bench.repair.scenarios.people import PEOPLE
from bench.repair.scenarios.preconditions import PRECONDITIONS
from bench.repair.scenarios.results import RESULTS
from bench.repair.scenarios.rights import RIGHTS
from bench.repair.scenarios.waiting import WAITING

SCENARIOS: Final[tuple[Scenario, ...]] = (
    *WAITING,
    *ARGUMENTS,
    *PRECONDITIONS,
    *RIGHTS,
    *RESULTS,
    *DOUBT,
    *PEOPLE,
    *HOSTILE,
)

"""What the campaign serves and drives: the office's tools and plans, and one that asks."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast import Holdfast
from holdfast.demo.onboarding import furnish

PLANS = Path(__file__).parent / "plans"


def app() -> Holdfast:
    made = Holdfast(max_retry_count=0)
    furnish(made, os.environ["OFFICE_URL"])
    made.load_plans(PLANS)
    return made

"""Plans that a model would draw up, as the API shows them."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from holdfast.core.storing import record_to_json
from holdfast.i18n.catalogue import said, worded
from holdfast.plans.drafts import LONGEST_PROMPT, Drawn
from holdfast.repair.drafting import Draft
from holdfast.server.schemas.repairs import RehearsalShown
from holdfast.server.schemas.runs import Given, Shown


class DraftWanted(Given):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"prompt": "A badge for 张三", "values": {}}]}
    )

    prompt: str = Field(min_length=1, max_length=LONGEST_PROMPT)
    values: dict[str, Any] | None = Field(None, description="What is known already, by name.")


class SpentShown(Shown):
    """What the requests to the model cost."""

    input_tokens: int
    output_tokens: int
    cost: float | None = Field(description="In US dollars, where the price is known.")
    seconds: float


class DraftShown(Shown):
    goal: str = Field(examples=["A badge for 张三"])
    digest: str = Field(description="The plan by its content, as it would be run.")
    definition: dict[str, Any] = Field(description="The plan; its keys are those of the YAML file.")
    outline: str = Field(description="What it would do, in lines for a person.")
    rehearsal: RehearsalShown

    @classmethod
    def of(cls, one: Draft, language: str) -> DraftShown:
        rehearsal = RehearsalShown.of(one.rehearsal, language)
        assert rehearsal is not None
        return cls(
            goal=one.sketch.goal,
            digest=one.digest,
            definition=record_to_json(one.plan),
            outline=said(one.outline, language),
            rehearsal=rehearsal,
        )


class DrawnShown(Shown):
    """A draft, or the `reason` why there is none."""

    draft: DraftShown | None
    reason: str = Field(examples=["The model says: “No tool opens doors.”"])
    usage: SpentShown
    requests: int = Field(description="How often the model was asked.", examples=[1])

    @classmethod
    def of(cls, drawn: Drawn, language: str) -> DrawnShown:
        draft = drawn.draft
        return cls(
            draft=None if draft is None else DraftShown.of(draft, language),
            reason=worded(drawn.reason, language),
            usage=SpentShown.model_validate(drawn.usage),
            requests=drawn.requests,
        )

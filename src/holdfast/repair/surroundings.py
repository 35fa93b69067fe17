"""What an installation has, for judging patches."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.model.approval import ToolFacts
from holdfast.model.plan import Listener, ToolAction
from holdfast.model.record import record
from holdfast.model.values import JsonObject
from holdfast.source.check import Catalog
from holdfast.source.names import only_looks


@record
class Surroundings:
    """`tools` are those that can be called here; the catalogue says what plans may refer to."""

    catalog: Catalog
    tools: Mapping[str, ToolFacts]

    def looks(self, tool: str) -> bool:
        """Whether calling it changes nothing."""
        facts = self.tools.get(tool)
        return only_looks(tool, self.catalog.read_only) or (facts is not None and facts.read_only)

    def facts(self, listener: Listener | None) -> ToolFacts | None:
        """Of the tool that a listener calls, if it calls one that is known."""
        action = listener.action if listener else None
        return self.tools.get(action.tool) if isinstance(action, ToolAction) else None

    def parameters(self, listener: Listener | None) -> JsonObject:
        facts = self.facts(listener)
        return facts.parameters if facts else {}

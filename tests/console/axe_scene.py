"""What axe-core finds in a page. It is put in through the debugger, so the content policy stays."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page

THEMES = ("light", "dark")
GRAVE = ("moderate", "serious", "critical")

_AXE = Axe()


async def check(page: Page) -> None:
    """Nothing grave in either theme."""
    found = [one for theme in THEMES for one in await _found(page, theme)]
    assert not found, f"{page.url}\n" + "\n".join(found)


async def _found(page: Page, theme: Any) -> list[str]:
    await page.emulate_media(color_scheme=theme)
    result = (await _AXE.run(page)).response
    assert result["testEngine"]["name"] == "axe-core"
    grave = (one for one in result["violations"] if one["impact"] in GRAVE)
    return [
        f"{theme}, {one['id']}: {node['html'][:160]}\n  {node['failureSummary']}"
        for one in grave
        for node in one["nodes"]
    ]

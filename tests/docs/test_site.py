"""The documentation site: every page is on it, every link leads somewhere, names are shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import holdfast

DOCS = Path(__file__).parents[2] / "docs"


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    options = ["-q", "-W", "--keep-going", "-b", "html", "-d", str(tmp_path / "trees")]
    command = [sys.executable, "-m", "sphinx", *options, str(DOCS), str(tmp_path / "site")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    shown = (tmp_path / "site" / "api.html").read_text(encoding="utf-8")
    assert [name for name in holdfast.__all__ if f'id="holdfast.{name}"' not in shown] == []
    pages = {page.stem for page in DOCS.glob("*.md")}
    assert pages <= {page.stem for page in (tmp_path / "site").glob("*.html")}

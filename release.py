"""Builds what is published, `make release`: a wheel and a source archive in dist/, made twice.

The times in the archives are the last commit's (SOURCE_DATE_EPOCH), and whatever else could differ
from one build to the next fails the comparison. A version without an entry in CHANGELOG.md is not
built.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

TOP = Path(__file__).parent


class Unreleasable(Exception):
    """Why nothing was put into dist/."""


def main() -> None:
    try:
        digests = release(TOP, TOP / "dist")
    except Unreleasable as reason:
        sys.exit(f"release: {reason}")
    for name, digest in digests.items():
        sys.stdout.write(f"{digest}  {name}\n")


def release(top: Path, dist: Path) -> dict[str, str]:
    """Puts the archives into `dist` and answers their SHA-256 by name."""
    version = tomllib.loads((top / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    check_changelog((top / "CHANGELOG.md").read_text(encoding="utf-8"), version["version"])
    environment = {**os.environ, "SOURCE_DATE_EPOCH": commit_time(top)}
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        digests = built(top, Path(first), environment)
        check_same(digests, built(top, Path(second), environment))
        dist.mkdir(exist_ok=True)
        for name in digests:
            shutil.copy(Path(first) / name, dist / name)
    return digests


def check_changelog(changelog: str, version: str) -> None:
    entry = re.search(
        rf"^## {re.escape(version)}(?![\w.]).*\n(?P<text>(?:(?!^## ).*\n?)*)",
        changelog,
        re.MULTILINE,
    )
    if entry is None or not entry["text"].strip():
        raise Unreleasable(f"CHANGELOG.md says nothing under `## {version}`")


def commit_time(top: Path) -> str:
    told = subprocess.run(
        ["git", "log", "-1", "--format=%ct"],  # noqa: S607
        cwd=top,
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout.strip()


def built(top: Path, into: Path, environment: Mapping[str, str]) -> dict[str, str]:
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(into), str(top)]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)  # noqa: S603
    return {
        one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in sorted(into.iterdir())
    }


def check_same(first: Mapping[str, str], second: Mapping[str, str]) -> None:
    if first != second:
        different = sorted(
            name for name in {**first, **second} if first.get(name) != second.get(name)
        )
        raise Unreleasable(f"two builds of the same source differ: {', '.join(different)}")


if __name__ == "__main__":
    main()

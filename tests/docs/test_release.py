"""What is published: built twice to the same bytes, with the package and nothing beside it."""

from __future__ import annotations

import os
import tarfile
import zipfile
from pathlib import Path

import pytest
import release

SOUND = "# Changelog\n\n## Unreleased\n\n## 0.1.0\n\n- The first.\n\n## 0.0.1\n"


def test_a_version_needs_its_entry() -> None:
    release.check_changelog(SOUND, "0.1.0")
    for version in ("0.2.0", "0.0.1", "0.1"):
        with pytest.raises(release.Unreleasable, match=f"nothing under `## {version}`"):
            release.check_changelog(SOUND, version)


def test_builds_that_differ_are_named() -> None:
    release.check_same({"a": "1"}, {"a": "1"})
    with pytest.raises(release.Unreleasable, match="differ: a, b"):
        release.check_same({"a": "1", "b": "1"}, {"a": "2"})


def test_two_builds_are_the_same_bytes_and_hold_the_package_alone(tmp_path: Path) -> None:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    first = release.built(release.TOP, tmp_path / "first", environment)
    assert release.built(release.TOP, tmp_path / "second", environment) == first
    archive, wheel = sorted((tmp_path / "first").iterdir(), key=lambda one: one.suffix)
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"holdfast"}
    assert not [name for name in names if "test_" in name or "make_" in name]
    assert {"holdfast/py.typed", "holdfast/demo/tools.yaml"} <= {*names}
    with tarfile.open(archive) as opened_archive:
        assert any(name.endswith("/Makefile") for name in opened_archive.getnames())

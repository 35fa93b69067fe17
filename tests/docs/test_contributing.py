"""What contributors are told is so: files that exist, targets and hooks that work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

TOP = Path(__file__).parents[2]
GUIDE = (TOP / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^## (Adding .*)\n((?:(?!^## ).*\n)*)", re.MULTILINE)
LISTED = re.compile(r"`((?:src|tests|docs|examples|bench)/[\w./*-]+)`")
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
PAGES = ("README.md", "README.zh-CN.md", "CONTRIBUTING.md", "SECURITY.md")


@pytest.mark.parametrize(
    "title", ["a tool kind", "an event", "a listener type", "a page", "a message"]
)
def test_what_a_list_names_is_there(title: str) -> None:
    sections = dict(SECTION.findall(GUIDE))
    listed = LISTED.findall(sections[f"Adding {title}"])
    assert len(listed) >= 4
    assert [one for one in listed if not (TOP / one).is_file()] == []


def test_each_file_is_named_once_per_list() -> None:
    for _, text in SECTION.findall(GUIDE):
        listed = LISTED.findall(text)
        assert sorted(listed) == sorted(set(listed))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    links = LINK.findall((TOP / page).read_text(encoding="utf-8"))
    assert [one for one in links if not (TOP / one).exists()] == []


def targets() -> set[str]:
    makefile = (TOP / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))


def test_the_targets_that_are_named_exist() -> None:
    named = set(re.findall(r"make ([a-z-]+)", GUIDE)) | {"check", "test", "docs"}
    assert named <= targets()


def test_hosted_checks_run_what_contributors_run() -> None:
    flow = YAML(typ="safe", pure=True).load(TOP / ".github" / "workflows" / "ci.yml")
    job = flow["jobs"]["test"]
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    commands = [step["run"].split()[:2] for step in job["steps"] if "run" in step]
    assert commands == [["make", "check"], ["make", "test"], ["make", "docs"]]


def test_hooks_are_the_tools_of_make_check_and_download_nothing() -> None:
    hooks = YAML(typ="safe", pure=True).load(TOP / ".pre-commit-config.yaml")["repos"]
    assert [one["repo"] for one in hooks] == ["local"]
    makefile = (TOP / "Makefile").read_text(encoding="utf-8")
    for hook in hooks[0]["hooks"]:
        assert hook["language"] == "system"
        tool = hook["entry"].split()[0].removeprefix(".venv/bin/")
        assert f"$(BIN)/{tool}" in makefile

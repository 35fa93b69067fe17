"""The browser that the console's tests look through: found on the machine, else installed.

`make test` runs this file before the tests. It installs from the distribution where it may,
else with Playwright, and where neither can be had it stops and says what to install.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WANTED = "chromium"
REMEDY = (
    "The console's tests need a browser, and none could be installed here. Install one, as root "
    f"(on Debian: apt-get install {WANTED}), then run make again."
)


def find() -> str | None:
    """Where the machine's own browser is."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def has_own() -> bool:
    """Whether Playwright has installed a browser of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        return os.path.exists(playwright.chromium.executable_path)


def install() -> bool:
    return _by_distribution() or _by_playwright()


def _by_distribution() -> bool:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    quietly = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    print("Installing chromium (once) …", flush=True)
    for arguments in (["update", "-q"], ["install", "-qy", "--no-install-recommends", WANTED]):
        done = subprocess.run(
            ["apt-get", *arguments], env=quietly, check=False, stdout=subprocess.DEVNULL
        )
        if done.returncode != 0:
            return False
    return find() is not None


def _by_playwright() -> bool:
    command = [sys.executable, "-m", "playwright", "install", WANTED]
    return subprocess.run(command, check=False).returncode == 0 and has_own()


if __name__ == "__main__" and find() is None and not has_own() and not install():
    sys.exit(REMEDY)

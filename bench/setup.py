"""Make `.venv-bench`, the peers' own environment, from `requirements.txt` and `constraints.txt`."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from bench.child import PEERS_HOME, PEERS_PYTHON

HERE = Path(__file__).resolve().parent


def main() -> int:
    if not PEERS_PYTHON.exists():
        venv.create(PEERS_HOME, with_pip=True)
    wanted = ["-r", str(HERE / "requirements.txt"), "-c", str(HERE / "constraints.txt")]
    pip = [str(PEERS_PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    code = subprocess.run([*pip, *wanted], check=False).returncode
    if code:
        print("the peers could not be installed; what pip said stands above", file=sys.stderr)
        return code
    print(f"the peers are ready in {PEERS_HOME.name}; now: make bench")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Ends a test's PostgreSQL when its owner is gone, also when the owner was killed.

Started by `postgresql_server.Server` with the server's directory; standard input is a pipe that
only the owner holds. Each line is the id of the server that runs now, 0 when none does. At the
end of the pipe that server ends at once and the directory is removed.
"""

import os
import shutil
import signal
import sys
import time

PATIENCE = 60.0


def end(server: int, lock: str) -> None:
    """The owner may be gone, so that nobody collects the server: its lock file tells its end."""
    limit = time.monotonic() + PATIENCE
    how = signal.SIGQUIT
    try:
        os.kill(server, how)
        while os.path.exists(lock):
            if time.monotonic() > limit:
                how = signal.SIGKILL
            os.kill(server, how if how == signal.SIGKILL else 0)
            time.sleep(0.01)
    except ProcessLookupError:
        pass


def main() -> None:
    directory = sys.argv[1]
    server = 0
    for line in sys.stdin:
        server = int(line)
    if server:
        end(server, os.path.join(directory, "data", "postmaster.pid"))
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()

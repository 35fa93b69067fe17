"""A client of its own process: reads answers from stdin, sends them all, prints what came back."""

from __future__ import annotations

import socket
import sys


def main() -> None:
    lines = sys.stdin.readlines()
    connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    with connection, connection.makefile("rw", encoding="utf-8") as wire:
        wire.writelines(lines)
        wire.flush()
        for _ in lines:
            sys.stdout.write(wire.readline())


if __name__ == "__main__":
    main()

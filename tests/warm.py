"""Python processes that start warm: forked from one in which Holdfast is imported already.

Importing the package with its server takes more than a second of a core, and the suite starts
hundreds of processes. `Popen`, `run` and `create_subprocess_exec` take what their namesakes of
`subprocess` and `asyncio` take. A command that begins with this interpreter is forked by a
process that waits with everything imported; the fork is a child of the caller like any other:
it has an id, signals, a working directory, an environment and streams of its own, can be killed
and waited for, and ends as an interpreter ends. Where that cannot be done, the command is
started cold: on systems other than Linux, with a Python beyond `TRIED`, with other variables that
Python reads at its start, or with options of the interpreter; with `HOLDFAST_COLD=1` everything is.
Tests of what a process imports start it cold themselves.
"""

from __future__ import annotations

import array
import asyncio
import atexit
import ctypes
import gc
import importlib
import inspect
import io
import json
import os
import pkgutil
import random
import runpy
import signal
import socket
import subprocess
import sys
import types
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from typing import Any

IMPORTED_LATE = (
    "fastapi.telemetry._runtime",
    "getpass",
    "httptools",
    "questionary",
    "regex",
    "typer._click.decorators",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
)
"""What Holdfast or its libraries import when they are used."""

TRIED = ((3, 11), (3, 12), (3, 13))
"""Where `Popen._execute_child`, CPython's own affair, is known to be what is overridden here."""

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_SIZE = 8
_BEGIN = "import sys; sys.path[:0] = [{here!r}]; import warm; warm.serve({socket})"

_COLD = subprocess.Popen
_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")


@cache
def _parameters() -> tuple[str, ...]:
    return tuple(inspect.signature(_COLD._execute_child).parameters)[1:]  # type: ignore[attr-defined]


class Popen(subprocess.Popen[Any]):
    """`subprocess.Popen`, forked from the warm process where it can be."""

    def _execute_child(self, *arguments: Any) -> None:
        given = dict(zip(_parameters(), arguments, strict=True))
        args, env, cwd, prepare = (given[one] for one in ("args", "env", "cwd", "preexec_fn"))
        command = [os.fspath(one) for one in args] if not isinstance(args, str | bytes) else []
        environment = dict(os.environ if env is None else env)
        if given["shell"] or given["pass_fds"] or not _can_be_warm(command, environment):
            super()._execute_child(*arguments)  # type: ignore[misc]
            return
        order = {
            "command": command,
            "cwd": os.fspath(cwd) if cwd is not None else os.getcwd(),
            "env": environment,
            "session": bool(given["start_new_session"]),
            "prepare": None if prepare is None else [prepare.__module__, prepare.__qualname__],
            "path": sys.path,
        }
        asked = [given[one] for one in ("p2cread", "c2pwrite", "errwrite")]
        streams = [number if one == -1 else one for number, one in enumerate(asked)]
        self.pid = _warm().fork(order, streams)
        self._child_created = True
        self._close_pipe_fds(*(given[one] for one in _PIPES))  # type: ignore[attr-defined]


_wanted: ContextVar[bool] = ContextVar("warm", default=False)
"""Whether what this context starts is forked; others, and other threads, start theirs cold."""


class _Either(Popen):
    """What `subprocess` and `asyncio` start processes with, once this module is imported."""

    def _execute_child(self, *arguments: Any) -> None:
        kind = Popen if _wanted.get() else _COLD
        kind._execute_child(self, *arguments)  # type: ignore[attr-defined]


FORKS = (
    sys.platform == "linux"
    and sys.version_info[:2] in TRIED
    and not os.environ.get("HOLDFAST_COLD")
)
if FORKS:
    subprocess.Popen = _Either  # type: ignore[misc]
else:
    Popen = _COLD  # type: ignore[assignment,misc]


def run(*args: Any, **options: Any) -> subprocess.CompletedProcess[Any]:
    token = _wanted.set(True)
    try:
        return subprocess.run(*args, **options)
    finally:
        _wanted.reset(token)


async def create_subprocess_exec(*args: Any, **options: Any) -> asyncio.subprocess.Process:
    token = _wanted.set(True)
    try:
        return await asyncio.create_subprocess_exec(*args, **options)
    finally:
        _wanted.reset(token)


def _can_be_warm(command: list[str], environment: dict[str, str]) -> bool:
    if len(command) < 2 or command[0] != sys.executable:
        return False
    if command[1].startswith("-") and command[1] not in ("-c", "-m"):
        return False
    names = {name for name in (*environment, *os.environ) if name.startswith(("PYTHON", "LC_"))}
    return all(environment.get(name) == os.environ.get(name) for name in names)


class _Forker:
    """The process that waits with everything imported."""

    def __init__(self) -> None:
        # What the forker's forks leave behind becomes this process's children.
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        self._ours, theirs = socket.socketpair()
        begin = _BEGIN.format(
            here=os.path.dirname(os.path.abspath(__file__)), socket=theirs.fileno()
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", begin], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
        )
        theirs.close()
        atexit.register(self.close)

    def fork(self, order: dict[str, Any], streams: list[int]) -> int:
        text = json.dumps(order).encode()
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))]
        self._ours.sendmsg([len(text).to_bytes(_SIZE, "big")], rights)
        self._ours.sendall(text)
        return int.from_bytes(_exactly(self._ours, _SIZE), "big")

    def close(self) -> None:
        self._ours.close()
        self._process.wait()


_forkers: dict[int, _Forker] = {}


def _warm() -> _Forker:
    """One per process, started when it is first needed."""
    if os.getpid() not in _forkers:
        _forkers[os.getpid()] = _Forker()
    return _forkers[os.getpid()]


def _exactly(peer: socket.socket, size: int) -> bytes:
    read = b""
    while len(read) < size:
        more = peer.recv(size - len(read))
        if not more:
            raise EOFError
        read += more
    return read


def serve(descriptor: int) -> None:
    """Fork for each order; returns only in a fork, once it has done its work."""
    _import_everything()
    gc.collect()
    gc.freeze()
    peer = socket.socket(fileno=descriptor)
    while True:
        try:
            size, rights, _, _ = peer.recvmsg(_SIZE, socket.CMSG_SPACE(3 * 4))
        except OSError:
            os._exit(0)
        if not size:
            os._exit(0)
        streams = array.array("i", rights[0][2]).tolist()
        order = json.loads(_exactly(peer, int.from_bytes(size, "big")))
        pid = _fork_twice()
        if pid == 0:
            peer.close()
            work = _become(order, streams)
            break
        for stream in streams:
            os.close(stream)
        peer.sendall(pid.to_bytes(_SIZE, "big"))
    work()


def _import_everything() -> None:
    import holdfast

    found = pkgutil.walk_packages(holdfast.__path__, "holdfast.")
    for name in (*(one.name for one in found if "__main__" not in one.name), *IMPORTED_LATE):
        with suppress(ImportError):  # the fork imports it then, or says why it cannot
            importlib.import_module(name)
    holdfast.Holdfast.in_memory().asgi()  # its routes' types are compiled once per process


def _fork_twice() -> int:
    """0 in the fork; in the forker its id, once the process between them is gone."""
    told, tell = os.pipe()
    between = os.fork()
    if between == 0:
        os.close(told)
        if (pid := os.fork()) == 0:
            os.close(tell)
            return 0
        os.write(tell, pid.to_bytes(_SIZE, "big"))
        os._exit(0)
    os.close(tell)
    pid = int.from_bytes(os.read(told, _SIZE), "big")
    os.close(told)
    os.waitpid(between, 0)
    return pid


def _become(order: dict[str, Any], streams: list[int]) -> Callable[[], object]:
    """Take the order's place in the world; what is to be run."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 256)
    if order["session"]:
        os.setsid()
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    known = list(sys.path)
    if order["prepare"] is not None:
        module, name = order["prepare"]
        sys.path[:] = order["path"]
        getattr(__import__(module, fromlist=["_"]), name)()
        sys.path[:] = known
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    random.seed()
    _open_streams()
    return _work(order["command"][1:])


def _open_streams() -> None:
    """As an interpreter opens them, without closing what a library may still hold."""
    bare = bool(os.environ.get("PYTHONUNBUFFERED"))
    encoding, errors = sys.stdin.encoding, sys.stdin.errors
    raw = [io.FileIO(number, mode, closefd=False) for number, mode in enumerate("rww")]
    stdin = io.TextIOWrapper(io.BufferedReader(raw[0]), encoding, errors)
    sys.stdin = sys.__stdin__ = stdin  # type: ignore[misc]
    for number, name, failing in ((1, "stdout", errors), (2, "stderr", "backslashreplace")):
        stream = io.TextIOWrapper(
            raw[number] if bare else io.BufferedWriter(raw[number]),  # type: ignore[type-var]
            encoding,
            failing,
            newline="\n",
            line_buffering=number == 2 or os.isatty(number),
            write_through=bare,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _work(command: list[str]) -> Callable[[], object]:
    """What the interpreter would do with these arguments. The first of `sys.path` is ours."""
    del sys.path[:1]
    match command:
        case ["-c", code, *rest]:
            sys.argv = ["-c", *rest]
            sys.path[:1] = [""]
            main = types.ModuleType("__main__")
            sys.modules["__main__"] = main
            return lambda: exec(code, main.__dict__)
        case ["-m", module, *rest]:
            sys.argv = [module, *rest]
            sys.path[:1] = [os.getcwd()]
            return lambda: runpy.run_module(module, run_name="__main__", alter_sys=True)
        case [script, *rest]:
            sys.argv = [script, *rest]
            sys.path[:1] = [os.path.dirname(os.path.abspath(script))]
            return lambda: runpy.run_path(script, run_name="__main__")
        case _:
            raise AssertionError(command)

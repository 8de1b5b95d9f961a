"""The command line as a process that need not import anything: a fork of one that has.

What it sees is its own: arguments, environment, working directory and the three standard descriptors. What a fork
cannot show (how Python starts, what is imported when) is for `FERRULE` as a command.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from functools import cache

_SERVER = """
import importlib, json, os, pkgutil, signal, socket, sys
import ferrule.app, ferrule.cli, ferrule.cli.commands, ferrule.mcp, ferrule.server, ferrule.tools
from ferrule.cli.main import main
for package in (ferrule.app, ferrule.cli, ferrule.cli.commands, ferrule.mcp, ferrule.server, ferrule.tools):
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)

def run(asked, descriptors):
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    for number in asked["closed"]:  # and what Python makes of that when it starts
        name = ("stdin", "stdout", "stderr")[number]
        setattr(sys, name, None)
        setattr(sys, f"__{name}__", None)
        os.close(number)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.argv = ["ferrule", *asked["arguments"]]
    sys.exit(main())

link = socket.socket(fileno=int(sys.argv[1]))
while True:
    content, descriptors, _, _ = socket.recv_fds(link, 1 << 20, 3)
    if not content:
        break
    child = os.fork()
    if child == 0:
        link.close()
        run(json.loads(content), descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    link.send(b"%d" % child)
    link.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@cache
def _server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """One for all tests of this process. It ends when this does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        os.set_inheritable(theirs.fileno(), True)
        server = subprocess.Popen(
            [sys.executable, "-X", "utf8", "-c", _SERVER, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
    return ours, server


def run_forked(
    arguments: Sequence[str],
    *,
    stdin: bytes,
    cwd: str,
    env: Mapping[str, str],
    timeout: float,
    closed: Collection[int] = (),
    stderr: int | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """As `subprocess.run` with pipes, but that some of the three may be closed, and stderr be another descriptor."""
    link, _ = _server()
    link.settimeout(timeout)
    (given, giving), (out, printing), (err, telling) = os.pipe(), os.pipe(), os.pipe()
    asked = {"arguments": [*arguments], "cwd": cwd, "env": {**env}, "closed": [*closed]}
    told = telling if stderr is None else stderr
    socket.send_fds(link, [json.dumps(asked).encode()], [given, printing, told])
    for descriptor in (given, printing, telling):
        os.close(descriptor)
    heard: dict[int, bytes] = {}
    threads = [threading.Thread(target=_write, args=(giving, stdin))]
    threads += [threading.Thread(target=_read, args=(descriptor, heard)) for descriptor in (out, err)]
    for thread in threads:
        thread.start()
    child = int(link.recv(64))
    try:
        status = int(link.recv(64))
    except TimeoutError:
        os.kill(child, signal.SIGKILL)
        link.settimeout(None)
        link.recv(64)
        raise
    finally:
        for thread in threads:
            thread.join()
    return subprocess.CompletedProcess(["ferrule", *arguments], status, heard[out], heard[err])


def _write(descriptor: int, content: bytes) -> None:
    with os.fdopen(descriptor, "wb", buffering=0) as pipe:
        try:
            while content:
                content = content[pipe.write(content) or 0 :]
        except BrokenPipeError:
            pass  # it wants no more


def _read(descriptor: int, heard: dict[int, bytes]) -> None:
    with os.fdopen(descriptor, "rb") as pipe:
        heard[descriptor] = pipe.read()

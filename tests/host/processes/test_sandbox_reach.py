"""Confined commands reach nobody: no server, no socket, no other process."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from ferrule.host.processes.command import Ran
from ferrule.host.processes.command_runner import CommandRunner
from ferrule.host.processes.sandbox import READ_ONLY
from tests.host.processes.shell import GENEROUS, PYTHON, command, confined, need_sandbox, offers, opened
from tests.requirement import requirement


@pytest.fixture
async def commands(tmp_path: Path) -> AsyncIterator[CommandRunner]:
    need_sandbox()
    async with opened(tmp_path) as commands:
        yield commands


async def _ran(commands: CommandRunner, text: str, cwd: Path) -> Ran:
    return await commands.run(confined(text, cwd, READ_ONLY), timeout=GENEROUS)


# The network


def _connecting(family: str, kind: str, address: str) -> str:
    words = f"s = socket.socket(socket.{family}, socket.{kind}); s.settimeout(5); s.connect({address}); s.send(b'x')"
    return f'{PYTHON} "import socket; {words}"'


@requirement("BOX-1")
@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
async def test_no_server_is_reached(commands: CommandRunner, tmp_path: Path, family: str, kind: str) -> None:
    host = "127.0.0.1" if family == "AF_INET" else "::1"
    with socket.socket(getattr(socket, family), getattr(socket, kind)) as server:
        try:
            server.bind((host, 0))
        except OSError:
            pytest.skip(f"{family} is not there")
        await _unreached(
            commands, tmp_path, server, _connecting(family, kind, f"('{host}', {server.getsockname()[1]})")
        )


@requirement("BOX-1")
@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
@pytest.mark.parametrize("place", ["path", "abstract"])
async def test_no_unix_socket_is_reached(commands: CommandRunner, tmp_path: Path, place: str, kind: str) -> None:
    name = f"{tmp_path}/s" if place == "path" else f"\\0ferrule-{os.getpid()}-{kind}"
    with socket.socket(socket.AF_UNIX, getattr(socket, kind)) as server:
        server.bind(name.replace("\\0", "\0"))
        await _unreached(commands, tmp_path, server, _connecting("AF_UNIX", kind, f"'{name}'"))


async def _unreached(commands: CommandRunner, tmp_path: Path, server: socket.socket, text: str) -> None:
    server.settimeout(0)
    if server.type is socket.SOCK_STREAM:
        server.listen()

    ran = await _ran(commands, text, tmp_path)

    assert "Operation not permitted" in ran.output.text()
    with pytest.raises(BlockingIOError):
        server.accept() if server.type is socket.SOCK_STREAM else server.recv(1)
    assert (await commands.run(command(text, tmp_path))).exit_code == 0, "it can be reached otherwise"


@requirement("BOX-1")
@pytest.mark.parametrize("family", ["AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG", "AF_BLUETOOTH"])
async def test_no_other_kind_of_socket_can_be_made(commands: CommandRunner, tmp_path: Path, family: str) -> None:
    ran = await _ran(
        commands, f'{PYTHON} "import socket; socket.socket({int(getattr(socket, family, 16))}, 3)"', tmp_path
    )

    assert "Operation not permitted" in ran.output.text()


@requirement("BOX-1")
async def test_a_pair_of_sockets_leads_nowhere_else(commands: CommandRunner, tmp_path: Path) -> None:
    pair = f"{PYTHON} \"import socket; a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))\""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(f"{tmp_path}/s")
        server.settimeout(0)
        for kind in ("SOCK_DGRAM", "SOCK_RAW"):
            words = f"a, b = socket.socketpair(socket.AF_UNIX, socket.{kind}); a.sendto(b'x', '{tmp_path}/s')"
            text = f'{PYTHON} "import socket; {words}"'

            assert "Operation not permitted" in (await _ran(commands, text, tmp_path)).output.text()
            with pytest.raises(BlockingIOError):
                server.recv(1)
            assert (await commands.run(command(text, tmp_path))).exit_code == 0, "it arrives otherwise"
            server.recv(1)

    assert (await _ran(commands, pair, tmp_path)).output.text() == "b'x'\n"


@requirement("BOX-1")
async def test_nothing_is_shared_that_has_no_file(commands: CommandRunner, tmp_path: Path) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers are those of x86_64")
    calls = {"shmget": "29, 4711, 4096, 0o1600", "semget": "64, 4711, 1, 0o1600", "msgget": "68, 4711, 0o1600"}
    for arguments in (*calls.values(), "240, b'/ferrule', 0o102, 0o600, 0"):
        words = f"c.syscall({arguments}); print(ctypes.get_errno())"
        text = f'{PYTHON} "import ctypes; c = ctypes.CDLL(None, use_errno=True); {words}"'

        assert (await _ran(commands, text, tmp_path)).output.text() == "1\n"


@requirement("BOX-3")
async def test_what_is_granted_of_the_network_is_granted_and_no_more(commands: CommandRunner, tmp_path: Path) -> None:
    async def reached(server: socket.socket, family: str, address: str, **granted: bool) -> bool:
        server.listen()
        sandbox = replace(READ_ONLY, **granted)
        text = _connecting(family, "SOCK_STREAM", address)
        return (await commands.run(confined(text, tmp_path, sandbox), timeout=GENEROUS)).exit_code == 0

    with socket.socket() as internet, socket.socket(socket.AF_UNIX) as local:
        internet.bind(("127.0.0.1", 0))
        local.bind(f"{tmp_path}/s")
        place = f"('127.0.0.1', {internet.getsockname()[1]})"

        assert await reached(internet, "AF_INET", place, network=True)
        assert not await reached(local, "AF_UNIX", f"'{tmp_path}/s'", network=True)
        assert await reached(local, "AF_UNIX", f"'{tmp_path}/s'", unix_sockets=True)
        assert not await reached(internet, "AF_INET", place, unix_sockets=True)


# Other processes


@requirement("BOX-1")
async def test_other_processes_are_out_of_reach(commands: CommandRunner, tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "1008"], env={"SECRET": "of-another"}) as other:  # noqa: ASYNC220
        there = f"/proc/{other.pid}"
        looks = f"cat {there}/environ {there}/maps; ls {there}/root {there}/fd"
        text = f"kill -9 {other.pid} $PPID; {looks}; prlimit -p {other.pid} -n1; renice 5 -p {other.pid}"
        ran = await _ran(commands, text, tmp_path)
        older = replace(offers(), landlock=min(offers().landlock, 5)).jail(READ_ONLY)
        await commands.run(replace(command(text, tmp_path), jail=older))

        assert other.poll() is None
        assert os.getpriority(os.PRIO_PROCESS, other.pid) == 0
        other.kill()
    assert "of-another" not in ran.output.text()
    assert len(ran.blocked) >= 3
    assert (await _ran(commands, "sleep 1008 & kill $! && wait $!", tmp_path)).signal == "SIGTERM"


@requirement("BOX-1")
async def test_what_reaches_around_the_sandbox_is_refused(commands: CommandRunner, tmp_path: Path) -> None:
    calls = {
        "io_uring_setup": (425, "1, 0"),
        "mount": (165, "0, 0, 0, 0, 0"),
        "bpf": (321, "0, 0, 0"),
        "setns": (308, "0, 0"),
    }
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers are those of x86_64")
    for number, arguments in calls.values():
        words = f"c.syscall({number}, {arguments}); print(ctypes.get_errno())"
        text = f'{PYTHON} "import ctypes; c = ctypes.CDLL(None, use_errno=True); {words}"'
        assert (await _ran(commands, text, tmp_path)).output.text() == "1\n"


async def test_nobody_gains_a_power(commands: CommandRunner, tmp_path: Path) -> None:
    ran = await _ran(commands, "grep -E 'NoNewPrivs|CapEff' /proc/self/status", tmp_path)

    _, effective, _, no_new = ran.output.text().split()
    assert (int(effective, 16) & ~0x3F, no_new) == (0, "1")

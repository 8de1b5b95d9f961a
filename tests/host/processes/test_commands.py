"""Running a command: what it gets, what comes back, and when the call is over."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from ferrule.host.processes.child_environment import child_environment
from ferrule.host.processes.command import Command, CommandFailed, ProcessLimits, Ran
from ferrule.host.processes.command_runner import CommandRunner
from tests.host.processes.shell import GENEROUS, command, opened, until
from tests.requirement import requirement


@pytest.fixture
async def commands(tmp_path: Path) -> AsyncIterator[CommandRunner]:
    async with opened(tmp_path) as commands:
        yield commands


async def _ran(commands: CommandRunner, text: str, cwd: Path, **variables: str) -> Ran:
    return await commands.run(command(text, cwd, **variables), timeout=GENEROUS)


async def _printed(commands: CommandRunner, text: str, cwd: Path, **variables: str) -> str:
    return (await _ran(commands, text, cwd, **variables)).output.text()


# What comes back


@requirement("BASH-1")
async def test_output_and_errors_come_in_the_order_they_were_written(commands: CommandRunner, tmp_path: Path) -> None:
    ran = await _ran(commands, "echo one; echo two >&2; echo three; exit 7", tmp_path)

    assert (ran.exit_code, ran.signal, ran.output.text()) == (7, None, "one\ntwo\nthree\n")


@requirement("BASH-1")
@pytest.mark.parametrize(
    ("text", "code", "name"),
    [
        ("kill -9 $$", None, "SIGKILL"),
        ("kill -SEGV $$", None, "SIGSEGV"),
        ("bash -c 'kill -9 $$'", 137, "SIGKILL"),
        ("exit 143", 143, "SIGTERM"),
        ("exit 255", 255, None),
    ],
)
async def test_an_end_by_a_signal_is_named(
    commands: CommandRunner, tmp_path: Path, text: str, code: int | None, name: str | None
) -> None:
    ran = await _ran(commands, text, tmp_path)

    assert (ran.exit_code, ran.signal) == (code, name)


@pytest.mark.parametrize(
    "text",
    [
        """printf '%s|' "$0" "$#" 'a  b' "it's" '\\n' "$BASH_EXECUTION_STRING" """,
        "echo 'a\\\\b' \"\\\\server\\share\" `echo \\\\\\\\`",
        "cat <<'END'\n$HOME `x` \\ \"'\nEND\n",
        "for i in 1 2\ndo\n\techo $i # comment\ndone\n",
        "echo é ☃ \udce9",
        "echo $'\\x41' ${PWD##*/} $((1 << 4)) {a,b}{1,2} *",
        "echo one\r\n",
        "",
    ],
)
async def test_the_text_of_a_command_reaches_bash_untouched(commands: CommandRunner, tmp_path: Path, text: str) -> None:
    plain = subprocess.run(  # noqa: ASYNC221 - the yardstick
        ["bash", "-c", text], cwd=tmp_path, capture_output=True, check=False, env=os.environ
    )

    ran = await _ran(commands, text, tmp_path)

    assert (ran.exit_code, ran.output.head) == (plain.returncode, plain.stdout + plain.stderr)


async def test_a_command_longer_than_an_argument_can_be_runs_all_the_same(
    commands: CommandRunner, tmp_path: Path
) -> None:
    text = f"cat <<'END' | wc -c\n{'x' * 1_000_000}\nEND\necho $0 $#"

    assert (await _printed(commands, text, tmp_path)).split() == ["1000001", "bash", "0"]


async def test_a_command_that_no_program_can_be_given_is_refused(commands: CommandRunner, tmp_path: Path) -> None:
    for text, words in (("echo \0", "NUL"), ("echo \ud800", "surrogate")):
        with pytest.raises(CommandFailed, match=words):
            await _ran(commands, text, tmp_path)
    for variables in ({"A": "\0"}, {"A=B": ""}, {"A": "\ud800"}):
        with pytest.raises(CommandFailed, match="could not be started"):
            await commands.start(command("true", tmp_path, **variables))
    assert (await _ran(commands, "true", tmp_path)).succeeded


# Where it runs


@requirement("BASH-2")
@pytest.mark.parametrize(
    "text",
    [
        "cd sub",
        "cd sub; false",
        "cd sub && exit 3",
        "cd sub; set -e; false",
        "pushd sub > /dev/null",
        "ln -s sub link; cd link",
        "cd sub; sleep 0 &",
        "trap 'echo bye' INT; cd sub",
        "cd sub; exec 1>&- 2>&-",
        "cd sub; kill -TERM $$",
    ],
)
async def test_the_directory_where_a_command_ended_is_told(commands: CommandRunner, tmp_path: Path, text: str) -> None:
    (tmp_path / "sub").mkdir()

    assert (await _ran(commands, text, tmp_path)).cwd == str(tmp_path / "sub")


@requirement("BASH-2")
@pytest.mark.parametrize(
    "text",
    ["(cd sub)", "bash -c 'cd sub'", "cd sub; cd ..", "echo hi", "cd nowhere"],
)
async def test_a_directory_that_only_a_part_of_it_went_to_is_not(
    commands: CommandRunner, tmp_path: Path, text: str
) -> None:
    (tmp_path / "sub").mkdir()

    assert (await _ran(commands, text, tmp_path)).cwd == str(tmp_path)


@requirement("BASH-2")
@pytest.mark.parametrize(
    "text",
    [
        "cd sub; kill -9 $$",
        "cd sub; exec true",
        "cd sub; rmdir ../sub",
        "trap 'true' EXIT; cd sub",
        "printf '/no/such/place\\n' >&198; trap - EXIT",
        "printf 'sub' >&198; trap - EXIT",
    ],
)
async def test_a_shell_that_cannot_say_where_it_ended_says_nothing(
    commands: CommandRunner, tmp_path: Path, text: str
) -> None:
    (tmp_path / "sub").mkdir()

    assert (await _ran(commands, text, tmp_path)).cwd is None


async def test_the_environment_does_not_carry_over(commands: CommandRunner, tmp_path: Path) -> None:
    await _ran(commands, "export CARRIED=1; alias ll=ls; f() { :; }", tmp_path)

    assert await _printed(commands, "echo ${CARRIED-unset}${BASH_ENV-unset}; type -t f", tmp_path) == "unsetunset\n"


async def test_a_directory_that_is_gone_is_said_to_be(commands: CommandRunner, tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="is not a directory any more"):
        await _ran(commands, "true", tmp_path / "gone")


# No terminal, no input


@requirement("BASH-3")
async def test_a_command_has_its_own_session_and_neither_terminal_nor_input(
    commands: CommandRunner, tmp_path: Path
) -> None:
    text = "ps -o sid= -p $$; echo $$; : < /dev/tty; cat; readlink /proc/self/fd/0; ls /proc/self/fd"

    words = (await _printed(commands, text, tmp_path)).split()

    assert words[0] == words[1]
    assert "No such device or address" in " ".join(words)
    assert "/dev/null" in words
    assert words[-5:-1] == ["0", "1", "198", "2"], "no descriptor of the spawner is inherited"


async def test_no_descriptor_is_inherited_when_many_start_at_once(commands: CommandRunner, tmp_path: Path) -> None:
    text = "for each in /proc/self/fd/*; do echo ${each##*/}; done"

    ran = await asyncio.gather(*(_ran(commands, text, tmp_path) for _ in range(30)))
    confined = replace(command(text, tmp_path), limits=ProcessLimits(open_files=200))
    ran += await asyncio.gather(*(commands.run(confined, timeout=GENEROUS) for _ in range(10)))

    assert {one.output.text() for one in ran} <= {"0\n1\n198\n2\n", "0\n1\n198\n2\n3\n", "0\n1\n198\n2\n255\n3\n"}


INTERACTIVE = {
    "python3": "python3",
    "less": "less /etc/passwd",
    "vi": "vi",
    "ssh": "ssh -o ConnectTimeout=1 nobody@127.0.0.1",
    "sudo": "sudo -k true",
    "git": "git init -q . && git commit -q --allow-empty -m a && git rebase -q -i --root",
    "bash": "read -p 'Sure? ' answer; select x in a b; do echo $x; done",
    "sqlite3": "sqlite3",
    "man": "man ls",
    "node": "node",
    "gdb": "gdb -q",
    "nano": "nano",
}


@requirement("BASH-3")
@pytest.mark.parametrize("program", INTERACTIVE)
async def test_an_interactive_program_ends_by_itself(commands: CommandRunner, tmp_path: Path, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    identity = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = child_environment(os.environ) | identity

    ran = await commands.run(Command(text=INTERACTIVE[program], cwd=str(tmp_path), env=env), timeout=20)

    assert not ran.timed_out


@requirement("BASH-3")
async def test_signals_that_ferrule_ignores_are_not_ignored_by_commands(
    commands: CommandRunner, tmp_path: Path
) -> None:
    ignored = await _printed(commands, "grep SigIgn /proc/self/status; yes | head -1", tmp_path)

    _, mask, printed = ignored.split()
    assert int(mask, 16) & ~(0b11 << 31) == 0, "32 and 33 are the C library's own"
    assert printed == "y"


# Side by side


async def test_commands_run_side_by_side(commands: CommandRunner, tmp_path: Path) -> None:
    """Each waits for all the others, so that none ends unless all of them run."""
    number = 40
    text = f"touch $1.here; while [ $(ls *.here | wc -l) -lt {number} ]; do sleep 0.02; done"

    ran = await asyncio.gather(*(_ran(commands, f"set -- {each}; {text}", tmp_path) for each in range(number)))

    assert [one.exit_code for one in ran] == [0] * number


async def test_a_flood_does_not_hold_up_another_command(commands: CommandRunner, tmp_path: Path) -> None:
    flood = await commands.start(command("yes", tmp_path))
    await until(lambda: flood.output.total > 10_000_000)

    assert await _printed(commands, "echo here", tmp_path) == "here\n"

    await flood.end(grace=0)


@requirement("BASH-6")
async def test_output_is_given_out_while_the_command_runs(commands: CommandRunner, tmp_path: Path) -> None:
    given: list[str] = []
    text = "printf '\\033[1mone\\033[0m\\n'; while [ ! -e go ]; do sleep 0.01; done; printf 'two \\xc3'; printf '\\xa9'"
    running = await commands.start(command(text, tmp_path), on_output=given.append)

    await until(lambda: given)
    assert (given, running.done) == (["one\n"], False)
    (tmp_path / "go").touch()
    await running.wait()

    assert "".join(given) == "one\ntwo é"


async def test_whoever_comes_late_to_watch_misses_nothing(commands: CommandRunner, tmp_path: Path) -> None:
    running = await commands.start(command("echo one; sleep 1020", tmp_path))
    await until(lambda: running.output.total)
    calls: list[int] = []

    running.watch(lambda: calls.append(running.output.total))

    assert calls == [4]
    await running.end(grace=0)


# Limits


async def test_limits_hold(commands: CommandRunner, tmp_path: Path) -> None:
    limits = ProcessLimits(file_size=1_000, memory=300 << 20, open_files=20)

    size = await commands.run(replace(command("head -c 2000 /dev/zero > big; wc -c < big", tmp_path), limits=limits))
    memory = await commands.run(replace(command("python3 -c 'bytearray(1 << 30)'", tmp_path), limits=limits))

    assert size.output.text().split()[-1] == "1000"
    assert "MemoryError" in memory.output.text()


async def test_a_limit_of_processes_holds_for_whom_the_kernel_counts(commands: CommandRunner, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("the kernel does not count root's processes")
    ran = await commands.run(replace(command("true | true", tmp_path), limits=ProcessLimits(processes=1)))

    assert "Resource temporarily unavailable" in ran.output.text()

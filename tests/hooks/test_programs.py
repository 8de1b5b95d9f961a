"""Programs as hooks, each a real one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from ferrule.hooks.hook import Hook, Program
from ferrule.hooks.hook_matching import everything
from ferrule.hooks.program_process import LARGEST
from ferrule.host.processes.spawner.descendants import is_alive
from tests.requirement import requirement

from .scripts import PAYLOAD, answer_of, deciding, printing, program, runner, until

DENY = json.dumps(deciding("deny", "not here"))

CASES = {
    "exit code 2 refuses with what stands on standard error": ("echo no >&2; exit 2", "deny", "no"),
    "exit code 2 is not taken back by JSON": (
        f"echo '{json.dumps(deciding('allow'))}'; echo no >&2; exit 2",
        "deny",
        "no",
    ),
    "exit code 2 without a word still refuses": ("exit 2", "deny", "it gave no reason"),
    "JSON refuses": (printing(**deciding("deny", "not here")), "deny", "not here"),
    "JSON allows": (printing(**deciding("allow")), "allow", ""),
    "JSON asks": (printing(**deciding("ask", "sure?")), "ask", "sure?"),
    "the older form refuses": (printing(decision="block", reason="old"), "deny", "old"),
    "the older form allows": (printing(decision="approve"), "allow", ""),
    "JSON alone decides although the exit code is another": (f"echo '{DENY}'; exit 1", "deny", "not here"),
    "JSON counts although a signal ends the program": (f"echo '{DENY}'; kill -KILL $$", "deny", "not here"),
    "a mark of UTF-8 before JSON does not matter": (f"printf '\\357\\273\\277'; echo '{DENY}'", "deny", "not here"),
    "blanks before JSON do not matter": (f"printf '\\n  '; echo '{DENY}'", "deny", "not here"),
    "silence decides nothing": ("true", None, ""),
    "plain text decides nothing": ("echo fine", None, ""),
    "not reading its input changes nothing": (f"echo '{DENY}'", "deny", "not here"),
    "closing its input changes nothing": (f"exec 0<&-; echo '{DENY}'", "deny", "not here"),
}

FAILURES = {
    "another exit code": ("echo why >&2; exit 1", "it ended with exit code 1: why"),
    "a missing file": ("./no-such-file", "exit code 127"),
    "a file that is not executable": ("./plain", "exit code 126"),
    "a crash": ("kill -SEGV $$", "it was ended by SIGSEGV"),
    "a signal without a name": ("exec python3 -c 'import os; os.kill(os.getpid(), 40)'", "it was ended by signal 40"),
    "garbage": ("echo '{not json'", "it printed invalid JSON"),
    "a list": ("echo '{}' | tr '{}' '[]'; exit 3", "exit code 3"),
    "JSON after noise": (f"echo loading; echo '{DENY}'", "its JSON follows other output"),
    "JSON after noise on its line": (f"printf 'loading... '; echo '{DENY}'", "its JSON follows other output"),
    "JSON before noise": (f"echo '{DENY}'; echo done", "it printed invalid JSON"),
    "bytes that are no text": ("printf '{\\377\\376'", "it printed invalid JSON"),
    "text in two bytes a character": ("printf '{\\0 \\0}\\0' | tail -c 5", "it printed binary data"),
    "a decision that there is not": (printing(**deciding("denied")), '`permissionDecision` is "denied"'),
    "a number for a decision": (printing(hookSpecificOutput=7), "`hookSpecificOutput` is a number"),
    "an unending flood": (f"head -c {LARGEST * 20} /dev/zero", "it printed more than 1 MB"),
}


@requirement("HOOK-1")
@pytest.mark.parametrize(("command", "permission", "reason"), CASES.values(), ids=CASES)
async def test_what_a_program_says_counts(command: str, permission: str | None, reason: str, tmp_path: Path) -> None:
    answer = await answer_of(tmp_path, program(command))

    assert (answer.permission, answer.reason, answer.fault) == (permission, reason, "")


@requirement("HOOK-1", "HOOK-4")
@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
@pytest.mark.parametrize(("command", "words"), FAILURES.values(), ids=FAILURES)
async def test_a_program_that_fails_refuses_only_if_it_fails_closed(
    command: str, words: str, closed: bool, tmp_path: Path
) -> None:
    (tmp_path / "plain").write_text("#!/bin/sh\nexit 2\n")

    answer = await answer_of(tmp_path, program(command, fails_closed=closed))

    assert words in answer.fault
    assert answer.permission == ("deny" if closed else None)


@requirement("HOOK-1")
async def test_a_program_that_takes_too_long_is_ended_and_decides_nothing(tmp_path: Path) -> None:
    answer = await answer_of(tmp_path, program("exec sleep 600", seconds=0.1))

    assert answer.permission is None
    assert "it took longer than 0.1 s and was ended" in answer.fault


@requirement("HOOK-4")
async def test_one_that_fails_closed_refuses_when_it_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    command = "trap '' TERM; setsid sh -c 'echo $$ > away; sleep 600' & sleep 600 & echo $! > here; wait"

    answer = await answer_of(tmp_path, program(command, seconds=1.5, fails_closed=True))

    assert answer.permission == "deny"
    for name in ("here", "away"):
        pid = int((tmp_path / name).read_text())
        await until(lambda pid=pid: not is_alive(pid))


async def test_what_a_program_leaves_running_with_its_output_open_is_not_waited_for(tmp_path: Path) -> None:
    command = f"sleep 600 & echo $! > left; echo '{DENY}'"

    async with asyncio.timeout(20):
        answer = await answer_of(tmp_path, program(command))

    assert answer.reason == "not here"
    os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)


async def test_ending_the_wait_ends_the_program(tmp_path: Path) -> None:
    hook = program("echo $$ > pid; mkfifo go; read x < go")
    waiting = asyncio.create_task(runner(tmp_path, hook).ask([hook], {"cwd": str(tmp_path)}))
    await until((tmp_path / "go").exists)

    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not is_alive(int((tmp_path / "pid").read_text()))


@requirement("HOOK-1")
@pytest.mark.parametrize("size", [10, 100_000, 3_000_000], ids=["small", "large", "larger than a pipe"])
async def test_a_program_reads_the_event_from_its_input(size: int, tmp_path: Path) -> None:
    payload = {**PAYLOAD, "tool_input": {"content": "x" * size}}

    await answer_of(tmp_path, program("cat > got"), payload)

    assert json.loads((tmp_path / "got").read_text()) == {"cwd": str(tmp_path), **payload}


@requirement("HOOK-1")
async def test_a_program_finds_the_project_and_no_terminal(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()

    await answer_of(
        tmp_path,
        program(
            'printf "%s\\n" "$CLAUDE_PROJECT_DIR" "$FERRULE_PROJECT_DIR" "$PWD" > got; '
            "(: > /dev/tty) 2>/dev/null && echo tty >> got"
        ),
        {"cwd": str(inside)},
    )

    assert (inside / "got").read_text().splitlines() == [str(tmp_path), str(tmp_path), str(inside)]


async def test_with_arguments_a_program_runs_without_a_shell(tmp_path: Path) -> None:
    work = Program("/bin/sh", ("-c", 'printf "%s" "$1" > got', "sh", "${CLAUDE_PROJECT_DIR}/$(echo x)"))
    hook = Hook(event="Stop", name="x", matches=everything, work=work, seconds=20)

    await answer_of(tmp_path, hook, {})

    assert (tmp_path / "got").read_text() == f"{tmp_path}/$(echo x)"


async def test_a_program_that_cannot_be_started_is_a_failure(tmp_path: Path) -> None:
    hook = Hook(event="Stop", name="x", matches=everything, work=Program("./none", ()), seconds=20)

    answer = await answer_of(tmp_path, hook, {})

    assert answer.fault == "Stop hook `x`: it could not be started: No such file or directory"


@requirement("HOOK-3")
async def test_hooks_of_one_moment_run_side_by_side_and_answer_in_their_order(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "meeting")
    first = program(f"echo here > meeting; echo '{DENY}'")
    second = program("read x < meeting; echo second >&2; exit 2")

    async with asyncio.timeout(20):
        answers = await runner(tmp_path).ask([first, second], {"cwd": str(tmp_path)})

    assert [answer.reason for answer in answers] == ["not here", "second"]


async def test_one_that_runs_beside_decides_nothing_and_wakes_the_model_later(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    hook = program("read x < go; echo look again >&2; exit 2", name="slow", beside=True, rewakes=True)
    runs = runner(tmp_path, hook)

    assert await runs.ask([hook], {"cwd": str(tmp_path)}) == []
    assert await runs.notes("main") == ()
    await asyncio.to_thread((tmp_path / "go").write_text, "now\n")
    await until(lambda: not runs.busy)

    assert [note.text for note in await runs.notes("main")] == ["PreToolUse hook `slow`: look again"]


async def test_what_runs_beside_ends_with_the_session(tmp_path: Path) -> None:
    hook = program("echo $$ > pid; mkfifo go; read x < go", beside=True)
    runs = runner(tmp_path, hook)
    await runs.ask([hook], {"cwd": str(tmp_path)})
    await until((tmp_path / "go").exists)

    await runs.close()

    assert not is_alive(int((tmp_path / "pid").read_text()))

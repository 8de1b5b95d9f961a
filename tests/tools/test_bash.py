"""Bash: what runs, what is told of it, and what it is held to."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import Status, ToolCall, ToolOutcome
from ferrule.core.content import Terminal, plain_text
from ferrule.core.events import NoteAdded, ToolProgressed
from ferrule.engine.session import Session
from ferrule.host.processes.session_shell import Shell
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import says
from ferrule.testing import RecordingModel
from ferrule.testing.tool_contract import ToolContract
from ferrule.tools.bash import Bash
from tests.host.processes.shell import until
from tests.requirement import requirement


@pytest_asyncio.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    async with at(tmp_path) as session:
        yield session


def at(folder: Path, mode: Mode = Mode.BYPASS) -> Session:
    return open_session(Settings(cwd=str(folder), mode=mode, state_folder=folder.parent / f"{folder.name}-state"))


async def bash(session: Session, command: str, **more: Any) -> ToolOutcome:
    (outcome,) = await session.run([ToolCall("1", "Bash", {"command": command, **more})])
    return outcome


async def call(session: Session, tool: str, **arguments: Any) -> ToolOutcome:
    (outcome,) = await session.run([ToolCall("1", tool, arguments)])
    return outcome


def said(outcome: ToolOutcome) -> str:
    return plain_text(outcome.content)


def hostile_repository(folder: Path) -> None:
    """With one changed file, and a program for everything that git could run for `status` or `diff`."""
    git = ["git", "-C", str(folder), "-c", "user.email=a@b.c", "-c", "user.name=a"]
    subprocess.run([*git, "init", "-q"], check=True)
    (folder / "a.txt").write_text("one\n")
    (folder / ".gitattributes").write_text("*.txt filter=evil diff=evil\n")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    programs = ("core.fsmonitor", "core.pager", "diff.external")
    for key in (*programs, "filter.evil.clean", "filter.evil.process", "diff.evil.textconv"):
        subprocess.run([*git, "config", key, f"touch {folder}/ran-{key}; cat"], check=True)
    (folder / "a.txt").write_text("two\n")


A_FEW_STEPS = (0, 1, 2, 3, 5, 8, 13, 21, 34)
"""Each costs two processes."""
NEVER_MADE = Path("/nowhere/at/all")
"""A folder for long output, where there is none."""


class TestBashContract(ToolContract):
    samples = ({"command": "echo hello"}, {"command": "touch made.txt", "timeout": 60000})
    steps = A_FEW_STEPS

    def make(self) -> Bash:
        self.shells = [*getattr(self, "shells", []), Shell(NEVER_MADE)]
        return Bash(self.shells[-1])

    async def release(self) -> None:
        for shell in self.shells:
            await shell.close()


# What runs


@requirement("BASH-1")
async def test_output_and_errors_come_in_their_true_order(session: Session) -> None:
    outcome = await bash(session, "echo one; echo two >&2; echo three")

    assert (outcome.status, said(outcome)) == (Status.OK, "one\ntwo\nthree")
    assert outcome.view == Terminal("echo one; echo two >&2; echo three", "one\ntwo\nthree", 0)


@requirement("BASH-1")
async def test_silence_is_said(session: Session) -> None:
    assert said(await bash(session, "true")) == "(no output)"


@requirement("BASH-1")
async def test_a_failure_tells_exit_code_and_all_output(session: Session) -> None:
    outcome = await bash(session, "echo before; exit 3")

    assert (outcome.status, said(outcome)) == (Status.FAILED, "before\nExit code 3.")


@requirement("BASH-1")
@pytest.mark.parametrize(
    "command", ["grep zzz a.txt", "diff a.txt b.txt >/dev/null", "test -e missing", "ls | grep zzz"]
)
async def test_exit_code_one_of_a_program_that_answers_no_is_no_error(
    session: Session, tmp_path: Path, command: str
) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "b.txt").write_text("b")

    outcome = await bash(session, command)

    assert outcome.status is Status.OK
    assert said(outcome).endswith("Exit code 1.")


async def test_the_signal_that_ended_it_is_named(session: Session) -> None:
    assert said(await bash(session, "kill -9 $$")) == "It was ended by SIGKILL."


@requirement("BASH-2")
async def test_the_working_directory_carries_over_and_variables_do_not(session: Session, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()

    await bash(session, "cd sub; export SEEN=1")

    assert said(await bash(session, 'pwd; echo "[$SEEN]"')) == f"{tmp_path}/sub\n[]"


@requirement("BASH-2")
async def test_the_working_directory_carries_over_from_a_command_that_failed(session: Session, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()

    await bash(session, "cd sub && false")

    assert said(await bash(session, "pwd")) == f"{tmp_path}/sub"


@requirement("BASH-2")
async def test_leaving_the_workspace_is_said_and_undone(session: Session, tmp_path: Path) -> None:
    outcome = await bash(session, "cd /")

    assert f"outside of the workspace; the working directory is {tmp_path} again" in said(outcome)
    assert said(await bash(session, "pwd")) == str(tmp_path)


async def test_calls_of_one_message_see_the_directory_that_the_one_before_left(
    session: Session, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    calls = [
        ToolCall(str(n), "Bash", {"command": command}) for n, command in enumerate(("cd sub", "pwd", "cd ..", "pwd"))
    ]

    outcomes = await session.run(calls)

    assert [said(outcome) for outcome in outcomes[1::2]] == [f"{tmp_path}/sub", str(tmp_path)]


@requirement("BASH-3")
@pytest.mark.parametrize("command", ["cat", "python3", "read x", "less /etc/hostname", "git commit"])
async def test_what_wants_input_or_a_terminal_ends_at_once(session: Session, command: str) -> None:
    started = time.monotonic()

    await bash(session, command, timeout=30_000)

    assert time.monotonic() - started < 15


@requirement("SEC-1")
async def test_keys_of_its_own_are_not_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret-secret-secret")
    async with at(tmp_path) as session:
        assert "secret-secret" not in said(await bash(session, "env"))


@requirement("BASH-6")
async def test_output_streams_as_progress(session: Session) -> None:
    with session.bus.subscribe() as events:
        await bash(session, "echo early; sleep 0.3; echo late")
        events.close()
        shown = [envelope.event async for envelope in events if isinstance(envelope.event, ToolProgressed)]

    assert [event.view for event in shown][:1] == [Terminal("echo early; sleep 0.3; echo late", "early\n")]


async def test_a_long_output_shows_both_ends_and_its_file(session: Session) -> None:
    outcome = await bash(session, "seq 1 200000")

    text = said(outcome)
    assert text.startswith("1\n2\n")
    assert "\n200000\n" in text
    assert len(text) <= 30_000
    (path,) = [word.rstrip(".") for word in text.split() if word.startswith("/")]
    assert Path(path).read_text().splitlines()[99_999] == "100000"


@requirement("CON-15")
async def test_its_old_name_takes_seconds(session: Session) -> None:
    (outcome,) = await session.run([ToolCall("1", "run_shell", {"command": "sleep 20", "timeout": 0.2})])

    assert said(outcome).startswith("It was ended after 0.2 s, its time limit")
    assert said(outcome).endswith(": it only waits.")


# Time


@requirement("BASH-4", "BASH-7")
async def test_a_command_that_only_waits_is_ended_when_its_time_is_up(session: Session) -> None:
    outcome = await bash(session, "echo first; sleep 60", timeout=400)

    assert outcome.status is Status.FAILED
    assert said(outcome).startswith("first\nIt was ended after 0.4 s, its time limit (`timeout` is in milliseconds")
    assert said(outcome).endswith(": it only waits.")


@requirement("BASH-7")
async def test_a_command_that_works_goes_on_in_the_background(session: Session) -> None:
    outcome = await bash(session, "echo first; python3 -c 'import time; time.sleep(0.6); print(2)'", timeout=300)
    assert "continues. It runs in the background as bash_1." in said(outcome)

    news = said(await call(session, "TaskOutput", task_id="bash_1"))

    assert "2\n" in news
    assert "bash_1 completed, exit code 0" in news


@requirement("BASH-7")
async def test_what_a_held_command_changes_after_its_time_is_up_is_there_when_it_has_ended(tmp_path: Path) -> None:
    async with at(tmp_path, Mode.ACCEPT_EDITS) as session:
        outcome = await bash(session, "for i in 1 2 3 4; do sleep 0.2; echo $i >> log.txt; done", timeout=300)
        assert "It runs in the background as bash_1." in said(outcome)

        news = said(await call(session, "TaskOutput", task_id="bash_1"))

    assert "bash_1 completed, exit code 0" in news
    assert (tmp_path / "log.txt").read_text() == "1\n2\n3\n4\n"


@requirement("BASH-4")
async def test_a_command_that_cannot_go_on_in_the_background_is_ended_and_the_reason_is_given(
    tmp_path: Path, session: Session
) -> None:
    settings = Settings(cwd=str(tmp_path), state_folder=tmp_path / "state", mode=Mode.BYPASS)
    async with open_session(replace(settings, only_tools=frozenset({"Bash"}))) as alone:
        nowhere = await bash(alone, "tail -f /dev/null", timeout=200)
    locked = await bash(session, "git --version; tail -f /dev/null", timeout=200)

    assert "nothing runs in the background here" in said(nowhere)
    assert "git in the background would keep its locks" in said(locked)


@requirement("BASH-4", "BUD-4")
async def test_a_flood_is_ended_when_its_time_is_up(session: Session) -> None:
    outcome = await bash(session, "cat /dev/zero", timeout=2_000)

    assert outcome.status is Status.FAILED
    assert "It was ended after 2 s, its time limit.\nThe first part of its" in said(outcome)


@requirement("BASH-4")
async def test_a_cancelled_command_is_ended_with_all_it_started(session: Session, tmp_path: Path) -> None:
    executor = session.executor()
    async with executor:
        command = "(sleep 300 & echo $! > inner; wait) & echo $! > outer; wait"
        executor.submit(ToolCall("1", "Bash", {"command": command}))
        executor.message_complete()
        await until(lambda: (tmp_path / "inner").exists() and (tmp_path / "inner").read_text().strip())

    for name in ("inner", "outer"):
        assert not Path(f"/proc/{(tmp_path / name).read_text().strip()}").exists()


# Beside the conversation


@requirement("BASH-5")
async def test_a_background_command_gives_its_id_at_once_and_news_once(session: Session) -> None:
    outcome = await bash(session, "echo one; sleep 0.2; echo two", run_in_background=True)
    assert said(outcome) == "It runs in the background as bash_1. TaskOutput shows what it prints, KillShell ends it."

    first = said(await call(session, "TaskOutput", task_id="bash_1"))
    second = said(await call(session, "BashOutput", bash_id="bash_1"))

    assert first.startswith("one\ntwo\n")
    assert second.startswith("(nothing new)")


@requirement("BASH-5")
async def test_lines_that_a_filter_drops_count_as_seen(session: Session) -> None:
    await bash(session, "seq 1 20", run_in_background=True)

    filtered = said(await call(session, "TaskOutput", task_id="bash_1", filter="^1.$"))
    rest = said(await call(session, "TaskOutput", task_id="bash_1"))

    assert filtered.split("\n")[:10] == [str(n) for n in range(10, 20)]
    assert "10 lines did not match the filter." in filtered
    assert rest.startswith("(nothing new)")


async def test_a_ready_pattern_is_waited_for(session: Session) -> None:
    command = "sleep 0.2; echo listening on 80; sleep 60"
    outcome = await bash(session, command, run_in_background=True, ready_pattern="listening")

    assert "Ready: listening on 80" in said(outcome)


async def test_a_command_that_ends_before_it_is_ready_is_an_error(session: Session) -> None:
    outcome = await bash(session, "echo no port; exit 4", run_in_background=True, ready_pattern="listening")

    assert outcome.status is Status.FAILED
    assert "It ended (exit code 4) before a line matched `listening`." in said(outcome)


@requirement("BASH-5")
async def test_without_an_id_all_that_there_are_are_listed(session: Session) -> None:
    assert said(await call(session, "TaskOutput")) == "Nothing runs in the background."
    await bash(session, "sleep  60", run_in_background=True)
    await bash(session, "exit 3", run_in_background=True)
    await call(session, "TaskOutput", task_id="bash_2")

    assert re.sub(r"\d+ s", "0 s", said(await call(session, "TaskOutput"))) == (
        "bash_1 is running, for 0 s. sleep 60\nbash_2 failed, exit code 3, after 0 s. exit 3"
    )
    assert "`filter` is for the output of one task." in said(await call(session, "TaskOutput", filter="x"))


@requirement("BASH-5", "CON-15")
@pytest.mark.parametrize(
    ("tool", "key"), [("KillShell", "shell_id"), ("KillBash", "shell_id"), ("TaskStop", "task_id")]
)
async def test_killing_ends_it_and_frees_its_id(session: Session, tool: str, key: str) -> None:
    await bash(session, "echo here; sleep 60", run_in_background=True)

    killed = said(await call(session, tool, **{key: "bash_1"}))
    again = await call(session, tool, **{key: "bash_1"})

    assert killed.startswith("bash_1 was ended, with everything it started.")
    assert said(again) == "Background command or agent bash_1 was not found. Available: none."


@requirement("BASH-5")
async def test_the_next_turn_tells_of_a_command_that_ended(session: Session) -> None:
    await bash(session, "exit 7", run_in_background=True)
    await session.run([ToolCall("2", "Bash", {"command": "sleep 0.3"})])

    async with session.ask("go", RecordingModel(says("done"))) as events:
        notes = [envelope.event async for envelope in events if isinstance(envelope.event, NoteAdded)]

    assert [note.text.split(",")[:2] for note in notes] == [["bash_1 failed", " exit code 7"]]


@requirement("BASH-4")
async def test_closing_the_session_ends_what_still_runs(tmp_path: Path) -> None:
    async with at(tmp_path) as session:
        await bash(session, "echo $$ > pid; exec sleep 300", run_in_background=True)
        await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())

    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


# What it is held to


@requirement("BOX-1")
async def test_a_command_taken_for_reading_cannot_write(session: Session, tmp_path: Path) -> None:
    """The guess itself is right here, so the kernel is asked with a program that the analysis trusts."""
    shell = Shell(tmp_path / "long")
    try:
        if not (await shell.offers()).confines:
            pytest.skip("this machine offers no sandbox")
        ran = await shell.commands.run(await shell.reading(f"echo x > {tmp_path}/written", str(tmp_path)))
    finally:
        await shell.close()

    assert ran.exit_code != 0
    assert not (tmp_path / "written").exists()


@requirement("SEC-2")
async def test_reading_git_commands_run_nothing_of_the_repository(session: Session, tmp_path: Path) -> None:
    hostile_repository(tmp_path)

    for command in ("git status", "git diff", "git log -p", "git show"):
        assert not (await bash(session, command)).is_error

    assert [name for name in os.listdir(tmp_path) if name.startswith("ran-")] == []


@requirement("PERM-13", "SHELL-1")
async def test_by_default_reading_runs_and_the_rest_asks(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    async with at(tmp_path, Mode.DEFAULT) as session:
        allowed = ["ls", "cd sub && git status; true", "cat missing | wc -l", "find . -name '*.py'"]
        asked = ["touch x", "ls > x", "python3 -c 1", "curl http://localhost", "cat /etc/hostname", "$(cat x)"]
        for command in allowed:
            assert (await bash(session, command)).status is not Status.DENIED, command
        for command in asked:
            assert (await bash(session, command)).status is Status.DENIED, command


async def test_commands_that_only_read_run_side_by_side(session: Session) -> None:
    await bash(session, "true")
    calls = [ToolCall(str(n), "Bash", {"command": "sleep 1"}) for n in range(8)]
    started = time.monotonic()

    await session.run(calls)

    assert time.monotonic() - started < 6


# Refusals


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"command": "   "}, "`command` is empty."),
        ({"command": "ls", "ready_pattern": "x"}, "`ready_pattern` is for commands with `run_in_background`."),
        ({"command": "a\0b"}, "NUL"),
        ({"command": "sleep 9", "run_in_background": True, "ready_pattern": "("}, "regex parse error"),
    ],
)
async def test_bad_input_is_answered_in_words(session: Session, arguments: dict[str, Any], words: str) -> None:
    outcome = await call(session, "Bash", **arguments)

    assert outcome.is_error
    assert words in said(outcome)


@requirement("BUD-1", "SET-5")
@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ({"result_keep": "tail"}, lambda text: text.startswith("[… ") and "\n20000\n" in text),
        ({"result_keep": "head"}, lambda text: text.startswith("1\n2\n") and "20000\n" not in text),
        ({"result_limit": 90_000}, lambda text: len(text) > 80_000),
        ({"result_limit": 1_000}, lambda text: len(text) <= 1_000),
    ],
    ids=["the tail", "the head", "a higher limit", "a lower limit"],
)
async def test_the_limit_and_the_part_that_settings_choose_apply_and_a_file_has_all_of_it(
    tmp_path: Path, more: dict[str, Any], shown: Callable[[str], bool]
) -> None:
    (work := tmp_path / "work").mkdir()
    settings = Settings(cwd=str(work), mode=Mode.BYPASS, state_folder=tmp_path / "state", **more)
    async with open_session(settings) as session:
        text = said(await bash(session, "seq 1 20000"))

    assert shown(text)
    (path,) = [word.rstrip(".") for word in text.split() if word.startswith("/")]
    assert Path(path).read_text() == "".join(f"{number}\n" for number in range(1, 20_001))


# What is there


@requirement("BASH-1")
async def test_ripgrep_is_there_whether_or_not_it_is_installed(tmp_path: Path) -> None:
    (work := tmp_path / "work").mkdir()
    (work / "a.txt").write_text("hello\n")
    settings = Settings(cwd=str(work), state_folder=tmp_path / "state", environment={"PATH": "/usr/bin:/bin"})

    async with open_session(settings) as session:
        outcome = await bash(session, "rg hello")

    assert said(outcome) == "a.txt:hello"


@requirement("BASH-1")
async def test_functions_and_aliases_of_the_users_shell_are_there_but_give_no_program_another_meaning(
    tmp_path: Path,
) -> None:
    (work := tmp_path / "work").mkdir()
    (home := tmp_path / "home").mkdir()
    lines = ('greet() { echo "hello $1"; }', "ls() { echo changed; }", "alias short='echo a b'", "alias cat='echo no'")
    (home / ".bashrc").write_text("\n".join(lines))
    settings = Settings(
        cwd=str(work),
        state_folder=tmp_path / "state",
        mode=Mode.BYPASS,
        environment={"HOME": str(home)},
        shell_snapshot=True,
    )

    async with open_session(settings) as session:
        outcome = await bash(session, "greet you; short c; ls; echo x | cat")

    assert said(outcome) == "hello you\na b c\nx"

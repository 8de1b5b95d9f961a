"""A person at a real terminal: what they are asked, and what their answers come to."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ferrule import Settings, ToolCall, open_session
from ferrule.cli.approving import TerminalPerson
from ferrule.core.calls import Status
from tests.cli.running import FERRULE, HANG, environment, ferrule
from tests.requirement import requirement
from tests.settings.folders import allow, put

WRITE = ("call", "Write", '{"file_path": "new.txt", "content": "one\\n"}')
PROMPT = "or what to do instead: "


class Terminal:
    """A process whose controlling terminal this is."""

    def __init__(self, pid: int, master: int) -> None:
        self.pid = pid
        self._master = master
        self.seen = ""

    def until(self, words: str) -> None:
        """Read until these words stand on the screen, behind those of the last time."""
        start, ends = len(self.seen), time.monotonic() + HANG
        while words not in self.seen[start:]:
            if not select.select([self._master], [], [], max(0.0, ends - time.monotonic()))[0]:
                raise TimeoutError(self.seen)
            if not self._read():
                raise EOFError(self.seen)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def ended(self) -> int:
        while self._read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> bool:
        try:
            piece = os.read(self._master, 4096)
        except OSError:  # Linux: the last one has left the terminal
            return False
        self.seen += piece.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(piece)


@contextmanager
def at_terminal(folder: Path, *arguments: str, columns: int = 100) -> Generator[Terminal]:
    (folder / "home").mkdir(exist_ok=True)
    env = environment(folder)
    pid, master = pty.fork()
    if pid == 0:
        try:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            os.chdir(folder)
            os.execve(FERRULE[0], [*FERRULE, *arguments], env)
        finally:
            os._exit(127)
    try:
        yield Terminal(pid, master)
    finally:
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(master)


@requirement("PERM-8")
@pytest.mark.parametrize("columns", [100, 12])
def test_yes_lets_the_call_be_once(tmp_path: Path, columns: int) -> None:
    with at_terminal(tmp_path, *WRITE, columns=columns) as terminal:
        terminal.until(PROMPT)
        terminal.type("y\r")
        code = terminal.ended()

    assert (code, (tmp_path / "new.txt").read_text()) == (0, "one\n")
    assert f"creates {tmp_path}/new.txt" in terminal.seen
    assert "It is asked because nothing allows it." in terminal.seen
    assert "Always would add: `" in terminal.seen
    assert not (tmp_path / ".ferrule").exists()


@requirement("PERM-8")
@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("n\r", "the person said no"),
        ("use a list instead\r", "the person said no, and: use a list instead"),
        ("\x04", "the person said no"),
        ("x\rn\r", "Please answer y or n."),
    ],
)
def test_no_in_any_form_refuses_it(tmp_path: Path, typed: str, words: str) -> None:
    with at_terminal(tmp_path, *WRITE) as terminal:
        for part in typed.splitlines(keepends=True) if "\r" in typed else [typed]:
            terminal.until(PROMPT)
            terminal.type(part)
        code = terminal.ended()

    assert (code, (tmp_path / "new.txt").exists()) == (1, False)
    assert words in terminal.seen


@requirement("PERM-8")
def test_an_interrupt_ends_the_question_and_the_run(tmp_path: Path) -> None:
    with at_terminal(tmp_path, *WRITE) as terminal:
        terminal.until(PROMPT)
        terminal.type("\x03")
        code = terminal.ended()

    assert (code, (tmp_path / "new.txt").exists()) == (130, False)


@requirement("PERM-8", "SET-4")
def test_always_is_saved_for_the_folder_and_answers_the_next_run(tmp_path: Path) -> None:
    with at_terminal(tmp_path, *WRITE) as terminal:
        terminal.until(PROMPT)
        terminal.type("a\r")
        assert terminal.ended() == 0

    saved = json.loads((tmp_path / ".ferrule" / "settings.local.json").read_text())
    (rule,) = saved["permissions"]["allow"]
    assert f"Always would add: `{rule}`" in terminal.seen
    assert ferrule(tmp_path, "call", "Write", '{"file_path": "new.txt", "content": "two\\n"}').returncode == 1  # unread
    (tmp_path / "new.txt").unlink()
    assert ferrule(tmp_path, *WRITE).returncode == 0


@requirement("PERM-8")
def test_nobody_is_asked_where_input_or_output_is_no_terminal(tmp_path: Path) -> None:
    master, terminal = pty.openpty()
    for stdin, stderr in ((subprocess.DEVNULL, terminal), (terminal, subprocess.PIPE)):
        done = subprocess.run(
            [*FERRULE, *WRITE],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            timeout=HANG,
            check=False,
        )
        assert (done.returncode, b"nobody is there to give it" in done.stdout) == (1, True)
    os.close(terminal)
    os.close(master)


@requirement("SET-4")
@pytest.mark.parametrize(("answer", "code"), [("y\r", 0), ("\r", 1)])
def test_trust_is_asked_for_once_when_a_person_starts_a_session(tmp_path: Path, answer: str, code: int) -> None:
    put(tmp_path / "outside.txt", "one\n")
    put(tmp_path / "project" / ".claude" / "settings.json", allow("Read(//**)"))
    read = ("call", "--cwd", "project", "Read", '{"file_path": "../outside.txt"}')

    with at_terminal(tmp_path, *read) as terminal:
        terminal.until("Do you trust this? [y/N] ")
        terminal.type(answer)
        if code:
            terminal.until(PROMPT)
            terminal.type("n\r")
        first = terminal.ended()
    later = ferrule(tmp_path, *read)

    assert (first, later.returncode) == (code, code)
    assert "new  allow rule: Read(//**)" in terminal.seen


@requirement("PERM-8")
async def test_questions_come_one_at_a_time_and_one_always_answers_the_next(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    screen, loop = bytearray(), asyncio.get_running_loop()
    asked = asyncio.Event()

    def read() -> None:
        screen.extend(os.read(master, 4096))
        if PROMPT.encode() in screen:
            asked.set()

    loop.add_reader(master, read)
    os.write(master, b"y\n")  # typed before anything was asked
    calls = [ToolCall(str(number), "Bash", {"command": "mkdir -p made"}) for number in range(2)]
    settings = Settings(cwd=str(tmp_path), state_folder=tmp_path / "state")
    async with asyncio.timeout(HANG), open_session(settings, person=TerminalPerson(slave)) as session:
        running = asyncio.create_task(session.run(calls))
        await asked.wait()
        assert not (tmp_path / "made").exists()
        os.write(master, b"s\n")
        outcomes = await running
    loop.remove_reader(master)
    os.close(master)
    os.close(slave)

    assert [outcome.status for outcome in outcomes] == [Status.OK] * 2
    assert screen.count(PROMPT.encode()) == 1

"""How a headless run ends when something from outside ends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.prompting import call, fits, kinds, script
from tests.cli.running import FERRULE, HANG, environment
from tests.requirement import requirement

SLEEP = {"text": "Waiting.", "calls": [call("Bash", "b", command="sleep 100", timeout=200_000)]}


def start(folder: Path, *flags: str, stderr: int | None = None) -> subprocess.Popen[bytes]:
    command = [*FERRULE, "-p", "--model", script(folder, SLEEP, {"text": "Done."}), "--allow=Bash", *flags]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@requirement("CLI-1", "PIPE-5")
def test_a_signal_ends_the_turn_and_the_result_is_still_written(tmp_path: Path, number: int, code: int) -> None:
    with start(tmp_path, "Hi", "--output-format", "stream-json") as process:
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(3)]

        process.send_signal(number)

        lines += [json.loads(line) for line in process.stdout]
        assert process.wait(HANG) == code
    for line in lines:
        fits(line)
    assert kinds(lines) == ["system/init", "assistant", "assistant", "user", "result/error_during_execution"]
    assert lines[-1]["errors"] == [f"Interrupted by signal {int(number)}."]
    assert lines[3]["message"]["content"][0]["tool_use_id"] == "b"


@requirement("CLI-1")
def test_a_reader_that_goes_away_ends_it_quietly(tmp_path: Path) -> None:
    with start(tmp_path, "Hi", "--output-format", "stream-json", stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        process.send_signal(signal.SIGTERM)

        assert process.stderr.read() == b""
        assert process.wait(HANG) in (141, 143)


def test_background_work_is_ended_and_not_waited_for(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    background = call("Bash", command=f"echo $$ > {started}; sleep 100", run_in_background=True)
    waits = call("Bash", command=f"until [ -s {started} ]; do sleep 0.05; done")
    model = script(tmp_path, {"calls": [background]}, {"calls": [waits]}, {"text": "Done."})

    done = subprocess.run(
        [*FERRULE, "-p", "Hi", "--model", model, "--allow", "Bash"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=HANG,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, b"Done.\n")
    assert not os.path.exists(f"/proc/{started.read_text().strip()}")


def test_a_pipe_that_never_begins_does_not_hold_up_a_prompt(tmp_path: Path) -> None:
    command = [*FERRULE, "-p", "Hi", "--model", script(tmp_path, {"text": "Done."})]
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=reading,
            capture_output=True,
            timeout=HANG,
            check=False,
        )
    finally:
        os.close(reading)
        os.close(writing)

    assert (done.returncode, done.stdout) == (0, b"Done.\n")
    assert b"stdin had no input" in done.stderr


IN_A_CALLBACK = """
import os, signal, sys, weakref
from ferrule.cli.main import main

class Thing: pass

def interrupted(chosen, **more):
    thing = Thing()
    kept = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGINT))
    del thing
    return options_from(chosen, **more)

from ferrule.cli.commands import headless
options_from, headless.options_from = headless.options_from, interrupted
sys.exit(main(sys.argv[1:]))
"""


@requirement("CLI-1")
def test_an_interrupt_counts_where_an_exception_would_be_lost(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_A_CALLBACK, "-p", "Hi", "--model", script(tmp_path, {"text": "Done."})],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=HANG,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")

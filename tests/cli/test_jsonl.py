from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.cli.jsonl import CallLine, Rejected, encode_line, rejection, requests
from ferrule.tools.read import REMINDER
from tests.cli.running import FERRULE, HANG, environment, ferrule, jsonl, text
from tests.requirement import requirement


@requirement("CLI-2")
def test_each_call_gives_one_line_in_order(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")

    answers = jsonl(
        tmp_path,
        [
            {"id": "first", "tool": "Read", "input": {"file_path": "a.txt"}},
            {"id": "second", "tool": "Glob", "input": {"pattern": "*.txt"}},
        ],
    )

    assert [(answer["id"], answer["tool"], answer["status"], text(answer)) for answer in answers] == [
        ("first", "Read", "ok", f"1\tone\n{REMINDER}"),
        ("second", "Glob", "ok", "a.txt"),
    ]
    assert all(set(answer) == {"id", "tool", "is_error", "status", "content", "ms"} for answer in answers)


@requirement("PIPE-4")
def test_a_batch_answers_in_the_order_of_its_calls(tmp_path: Path) -> None:
    for name in "abcdefghijklmnop":
        (tmp_path / name).write_text(name)

    batch = [{"id": name, "tool": "Read", "input": {"file_path": name}} for name in "ponmlkjihgfedcba"]
    answers = jsonl(tmp_path, [{"batch": batch}])

    shown = [(answer["id"], text(answer).removesuffix(f"\n{REMINDER}")) for answer in answers]
    assert shown == [(name, f"1\t{name}") for name in "ponmlkjihgfedcba"]


def test_a_missing_id_is_the_line_number_and_duplicates_are_allowed(tmp_path: Path) -> None:
    glob = {"tool": "Glob", "input": {"pattern": "*"}}

    answers = jsonl(
        tmp_path, [glob, {**glob, "id": "x"}, {**glob, "id": "x"}, {"batch": [glob, glob]}, {**glob, "id": 7}]
    )

    assert [answer["id"] for answer in answers] == [1, "x", "x", 4, 4, 7]


@pytest.mark.parametrize(
    ("line", "id", "words"),
    [
        (b"nonsense", None, "not valid JSON"),
        (b"[1]", None, "must be a JSON object"),
        (b'"text"', None, "must be a JSON object"),
        (b'{"id": "a"}', "a", "`tool` must be the name"),
        (b'{"id": "a", "tool": 5}', "a", "`tool` must be the name"),
        (b'{"id": {}, "tool": "Read"}', None, "`id` must be"),
        (b'{"id": 1e999, "tool": "Read"}', None, "`id` must be"),
        (b'{"id": NaN, "tool": "Read"}', None, "NaN is not JSON"),
        (b'{"id": "a", "batch": {}}', "a", "`batch` must be a list"),
        (b'{"batch": [], "tool": "Read"}', None, "`batch` must be a list"),
        (b'{"id": "\xff"}', None, "not UTF-8"),
        (b"[" * 100_000, None, "not valid JSON"),
    ],
)
def test_a_line_that_is_no_request_is_answered_and_the_rest_goes_on(
    tmp_path: Path, line: bytes, id: Any, words: str
) -> None:
    answers = jsonl(tmp_path, [line, {"id": "next", "tool": "Glob", "input": {"pattern": "*"}}])

    assert {key: value for key, value in answers[0].items() if key != "content"} == {
        "id": id,
        "tool": None,
        "is_error": True,
        "status": "invalid",
        "line": 1,
    }
    assert words in text(answers[0])
    assert (answers[1]["id"], answers[1]["status"]) == ("next", "ok")


def test_a_bad_part_of_a_batch_stands_in_its_place(tmp_path: Path) -> None:
    glob = {"id": "good", "tool": "Glob", "input": {"pattern": "*"}}

    answers = jsonl(tmp_path, [{"batch": [glob, 5, glob]}])

    assert [(answer["id"], answer["status"]) for answer in answers] == [
        ("good", "ok"),
        (None, "invalid"),
        ("good", "ok"),
    ]


def test_blank_lines_are_passed_over_and_counted(tmp_path: Path) -> None:
    answers = jsonl(tmp_path, [b"", b"   ", {"tool": "Glob", "input": {"pattern": "*"}}])

    assert [answer["id"] for answer in answers] == [3]


def test_no_input_is_no_output(tmp_path: Path) -> None:
    done = ferrule(tmp_path, "call", "--jsonl")

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_last_line_without_a_newline_counts_and_a_file_can_be_stdin(tmp_path: Path) -> None:
    source = tmp_path / "calls.jsonl"
    source.write_bytes(b'\xef\xbb\xbf{"tool": "Glob", "input": {"pattern": "*.jsonl"}}')

    with source.open("rb") as stdin:
        done = subprocess.run(
            [*FERRULE, "call", "--jsonl"],
            stdin=stdin,
            capture_output=True,
            cwd=tmp_path,
            env=environment(tmp_path),
            timeout=HANG,
            check=True,
        )

    assert json.loads(done.stdout)["content"] == [{"type": "text", "text": source.name}]


@requirement("PIPE-2", "CON-7")
def test_each_kind_of_error_has_its_status(tmp_path: Path) -> None:
    answers = jsonl(
        tmp_path,
        [
            {"tool": "read", "input": {}},
            {"tool": "Read", "input": {"file": "a"}},
            {"tool": "Read", "input": '{"file_path": '},
            {"tool": "Read", "input": [1]},
            {"tool": "Read", "input": {"file_path": "/etc/hostname"}},
            {"tool": "Read", "input": {"file_path": "missing"}},
        ],
    )

    assert [answer["status"] for answer in answers] == ["invalid"] * 4 + ["denied", "failed"]
    assert all(answer["is_error"] for answer in answers)


def test_undecodable_text_leaves_as_valid_utf8(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    (tmp_path / name).write_text("x")

    (answer,) = jsonl(tmp_path, [{"tool": "Glob", "input": {"pattern": "*.txt"}}])

    assert text(answer).endswith("caf\ufffd.txt")


def test_the_answer_is_out_before_the_next_line_is_read(tmp_path: Path) -> None:
    with _running(tmp_path) as process:
        for number in (1, 2, 3):
            _send(process, {"tool": "Glob", "input": {"pattern": "*"}})
            assert json.loads(_stdout(process).readline())["id"] == number
        _stdin(process).close()

        assert process.wait(HANG) == 0


@requirement("PIPE-5")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_while_waiting_for_a_line_ends_with_its_code(tmp_path: Path, number: int, code: int) -> None:
    with _running(tmp_path) as process:
        _send(process, {"tool": "Glob", "input": {"pattern": "*"}})
        _stdout(process).readline()

        process.send_signal(number)

        assert process.wait(HANG) == code
        assert _stdout(process).read() == b""


@requirement("PIPE-4", "PIPE-5")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_in_the_middle_of_a_call_still_answers_every_call(tmp_path: Path, number: int, code: int) -> None:
    with _running(tmp_path, *_with_tool(HANG_TOOL, "Hang")) as process:
        batch = [{"id": "a", "tool": "Hang"}, {"id": "b", "tool": "Glob", "input": {"pattern": "*"}}]
        _send(process, {"batch": batch})
        assert _stderr(process).readline() == b"the call has begun\n"

        process.send_signal(number)

        answers = [json.loads(line) for line in _stdout(process).read().splitlines()]
        assert process.wait(HANG) == code
        assert [(answer["id"], answer["status"]) for answer in answers] == [("a", "cancelled"), ("b", "cancelled")]


def test_a_signal_ends_it_while_nobody_reads_its_output(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x" * 1500 + "\n" + ("y" * 1500 + "\n") * 40)
    with _running(tmp_path) as process:
        for _ in range(5):
            _send(process, {"tool": "Read", "input": {"file_path": "a"}})
        assert _stdout(process).read(1) == b"{"

        process.send_signal(signal.SIGTERM)

        assert process.wait(HANG) == 143


def test_a_signal_that_was_ignored_stays_ignored(tmp_path: Path) -> None:
    command = (
        sys.executable,
        "-c",
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN);"
        "os.execv(sys.executable, [sys.executable, '-m', 'ferrule', 'call', '--jsonl'])",
    )
    with _running(tmp_path, *command) as process:
        _send(process, {"tool": "Glob", "input": {"pattern": "*"}})
        _stdout(process).readline()

        process.send_signal(signal.SIGHUP)
        _send(process, {"tool": "Glob", "input": {"pattern": "*"}})

        assert json.loads(_stdout(process).readline())["id"] == 2
        _stdin(process).close()
        assert process.wait(HANG) == 0


@pytest.mark.parametrize(
    ("redirected", "code", "words"),
    [
        ("<&-", 2, "stdin is closed"),
        (">&- </dev/null", 2, "stdout is closed"),
    ],
)
def test_an_odd_descriptor_is_one_line_on_stderr(tmp_path: Path, redirected: str, code: int, words: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m ferrule call --jsonl {redirected}"],
        capture_output=True,
        cwd=tmp_path,
        env=environment(tmp_path),
        timeout=HANG,
        check=False,
    )

    assert (done.returncode, done.stdout) == (code, b"")
    assert words in done.stderr.decode()
    assert len(done.stderr.splitlines()) == 1


def test_a_full_disk_is_one_line_on_stderr(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f'{sys.executable} -m ferrule call Glob \'{{"pattern": "*"}}\' >/dev/full'],
        capture_output=True,
        cwd=tmp_path,
        env=environment(tmp_path),
        timeout=HANG,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr == b"ferrule call: the result cannot be written: No space left on device.\n"


def test_what_a_tool_prints_goes_to_stderr(tmp_path: Path) -> None:
    done = subprocess.run(
        _with_tool(LOUD_TOOL, "Loud"),
        input=b'{"tool": "Loud"}\n',
        capture_output=True,
        cwd=tmp_path,
        env=environment(tmp_path),
        timeout=HANG,
        check=True,
    )

    assert [json.loads(line)["status"] for line in done.stdout.splitlines()] == ["ok"]
    assert sorted(done.stderr.decode().split()) == ["child", "descriptor", "print"]


def test_a_reader_that_goes_away_ends_the_run_without_a_traceback(tmp_path: Path) -> None:
    for name in range(50):
        (tmp_path / str(name)).write_text("x" * 50_000)
    with _running(tmp_path) as process:
        _stdout(process).close()
        try:
            for name in range(50):
                _send(process, {"tool": "Read", "input": {"file_path": str(name)}})
        except BrokenPipeError:
            pass  # it has ended already, which is the point

        assert process.wait(HANG) == 141
        assert _stderr(process).read() == b""


@requirement("BUD-1")
def test_an_oversized_result_is_saved_and_reads_back(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for number in range(100):
        (tmp_path / "folder" / f"{number:03}-{'x' * 200}").touch()
    done = subprocess.run(
        _with_tool(BIG_TOOL, "Big"),
        input=b'{"id": "one", "tool": "Big"}\n',
        capture_output=True,
        cwd=tmp_path,
        env=environment(tmp_path),
        timeout=HANG,
        check=True,
    )

    answer = json.loads(done.stdout)
    saved = text(answer).partition("the whole result is in ")[2].partition(" ...]")[0]
    assert saved.endswith("/results/one.txt")
    assert Path(saved).read_text() == "line\n" * 20_000
    assert len(text(answer)) <= 30_000


ANY_REQUEST = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["id", "tool", "input", "batch"]), inner),
)


@given(st.binary(max_size=200))
def test_any_line_is_either_asked_or_rejected(line: bytes) -> None:
    for part in requests(line, 3):
        assert isinstance(part, CallLine | Rejected)
        if isinstance(part, Rejected):
            assert json.loads(encode_line(rejection(part)))["line"] == 3


@given(ANY_REQUEST)
def test_any_json_is_either_asked_or_rejected(content: Any) -> None:
    for part in requests(json.dumps(content).encode(), 1):
        assert isinstance(part, CallLine | Rejected)


HANG_TOOL = """
@tool(name="Hang")
async def added() -> str:
    'Never come to an end.'
    print("the call has begun", file=sys.stderr, flush=True)
    await asyncio.Event().wait()
    return ""
"""

LOUD_TOOL = """
@tool(name="Loud")
async def added() -> str:
    'Print in every way there is.'
    print("print")
    os.write(1, b"descriptor\\n")
    subprocess.run(["echo", "child"], check=True)
    return "done"
"""

BIG_TOOL = """
@tool(name="Big")
async def added() -> str:
    'Return more than fits.'
    return "line\\n" * 20_000
"""


def _with_tool(definition: str, name: str) -> tuple[str, ...]:
    """The command line with one more tool, which nothing forbids."""
    return (
        sys.executable,
        "-c",
        f"""
import asyncio, os, subprocess, sys
import ferrule.app.build
from ferrule import tool
from ferrule.cli.main import main
{definition}
builtin = ferrule.app.build.tools_on_demand
ferrule.app.build.tools_on_demand = lambda *services: (*builtin(*services), added)
sys.exit(main(["call", "--jsonl", "--allow", "{name}"]))
""",
    )


def _running(folder: Path, *command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command or (*FERRULE, "call", "--jsonl"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment(folder),
    )


def _send(process: subprocess.Popen[bytes], request: Any) -> None:
    stream = _stdin(process)
    stream.write(json.dumps(request).encode() + b"\n")
    stream.flush()


def _stdin(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdin is not None
    return process.stdin


def _stdout(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout


def _stderr(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stderr is not None
    return process.stderr

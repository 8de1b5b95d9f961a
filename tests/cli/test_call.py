from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ferrule.tools.read import REMINDER
from tests.cli.running import FERRULE, HANG, environment, ferrule
from tests.requirement import requirement

MASKED = '{"sandbox": {"enabled": true, "credentials": {"files": [{"path": "~/.netrc", "mode": "mask"}]}}}'
HOOK = '{"hooks": {"PreToolUse": [{"hooks": [{"type": "python", "function": "nowhere_at_all:guard"}]}]}}'


@requirement("CLI-2")
def test_one_call_prints_its_result(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")

    done = ferrule(tmp_path, "call", "Read", '{"file_path": "a.txt"}')

    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, f"1\tone\n2\ttwo\n{REMINDER}\n", b"")


def test_one_call_can_be_printed_as_json(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")

    done = ferrule(tmp_path, "call", "--json", "Read", '{"file_path": "a.txt"}')

    answer = json.loads(done.stdout)
    assert answer.pop("ms") >= 0
    assert answer == {
        "id": "call",
        "tool": "Read",
        "is_error": False,
        "status": "ok",
        "content": [{"type": "text", "text": "1\tone"}, {"type": "text", "text": REMINDER}],
    }


def test_the_input_can_come_from_stdin(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")

    done = ferrule(tmp_path, "call", "Read", "-", stdin='{"file_path": "a.txt"}')

    assert (done.returncode, done.stdout) == (0, f"1\tone\n{REMINDER}\n".encode())


@pytest.mark.parametrize(
    ("tool", "input", "words"),
    [
        ("Read", '{"file_path": "missing.txt"}', "does not exist"),
        ("Raed", "{}", "Did you mean Read or "),
        ("Read", "{", "not a JSON object"),
        ("Read", "[]", "not a JSON object"),
        ("Read", '{"path": "a"}', "`file_path` is missing"),
        ("Read", '{"file_path": "/etc/hostname"}', "nobody is there"),
    ],
)
def test_an_error_is_printed_and_is_exit_code_one(tmp_path: Path, tool: str, input: str, words: str) -> None:
    done = ferrule(tmp_path, "call", tool, input)

    assert (done.returncode, done.stderr) == (1, b"")
    assert words in done.stdout.decode()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["call"], "name a TOOL"),
        (["call", "--jsonl", "Read"], "leave TOOL"),
        (["call", "Read", "{}", "--cwd", "nowhere"], "nowhere is not a directory"),
        (["call", "Read", "{}", "--permission-mode", "yolo"], "yolo"),
        (["call", "Read", "{}", "--deny", "Read(./secrets/**"], "has a parenthesis that is not closed"),
        (["call", "Read", "{}", "--allow", "Re)ad"], "closes a parenthesis that was not opened"),
        (["call", "Read", "{}", "--deny", "Foo(("], "has a parenthesis that is not closed"),
        (["call", "Read", "{}", "--settings", "nowhere.json"], "nowhere.json cannot be read"),
        (["call", "Read", "{}", "--settings", "{"], "invalid JSON in line 1, column 2"),
        (["call", "Read", "{}", "--settings", HOOK], "nowhere_at_all:guard cannot be loaded"),
        (["call", "Read", "{}", "--settings", MASKED], "can deny a file here, not mask it"),
        (["call", "Read", "{}", "--setting-sources", "user,all"], "all is not one of user, project, local"),
        (["call", "Read", "{}", "--settings", '{"permissions": {"deny": ["Read(../x)"]}}'], "goes up with `..`"),
        (
            ["call", "Read", "{}", "--settings", '{"permissions": {"deny": "Read"}}'],
            '`permissions.deny`: expected a list, found "Read"',
        ),
        (["call", "Read", "{}", "--settings", '{"permissions": {"defaultMode": "yolo"}}'], 'found "yolo"'),
        (["call", "Read", "{}", "--settings", '{"permissions": {"denny": []}}'], "Did you mean `deny`?"),
        (["call", "Read", "{}", "--settings", '{"permissions": []}'], "expected an object, found a list"),
        (["call", "Read", "{}", "--settings", '{"cleanupPeriodDays": 0}'], "at least 1"),
    ],
)
@requirement("SET-2")
def test_what_cannot_be_honoured_is_refused_before_anything_runs(tmp_path: Path, flags: list[str], words: str) -> None:
    done = ferrule(tmp_path, *flags)

    assert (done.returncode, done.stdout) == (2, b"")
    assert words in done.stderr.decode()


@requirement("PERM-1")
def test_a_settings_file_rules(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "settings.json").write_text('{"permissions": {"deny": ["Read"]}, "theme": "dark"}')

    done = ferrule(tmp_path, "call", "--settings", "settings.json", "Read", '{"file_path": "a.txt"}')

    assert done.returncode == 1
    assert done.stdout.decode() == "Read was not allowed: rule `Read` in settings.json:1 denies it.\n"
    assert done.stderr.decode() == "ferrule: settings.json:1: `theme` is not used by this version.\n"


@requirement("PERM-1", "PERM-2")
def test_an_allowed_tool_reads_outside_of_the_workspace(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("one\n")
    (tmp_path / "inside").mkdir()

    call = ("call", "--cwd", "inside", "Read", json.dumps({"file_path": str(outside)}))

    assert ferrule(tmp_path, *call).returncode == 1
    assert ferrule(tmp_path, *call, "--allow", "Read").returncode == 0
    assert ferrule(tmp_path, *call, "--permission-mode", "bypassPermissions").returncode == 0
    assert ferrule(tmp_path, *call, "--permission-mode", "bypassPermissions", "--deny", "Read").returncode == 1


def test_bypass_as_root_warns_once(tmp_path: Path) -> None:
    import os

    if os.geteuid() != 0:
        pytest.skip("only root is warned")

    done = ferrule(tmp_path, "call", "--permission-mode", "bypassPermissions", "Glob", '{"pattern": "*"}')

    assert done.returncode == 0
    assert done.stderr.decode().splitlines() == [
        "ferrule: bypassPermissions as root: any call may change anything on this machine."
    ]


@requirement("PERM-1", "SET-2")
def test_a_rule_for_no_tool_is_said_to_do_nothing(tmp_path: Path) -> None:
    done = ferrule(tmp_path, "call", "--deny", "Raed", "Glob", '{"pattern": "*"}')

    assert done.returncode == 0
    assert done.stderr.decode() == (
        "ferrule: --deny: no tool is named Raed, so the rule does nothing. Did you mean Read?\n"
    )


def test_a_working_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    command = f'mkdir gone && cd gone && rmdir ../gone && {sys.executable} -m ferrule call Glob \'{{"pattern": "*"}}\''

    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, cwd=tmp_path, env=environment(tmp_path), timeout=60, check=False
    )

    assert done.returncode == 2
    assert b"the working directory no longer exists" in done.stderr


@requirement("SEC-1")
def test_a_command_with_all_rights_finds_no_key_in_the_environment_of_ferrule(tmp_path: Path) -> None:
    key, copy = "sk-ant-0123456789abcdef", "ANTHROPIC_COPY"
    command = "for p in $PPID $(ps -o ppid= -p $PPID); do tr '\\0' '\\n' </proc/$p/environ; done"
    around = environment(tmp_path, ANTHROPIC_API_KEY=key, **{copy: f"Bearer {key}"})
    call = [*FERRULE, "call", "Bash", json.dumps({"command": command}), "--permission-mode", "bypassPermissions"]

    done = subprocess.run(call, capture_output=True, cwd=tmp_path, env=around, timeout=HANG, check=False)

    assert b"PATH=" in done.stdout
    assert b"ANTHROPIC_API_KEY" in done.stdout
    assert key.encode() not in done.stdout

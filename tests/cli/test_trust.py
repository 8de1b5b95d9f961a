from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.cli.running import FERRULE, HANG, environment, ferrule
from tests.requirement import requirement
from tests.settings.folders import allow, hook, put

READ_OUTSIDE = ("call", "--cwd", "project", "Read", '{"file_path": "../outside.txt"}')


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(tmp_path / "outside.txt", "one\n")
    put(tmp_path / "project" / ".claude" / "settings.json", {**allow("Read"), **hook("./x", event="Stop")})
    return tmp_path


def at_terminal(folder: Path, *arguments: str, answer: str) -> tuple[int, bytes]:
    """The exit code and all that was shown; a question for trust is answered."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [*FERRULE, *arguments],
        cwd=folder / "project",
        env=environment(folder),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said, answered = b"", False
    try:
        while chunk := os.read(ours, 4096):
            said += chunk
            if b"[y/N]" in said and not answered:
                os.write(ours, answer.encode())
                answered = True
    except OSError:
        pass  # the other end is closed
    os.close(ours)
    return child.wait(HANG), said


@requirement("SET-4")
def test_what_a_folder_allows_counts_after_it_is_trusted_and_not_after_that_is_taken_back(folder: Path) -> None:
    before = ferrule(folder, *READ_OUTSIDE)
    trusted = ferrule(folder, "trust", "--yes", "project")
    during = ferrule(folder, *READ_OUTSIDE)
    revoked = ferrule(folder, "trust", "--revoke", "project")
    after = ferrule(folder, *READ_OUTSIDE)

    assert [done.returncode for done in (before, trusted, during, revoked, after)] == [1, 0, 0, 0, 1]
    assert b"allow rule `Read`" in before.stderr
    assert during.stdout.startswith(b"1\tone\n")
    assert during.stderr == b""


@requirement("SET-4")
def test_a_run_can_trust_the_folder_for_itself(folder: Path) -> None:
    assert ferrule(folder, *READ_OUTSIDE, "--trust").returncode == 0
    assert ferrule(folder, *READ_OUTSIDE).returncode == 1


@requirement("SET-4")
def test_showing_says_what_there_is_by_file_and_trusts_nothing(folder: Path) -> None:
    done = ferrule(folder, "trust", "--show", "project")

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == (
        f"{folder}/project is not trusted.\n"
        "  .claude/settings.json\n"
        "    new  hook: Stop (Bash): ./x\n"
        "    new  allow rule: Read\n"
    )
    assert not (folder / "xdg-state" / "ferrule" / "trust.json").exists()


@requirement("SET-4")
@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("\n", 1)])
def test_a_person_at_a_terminal_is_asked(folder: Path, answer: str, code: int) -> None:
    done, _ = at_terminal(folder, "trust", answer=answer)

    assert done == code
    assert (ferrule(folder, *READ_OUTSIDE).returncode == 0) is (code == 0)


@requirement("SET-4")
def test_a_person_who_said_no_is_not_asked_again_until_something_changes(folder: Path) -> None:
    look = ("call", "Glob", '{"pattern": "*"}')
    first, second = (at_terminal(folder, *look, answer="n\n")[1] for _ in range(2))
    put(folder / "project" / ".claude" / "settings.json", {**allow("Read"), **hook("./y", event="Stop")})
    third = at_terminal(folder, *look, answer="y\n")[1]

    assert [b"[y/N]" in said for said in (first, second, third)] == [True, False, True]
    assert b"not trusted, and so ignored" in second
    assert ferrule(folder, *READ_OUTSIDE).returncode == 0


@requirement("SET-4")
def test_without_a_terminal_nobody_is_asked(folder: Path) -> None:
    done = ferrule(folder, "trust", "project", stdin="y\n")

    assert done.returncode == 2
    assert b"nobody can be asked" in done.stderr


@requirement("SET-1", "PERM-1")
def test_every_level_has_its_say_and_a_refusal_names_file_and_line(folder: Path) -> None:
    put(folder / "home" / ".claude" / "settings.json", '{"permissions": {\n"deny": ["Read"]}}')

    done = ferrule(folder, *READ_OUTSIDE, "--allow", "Read")
    without = ferrule(folder, *READ_OUTSIDE, "--allow", "Read", "--setting-sources", "project")

    assert done.stdout.decode() == (
        f"Read was not allowed: rule `Read` in {folder}/home/.claude/settings.json:2 denies it.\n"
    )
    assert (done.returncode, without.returncode) == (1, 0)


@requirement("SET-2")
def test_a_bad_entry_is_passed_over_and_if_it_could_forbid_something_nothing_is_allowed_unasked(folder: Path) -> None:
    file = put(folder / "home" / ".claude" / "settings.json", {"permissions": {"allow": ["Read", 5]}})
    going_on = ferrule(folder, *READ_OUTSIDE)
    put(file, {"permissions": {"deny": ["Read("]}})
    stopped = ferrule(folder, *READ_OUTSIDE)
    put(file, '{"permissions": {"deny": ["Read"],}}')
    broken = ferrule(folder, *READ_OUTSIDE)

    assert [done.returncode for done in (going_on, stopped, broken)] == [0, 1, 1]
    assert b"settings.json:1: `permissions.allow[1]` is skipped: expected a string, found 5." in going_on.stderr
    for done, words in ((stopped, b"`Read(` has a parenthesis"), (broken, b"Remove the comma before it.")):
        assert words in done.stdout
        assert words in done.stderr
        assert b"nobody is there" in done.stdout


@requirement("SET-5")
def test_the_older_keys_for_long_results_are_used(folder: Path) -> None:
    put(folder / "project" / "long.txt", "a\n" * 5000)
    put(
        folder / "home" / ".claude" / "settings.json",
        {
            "oversized_results": {
                "max_chars": 500,
                "persist_dir": str(folder / "kept"),
                "truncation_strategy": "keep_start",
            }
        },
    )

    done = ferrule(folder, "call", "--cwd", "project", "Grep", '{"pattern": "a", "output_mode": "content"}')

    (saved,) = (folder / "kept" / "ferrule-sessions").glob("*/results/*.txt")
    assert (done.returncode, len(done.stdout) < 1000) == (0, True)
    assert str(saved).encode() in done.stdout


@requirement("SET-5", "PERM-12")
def test_the_older_keys_for_tools_and_domains_are_used(folder: Path) -> None:
    """Asked of one process, line by line, with the settings of the home."""
    put(
        folder / "home" / ".claude" / "settings.json",
        {
            "permissions": {
                "allowed_tools": ["Write"],
                "disabled_tools": ["Glob"],
                "pre_approval": {
                    "allowed_domains": ["plums.org"],
                    "blocked_domains": ["docs.rs"],
                    "auto_approve_https": True,
                },
            }
        },
    )
    fetches = ("http://plums.org", "http://www.plums.org", "https://docs.rs", "https://any.org", "http://any.org")
    asked = [
        {"tool": "Write", "input": {"file_path": "/elsewhere/x", "content": ""}},
        {"tool": "Glob", "input": {"pattern": "*"}},
        *({"tool": "WebFetch", "input": {"url": url}} for url in fetches),
    ]
    lines = "".join(json.dumps({"id": number, **one}) + "\n" for number, one in enumerate(asked))

    done = ferrule(folder, "explain", "--jsonl", stdin=lines)

    decisions = [json.loads(line)["decision"] for line in done.stdout.splitlines()]
    assert decisions == ["allow", "deny", "allow", "allow", "ask", "allow", "ask"], done.stderr


@requirement("SET-1")
def test_directories_of_the_settings_are_part_of_the_workspace(folder: Path) -> None:
    put(folder / "home" / ".claude" / "settings.json", {"permissions": {"additionalDirectories": [str(folder)]}})

    assert ferrule(folder, *READ_OUTSIDE).returncode == 0


@requirement("HELD-2")
def test_what_trust_does_not_cover_is_said_when_it_is_given(folder: Path) -> None:
    put(folder / "project" / ".claude" / "settings.json", hook("make lint", event="Stop"))

    done = ferrule(folder, "trust", "--yes", "project")

    assert done.returncode == 0
    assert b"it runs `make lint`, whose content is not covered" in done.stdout


EVIL = {"turns": [{"text": "played by the repository"}]}


@requirement("HELD-2", "SEC-2")
@pytest.mark.parametrize("key", ["model", "smallModel", "fallbackModel"])
def test_an_untrusted_repository_chooses_neither_the_model_nor_the_judge(folder: Path, key: str) -> None:
    """C1: its scripts made the calls, and answered whether they are safe."""
    project = folder / "project"
    own = put(folder / "own.json", {"turns": [{"text": "own answer"}]})
    put(project / "evil.json", EVIL)
    put(project / ".claude" / "settings.json", {key: "scripted:evil.json"})

    shown = ferrule(folder, "trust", "--show", "project").stdout
    alone = ferrule(folder, "-p", "hello", "--cwd", str(project), "--permission-mode", "auto")
    beside = ferrule(folder, "-p", "hello", "--cwd", str(project), env={"FERRULE_MODEL": f"scripted:{own}"})

    assert f"new  setting: {key}: scripted:evil.json".encode() in shown
    assert alone.returncode == 1
    assert b"played by the repository" not in alone.stdout
    assert beside.stdout == b"own answer\n"


@requirement("HELD-2", "SEC-2")
def test_an_untrusted_repository_does_not_turn_questions_off(folder: Path) -> None:
    """C2: with its sandbox switched on, any program ran unasked."""
    put(folder / "project" / ".claude" / "settings.json", {"sandbox": {"enabled": True}})
    call = ("call", "--cwd", "project", "Bash", '{"command": "python3 -c \\"print(6 * 7)\\"", "description": "x"}')

    done = ferrule(folder, *call)

    assert done.returncode == 1
    assert b"42" not in done.stdout
    assert b"sandbox.enabled" in done.stderr

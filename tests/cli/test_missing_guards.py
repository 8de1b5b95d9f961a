"""Hooks of a folder that could refuse are never silently missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ferrule.sdk.conversation_opening import open_for_program
from ferrule.sdk.errors import CannotOpen
from ferrule.sdk.options import Options
from tests.cli.running import environment, ferrule
from tests.requirement import requirement
from tests.settings.folders import hook, put

CALL = ("call", "Write", '{"file_path": "made.txt", "content": "x"}', "--permission-mode", "acceptEdits")
REFUSING = "echo not here >&2; exit 2"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(tmp_path / ".claude" / "settings.json", hook(REFUSING, matcher="Write"))
    put(tmp_path / "script.json", {"turns": [{"text": "done"}]})
    return tmp_path


@requirement("HELD-3", "SEC-2")
@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (CALL, ""),
        (("call", "--jsonl"), '{"id": 1, "tool": "Read", "input": {"file_path": "a"}}\n'),
        (("-p", "hello", "--model", "scripted:script.json"), ""),
        (("serve",), ""),
    ],
)
def test_nothing_runs_where_nobody_trusts_the_hooks_that_could_refuse_it(
    folder: Path, arguments: tuple[str, ...], stdin: str
) -> None:
    done = ferrule(folder, *arguments, stdin=stdin)

    words = done.stderr.decode()
    assert (done.returncode, done.stdout) == (2, b"")
    assert f"PreToolUse (Write): {REFUSING} (.claude/settings.json)" in words
    assert all(way in words for way in ("--trust", "FERRULE_TRUST=1", "--without-project-hooks"))
    assert not (folder / "made.txt").exists()


@requirement("HELD-3")
@pytest.mark.parametrize("event", ["PermissionRequest", "UserPromptSubmit"])
def test_so_it_is_for_every_event_whose_hooks_refuse(folder: Path, event: str) -> None:
    put(folder / ".claude" / "settings.json", hook("./x", event=event))

    assert ferrule(folder, *CALL).returncode == 2


@requirement("HELD-3")
@pytest.mark.parametrize(
    ("flags", "env", "refused"),
    [
        (("--trust",), {}, True),
        ((), {"FERRULE_TRUST": "1"}, True),
        (("--without-project-hooks",), {}, False),
        (("--trust", "--without-project-hooks"), {}, False),
        (("--setting-sources", "user"), {}, False),
        (("--settings", '{"disableAllHooks": true}'), {}, False),
    ],
)
def test_each_way_on_does_what_it_says(
    folder: Path, flags: tuple[str, ...], env: dict[str, str], refused: bool
) -> None:
    done = ferrule(folder, *CALL, *flags, env=env)

    assert done.returncode == (1 if refused else 0), done.stderr
    assert (b"not here" in done.stdout) is refused
    assert (folder / "made.txt").exists() is not refused


@requirement("HELD-3")
def test_a_variable_that_says_no_trusts_nothing(folder: Path) -> None:
    assert ferrule(folder, *CALL, env={"FERRULE_TRUST": "0"}).returncode == 2


@requirement("HELD-3")
@pytest.mark.parametrize(
    "content",
    [
        hook("./x", event="PostToolUse"),
        {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}], "description": "d"}]}},
        {"hooks": {"preEditHook": {"command": "x"}}, "permissions": {"allowFileAccess": True}},
    ],
)
def test_a_clone_with_other_hooks_and_unknown_keys_works_as_it_is(folder: Path, content: dict[str, Any]) -> None:
    put(folder / ".claude" / "settings.json", content)

    done = ferrule(folder, *CALL)

    assert done.returncode == 0, done.stdout
    assert (folder / "made.txt").exists()


@requirement("HELD-3")
def test_unknown_keys_are_one_warning_for_a_file_also_in_settings_that_are_given(folder: Path) -> None:
    group = {"matcher": "Bash", "hooks": [{"type": "command", "command": "true", "id": "a"}], "description": "d"}
    given = put(folder / "given.json", {"hooks": {"PreToolUse": [group]}, "permissions": {"allowFileAccess": True}})

    done = ferrule(folder, *CALL, "--settings", str(given), "--without-project-hooks")

    warnings = [line for line in done.stderr.decode().splitlines() if "this key is unknown" in line]
    assert done.returncode == 0
    assert len(warnings) == 1
    assert "2 more unknown keys of this file" in warnings[0]


@requirement("HELD-3")
def test_commands_that_run_nothing_go_on(folder: Path) -> None:
    for arguments in (("tools",), ("explain", *CALL[1:])):
        done = ferrule(folder, *arguments)
        assert done.returncode == 0
        assert b"not trusted, and so ignored: hook" in done.stderr


@requirement("HELD-3")
def test_a_program_is_told_as_well_unless_it_leaves_the_project_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(folder).items():
        monkeypatch.setenv(name, value)
    script = f"scripted:{folder / 'script.json'}"

    with pytest.raises(CannotOpen, match="hooks that could refuse"):
        open_for_program(Options(cwd=str(folder), model=script))
    open_for_program(Options(cwd=str(folder), model=script, setting_sources=["user"]))
    open_for_program(Options(cwd=str(folder), model=script, trust=True))
    open_for_program(Options(cwd=str(folder), model=script, without_project_hooks=True))


@requirement("HELD-3")
@pytest.mark.parametrize("content", [{"permision": {}}, {"permissions": {"denied": ["Write"]}}])
def test_a_slip_for_a_guard_lets_nothing_run_unasked(folder: Path, content: dict[str, Any]) -> None:
    put(folder / ".claude" / "settings.json", content)

    done = ferrule(folder, *CALL)

    assert done.returncode == 1
    assert b"Did you mean" in done.stdout
    assert not (folder / "made.txt").exists()

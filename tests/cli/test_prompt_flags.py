"""What the flags of a prompt do, through the real program."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from ferrule.cli.exits import UsageError
from ferrule.cli.logs import log_more
from ferrule.cli.parser import parse_prompt
from ferrule.cli.prompt_checks import check_prompt, missing_prompt
from ferrule.cli.session_flags import settings_from
from ferrule.testing.model_server import ModelServer
from tests.cli.prompting import ask, call, script
from tests.cli.running import FERRULE, HANG, environment, ferrule
from tests.requirement import requirement

DONE = {"text": "Done."}


async def _bodies(folder: Path, *arguments: str, stdin: bytes = b"") -> tuple[list[dict[str, Any]], list[Any], bytes]:
    """The requests of a run that must succeed, with their headers, and stderr."""
    async with ModelServer.playing({"turns": [DONE, DONE]}) as server:
        process = await asyncio.create_subprocess_exec(
            *(*FERRULE, *arguments, "--model", "anthropic:claude-opus-4-8"),
            cwd=folder,
            env=environment(folder, ANTHROPIC_BASE_URL=server.url),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(HANG):
            _, said = await process.communicate(stdin)
        assert process.returncode == 0, said
        return server.bodies, [request.headers for request in server.requests], said


def _prompts(body: dict[str, Any]) -> str:
    return json.dumps([message["content"] for message in body["messages"] if message["role"] == "user"])


@requirement("PROG-1")
async def test_what_flags_say_about_the_model_is_in_the_request(tmp_path: Path) -> None:
    (tmp_path / "more.md").write_text("Answer in rhyme.")
    (tmp_path / "CLAUDE.md").write_text("Use tabs.")

    (body,), (headers,), said = await _bodies(
        tmp_path,
        *("Say it", "--effort", "low", "--thinking", "adaptive", "--betas", "one-2026", "two-2026", "--bare"),
        *("--append-system-prompt-file", "more.md", "--thinking-display", "omitted", "--verbose"),
    )

    assert body["output_config"]["effort"] == "low"
    assert body["thinking"]["type"] != "disabled"
    assert {"one-2026", "two-2026"} <= set(dict(headers)["anthropic-beta"].split(","))
    assert "Answer in rhyme." in json.dumps(body["system"])
    assert "Use tabs." not in json.dumps(body)
    assert "Say it" in _prompts(body)
    assert b"without an effect here: --thinking-display." in said


@requirement("PROG-1")
def test_a_deny_rule_behind_another_one_holds_where_the_prompt_is_piped_in(tmp_path: Path) -> None:
    turns = [{"calls": [call("Bash", command="touch zz")]}, DONE]

    done = ask(
        tmp_path,
        turns,
        *("--disallowedTools", "WebFetch", "Bash(touch *)", "--dangerously-skip-permissions"),
        stdin="the real prompt",
    )

    assert done.returncode == 3
    assert not (tmp_path / "zz").exists()


@requirement("PROG-1")
def test_rules_of_managed_settings_hold_beside_those_of_settings(tmp_path: Path) -> None:
    turns = [{"calls": [call("Bash", command="touch zz"), call("Bash", command="touch yy")]}, DONE]
    managed, own = ('{"permissions": {"deny": ["Bash(touch zz)"]}}', '{"permissions": {"deny": ["Bash(touch yy)"]}}')

    done = ask(
        tmp_path, turns, "Go", "--managed-settings", managed, "--settings", own, "--dangerously-skip-permissions"
    )

    assert done.returncode == 3
    assert not {"yy", "zz"} & {path.name for path in tmp_path.iterdir()}


@requirement("PROG-1")
def test_a_run_without_p_is_headless_and_piped_words_are_its_prompt(tmp_path: Path) -> None:
    model = script(tmp_path, DONE)

    for arguments, stdin in ((("Say it",), ""), ((), "Say it"), (("--output-format", "text"), "Say it")):
        done = ferrule(tmp_path, *arguments, "--model", model, stdin=stdin)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"Done.\n", b"")


@requirement("PROG-1")
def test_what_claude_code_warns_of_is_a_warning_here(tmp_path: Path) -> None:
    done = ask(
        tmp_path,
        [DONE],
        *("Go", "--continue", "--add-dir", "nowhere", "--allowedTools", "*", "mcp__*", "Write(src/**)"),
    )

    assert (done.returncode, done.stdout) == (0, b"Done.\n")
    said = done.stderr.decode()
    assert "nowhere is not a directory, so it was left out" in said
    assert said.count("It allows nothing.") == 3


@requirement("PROG-1")
def test_a_fork_of_nothing_is_a_new_session_with_a_warning(tmp_path: Path) -> None:
    done = ask(tmp_path, [DONE], "Go", "--fork-session")

    assert (done.returncode, done.stdout) == (0, b"Done.\n")
    assert b"--fork-session has no effect without --resume ID or --continue." in done.stderr


@requirement("PROG-1")
def test_a_prompt_that_a_list_has_taken_is_named(tmp_path: Path) -> None:
    done = ask(tmp_path, [DONE], "--model", "x", "--allowedTools", "Read", "Edit", "Fix it.")

    assert (done.returncode, done.stdout) == (2, b"")
    assert (
        b"the prompt is missing: `Fix it.` was taken as a value of --allowedTools, which takes every word up to the "
        b"next flag. Put the prompt before the flag, or after `--`." in done.stderr
    )


def test_a_prompt_that_the_filter_of_a_log_has_taken_is_named() -> None:
    said = missing_prompt(parse_prompt(["-p", "--debug", "Fix it."]))

    assert "`Fix it.` was taken as a value of --debug" in said


@requirement("PROG-1")
def test_no_key_is_a_failure_and_not_wrong_usage(tmp_path: Path) -> None:
    keys = {"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": "", "ANTHROPIC_BASE_URL": ""}

    done = ferrule(tmp_path, "-p", "Hi", "--model", "claude-opus-4-8", env=keys)

    assert (done.returncode, done.stdout) == (1, b"")
    assert b"No API key is set" in done.stderr


def test_more_is_logged_where_a_flag_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("ferrule")
    before, level = [*log.handlers], log.level
    try:
        log_more(parse_prompt(["Hi", "--debug-file", str(tmp_path / "d.log"), "--debug-to-stderr"]))
        logging.getLogger("ferrule.some").debug("seen")
    finally:
        for handler in set(log.handlers) - set(before):
            log.removeHandler(handler)
            handler.close()
        log.setLevel(level)

    assert "DEBUG ferrule.some: seen" in (tmp_path / "d.log").read_text()
    assert "DEBUG ferrule.some: seen" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "fork", "tool"),
    [
        (["Hi", "--resume", "a", "--resume-session-at", "b"], True, None),
        (["Hi", "--resume", "a"], False, None),
        (["Hi", "--permission-prompt-tool", "stdio", "--permission-prompts", "none"], False, None),
        (["Hi", "--permission-prompt-tool", "mcp__lab__ask"], False, "mcp__lab__ask"),
    ],
)
def test_flags_that_mean_something_together_are_settled(line: list[str], fork: bool, tool: str | None) -> None:
    chosen = parse_prompt(line)

    check_prompt(chosen)

    assert (chosen.fork_session, chosen.permission_prompt_tool) == (fork, tool)


def test_rules_that_allow_nothing_and_folders_that_do_not_exist_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    chosen = parse_prompt(
        [
            "Hi",
            "--cwd",
            str(tmp_path),
            "--setting-sources=",
            "--allow",
            "Read,*",
            "Edit(a b) Fo*",
            "--add-dir",
            ".",
            "no",
        ]
    )

    settings = settings_from(chosen)

    assert [rule.text for rule in settings.rules] == ["Read", "Edit(a b)"]
    assert settings.added_directories == (str(tmp_path),)
    assert capsys.readouterr().err.count("\n") == 3


def test_agents_are_read_as_json() -> None:
    chosen = parse_prompt(["Hi", "--agents", '{"a": {"description": "d", "prompt": "p", "model": "haiku"}}'])

    check_prompt(chosen)

    assert chosen.agents == {"a": {"description": "d", "prompt": "p", "model": "haiku"}}


def test_two_sessions_cannot_be_resumed_at_once() -> None:
    with pytest.raises(UsageError, match="name two sessions"):
        check_prompt(parse_prompt(["Hi", "--resume", "a", "--continue"]))

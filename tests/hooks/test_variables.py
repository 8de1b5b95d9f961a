"""Variables that hooks leave for commands, and what they are told when the working directory moves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ferrule import Settings, ToolCall, open_session
from ferrule.core.content import plain_text
from ferrule.engine.session import Session
from ferrule.hooks.hook import HookBook
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import ScriptedModel, says
from tests.hooks.scripts import program
from tests.requirement import requirement


def opened(folder: Path, *hooks: Any) -> Session:
    book = HookBook(hooks)
    return open_session(Settings(cwd=str(folder), state_folder=folder / ".state", hooks=book, mode=Mode.BYPASS))


async def said(session: Session, *commands: str) -> list[str]:
    calls = [ToolCall(str(at), "Bash", {"command": command}) for at, command in enumerate(commands)]
    return [plain_text(outcome.content).strip() for call in calls for outcome in await session.run([call])]


async def begun(session: Session) -> None:
    async with session.ask("hi", ScriptedModel([says("Hello.")])) as events:
        _ = [one async for one in events]


@requirement("HOOK-1")
async def test_what_a_hook_leaves_at_the_start_is_there_in_all_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    leaves = """
cat >> "$CLAUDE_ENV_FILE" <<'END'
export GREETING="good day"
PLAIN='two
lines'
COPY=$OPENAI_API_KEY
export PAGER=less
END
"""
    more = 'echo "export OTHER=$(basename "$CLAUDE_PROJECT_DIR")" >> "$CLAUDE_ENV_FILE"'
    session = opened(tmp_path, program(leaves, "SessionStart"), program(more, "SessionStart"))
    async with session:
        await begun(session)
        found = await said(session, 'echo "$GREETING|$PLAIN|$OTHER|$COPY|$PAGER|$CLAUDE_ENV_FILE"', "echo $GREETING")

    assert found == [f"good day|two\nlines|{tmp_path.name}||cat|", "good day"]


@pytest.mark.parametrize(
    ("broken", "left"),
    [("exit 3", "left:"), ("kill -9 \\$\\$", "left:"), ("this is ' no shell", "left: hi")],
    ids=["one that exits", "one that dies", "a line that is no shell"],
)
async def test_a_broken_file_counts_as_far_as_a_shell_comes_to_its_end(tmp_path: Path, broken: str, left: str) -> None:
    hook = program(f"""printf '%s\\n' 'export GREETING=hi' "{broken}" >> "$CLAUDE_ENV_FILE" """, "SessionStart")
    async with opened(tmp_path, hook) as session:
        await begun(session)
        found = await said(session, "echo left: $GREETING")

    assert found == [left]


@requirement("HOOK-2")
async def test_hooks_are_told_of_another_working_directory_before_the_next_command(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    hook = program('cat >> told; echo "export WHERE=$PWD" >> "$CLAUDE_ENV_FILE"', "CwdChanged")
    async with opened(tmp_path, hook) as session:
        first, second, third = await said(session, "cd sub; echo [$WHERE]", "echo [$WHERE]", "cd .; echo [$WHERE]")

    told = [json.loads(line) for line in (tmp_path / "sub" / "told").read_text().splitlines()]
    assert [(event["old_cwd"], event["new_cwd"], event["cwd"]) for event in told] == [
        (str(tmp_path), f"{tmp_path}/sub", f"{tmp_path}/sub")
    ]
    assert "[]" in first
    assert [f"[{tmp_path}/sub]" in text for text in (second, third)] == [True, True]


async def test_other_hooks_find_no_such_file(tmp_path: Path) -> None:
    hook = program('echo "left: $CLAUDE_ENV_FILE" > found', "UserPromptSubmit")
    async with opened(tmp_path, hook) as session:
        await begun(session)

    assert (tmp_path / "found").read_text() == "left: \n"


@requirement("HOOK-1", "PERM-6")
async def test_nobody_but_a_hook_writes_what_is_run_for_its_variables(tmp_path: Path) -> None:
    workspace, state = tmp_path / "workspace", tmp_path / "state"
    workspace.mkdir()
    hook = program('printf %s "$CLAUDE_ENV_FILE" > where', "SessionStart")
    settings = Settings(cwd=str(workspace), state_folder=state, hooks=HookBook((hook,)), mode=Mode.ACCEPT_EDITS)
    async with open_session(settings) as session:
        await begun(session)
        path = (workspace / "where").read_text()
        calls = [
            ToolCall("1", "Write", {"file_path": path, "content": "touch ran"}),
            ToolCall("2", "Bash", {"command": f"echo touch ran > {path}"}),
        ]
        outcomes = await session.run(calls)
        content = Path(path).read_text()

    assert ["was not allowed" in plain_text(outcome.content) for outcome in outcomes] == [True, True]
    assert content == ""
    assert not Path(path).exists()

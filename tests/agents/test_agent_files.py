"""Agents from files: which count, what they say, and what a bad one does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ferrule.agents.agent_catalog import Agents
from ferrule.core.calls import Status, ToolCall
from ferrule.core.events import ToolFinished
from ferrule.host.git.checkouts import Checkout
from ferrule.providers.scripted import says
from ferrule.settings.definition_files import DefinitionFiles
from ferrule.settings.levels import SettingsContext
from tests.agents.cast import Cast, hire, opened, played
from tests.requirement import requirement

GOOD = "---\nname: {}\ndescription: Does it.\n---\nYou do it.\n"


def pages(root: Path, *, trusted: bool = False) -> DefinitionFiles:
    folder = root / "project"
    folder.mkdir(exist_ok=True)
    around = SettingsContext(
        cwd=str(folder),
        home=str(root / "home"),
        config_folder=str(root / "home/.claude"),
        checkout=Checkout(str(folder), str(folder)),
        managed_folders=(str(root / "managed"),),
    )
    return DefinitionFiles(around, lambda item: trusted)


def put(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@requirement("TASK-1")
def test_a_file_makes_a_kind_of_agent_with_all_that_its_head_says(tmp_path: Path) -> None:
    put(
        tmp_path / "project/.claude/agents/deep/reviewer.md",
        "---\nname: reviewer\ndescription: Reviews code: thoroughly\ntools: Read, Grep\ndisallowedTools: [Bash]\n"
        "model: inherit\npermissionMode: plan\nmaxTurns: 7\nskills: [style]\n---\nYou review.\n",
    )

    kind = Agents(pages(tmp_path)).all["reviewer"]

    assert (kind.description, kind.prompt) == ("Reviews code: thoroughly", "You review.")
    assert (kind.tools, kind.without, kind.model, kind.mode) == (("Read", "Grep"), ("Bash",), "", "plan")
    assert (kind.max_turns, kind.skills) == (7, ("style",))


@requirement("TASK-1")
def test_the_folder_goes_before_the_user_and_ferrules_own_before_claudes(tmp_path: Path) -> None:
    for place, words in (
        ("home/.claude/agents/x.md", "the user's"),
        ("project/.claude/agents/x.md", "claude's"),
        ("project/.ferrule/agents/x.md", "ferrule's"),
    ):
        put(tmp_path / place, f"---\nname: x\ndescription: {words}\n---\nWork.\n")

    assert Agents(pages(tmp_path)).all["x"].description == "ferrule's"


@requirement("TASK-1")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("---\nname: [\n---\nx", "its head is not valid YAML"),
        ("---\na: &a [*a]\nname: x\ndescription: y\n---\nx", "its head uses a YAML anchor"),
        ("---\nname: x\ndescription: y\n", "its head has no end"),
        ("---\ndescription: y\n---\nx", "it has no `name`"),
        ("---\nname: x\n---\nx", "it has no `description`"),
        ("---\nname: x\ndescription: y\n---\n", "it has no text"),
        ("---\nname: '../../etc'\ndescription: y\n---\nx", "is not a valid name"),
        ("---\nname: 'a\\x1b[2J'\ndescription: y\n---\nx", "is not a valid name"),
        ("x" * 2_000_000, "it has more than"),
        ("---\n" + "a: [" * 20_000 + "\n---\nx", "its head is"),
        (b"---\nname: \xff\xfe\n---\nx", "it is not valid UTF-8 text"),
    ],
    ids=range(11),
)
def test_a_bad_file_is_skipped_with_a_warning(tmp_path: Path, text: str | bytes, words: str) -> None:
    put(tmp_path / "project/.claude/agents/bad.md", text)
    put(tmp_path / "project/.claude/agents/good.md", GOOD.format("good"))
    agents = Agents(pages(tmp_path))

    assert "good" in agents.all
    (warning,) = agents.warnings
    assert "bad.md" in warning
    assert words in warning


@requirement("TASK-1")
def test_a_link_out_of_the_folder_and_a_pipe_are_skipped(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside.md", GOOD.format("outside"))
    folder = tmp_path / "project/.claude/agents"
    folder.mkdir(parents=True)
    (folder / "link.md").symlink_to(outside)
    (folder / "loop.md").symlink_to(folder / "loop.md")
    (folder / "again").symlink_to(folder)
    os.mkfifo(folder / "pipe.md")
    put(folder / "good.md", GOOD.format("good"))
    agents = Agents(pages(tmp_path))

    assert "good" in agents.all
    assert "outside" not in agents.all
    assert len(agents.warnings) == 3


@requirement("TASK-1")
async def test_a_kind_that_only_plans_changes_nothing_whatever_the_session_may(tmp_path: Path) -> None:
    put(tmp_path / "project/.claude/agents/p.md", "---\nname: p\ndescription: d\npermissionMode: plan\n---\nPlan.\n")
    write = ToolCall("w", "Write", {"file_path": "new.txt", "content": "x"})
    model = Cast(
        main=[says("", hire("1", "task", subagent_type="p")), says("")], task=[says("", write), says("Planned.")]
    )
    session = opened(tmp_path / "project", settings={"pages": pages(tmp_path)})

    async with session.ask("main", model) as events:
        statuses = [one.event.outcome.status async for one in events if isinstance(one.event, ToolFinished)]

    assert statuses == [Status.DENIED, Status.OK]


async def test_a_kind_with_hooks_that_nobody_would_run_is_not_started(tmp_path: Path) -> None:
    put(tmp_path / "project/.claude/agents/h.md", "---\nname: h\ndescription: d\nhooks: {PreToolUse: []}\n---\nWork.\n")
    model = Cast(main=[says("", hire("1", "task", subagent_type="h")), says("")], task=[says("Done.")])
    session = opened(tmp_path / "project", settings={"pages": pages(tmp_path)})

    (said,) = await played(session, model)

    assert "contains hooks" in said


async def test_a_kind_without_a_usable_tool_is_not_started(tmp_path: Path) -> None:
    put(tmp_path / "project/.claude/agents/n.md", "---\nname: n\ndescription: d\ntools: Nothing\n---\nWork.\n")
    model = Cast(main=[says("", hire("1", "task", subagent_type="n")), says("")], task=[says("Done.")])
    session = opened(tmp_path / "project", settings={"pages": pages(tmp_path)})

    (said,) = await played(session, model)

    assert "None of the tools of n can be used here: Nothing." in said

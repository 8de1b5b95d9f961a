"""`@path` and `@server:uri` in a prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.app.prompting.mentions import FileMention, FolderMention, ResourceMention, find_mentions
from ferrule.core.content import Image, Text
from ferrule.core.verdicts import Behavior
from ferrule.output.run_answer import Ending
from ferrule.permissions.rules import Origin, parse_rule
from tests.app.talking import talk
from tests.mcp.running import config, raw
from tests.requirement import requirement


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / "src/deep").mkdir(parents=True)
    (project / "f.txt").write_text("first\nsecond\nthird\n")
    (project / "src/a.py").write_text("x = 1\n")
    (project / "two words.md").write_text("spaced\n")
    return project


def denying(*rules: str) -> Any:
    return tuple(parse_rule(rule, Behavior.DENY, Origin("test")) for rule in rules)


@requirement("PROG-5", "HELD-5")
async def test_a_file_that_a_prompt_names_is_sent_with_it_and_counts_as_read(folder: Path) -> None:
    edit = {"name": "Edit", "input": {"file_path": "f.txt", "old_string": "second", "new_string": "2nd"}}
    allowed = (parse_rule("Edit", Behavior.ALLOW, Origin("test")),)

    async with talk(folder, {"calls": [edit]}, {"text": "Done."}, rules=allowed) as at:
        answer = await at.ask("Look at @f.txt, please.")

        first = at.prompt(0)
        assert first.startswith("Look at @f.txt, please.")
        assert f"Content of {folder}/f.txt:" in first
        assert "second" in first
    assert (answer.ending, answer.denials, (folder / "f.txt").read_text()) == (
        Ending.SUCCESS,
        (),
        "first\n2nd\nthird\n",
    )


@requirement("PROG-5", "HELD-5", "PERM-5")
@pytest.mark.parametrize("name", ["f.txt", "./f.txt", "link"])
async def test_a_file_that_a_rule_denies_is_not_read_and_that_is_said(folder: Path, name: str) -> None:
    (folder / "link").symlink_to("f.txt")

    async with talk(folder, rules=denying("Read(./f.txt)")) as at:
        answer = await at.ask(f"Look at @{name}")

        sent = at.prompt()
    assert "second" not in sent
    assert f"{folder}/{'link' if name == 'link' else 'f.txt'} was not read: " in sent
    assert [denial.call.name for denial in answer.denials] == ["Read"]
    assert answer.exit_code == 3


@requirement("PROG-5", "PERM-6")
async def test_a_secret_that_a_prompt_names_is_not_read_where_nobody_can_be_asked(folder: Path) -> None:
    (folder / ".env").write_text("TOKEN=abc\n")

    async with talk(folder) as at:
        await at.ask("What is in @.env?")

        assert "TOKEN" not in at.prompt()
        assert f"{folder}/.env was not read" in at.prompt()


@requirement("PROG-5")
async def test_lines_and_names_with_spaces_are_understood(folder: Path) -> None:
    async with talk(folder) as at:
        await at.ask('Compare @f.txt#L2-3 with @"two words.md".')

        sent = at.prompt()
    assert "lines 2 to 3:" in sent
    assert "second" in sent
    assert "first" not in sent.partition("Content of")[2]
    assert "spaced" in sent


@requirement("PROG-5", "PERM-5")
async def test_a_folder_that_a_prompt_names_is_listed_without_what_rules_hide(folder: Path) -> None:
    (folder / "src/hidden").mkdir()
    (folder / "src/hidden.py").write_text("")

    async with talk(
        folder, rules=denying("Read(./src/hidden/**)", "Read(./src/hidden)", "Read(./src/hidden.py)")
    ) as at:
        await at.ask("See @src/")

        listing = at.prompt().partition("Content of the folder")[2]
    assert "deep/" in listing
    assert "a.py" in listing
    assert "hidden" not in listing


@requirement("PROG-5", "MCP-4")
async def test_a_resource_of_a_server_that_a_prompt_names_is_read(folder: Path) -> None:
    async with talk(folder, servers=(config(raw()),)) as at:
        await at.ask("Use @raw:note://1 and @other:note://1")

        assert "Content of raw:note://1:" in at.prompt()
        assert "other:note://1:" not in at.prompt()


@requirement("PROG-5")
async def test_a_message_of_several_parts_may_name_files_too(folder: Path) -> None:
    picture = Image("image/png", "iVBORw0KGgo=")

    async with talk(folder) as at:
        await at.ask((Text("Compare @f.txt with"), picture))

        sent = at.server.bodies[0]["messages"][-1]["content"]
    assert [part["type"] for part in sent[:4]] == ["text", "image", "text", "text"]
    assert "second" in sent[3]["text"]


@requirement("PROG-5")
@pytest.mark.parametrize(
    "prompt", ["Write to ann@example.com", "What does @dataclass do?", "@nobody said so", "```\n@f.txt\n```", "a@f.txt"]
)
async def test_what_names_no_file_stays_text(folder: Path, prompt: str) -> None:
    async with talk(folder) as at:
        await at.ask(prompt)

        assert at.prompt() == prompt


def test_each_thing_is_found_once_and_in_its_order(folder: Path) -> None:
    text = "(@src/a.py), @src and @f.txt; @f.txt! @f.txt#L7 @srv:x://y."

    assert find_mentions(text, str(folder), ("srv",)) == (
        FileMention(f"{folder}/src/a.py"),
        FolderMention(f"{folder}/src"),
        FileMention(f"{folder}/f.txt"),
        FileMention(f"{folder}/f.txt", (7, 7)),
        ResourceMention("srv", "x://y."),
    )


@given(st.text(alphabet=st.sampled_from('@ab/.#L1- "\0~\n')))
def test_any_text_can_be_looked_through(text: str) -> None:
    assert isinstance(find_mentions(text, "/nowhere"), tuple)

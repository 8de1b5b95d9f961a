"""What the model is given without a call passes the judge as a Read would."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.app.session_opening import OpenedSession, open_conversation
from ferrule.app.session_settings import Settings, reading_door
from ferrule.core.calls import ToolCall
from ferrule.core.content import plain_text
from ferrule.permissions.modes import Mode
from ferrule.settings.definition_files import DefinitionFiles
from ferrule.settings.levels import surroundings
from tests.permissions.scene import rules_of
from tests.requirement import requirement

SECRET = "xyzzy-77"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    for path in (home, workspace / "secret", workspace / "docs", workspace / "sub"):
        path.mkdir(parents=True)
    (workspace / "secret/k.txt").write_text(SECRET)
    (workspace / ".env").write_text(f"KEY={SECRET}")
    (workspace / "docs/style.md").write_text("Short sentences.")
    return workspace


def opened(folder: Path, *, mode: Mode = Mode.DEFAULT, **rules: list[str]) -> OpenedSession:
    settings = Settings(
        cwd=str(folder),
        rules=rules_of(rules),
        mode=mode,
        state_folder=folder.parent / "state",
        pages=DefinitionFiles(surroundings(str(folder), {"HOME": str(folder.parent / "home")})),
    )
    assert settings.pages is not None
    behind = settings.pages.behind(reading_door(settings))
    return open_conversation(
        Settings(cwd=settings.cwd, rules=settings.rules, mode=mode, state_folder=settings.state_folder, pages=behind)
    )


@requirement("HELD-5")
@pytest.mark.parametrize(
    "name", ["CLAUDE.md", "AGENTS.md", ".claude/CLAUDE.md", ".claude/rules/r.md", "CLAUDE.local.md"]
)
@pytest.mark.parametrize("imported", ["secret/k.txt", "./docs/../secret/k.txt", "link.md", ".env"])
def test_an_import_passes_neither_deny_rules_nor_the_list_of_secrets(folder: Path, name: str, imported: str) -> None:
    (folder / "link.md").symlink_to("secret/k.txt")
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f"Be careful.\n@{folder}/{imported}\n@{folder}/docs/style.md\n")

    conversation = opened(folder, deny=["Read(./secret/**)"])

    assert SECRET not in conversation.session.system
    assert "Be careful." in conversation.session.system
    assert "Short sentences." in conversation.session.system
    assert "[left out: " in conversation.session.system
    assert [warning for warning in conversation.warnings if "is left out" in warning]


@requirement("HELD-5")
def test_an_instruction_file_that_is_denied_or_a_link_to_a_secret_is_left_out(folder: Path) -> None:
    (folder / "CLAUDE.md").symlink_to(".env")

    conversation = opened(folder)

    assert SECRET not in conversation.session.system
    assert "may hold secrets" in " ".join(conversation.warnings)


@requirement("HELD-5")
async def test_a_nested_instruction_file_passes_the_same_door(folder: Path) -> None:
    (folder / "sub/CLAUDE.md").write_text("Down here.\n@../secret/k.txt\n")
    (folder / "sub/a.txt").write_text("a")
    conversation = opened(folder, deny=["Read(./secret/**)"])

    async with conversation.session as session:
        (outcome,) = await session.run([ToolCall("1", "Read", {"file_path": "sub/a.txt"})])

    told = " ".join((plain_text(outcome.content), *map(str, outcome.messages)))
    assert "Down here." in told
    assert SECRET not in told
    assert "[left out: " in told


@requirement("HELD-5")
def test_what_a_rule_allows_by_name_is_imported(folder: Path) -> None:
    (folder / "CLAUDE.md").write_text("@.env\n")

    assert SECRET in opened(folder, allow=["Read(./.env)"]).session.system
    assert SECRET in opened(folder, mode=Mode.BYPASS).session.system
    assert SECRET not in opened(folder, mode=Mode.BYPASS, deny=["Read(.env)"]).session.system


@requirement("HELD-5")
@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.DONT_ASK, Mode.PLAN])
def test_a_users_own_file_is_theirs_and_what_it_imports_is_judged(folder: Path, mode: Mode) -> None:
    mine = folder.parent / "home/.claude"
    mine.mkdir()
    (mine / "CLAUDE.md").write_text(f"Mine.\n@~/notes.md\n@{folder}/secret/k.txt\n")
    (folder.parent / "home/notes.md").write_text("Notes.")

    system = opened(folder, mode=mode, deny=["Read(~/.claude/**)", "Read(./secret/**)"]).session.system

    assert "Mine." in system
    assert "Notes." in system
    assert SECRET not in system


@requirement("HELD-5")
def test_an_ask_rule_leaves_out_what_nobody_was_asked_about(folder: Path) -> None:
    (folder / "CLAUDE.md").write_text("@docs/style.md\n")

    conversation = opened(folder, ask=["Read(./docs/**)"])

    assert "Short sentences." not in conversation.session.system
    assert "nobody was asked" in " ".join(conversation.warnings)


@requirement("HELD-5")
def test_a_skill_whose_file_is_denied_or_a_secret_is_skipped(folder: Path) -> None:
    for name in ("good", "denied", "linked"):
        (folder / ".claude/skills" / name).mkdir(parents=True)
    (folder / ".claude/skills/good/SKILL.md").write_text("---\ndescription: fine\n---\nHello.")
    (folder / ".claude/skills/denied/SKILL.md").write_text(f"---\ndescription: {SECRET}\n---\nHello.")
    (folder / ".claude/skills/linked/SKILL.md").symlink_to(folder / ".env")

    conversation = opened(folder, deny=["Read(./.claude/skills/denied/**)"])

    skipped = [warning for warning in conversation.warnings if "is skipped" in warning]
    assert len(skipped) == 2
    assert SECRET not in " ".join(skipped)


@requirement("HELD-5")
async def test_a_skills_references_and_commands_pass_the_same_rules(folder: Path) -> None:
    (folder / ".claude/skills/peek").mkdir(parents=True)
    (folder / ".claude/skills/peek/SKILL.md").write_text("---\ndescription: peek\n---\nSee @.env and @secret/k.txt")
    conversation = opened(folder, deny=["Read(./secret/**)"])

    async with conversation.session as session:
        (outcome,) = await session.run([ToolCall("1", "Skill", {"skill": "peek"})])

    assert SECRET not in " ".join((plain_text(outcome.content), *map(str, outcome.messages)))

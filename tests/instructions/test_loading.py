from __future__ import annotations

import os
from pathlib import Path

from ferrule.instructions.instruction_loading import MOST_BYTES, Instruction, Reader
from ferrule.instructions.instruction_places import starting_places
from ferrule.settings.levels import Level, surroundings
from ferrule.settings.reload import EVERY_LEVEL
from tests.requirement import requirement


def load(
    cwd: Path, home: Path, *, trusting: bool = False, levels: frozenset[Level] = EVERY_LEVEL
) -> tuple[list[Instruction], list[str]]:
    around = surroundings(str(cwd), {"HOME": str(home)}, managed_folders=(str(home / "managed"),))
    reader = Reader(roots=(os.path.realpath(cwd),), trusting=trusting)
    return reader.read(starting_places(around, levels)), reader.warnings


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_md", ".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def names(found: list[Instruction], base: Path) -> list[str]:
    return [os.path.relpath(one.path, base) for one in found]


@requirement("LOOP-3")
def test_instructions_come_from_far_to_near(tmp_path: Path) -> None:
    home = write(tmp_path / "home", managed__CLAUDE_md="m", **{".claude__CLAUDE_md": "u"})
    write(home / "top", CLAUDE_md="top", **{"CLAUDE.local.md": "mine"})
    cwd = write(home / "top" / "in", CLAUDE_md="in", **{".claude__CLAUDE_md": "in2", ".claude__rules__r_md": "rule"})

    found, warnings = load(cwd, home)

    assert names(found, home) == [
        "managed/CLAUDE.md",
        ".claude/CLAUDE.md",
        "top/CLAUDE.md",
        "top/CLAUDE.local.md",
        "top/in/CLAUDE.md",
        "top/in/.claude/CLAUDE.md",
        "top/in/.claude/rules/r.md",
    ]
    assert warnings == []


@requirement("LOOP-3")
def test_agents_md_is_read_where_a_folder_has_no_claude_md(tmp_path: Path) -> None:
    write(tmp_path / "a", AGENTS_md="for all agents")
    write(tmp_path / "b", AGENTS_md="for all agents", CLAUDE_md="for one")

    assert names(load(tmp_path / "a", tmp_path / "home")[0], tmp_path) == ["a/AGENTS.md"]
    assert names(load(tmp_path / "b", tmp_path / "home")[0], tmp_path) == ["b/CLAUDE.md"]


@requirement("LOOP-3")
def test_levels_that_are_left_out_bring_nothing(tmp_path: Path) -> None:
    home = write(tmp_path / "home", **{".claude__CLAUDE_md": "u"})
    cwd = write(tmp_path / "w", CLAUDE_md="p", **{"CLAUDE.local.md": "l"})

    assert load(cwd, home, levels=frozenset())[0] == []
    assert names(load(cwd, home, levels=frozenset({Level.LOCAL}))[0], tmp_path) == ["w/CLAUDE.local.md"]


@requirement("LOOP-3")
def test_imports_follow_their_file_once_and_in_circles_end(tmp_path: Path) -> None:
    cwd = write(
        tmp_path / "w", CLAUDE_md="See @docs/a.md. And @gone.md", docs__a_md="@b.md @../CLAUDE.md", docs__b_md="@a.md b"
    )

    found, warnings = load(cwd, tmp_path / "home")

    assert names(found, cwd) == ["CLAUDE.md", "docs/a.md", "docs/b.md"]
    assert warnings == []


def test_imports_go_four_files_deep(tmp_path: Path) -> None:
    deep = {f"i{number}_md": f"@i{number + 1}.md" for number in range(1, 7)}
    cwd = write(tmp_path / "w", CLAUDE_md="@i1.md", **deep)

    found, warnings = load(cwd, tmp_path / "home")

    assert names(found, cwd) == ["CLAUDE.md", "i1.md", "i2.md", "i3.md", "i4.md"]
    assert warnings == [f"{cwd}/i5.md is left out: it is imported more than 4 files deep."]


@requirement("LOOP-3")
def test_an_import_from_outside_needs_approval(tmp_path: Path) -> None:
    write(tmp_path, secret_md="secret")
    cwd = write(tmp_path / "w", CLAUDE_md="@../secret.md")

    found, warnings = load(cwd, tmp_path / "home")
    trusted, _ = load(cwd, tmp_path / "home", trusting=True)

    assert names(found, cwd) == ["CLAUDE.md"]
    assert "outside of the workspace" in warnings[0]
    assert names(trusted, cwd) == ["CLAUDE.md", "../secret.md"]


def test_the_users_own_file_imports_from_anywhere(tmp_path: Path) -> None:
    write(tmp_path, mine_md="mine")
    home = write(tmp_path / "home", **{".claude__CLAUDE_md": "@../../mine.md"})

    assert len(load(write(tmp_path / "w", a="x"), home)[0]) == 2


def test_a_link_that_leads_out_is_left_out_and_one_inside_is_followed(tmp_path: Path) -> None:
    write(tmp_path, secret_md="secret")
    cwd = write(tmp_path / "w", AGENTS_md="agents")
    (cwd / "CLAUDE.md").symlink_to("AGENTS.md")
    (cwd / "CLAUDE.local.md").symlink_to(tmp_path / "secret.md")

    found, warnings = load(cwd, tmp_path / "home")

    assert [one.text for one in found] == ["agents"]
    assert "outside of the workspace" in warnings[0]


def test_what_is_no_text_is_said_and_not_waited_for(tmp_path: Path) -> None:
    cwd = tmp_path / "w"
    (cwd / ".claude" / "CLAUDE.md").mkdir(parents=True)
    os.mkfifo(cwd / "CLAUDE.md")
    (cwd / "CLAUDE.local.md").write_bytes(b"\x7fELF\0\0")

    found, warnings = load(cwd, tmp_path / "home")

    assert found == []
    assert [line.rpartition(": ")[2] for line in warnings] == [
        "it is a named pipe.",
        "it is a directory.",
        "it is not text.",
    ]


def test_a_link_to_nowhere_is_said(tmp_path: Path) -> None:
    cwd = tmp_path / "w"
    cwd.mkdir()
    (cwd / "CLAUDE.md").symlink_to("gone")

    assert load(cwd, tmp_path / "home")[1] == [f"{cwd}/CLAUDE.md is left out: No such file or directory."]


def test_a_very_long_file_is_cut_and_that_is_said(tmp_path: Path) -> None:
    cwd = write(tmp_path / "w", CLAUDE_md="x" * (MOST_BYTES + 1))

    (found,), warnings = load(cwd, tmp_path / "home")

    assert len(found.text) == MOST_BYTES
    assert warnings == [f"{cwd}/CLAUDE.md is longer than 100,000 bytes; the rest of it is left out."]

"""The sandbox of a command that nobody approved, from grants to what is on disk afterwards."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ferrule.core.effects import Change, Effects, ReadsPath, RunsCommand, Touch, WritesPath
from ferrule.core.verdicts import Confinement, Grants
from ferrule.host.processes.command import Ran
from ferrule.host.processes.held_places import HeldPlaces
from ferrule.host.processes.held_sandbox import all_but
from ferrule.host.processes.session_shell import Shell
from tests.host.processes.shell import need_mounts, need_sandbox
from tests.requirement import requirement


class ByName:
    """Takes files called `key` for secrets."""

    def may_be(self, name: str, /) -> bool:
        return name == "key"

    def is_secret(self, path: str, /) -> bool:
        return path.endswith("/key")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    need_sandbox()
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / "work" / "a").write_text("old\n")
    (tmp_path / "work" / "key").write_text("xyzzy\n")
    return tmp_path / "work"


@pytest.fixture
async def shell(work: Path) -> AsyncIterator[Shell]:
    made = Shell(work.parent / "output", places=HeldPlaces(roots=lambda: (str(work),), secrets=ByName()))
    yield made
    await made.close()


def declaring(*touches: Touch) -> Effects:
    return Effects.of(RunsCommand(("touch",), "touch", accounted=True), *touches)


async def ran(shell: Shell, work: Path, text: str, effects: Effects, needed: Confinement | None = None) -> Ran:
    needed = needed or Confinement(grants=Grants.for_effects(effects))
    return await shell.commands.run(await shell.hold_to_grants(text, str(work), needed, effects), timeout=30)


@requirement("HELD-11")
async def test_a_protected_name_changes_only_where_it_was_itself_declared(shell: Shell, work: Path) -> None:
    """Only a rule that spells it lets it be declared without an approval; a tree around it is not enough."""
    need_mounts()
    for name in (".husky/hook", "sub/.husky/hook"):
        (work / name).parent.mkdir(parents=True)
        (work / name).write_text("old\n")
    spelled = declaring(WritesPath(f"{work}/.husky/hook", Change.REPLACES))
    around = Effects.of(RunsCommand(("rm", "-r"), "rm -r", accounted=True), WritesPath(f"{work}/sub", Change.UNLINKS))
    for effects in (spelled, around):
        await ran(shell, work, "echo new > .husky/hook; echo new > sub/.husky/hook", effects)

    assert (work / ".husky" / "hook").read_text() == "new\n"
    assert (work / "sub" / ".husky" / "hook").read_text() == "old\n"


@requirement("HELD-11", "PERM-5")
async def test_a_denied_name_stays_though_a_tree_around_it_was_declared(shell: Shell, work: Path) -> None:
    need_mounts()
    for name in ("sub/kept", "sub/other"):
        (work / name).write_text("old\n")
    effects = Effects.of(RunsCommand(("rm", "-r"), "rm -r", accounted=True), WritesPath(f"{work}/sub", Change.UNLINKS))
    needed = Confinement(grants=Grants.for_effects(effects), unwritable=(f"{work}/**/kept",))

    await ran(shell, work, "echo new > sub/kept; echo new > sub/other", effects, needed)

    assert (work / "sub" / "kept").read_text() == "old\n"
    assert (work / "sub" / "other").read_text() == "new\n"


@requirement("HELD-13")
async def test_a_secret_is_read_only_where_it_was_itself_declared(shell: Shell, work: Path) -> None:
    passing = await ran(shell, work, "cat key a", declaring(ReadsPath(str(work))))
    named = await ran(shell, work, "cat key", declaring(ReadsPath(f"{work}/key")))

    assert "xyzzy" not in passing.output.text()
    assert "old" in passing.output.text()
    assert named.output.text() == "xyzzy\n"


@requirement("HELD-12")
async def test_a_declared_home_is_not_opened_as_a_whole(shell: Shell, work: Path) -> None:
    home = os.path.expanduser("~")
    outside = work.parent / "outside"
    outside.write_text("xyzzy\n")

    granted = await ran(shell, work, f"cat {outside}", declaring(ReadsPath(str(outside))))
    command = await shell.hold_to_grants(
        "true", str(work), Confinement(grants=Grants(reads=(home, "/"))), declaring(ReadsPath(home))
    )

    assert granted.output.text() == "xyzzy\n"
    assert command.jail is not None
    assert not {home, "/"} & set(command.jail["readable"] or ())


@requirement("HELD-10")
async def test_a_name_outside_of_the_workspace_cannot_be_held(shell: Shell, work: Path) -> None:
    await shell.try_it()

    inside = Grants.for_effects(declaring(WritesPath(f"{work}/a", Change.REPLACES)))
    outside = Grants.for_effects(declaring(WritesPath(f"{work.parent}/x", Change.REPLACES)))

    assert not shell.confines(Confinement(grants=outside))
    if (await shell.offers()).keep_for(str(work), background=False):
        assert shell.confines(Confinement(grants=inside))


@requirement("HELD-12")
async def test_where_the_workspace_is_the_root_only_what_is_declared_is_read(work: Path) -> None:
    shell = Shell(work.parent / "output", places=HeldPlaces(roots=lambda: ("/",), secrets=ByName()))
    try:
        declared = await ran(shell, Path("/"), f"cat {work}/a", declaring(ReadsPath(f"{work}/a")))
        other = await ran(shell, Path("/"), f"cat {work}/a", declaring(ReadsPath("/")))
        passing = await ran(shell, Path("/"), f"cat {work}/*", declaring(ReadsPath(str(work))))
    finally:
        await shell.close()

    assert declared.output.text() == "old\n"
    assert "old" not in other.output.text()
    assert "old" in passing.output.text()
    assert "xyzzy" not in passing.output.text()


def test_what_is_named_in_a_hidden_folder_leaves_the_rest_of_it_hidden(tmp_path: Path) -> None:
    for name in ("secrets/a", "secrets/b", "secrets/deep/c", "secrets/deep/d"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    folder = str(tmp_path / "secrets")

    hidden = {os.path.relpath(path, folder) for path in all_but(folder, [f"{folder}/deep/c"])}

    assert hidden == {"a", "b", "deep/d"}
    assert list(all_but(folder, [str(tmp_path)])) == [folder]
    assert list(all_but(folder, [folder])) == []

"""Where git keeps things: worktrees, submodules, bare and borrowed repositories, and those that lead elsewhere."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ferrule.host.git.git_history import GitHistory
from ferrule.host.git.git_places import find_repository
from ferrule.permissions.modes import Mode
from tests.permissions.git_scene import ENVIRONMENT, SECRET, SECRETS, git, make_repository, opened, said
from tests.requirement import requirement

DUMP = """python3 - <<'EOF'
import glob, subprocess, zlib
for path in glob.glob('FOLDER/??/*'):
    try:
        print(zlib.decompress(open(path, 'rb').read()))
    except OSError as error:
        print(error)
EOF"""
"""A program nobody can look into, that reads every loose object of a repository."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template") / "repository"
    make_repository(folder)
    return folder


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "workspace", symlinks=True)
    return tmp_path / "workspace"


async def shown_by(folder: Path, commands: list[str], *deny: str) -> str:
    """What the commands print in a session that allows everything but what is denied."""
    async with opened(folder, Mode.BYPASS, *deny) as session:
        return "\n".join([await said(session, command) for command in commands])


def keeps(shown: str) -> bool:
    return not any(secret in shown for secret in SECRETS)


def dump(objects: Path | str) -> str:
    return DUMP.replace("FOLDER", str(objects))


@requirement("HELD-4")
async def test_a_linked_worktree_shares_what_is_denied_and_what_is_not(folder: Path) -> None:
    linked = folder.parent / "linked"
    git(folder, "worktree", "add", "-q", str(linked), "other")
    hidden = ["git log -p --all", "git show other", "git archive HEAD", dump(folder / ".git" / "objects")]

    assert keeps(await shown_by(linked, hidden, "Read(./vault/**)"))
    assert keeps(
        await shown_by(folder, [f"git -C {linked} log -p", f"git -C {linked} diff HEAD~1"], "Read(./vault/**)")
    )
    assert "open one" in await shown_by(linked, ["git show HEAD:README.md"], "Read(./vault/**)")


@requirement("HELD-4")
async def test_a_bare_repository_is_held_to_the_paths_of_the_folder_it_is_in(folder: Path) -> None:
    git(folder, "clone", "-q", "--bare", ".", "copy.git")
    commands = ["git -C copy.git show HEAD:vault/key.txt", "git -C copy.git log -p", "git -C copy.git archive HEAD"]

    assert keeps(await shown_by(folder, [*commands, "cd copy.git && git show HEAD~1"], "Read(./vault/**)"))
    assert "open two" in await shown_by(folder, ["git -C copy.git show HEAD"], "Read(./vault/**)")


@requirement("HELD-4")
async def test_the_repository_of_a_submodule_is_held_too(folder: Path, template: Path) -> None:
    git(folder, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(template), "sub")
    git(folder, "commit", "-q", "-m", "a submodule", ".gitmodules", "sub")
    stored = folder / ".git" / "modules" / "sub" / "objects"
    commands = ["git -C sub log -p", "git -C sub show HEAD~1", "git log -p --submodule=diff", dump(stored)]

    assert keeps(
        await shown_by(
            folder, [*commands, "git submodule foreach git log -p"], "Read(./sub/vault/**)", "Read(./vault/**)"
        )
    )
    assert "open two" in await shown_by(folder, ["git -C sub show HEAD"], "Read(./sub/vault/**)")


@requirement("HELD-4")
async def test_objects_that_are_borrowed_are_hidden_where_they_lie(folder: Path) -> None:
    borrower = folder.parent / "borrower"
    git(folder, "clone", "-q", "--shared", ".", str(borrower))

    commands = [dump(folder / ".git" / "objects"), "git archive HEAD", "git log -p"]
    assert keeps(await shown_by(borrower, commands, "Read(./vault/**)"))
    assert "open two" in await shown_by(borrower, ["git show HEAD"], "Read(./vault/**)")


@requirement("HELD-4")
async def test_a_folder_inside_a_repository_denies_what_is_in_it(folder: Path) -> None:
    (folder / "vault" / "inner").mkdir()
    commands = ["git show HEAD~1", "git log -p", "git diff HEAD~1 -- ..", dump(folder / ".git" / "objects")]
    shown = await shown_by(folder / "vault", commands, "Read(./key.txt)")

    assert keeps(shown)
    assert "left out: vault/key.txt" in shown


@requirement("HELD-4")
async def test_a_deny_by_a_wildcard_holds_in_the_history(folder: Path) -> None:
    shown = await shown_by(folder, ["git show HEAD~1", "git log -p", "git archive HEAD", "git diff"], "Read(**/*.txt)")

    assert keeps(shown)
    assert "left out: vault/key.txt" in shown
    assert "+print(2)" in shown


@requirement("HELD-4")
async def test_what_is_not_in_the_history_hides_nothing(folder: Path) -> None:
    """A program nobody can look into still uses git, where all that is denied was never committed."""
    (folder / ".env").write_text("KEY=1\n")
    shown = await shown_by(
        folder, ["python3 -c \"import os; os.system('git log -p')\"", "git archive HEAD | wc -c"], "Read(./.env)"
    )

    assert "open two" in shown
    assert "left out" not in shown


@requirement("HELD-4")
async def test_a_file_that_is_only_in_the_index_counts_as_kept(folder: Path) -> None:
    (folder / "new.txt").write_text(f"{SECRET} new\n")
    git(folder, "add", "new.txt")
    (folder / "new.txt").unlink()

    commands = ["git diff --cached", "git show :new.txt", "git stash", "git checkout-index -a", "cat new.txt"]
    assert f"{SECRET} new" not in await shown_by(folder, commands, "Read(./new.txt)")


@requirement("HELD-4")
async def test_a_branch_that_is_gone_does_not_open_what_was_seen_of_it(folder: Path) -> None:
    git(folder, "reset", "-q", "--hard")
    git(folder, "switch", "-q", "--orphan", "clean")
    (folder / "vault").mkdir(exist_ok=True)
    commands = [
        "true; python3 --version",
        "git branch -D main other; git tag -d v1 a-file; git stash clear; rm -rf .git/logs",
        dump(folder / ".git" / "objects"),
    ]
    assert keeps(await shown_by(folder, commands, "Read(./vault/**)"))


@requirement("HELD-4")
async def test_a_hook_of_the_repository_does_not_run_where_it_could_look(folder: Path) -> None:
    hook = folder / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\ngit show HEAD:vault/key.txt\n")
    hook.chmod(0o755)
    shown = await shown_by(folder, ["git commit --allow-empty -m x", "git add src"], "Read(./vault/**)")

    assert keeps(shown)
    assert "vault/ is in the history" in shown


@requirement("HELD-4")
async def test_a_filter_that_is_configured_does_not_run_where_it_could_look(folder: Path) -> None:
    git(folder, "config", "filter.x.clean", "git show HEAD:vault/key.txt >&2; cat")
    (folder / ".gitattributes").write_text("*.py filter=x\n")

    git(folder, "config", "diff.external", "git show HEAD:vault/key.txt; :")

    commands = ["git add src", "git diff", "git status", "git add src; git diff HEAD", "git tag x && git diff HEAD~1"]
    assert keeps(await shown_by(folder, commands, "Read(./vault/**)"))


@requirement("HELD-4")
async def test_a_history_that_takes_too_long_is_taken_to_hold_what_is_denied(folder: Path) -> None:
    (folder / ".env").write_text("KEY=1\n")
    patterns = [f"{folder}/.env"]
    quick, late = GitHistory(folder.parent / "a"), GitHistory(folder.parent / "b", seconds=0)

    assert not (await quick.hold(patterns, str(folder), ENVIRONMENT)).hidden
    assert (await late.hold(patterns, str(folder), ENVIRONMENT)).hidden == (str(folder / ".git" / "objects"),)


@requirement("HELD-4")
async def test_a_state_of_the_repository_is_looked_at_once(folder: Path) -> None:
    history = GitHistory(folder.parent / "guards")
    patterns = [f"{folder}/vault"]
    first = await history.hold(patterns, str(folder), ENVIRONMENT)
    again = await history.hold(patterns, str(folder), {**ENVIRONMENT, "PATH": "/nowhere"})

    assert first.hidden == again.hidden == (str(folder / ".git" / "objects"),)
    assert str(folder / ".git") in first.protected


# Repositories that lead elsewhere


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "note.txt").write_text("plugh of outside\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "outside")
    (folder / "note.txt").write_text("plugh of outside, changed\n")
    return folder


@requirement("HELD-4", "PERM-5")
async def test_git_asks_before_it_reads_outside_of_the_workspace(folder: Path, outside: Path) -> None:
    (folder / "p").mkdir()
    (folder / "link").symlink_to(outside / ".git")
    bare = folder / "evil.git"
    git(folder, "init", "-q", "--bare", "evil.git")
    (bare / "config").write_text(f"[core]\n\tbare = false\n\tworktree = {outside}\n")
    shutil.copytree(outside / ".git" / "objects", bare / "objects", dirs_exist_ok=True)
    shutil.copy(outside / ".git" / "index", bare / "index")
    for name, pointer in {"by-file": f"gitdir: {outside}/.git\n", "by-link": None, "by-common": None}.items():
        (folder / name).mkdir()
        if pointer:
            (folder / name / ".git").write_text(pointer)
    (folder / "by-link" / ".git").symlink_to(outside / ".git")
    shutil.copytree(outside / ".git", folder / "by-common" / ".git")
    shutil.rmtree(folder / "by-common" / ".git" / "objects")
    (folder / "by-common" / ".git" / "commondir").write_text(f"{outside}/.git\n")
    commands = [
        "git diff README.md p/../../outside/note.txt",
        "git diff --no-index README.md p/../../outside/note.txt",
        "git -C p/../.. diff --no-index workspace/README.md outside/note.txt",
        "git -C evil.git diff",
        "git -C by-file show",
        "git -C by-link show",
        "git -C by-common show",
        "cd by-file && git log -p",
        "git -C link/.. show",
        "git -C ../outside show",
        "git grep --no-index pl.gh p/../../outside",
        "git blame --contents p/../../outside/note.txt README.md",
    ]
    async with opened(folder, Mode.DEFAULT) as session:
        for command in commands:
            shown = await said(session, command)
            assert "plugh" not in shown, command
            assert "not allowed" in shown, (command, shown)


@requirement("HELD-4")
async def test_worktrees_and_submodules_are_where_one_would_look_for_them(folder: Path, template: Path) -> None:
    linked = folder.parent / "linked"
    git(folder, "worktree", "add", "-q", str(linked), "other")
    git(folder, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(template), "sub")

    for place in (folder, linked, folder / "sub", folder / "src"):
        found = find_repository(str(place))
        assert found is not None, place
        assert not list(found.elsewhere()), place
    async with opened(linked, Mode.DEFAULT) as session:
        assert "only the vault" in await said(session, "git show")
    async with opened(folder / "sub", Mode.DEFAULT) as session:
        assert "both" in await said(session, "git log -1")


# Secrets


@requirement("HELD-4")
@pytest.mark.parametrize(
    "command",
    """
    git show HEAD:.env
    git show HEAD:./.env
    git show :.env
    git show HEAD -- .env
    git show HEAD .env
    git diff .env
    git diff HEAD~1 -- .env
    git diff HEAD~1:.env HEAD:.env
    git log -p -- .env
    git log -p ':(top).env'
    git blame .env
    git grep KEY -- .env
    git grep KEY HEAD -- .env
    git cat-file -p HEAD:.env
    """.strip().splitlines(),
)
async def test_a_secret_is_asked_about_in_the_history_as_it_is_as_a_file(folder: Path, command: str) -> None:
    (folder / ".env").write_text("KEY=plugh\n")
    git(folder, "add", "-f", ".env")
    git(folder, "commit", "-q", "-m", "a secret")
    async with opened(folder, Mode.DEFAULT) as session:
        shown = await said(session, command.strip())
        names = await said(session, "git log --oneline -- .env; git ls-files .env; git status --short .env")

    assert "not allowed" in shown
    assert "plugh" not in shown
    assert "a secret" in names


@requirement("HELD-4")
async def test_a_secret_that_a_command_passes_over_is_left_out_of_the_history_too(folder: Path) -> None:
    (folder / ".env").write_text("KEY=plugh\n")
    git(folder, "add", "-f", ".env")
    git(folder, "commit", "-q", "-m", "a secret")
    async with opened(folder, Mode.DEFAULT) as session:
        for command in ("git show", "git log -p", "git diff HEAD~1", "git grep -n ."):
            shown = await said(session, command)
            assert "plugh" not in shown, command
            assert "left out: .env" in shown, shown
            assert "print" in shown or "a secret" in shown, shown


@requirement("HELD-4")
async def test_the_files_of_a_repository_are_hidden_from_whoever_opens_them(folder: Path) -> None:
    loose = git(folder, "rev-parse", "HEAD:vault/key.txt")
    path = f".git/objects/{loose[:2]}/{loose[2:]}"
    assert (folder / path).is_file()
    commands = [
        f"base64 {path}",
        f"git diff --no-index --binary /dev/null {path}",
        f"cat < {path} | od -c",
        f"xxd {path}",
    ]
    async with opened(folder, Mode.BYPASS, "Read(./vault/**)") as session:
        for command in commands:
            shown = await said(session, command)
            assert re.search("ermission denied|not access|No such file", shown), (command, shown)


@requirement("HELD-4")
async def test_what_is_denied_below_a_folder_stays_hidden_beside_a_change_of_the_repository(folder: Path) -> None:
    (folder / "src" / "vault").mkdir()
    (folder / "src" / "vault" / "key.txt").write_text(f"{SECRET}\n")
    shown = await shown_by(
        folder, ["git add README.md; cat src/va*/k*", "git reset -q; head src/*/*"], "Read(**/vault/**)"
    )

    assert keeps(shown)
    assert "vault/key.txt" in git(folder, "ls-files")


@requirement("HELD-4")
async def test_a_program_that_a_submodule_configures_does_not_run_where_it_could_look(
    folder: Path, template: Path
) -> None:
    git(folder, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(template), "sub")
    git(folder / "sub", "config", "core.fsmonitor", "git -C .. show HEAD:vault/key.txt >&2; false")
    commands = ["git add README.md", "git commit -m x", "git add sub"]

    assert keeps(await shown_by(folder, commands, "Read(./vault/**)"))
    assert "vault/key.txt" in git(folder, "ls-files")

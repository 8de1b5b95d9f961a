from __future__ import annotations

import subprocess
from datetime import date
from pathlib import Path

import pytest

from ferrule.instructions.git_facts import git_facts
from ferrule.instructions.prompt import environment
from tests.requirement import requirement


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Four commits on a branch with a slash in its name."""
    folder = tmp_path / "r"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "topic/one")
    for number in range(4):
        (folder / "a.txt").write_text(f"{number}\n" * 50)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"Commit {number}\n\nMore.")
    return folder


def log(folder: Path) -> tuple[str, ...]:
    return tuple(git(folder, "log", "--format=%h %s", "--abbrev=7", "-n", "5").split("\n"))


@requirement("LOOP-3")
def test_branch_commits_and_changes_agree_with_git(repository: Path) -> None:
    (repository / "b.txt").write_text("b\n")
    git(repository, "add", "b.txt")
    (repository / "a.txt").write_text("changed\n")
    (repository / "b.txt").unlink()

    facts = git_facts(str(repository))

    assert facts is not None
    assert (facts.branch, facts.commits) == ("topic/one", log(repository))
    assert facts.changed is not None
    assert (facts.changed.modified, facts.changed.deleted) == (("a.txt",), ("b.txt",))


def test_packed_commits_with_deltas_and_packed_references_are_read(repository: Path) -> None:
    body = "\n".join(f"line {number} of a long message" for number in range(200))
    for number in range(3):
        git(repository, "commit", "-q", "--allow-empty", "-m", f"Long {number}\n\n{body}")
    expected = log(repository)
    git(repository, "gc", "-q", "--aggressive")

    facts = git_facts(str(repository))

    assert not (repository / ".git" / "refs" / "heads" / "topic" / "one").exists()
    assert facts is not None
    assert (facts.branch, facts.commits) == ("topic/one", expected)


def test_a_detached_head_has_commits_and_no_branch(repository: Path) -> None:
    git(repository, "checkout", "-q", "HEAD~1")

    facts = git_facts(str(repository))

    assert facts is not None
    assert (facts.branch, facts.commits) == (None, log(repository))


def test_a_worktree_has_its_own_branch_and_the_common_commits(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"), "HEAD~2")

    facts = git_facts(str(tmp_path / "side"))

    assert facts is not None
    assert (facts.branch, facts.commits) == ("side", log(tmp_path / "side"))


def test_an_index_of_version_four_is_read(repository: Path) -> None:
    (repository / "folder").mkdir()
    (repository / "folder" / "one.txt").write_text("1\n")
    (repository / "folder" / "other.txt").write_text("2\n")
    git(repository, "add", "-A")
    git(repository, "update-index", "--index-version", "4")
    (repository / "folder" / "other.txt").write_text("changed\n")

    facts = git_facts(str(repository))

    assert facts is not None
    assert facts.changed is not None
    assert facts.changed.modified == ("folder/other.txt",)


def test_nothing_that_a_repository_configures_is_run(repository: Path) -> None:
    ran = repository / "ran"
    git(repository, "config", "core.fsmonitor", f"touch {ran}")
    git(repository, "config", "core.pager", f"touch {ran}")

    environment(str(repository), (), date(2026, 1, 2))

    assert not ran.exists()


@pytest.mark.parametrize("what", ["HEAD", "index", "packed-refs", "objects"])
def test_a_broken_repository_is_no_reason_to_fail(repository: Path, what: str) -> None:
    target = repository / ".git" / what
    if target.is_dir():
        for path in target.rglob("*"):
            if path.is_file():
                path.chmod(0o600)
                path.write_bytes(b"\x78\x9cnonsense")
    else:
        target.write_bytes(b"DIRC\0\0\0\x02\0\0\x10\0broken")

    assert "Working directory" in environment(str(repository), (), date(2026, 1, 2))


def test_outside_of_a_repository_that_is_said(tmp_path: Path) -> None:
    lines = environment(str(tmp_path), ("/other",), date(2026, 1, 2)).split("\n")

    assert lines[0] == f"Working directory: {tmp_path}"
    assert lines[1] == "Further directory: /other"
    assert lines[3] == "Date: 2026-01-02"
    assert lines[4] == "Git: not a repository"

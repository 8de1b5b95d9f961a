from __future__ import annotations

from pathlib import Path

from ferrule.host.git.checkouts import Checkout, checkout_of
from tests.requirement import requirement
from tests.settings.folders import git


def test_a_folder_in_a_repository_belongs_to_its_root(tmp_path: Path) -> None:
    git(tmp_path / "repo", "init")
    (tmp_path / "repo" / "a" / "b").mkdir(parents=True)

    assert checkout_of(str(tmp_path / "repo" / "a" / "b")) == _checkout(tmp_path / "repo")


def test_a_repository_inside_another_is_one_of_its_own(tmp_path: Path) -> None:
    git(tmp_path / "repo", "init")
    git(tmp_path / "repo" / "vendor" / "inner", "init")

    assert checkout_of(str(tmp_path / "repo" / "vendor" / "inner")) == _checkout(tmp_path / "repo" / "vendor" / "inner")


def test_a_worktree_belongs_to_the_main_checkout(tmp_path: Path) -> None:
    _committed(tmp_path / "repo")
    git(tmp_path / "repo", "worktree", "add", str(tmp_path / "tree"))

    assert checkout_of(str(tmp_path / "tree")) == Checkout(str(tmp_path / "tree"), str(tmp_path / "repo"))


@requirement("SET-4", "SEC-2")
def test_a_file_that_only_claims_to_be_a_worktree_is_not_believed(tmp_path: Path) -> None:
    _committed(tmp_path / "repo")
    git(tmp_path / "repo", "worktree", "add", str(tmp_path / "tree"))
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / ".git").write_text((tmp_path / "tree" / ".git").read_text())

    assert checkout_of(str(tmp_path / "claims")) == _checkout(tmp_path / "claims")


def test_a_submodule_is_a_repository_of_its_own(tmp_path: Path) -> None:
    _committed(tmp_path / "library")
    _committed(tmp_path / "repo")
    git(tmp_path / "repo", "-c", "protocol.file.allow=always", "submodule", "add", str(tmp_path / "library"), "lib")

    assert checkout_of(str(tmp_path / "repo" / "lib")) == _checkout(tmp_path / "repo" / "lib")


def test_a_worktree_of_a_bare_repository_stands_alone(tmp_path: Path) -> None:
    _committed(tmp_path / "repo")
    git(tmp_path, "clone", "--bare", str(tmp_path / "repo"), str(tmp_path / "bare"))
    git(tmp_path / "bare", "worktree", "add", str(tmp_path / "tree"))

    assert checkout_of(str(tmp_path / "tree")) == _checkout(tmp_path / "tree")


def test_a_folder_named_git_without_a_repository_is_none(tmp_path: Path) -> None:
    (tmp_path / "a" / ".git").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / ".git").write_bytes(b"\xff\0 no pointer")

    assert checkout_of(str(tmp_path / "a")) is None
    assert checkout_of(str(tmp_path / "b")) is None


def test_a_folder_is_found_through_a_link(tmp_path: Path) -> None:
    git(tmp_path / "repo", "init")
    (tmp_path / "link").symlink_to(tmp_path / "repo")

    assert checkout_of(str(tmp_path / "link")) == _checkout(tmp_path / "repo")


def _checkout(folder: Path) -> Checkout:
    return Checkout(str(folder), str(folder))


def _committed(folder: Path) -> None:
    git(folder, "init")
    git(folder, "commit", "--allow-empty", "-m", "first")

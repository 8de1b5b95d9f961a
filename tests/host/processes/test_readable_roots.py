"""What every held command may read: by homes that are set up in the ways people do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ferrule.host.processes.readable_roots import (
    NEVER_WHOLE,
    ReadableRoots,
    Roots,
    opens_too_much,
    python_base,
    user_git_files,
)
from tests.requirement import requirement


def made(home: Path, *files: str) -> None:
    for name in files:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("")


def roots(home: Path, path: str = "", **variables: str) -> Roots:
    return ReadableRoots({"HOME": str(home), "PATH": path, **variables}).current()


def may_read(found: Roots, path: Path | str) -> bool:
    path = str(path)
    inside = any(path == root or path.startswith(f"{root}/") for root in found.readable)
    return inside and not any(path == one or path.startswith(f"{one}/") for one in found.hidden)


@requirement("HELD-12")
def test_the_system_is_read_without_its_secrets(tmp_path: Path) -> None:
    found = roots(tmp_path)

    assert all(may_read(found, path) for path in ("/usr/bin/env", "/etc/hosts", "/proc/self/stat", "/dev/null"))
    secrets = [
        path for path in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssl/private") if os.path.exists(path)
    ]
    assert not any(may_read(found, path) for path in (*secrets, "/dev/mem", "/dev/sda", "/var/log/syslog"))


@requirement("HELD-12")
@pytest.mark.parametrize(
    "inside",
    [
        ".pyenv/versions/3.12/bin/python",
        ".nvm/versions/node/v20/bin/node",
        ".rustup/toolchains/stable/bin/rustc",
        ".cargo/bin/cargo",
        ".local/share/uv/python/cpython/bin/python3",
        "miniconda3/bin/conda",
        ".asdf/shims/node",
        ".local/share/mise/installs/x",
        "go/pkg/mod/x",
        ".volta/bin/node",
        ".deno/bin/deno",
        ".bun/bin/bun",
        ".sdkman/candidates/java/x",
        ".rbenv/shims/ruby",
        ".npm-global/lib/node_modules/x",
    ],
)
def test_a_known_tool_chain_is_read_where_it_exists(tmp_path: Path, inside: str) -> None:
    before = roots(tmp_path)
    made(tmp_path, inside)

    assert not may_read(before, tmp_path / inside)
    assert may_read(roots(tmp_path), tmp_path / inside)


@requirement("HELD-12")
def test_of_a_home_nothing_else_is_read(tmp_path: Path) -> None:
    private = (
        ".bashrc", ".ssh/id_rsa", ".aws/credentials", ".config/gh/hosts.yml", ".local/share/keyrings/x",
        ".cargo/credentials.toml", ".git-credentials", ".config/git/credentials", "other-project/main.py",
        "go/src/x.go", ".m2/settings.xml", ".npmrc",
    )  # fmt: skip
    made(tmp_path, *private, ".cargo/bin/cargo", ".local/bin/tool", "go/bin/x", ".m2/repository/x")
    path = f"{tmp_path}/.local/bin:{tmp_path}/.cargo/bin:{tmp_path}:.:{tmp_path.parent}"

    found = roots(
        tmp_path, path, CARGO_HOME=str(tmp_path / ".cargo"), PYENV_ROOT=str(tmp_path), GOPATH=f"{tmp_path}/go"
    )

    assert [name for name in private if may_read(found, tmp_path / name)] == []
    assert may_read(found, tmp_path / ".local/bin/tool")


@requirement("HELD-12")
@pytest.mark.parametrize("name", NEVER_WHOLE)
def test_no_root_opens_the_home_or_what_holds_it(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir(parents=True, exist_ok=True)

    assert opens_too_much(str(tmp_path / name).rstrip("/"), str(tmp_path))
    assert opens_too_much("/", str(tmp_path))


@requirement("HELD-12")
def test_a_program_on_path_is_read_with_what_its_link_leads_to(tmp_path: Path) -> None:
    made(
        tmp_path, "venvs/tool/bin/tool", "venvs/tool/lib/x.py", "venvs/tool/pyvenv.cfg", "lib/node_modules/tsc/bin/tsc",
        "lib/node_modules/dep/x.js", "versions/one", "versions/two", "bin/own",
    )  # fmt: skip
    for name, target in (
        ("tool", "venvs/tool/bin/tool"),
        ("tsc", "lib/node_modules/tsc/bin/tsc"),
        ("one", "versions/one"),
    ):
        (tmp_path / "bin" / name).symlink_to(tmp_path / target)

    found = roots(tmp_path, f"{tmp_path}/bin")

    read = ("bin/own", "venvs/tool/lib/x.py", "lib/node_modules/dep/x.js", "versions/one")
    assert all(may_read(found, tmp_path / name) for name in read)
    assert not may_read(found, tmp_path / "versions/two")


def test_what_is_installed_or_configured_later_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.host.processes.readable_roots.SURE_FOR", 0.0)
    watching = ReadableRoots({"HOME": str(tmp_path), "PATH": ""})
    watching.current()
    made(tmp_path, ".pyenv/x")
    (tmp_path / ".gitconfig").write_text("")

    assert may_read(watching.current(), tmp_path / ".pyenv/x")
    assert may_read(watching.current(), tmp_path / ".gitconfig")


@requirement("HELD-12")
def test_git_files_of_the_user_are_followed_and_bounded(tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text(
        '[user]\n\tname = a\n[include]\n\tpath = ~/more.inc ; why\n[includeIf "gitdir:~/work/"]\n\tpath = work.inc\n'
        "[core]\n\texcludesFile = ~/ignored\n\tsshCommand = ~/secret\n[credential]\n\tfile = ~/secret\n"
    )
    (tmp_path / "more.inc").write_text("[include]\npath=deeper/x.inc\n[include]\npath=more.inc\n")
    made(tmp_path, "work.inc", "deeper/x.inc", "ignored", "secret", ".config/git/config", ".config/git/credentials")

    found = {os.path.relpath(path, tmp_path) for path in user_git_files({}, str(tmp_path))}

    assert found == {".gitconfig", "more.inc", "work.inc", "deeper/x.inc", "ignored", ".config/git/config"}


def test_a_chain_of_includes_without_end_ends(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"{number}.inc").write_text(f"[include]\npath = {number + 1}.inc\n")
    (tmp_path / ".gitconfig").write_text("[include]\npath = 0.inc\n")

    assert len(user_git_files({}, str(tmp_path))) <= 32


@requirement("HELD-12")
def test_a_file_of_a_project_names_no_base_but_a_python(tmp_path: Path) -> None:
    made(tmp_path, "python/lib/python3.12/os.py", "python/bin/python3", "home/.ssh/id_rsa", "home/bin/x")
    for name, home in (("good", "python/bin"), ("bad", "home/bin")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pyvenv.cfg").write_text(f"home = {tmp_path / home}\n")

    assert python_base(str(tmp_path / "good")) == str(tmp_path / "python")
    assert python_base(str(tmp_path / "bad")) is None

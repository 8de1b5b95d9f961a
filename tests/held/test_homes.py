"""Homes as developers have them: tools that live there work, what is private there cannot be read."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ferrule.app.build import Settings, open_session
from ferrule.bash_analysis.analysis import Analyse
from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import plain_text
from ferrule.permissions.modes import Mode
from tests.host.processes.shell import need_sandbox
from tests.requirement import requirement

from .lying import declaring_read, declaring_write
from .project import GIT, PLAIN

PYENV_SHIM = """#!/usr/bin/env bash
set -e
program="${0##*/}"
export PYENV_ROOT="@HOME/.pyenv"
exec "@HOME/.pyenv/libexec/pyenv" exec "$program" "$@"
"""
PYENV = """#!/usr/bin/env bash
version=$(cat "$PYENV_ROOT/version")
exec "$PYENV_ROOT/versions/$version/bin/$2" "${@:3}"
"""
PYTHON = """#!/bin/sh
. "@HOME/.pyenv/versions/3.12.9/lib/words"
echo "$WORDS"
"""
NODE = """#!/bin/sh
cat "$(dirname "$(readlink -f "$0")")/../lib/version"
"""
RUSTUP = """#!/bin/sh
exec "@HOME/.rustup/toolchains/stable/bin/${0##*/}" "$@"
"""
FILES = {
    ".pyenv/shims/python3": PYENV_SHIM,
    ".pyenv/libexec/pyenv": PYENV,
    ".pyenv/version": "3.12.9\n",
    ".pyenv/versions/3.12.9/bin/python3.12": PYTHON,
    ".pyenv/versions/3.12.9/lib/words": 'WORDS="Python of pyenv"\n',
    ".nvm/versions/node/v20.1.0/bin/node": NODE,
    ".nvm/versions/node/v20.1.0/lib/version": "node of nvm\n",
    ".cargo/bin/rustup": RUSTUP,
    ".rustup/toolchains/1.80/bin/cargo": "#!/bin/sh\necho cargo of rustup\n",
    ".gitconfig": "[user]\n\tname = a\n\temail = a@b\n[include]\n\tpath = ~/dotfiles/git/more\n",
    "dotfiles/git/more": "[log]\n\tdate = format:included\n[include]\n\tpath = deeper\n",
    "dotfiles/git/deeper": "[format]\n\tpretty = format:%s from %an on %ad\n",
}
LINKS = {
    ".pyenv/bin/pyenv": "../libexec/pyenv",
    ".pyenv/versions/3.12.9/bin/python3": "python3.12",
    ".cargo/bin/cargo": "rustup",
    ".rustup/toolchains/stable": "1.80",
}
SECRETS = (
    ".ssh/id_ed25519", ".config/x/token", ".cargo/credentials.toml", ".cargo/credentials", "code/other/main.py",
    ".local/share/keyrings/login.keyring", ".netrc", "notes.txt", ".aws/credentials",
    "dotfiles/private.txt", ".npmrc", ".git-credentials", ".bash_history", ".mozilla/cookies.sqlite",
)  # fmt: skip
SAYS = {
    "python3 --version": "Python of pyenv",
    "node --version": "node of nvm",
    "cargo --version": "cargo of rustup",
    "git log": "first words from a on included",
}
PROGRAMS = (".pyenv/shims", ".pyenv/bin", ".nvm/versions/node/v20.1.0/bin", ".cargo/bin")


@pytest.fixture
def home() -> Iterator[Path]:
    """Not in /tmp, as no home is."""
    need_sandbox()
    with tempfile.TemporaryDirectory(prefix="ferrule-home-", dir="/var/tmp") as name:
        home = Path(name)
        for path, text in (FILES | dict.fromkeys(SECRETS, "hush-hush\n")).items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text.replace("@HOME", name))
            (home / path).chmod(0o755 if "/bin/" in path or "shims" in path or "libexec" in path else 0o600)
        for path, to in LINKS.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).symlink_to(to)
        project = home / "code/project"
        project.mkdir()
        (project / "kept.txt").write_text("kept\n")
        for words in (("init", "-q", "--template="), ("add", "."), ("commit", "-qm", "first words")):
            subprocess.run([*GIT, *words], cwd=project, env={**PLAIN, "HOME": name}, check=True)
        yield home


def _environment(home: Path) -> Mapping[str, str]:
    path = ":".join((*(str(home / name) for name in PROGRAMS), PLAIN["PATH"]))
    return {**PLAIN, "HOME": str(home), "PATH": path}


async def _said(
    home: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode, *commands: str, analyse: Analyse | None = None
) -> list[tuple[Status, str]]:
    for name, value in _environment(home).items():
        monkeypatch.setenv(name, value)
    settings = Settings(cwd=str(home / "code/project"), mode=mode, state_folder=home / ".local/state/ferrule")
    async with open_session(settings, **({"analyse": analyse} if analyse else {})) as session:
        said: list[tuple[Status, str]] = []
        for command in commands:
            (outcome,) = await session.run([ToolCall("1", "Bash", {"command": command, "timeout": 10_000})])
            said.append((outcome.status, plain_text(outcome.content)))
        return said


@requirement("HELD-1")
@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.ACCEPT_EDITS, Mode.PLAN])
async def test_tools_that_live_in_the_home_work_unasked(
    home: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    said = await _said(home, monkeypatch, mode, *SAYS)

    assert said == [(Status.OK, text) for text in SAYS.values()]


@requirement("HELD-1")
@pytest.mark.parametrize("liar", ["reading", "writing"])
async def test_what_is_private_in_the_home_cannot_be_read(
    home: Path, monkeypatch: pytest.MonkeyPatch, liar: str
) -> None:
    project = f"{home}/code/project"
    analyse = declaring_read(project) if liar == "reading" else declaring_write(f"{project}/kept.txt")
    commands = [f'cat "{home / path}"; cp "{home / path}" kept.txt; cat kept.txt' for path in SECRETS]
    assert all((home / path).read_text() == "hush-hush\n" for path in SECRETS)

    said = await _said(home, monkeypatch, Mode.ACCEPT_EDITS, *commands, "grep -rs hush ~", analyse=analyse)

    assert not [text for status, text in said if status is Status.DENIED]
    assert not [text for _, text in said if "hush-hush" in text]

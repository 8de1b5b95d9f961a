"""What children find in their environment, and git without the programs of a repository."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.host.git.git_environment import CannotList, neutralise, reading_environment
from ferrule.host.processes.child_environment import child_environment
from ferrule.host.processes.command import Command
from tests.host.processes.shell import GENEROUS, opened
from tests.requirement import requirement

IDENTITY = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
PLAIN = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "GIT_CONFIG_NOSYSTEM": "1", **IDENTITY}


# Keys


@requirement("SEC-1")
def test_keys_of_ferrule_are_left_out_and_those_of_others_are_not() -> None:
    own = {
        "ANTHROPIC_API_KEY": "sk-ant-1234567890",
        "ANTHROPIC_AUTH_TOKEN": "t",
        "OPENAI_API_KEY": "sk-1234567890",
        "AZURE_OPENAI_AD_TOKEN": "ey-1234567890",
        "FERRULE_TOKEN": "f",
        "CLAUDE_CODE_OAUTH_TOKEN": "c",
        "MY_COPY": "Bearer sk-ant-1234567890",
        "CONFIGURED": "configured-secret",
        "GITHUB_TOKEN": "theirs",
        "AWS_PROFILE": "theirs",
        "PATH": "/bin",
        "EMPTY": "",
    }

    kept = child_environment(own, secrets=["CONFIGURED"])

    assert kept.keys() & own.keys() == {"GITHUB_TOKEN", "AWS_PROFILE", "PATH", "EMPTY"}


@requirement("SEC-1")
@given(st.dictionaries(st.sampled_from(["OPENAI_API_KEY", "GEMINI_API_KEY", "A", "B"]), st.text(max_size=30)))
def test_no_value_holds_a_key(own: dict[str, str]) -> None:
    kept = child_environment(own)

    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        secret = own.get(name, "")
        assert name not in kept
        assert len(secret) < 12 or not any(secret in value for value in kept.values())


@requirement("SEC-1")
async def test_a_child_does_not_see_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-ferrule-itself")
    async with opened(tmp_path) as commands:
        env = child_environment(os.environ)
        text = "env; cat /proc/self/environ /proc/$PPID/environ | tr '\\0' '\\n'"
        ran = await commands.run(Command(text=text, cwd=str(tmp_path), env=env))

    assert "PATH=" in ran.output.text()
    assert "sk-of-ferrule" not in ran.output.text()


# The meaning of a command


async def test_nothing_changes_what_a_command_means(tmp_path: Path) -> None:
    (tmp_path / "elsewhere/sub").mkdir(parents=True)
    (tmp_path / "sub").mkdir()
    (tmp_path / "start").write_text("echo started; alias ls=false")
    odd = {
        "BASH_ENV": str(tmp_path / "start"),
        "BASH_FUNC_ls%%": "() { echo not ls; }",
        "CDPATH": str(tmp_path / "elsewhere"),
        "SHELLOPTS": "xtrace:noglob",
    }
    async with opened(tmp_path) as commands:
        env = child_environment({**os.environ, **odd})
        ran = await commands.run(Command(text="cd sub; pwd; ls; echo *", cwd=str(tmp_path), env=env))

    assert ran.output.text() == f"{tmp_path}/sub\n*\n"


@requirement("BASH-3")
def test_nothing_pages_asks_or_opens_an_editor() -> None:
    loud = {"PAGER": "less", "EDITOR": "vi", "GIT_ASKPASS": "/usr/bin/ask", "FORCE_COLOR": "3", "LESSOPEN": "|evil %s"}

    quiet = child_environment(loud)

    assert (quiet["PAGER"], quiet["EDITOR"], quiet["GIT_TERMINAL_PROMPT"], quiet["TERM"]) == (
        "cat",
        "true",
        "0",
        "dumb",
    )
    assert not {"FORCE_COLOR", "LESSOPEN"} & quiet.keys()


# git


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, env=PLAIN, check=True, capture_output=True)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A repository that leaves a trace in `ran` for each of its programs that git was made to run."""
    folder = tmp_path / "repository"
    folder.mkdir()
    _git(folder, "init", "-q", "-b", "main")
    (folder / ".gitattributes").write_text("*.x filter=f diff=d\n*.y filter=P.q diff=e\n*.m merge=m\n")
    for name in ("a.x", "b.y", "c.txt", "d.m"):
        (folder / name).write_text("one\n")
    _git(folder, "add", ".")
    _git(folder, "commit", "-qm", "first")
    for name in ("a.x", "b.y", "c.txt"):
        (folder / name).write_text("two\n")
    trap = tmp_path / "ran"
    trap.mkdir()
    programs = {
        "core.fsmonitor": "fsmonitor",
        "core.pager": "pager",
        "core.sshCommand": "ssh",
        "core.editor": "editor",
        "filter.f.clean": "clean",
        "filter.f.smudge": "smudge",
        "filter.P.q.process": "process",
        "diff.external": "external",
        "diff.d.command": "command",
        "diff.d.textconv": "textconv",
        "diff.e.textconv": "textconv",
        "gpg.program": "gpg",
        "pager.log": "pager",
        "merge.m.driver": "merge",
        "tar.tgz.command": "tar",
        "credential.helper": "credential",
    }
    for key, word in programs.items():
        _git(folder, "config", key, f"touch {trap}/{word}; cat")
    for key, value in (("filter.f.required", "true"), ("log.showSignature", "true"), ("core.hooksPath", "hooks")):
        _git(folder, "config", key, value)
    (folder / "hooks").mkdir()
    for hook in ("post-index-change", "post-checkout", "fsmonitor-watchman"):
        (folder / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {trap}/hook\n")
        (folder / "hooks" / hook).chmod(0o755)
    return folder


READING = (
    "git status",
    "git status --short --untracked-files",
    "git diff c.txt",
    "git diff",
    "git diff --stat HEAD",
    "git diff --cached",
    "git log -p",
    "git log --format=%G?",
    "git show HEAD",
    "git blame a.x",
    "git blame b.y",
    "git ls-files -m",
    "git cat-file --textconv HEAD:a.x",
    "git cat-file --filters HEAD:a.x",
    "git archive --format=tgz HEAD > /dev/null",
    "git grep one",
    "git stash list",
    "git describe --always --dirty",
)


@requirement("SEC-2")
async def test_reading_with_git_runs_nothing_of_the_repository(hostile: Path, tmp_path: Path) -> None:
    env = await reading_environment(PLAIN, str(hostile))
    async with opened(tmp_path) as commands:
        for text in READING:
            ran = await commands.run(Command(text=text, cwd=str(hostile), env=env), timeout=GENEROUS)

            assert os.listdir(tmp_path / "ran") == [], text
            assert "fatal" not in ran.output.text(), text


@requirement("SEC-2")
async def test_the_trap_would_catch_it(hostile: Path, tmp_path: Path) -> None:
    async with opened(tmp_path) as commands:
        for text in READING:
            await commands.run(Command(text=text, cwd=str(hostile), env=PLAIN), timeout=GENEROUS)

    assert {"fsmonitor", "clean", "external", "textconv", "tar"} <= set(os.listdir(tmp_path / "ran"))


@requirement("SEC-2")
async def test_a_diff_looks_as_it_does_without_an_external_one(hostile: Path, tmp_path: Path) -> None:
    env = await reading_environment(PLAIN, str(hostile))
    async with opened(tmp_path) as commands:
        ran = await commands.run(Command(text="git diff c.txt", cwd=str(hostile), env=env))

    assert ran.output.text() == "diff --git a/c.txt b/c.txt\n--- a/c.txt\n+++ b/c.txt\n@@ -1 +1 @@\n-one\n+two\n"


@requirement("SEC-2")
async def test_submodules_run_nothing_either(hostile: Path, tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    _git(top, "init", "-q")
    for name in ("sub", "loose"):
        _git(top, "clone", "-q", str(hostile), name)
        for key in ("core.fsmonitor", "filter.f.clean", "filter.only-here.clean"):
            _git(top / name, "config", key, f"touch {tmp_path}/ran/{name}; cat")
        (top / name / "a.x").write_text("three\n")
        _git(top, "add", name)
    (top / ".gitmodules").write_text('[submodule "s u"]\n\tpath = sub\n\turl = x\n\tignore = none\n')
    for word in os.listdir(tmp_path / "ran"):
        (tmp_path / "ran" / word).unlink()

    env = await reading_environment(PLAIN, str(top / "sub" / ".."))
    async with opened(tmp_path) as commands:
        for text in ("git status", "git diff", "git diff --submodule=diff"):
            await commands.run(Command(text=text, cwd=str(top), env=env), timeout=GENEROUS)

            assert os.listdir(tmp_path / "ran") == [], text


@requirement("SEC-2")
async def test_reading_takes_no_lock_and_writes_no_index(hostile: Path, tmp_path: Path) -> None:
    index = hostile / ".git/index"
    before = index.stat().st_mtime_ns
    os.utime(hostile / "c.txt")

    env = await reading_environment(PLAIN, str(hostile))
    async with opened(tmp_path) as commands:
        await commands.run(Command(text="git status; git diff", cwd=str(hostile), env=env))

    assert index.stat().st_mtime_ns == before


async def test_a_configuration_that_cannot_be_read_is_said_to_be(hostile: Path) -> None:
    (hostile / ".git/config").write_text("[broken")

    with pytest.raises(CannotList, match="bad config"):
        await reading_environment(PLAIN, str(hostile))


async def test_without_git_there_is_nothing_to_list(tmp_path: Path) -> None:
    env = await reading_environment({"PATH": str(tmp_path)}, str(tmp_path))

    assert env["GIT_OPTIONAL_LOCKS"] == "0"


@given(
    st.dictionaries(
        st.sampled_from(["core.pager", "a.b", "user.name"]), st.text(st.characters(codec="ascii"), max_size=9)
    )
)
def test_settings_given_by_the_environment_stay_and_lose_to_the_neutral_ones(given_: Mapping[str, str]) -> None:
    environment = {"GIT_CONFIG_COUNT": str(len(given_))}
    for number, (key, value) in enumerate(given_.items()):
        environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}

    made = neutralise(environment, ["filter.x.clean"])

    count = int(made["GIT_CONFIG_COUNT"])
    last = {made[f"GIT_CONFIG_KEY_{number}"]: made[f"GIT_CONFIG_VALUE_{number}"] for number in range(count)}
    assert {**given_, "core.pager": "cat", "filter.x.clean": ""}.items() <= last.items()
    assert f"GIT_CONFIG_KEY_{count}" not in made

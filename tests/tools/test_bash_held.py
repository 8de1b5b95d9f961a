"""Commands that nobody approved, run for real: a wrong reading of one costs a refusal, never a file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ferrule.app.build import Settings, open_session
from ferrule.bash_analysis.analysis import Analyse, Analysis
from ferrule.core.calls import Status, ToolCall, ToolOutcome
from ferrule.core.content import plain_text
from ferrule.core.effects import Change, Effects, ReadsPath, RunsCommand, WritesPath
from ferrule.permissions.classifier import Assessment, ToolStatement
from ferrule.permissions.modes import Mode
from ferrule.testing import Answering, allow
from tests.host.processes.shell import need_mounts, need_sandbox
from tests.permissions.scene import rules_of
from tests.requirement import requirement


@pytest.fixture
def work(tmp_path: Path) -> Path:
    need_sandbox()
    folder = tmp_path / "home" / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "dir").mkdir()
    for name in ("a.txt", "b.txt", "src/x.py", "src/y.py"):
        (folder / name).write_text("hello\n")
    (folder / ".env").write_text("KEY=xyzzy\n")
    (tmp_path / "home" / ".bashrc").write_text("export TOKEN=xyzzy\n")
    return folder


async def ran(
    work: Path,
    *commands: str,
    mode: Mode = Mode.DEFAULT,
    rules: Mapping[str, list[str]] | None = None,
    background: bool = False,
    **parts: Any,
) -> list[ToolOutcome]:
    settings = Settings(
        cwd=str(work),
        mode=mode,
        rules=rules_of(rules or {}),
        state_folder=work.parent.parent / "state",
        environment={"HOME": str(work.parent)},
    )
    async with open_session(settings, **parts) as session:
        more = {"run_in_background": True} if background else {}
        return [
            outcome
            for number, text in enumerate(commands)
            for outcome in await session.run([ToolCall(str(number), "Bash", {"command": text, **more})])
        ]


def said(outcome: ToolOutcome) -> str:
    return plain_text(outcome.content)


def claiming(*touches: ReadsPath | WritesPath) -> Analyse:
    """Takes every command for one that does this and no more."""

    def analyse(command: str, /, *, cwd: str, home: str) -> Analysis:
        run = RunsCommand(("touch",), "touch", accounted=True)
        return Analysis(Effects((run, *touches)), (), (), ())

    return analyse


# A wrong reading


@requirement("HELD-10", "HELD-14")
async def test_only_the_declared_name_changes_and_the_rest_is_told(work: Path) -> None:
    need_mounts()
    target = str(work / "a.txt")
    lie = claiming(WritesPath(target, Change.REPLACES))

    (outcome,) = await ran(
        work, "echo new > a.txt; echo new > b.txt; echo new > made; rm src/x.py", mode=Mode.ACCEPT_EDITS, analyse=lie
    )

    assert (work / "a.txt").read_text() == "new\n"
    assert (work / "b.txt").read_text() == "hello\n"
    assert (work / "src" / "x.py").exists()
    assert not (work / "made").exists()
    assert "which it had not declared; that was not kept." in said(outcome)
    assert outcome.status is Status.FAILED


@requirement("HELD-10", "HELD-12")
@pytest.mark.parametrize(
    "command", ["cat ../.bashrc", "cat .env", "echo x > a.txt", "cat ../../state/*", "cat /etc/shadow"]
)
async def test_a_command_that_was_taken_for_a_reading_one_reads_no_more_than_all_may(work: Path, command: str) -> None:
    lie = claiming(ReadsPath(str(work)))

    (outcome,) = await ran(work, command, analyse=lie)

    assert "xyzzy" not in said(outcome)
    assert "root:" not in said(outcome)
    assert outcome.status is not Status.DENIED
    assert (work / "a.txt").read_text() == "hello\n"


@requirement("HELD-10")
@pytest.mark.parametrize(
    ("mode", "rules", "parts"),
    [
        (Mode.BYPASS, {}, {}),
        (Mode.DEFAULT, {"allow": ["Bash"]}, {}),
        (Mode.DEFAULT, {"allow": ["Bash(cat *)"]}, {}),
        (Mode.DEFAULT, {}, {"approver": Answering(allow())}),
    ],
    ids=["bypass", "the tool", "the command", "an approver"],
)
async def test_what_somebody_approved_reads_what_they_approved(
    work: Path, mode: Mode, rules: dict[str, list[str]], parts: dict[str, Any]
) -> None:
    (outcome,) = await ran(work, f"cat {work.parent}/.bashrc", mode=mode, rules=rules, **parts)

    assert "xyzzy" in said(outcome)


@requirement("HELD-10")
async def test_a_rule_for_a_path_holds_the_command_to_it(work: Path) -> None:
    need_mounts()
    lie = claiming(WritesPath(str(work / "src" / "x.py"), Change.REPLACES))

    await ran(work, "echo new > src/x.py; echo new > a.txt", rules={"allow": ["Edit(./src/**)"]}, analyse=lie)

    assert (work / "src" / "x.py").read_text() == "new\n"
    assert (work / "a.txt").read_text() == "hello\n"


@requirement("HELD-10")
async def test_a_classifiers_yes_is_no_approval(work: Path) -> None:
    need_mounts()

    class Safe:
        async def classify(self, account: ToolStatement, /) -> Assessment:
            return Assessment("safe")

    program = "open('made.txt','w').write('x'); print(open('../.bashrc').read())"
    inside, outside = await ran(
        work,
        f'python3 -c "{program}"',
        f"python3 -c \"open('{work.parent}/out.txt','w').write('x')\"",
        mode=Mode.AUTO,
        classifier=Safe(),
    )

    assert (work / "made.txt").exists()
    assert "xyzzy" not in said(inside)
    assert outside.status is Status.FAILED
    assert not (work.parent / "out.txt").exists()


@requirement("HELD-10", "PERM-5")
async def test_in_bypass_a_command_that_was_misread_is_kept_from_what_is_denied(work: Path) -> None:
    need_mounts()
    rules = {"deny": ["Read(./src/x.py)", "Edit(./b.txt)"]}
    lie = claiming(WritesPath(str(work / "made"), Change.CREATES))

    (outcome,) = await ran(
        work, "cat src/*; echo new > b.txt; echo new > made", mode=Mode.BYPASS, rules=rules, analyse=lie
    )

    assert said(outcome).count("hello") == 1
    assert (work / "b.txt").read_text() == "hello\n"
    assert (work / "made").exists()


@requirement("HELD-10", "HELD-14")
async def test_a_command_in_the_background_is_held_as_well_and_what_was_refused_is_told(work: Path) -> None:
    settings = Settings(cwd=str(work), mode=Mode.ACCEPT_EDITS, state_folder=work.parent.parent / "state")
    lie = claiming(WritesPath(str(work / "a.txt"), Change.REPLACES))
    text = "echo new > a.txt; cat a.txt; echo new > b.txt; cat .env"
    async with open_session(settings, analyse=lie) as session:
        (started,) = await session.run([ToolCall("1", "Bash", {"command": text, "run_in_background": True})])
        if started.status is Status.DENIED:
            pytest.skip("nothing supervises a command on this machine")
        (news,) = await session.run([ToolCall("2", "TaskOutput", {"task_id": "bash_1"})])

    assert (work / "a.txt").read_text() == "new\n"
    assert (work / "b.txt").read_text() == "hello\n"
    assert said(news).startswith("new\n")
    assert "xyzzy" not in said(news)
    assert f"It tried to write {work}/b.txt, which it had not declared; that was not kept." in said(news)


# Secrets


@requirement("HELD-13")
async def test_what_passes_over_a_secret_runs_without_it_and_says_so(work: Path) -> None:
    everywhere, quiet, copied, elsewhere = await ran(
        work, "grep -r . .", "grep -r hello . 2>/dev/null", "cat * ; cat src/*", "cat *.txt"
    )

    assert (everywhere.status, quiet.status) == (Status.OK, Status.OK)
    assert "xyzzy" not in said(everywhere)
    assert "./a.txt:hello" in said(everywhere)
    assert "Permission denied" not in said(everywhere)
    assert said(everywhere).endswith("left out: .env")
    assert said(quiet).endswith("left out: .env")
    assert "left out" not in said(copied)
    assert said(elsewhere) == "hello\nhello"


@requirement("HELD-13")
async def test_a_secret_that_a_rule_names_is_read(work: Path) -> None:
    (outcome,) = await ran(work, "cat .env", rules={"allow": ["Read(./.env)"]})

    assert said(outcome) == "KEY=xyzzy"


@requirement("HELD-13")
async def test_a_secret_that_comes_later_is_hidden_from_the_next_command(work: Path) -> None:
    lie = claiming(ReadsPath(str(work)))
    settings = Settings(cwd=str(work), state_folder=work.parent.parent / "state")
    async with open_session(settings, analyse=lie) as session:
        (before,) = await session.run([ToolCall("1", "Bash", {"command": "cat sub/key.pem"})])
        (work / "sub").mkdir()
        (work / "sub" / "key.pem").write_text("xyzzy\n")
        (after,) = await session.run([ToolCall("2", "Bash", {"command": "cat sub/key.pem"})])

    assert "No such file" in said(before)
    assert "xyzzy" not in said(after)


@requirement("HELD-12")
async def test_where_the_home_is_the_workspace_its_start_up_files_and_secrets_are_hidden(work: Path) -> None:
    home = work.parent
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_rsa").write_text("xyzzy\n")
    (home / "notes.txt").write_text("plain\n")

    (outcome,) = await ran_in_home(home, "cat .bashrc .ssh/id_rsa .state/*/* .state/*; cat notes.txt")

    assert "xyzzy" not in said(outcome)
    assert "plain" in said(outcome)


async def ran_in_home(home: Path, command: str) -> list[ToolOutcome]:
    state = home / ".state"
    state.mkdir()
    (state / "trust.json").write_text("xyzzy\n")
    settings = Settings(cwd=str(home), state_folder=state, environment={"HOME": str(home)})
    async with open_session(settings, analyse=claiming(ReadsPath(str(home)))) as session:
        return await session.run([ToolCall("1", "Bash", {"command": command})])


# Everyday life


EVERYDAY = {
    "touch new": {"new": ""},
    "mkdir -p q/w && cp a.txt q/w": {"q/w/a.txt": "hello\n"},
    "cp a.txt dir": {"dir/a.txt": "hello\n"},
    "cp -r src copy": {"copy/x.py": "hello\n"},
    "mv b.txt dir/": {"dir/b.txt": "hello\n", "b.txt": None},
    "mv src dir": {"dir/src/x.py": "hello\n", "src": None},
    "sed -i s/hello/bye/ a.txt src/*.py": {"a.txt": "bye\n", "src/x.py": "bye\n", "src/y.py": "bye\n"},
    "rm a.txt && rm -r src": {"a.txt": None, "src": None},
    "echo x > out.txt && cat a.txt >> out.txt": {"out.txt": "x\nhello\n"},
    "cd src && echo x > made && mv made ../dir": {"dir/made": "x\n"},
}


@requirement("HELD-11")
@pytest.mark.parametrize("command", EVERYDAY)
async def test_everyday_edits_run_unasked_and_do_what_they_say(work: Path, command: str) -> None:
    need_mounts()

    (outcome,) = await ran(work, command, mode=Mode.ACCEPT_EDITS)

    assert outcome.status is Status.OK, said(outcome)
    assert "not declared" not in said(outcome)
    for name, content in EVERYDAY[command].items():
        assert (work / name).read_text() == content if content is not None else not (work / name).exists()


def commit_sources(work: Path) -> None:
    environment = {**os.environ, "HOME": str(work.parent)}
    for arguments in (["init", "-q"], ["add", "src"], ["commit", "-qm", "first"]):
        subprocess.run(["git", *arguments], cwd=work, env=environment, check=True)


@requirement("HELD-12")
async def test_git_works_with_a_configuration_that_includes_others(work: Path) -> None:
    home = work.parent
    (home / ".gitconfig").write_text("[include]\n\tpath = ~/git/more.inc\n[core]\n\texcludesFile = ~/git/ignore\n")
    (home / "git").mkdir()
    (home / "git" / "more.inc").write_text("[user]\n\tname = Somebody\n\temail = a@b\n")
    (home / "git" / "ignore").write_text("*.txt\n")
    (home / "git" / "other").write_text("xyzzy\n")
    commit_sources(work)

    status, log, other = await ran(work, "git status --short", "git log --format=%an:%s", "cat ../git/*", analyse=None)

    assert said(status).split() == ["??", ".env"]
    assert said(log) == "Somebody:first"
    assert other.status is Status.DENIED


@requirement("HELD-12")
async def test_a_program_that_path_leads_to_by_a_link_runs(work: Path) -> None:
    home = work.parent
    program = home / "tools" / "node_modules" / "tool" / "run"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\ncat $(dirname $(readlink -f $0))/../part/data\n")
    program.chmod(0o755)
    (home / "tools" / "node_modules" / "part").mkdir()
    (home / "tools" / "node_modules" / "part" / "data").write_text("found\n")
    (home / "bin").mkdir()
    (home / "bin" / "tool").symlink_to(program)
    settings = Settings(
        cwd=str(work),
        state_folder=home.parent / "state",
        environment={"HOME": str(home), "PATH": f"{home}/bin:{os.environ['PATH']}"},
    )
    async with open_session(settings, analyse=claiming(ReadsPath(str(work)))) as session:
        (outcome,) = await session.run([ToolCall("1", "Bash", {"command": "tool"})])

    assert said(outcome).startswith("found")

"""One secret, one deny rule, thirty ways to get at it: by a real session, with real processes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import ToolCall
from ferrule.core.content import plain_text
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode
from ferrule.testing import Answering, allow
from tests.permissions.scene import rules_of
from tests.requirement import requirement

SECRET = "xyzzy-7f3a"
COMMANDS = [
    "cat vault/key.txt",
    "head -n 1 vault/key.txt",
    "tail vault/key.txt",
    "sed -n p vault/key.txt",
    "awk '{print}' vault/key.txt",
    "grep -r xyzzy .",
    "grep -rn xyzzy vault",
    "rg --no-ignore xyzzy",
    "find . -name '*.txt' -exec cat {} +",
    "find vault -type f | xargs cat",
    "cp vault/key.txt copy.txt && cat copy.txt",
    "mv vault/key.txt moved.txt; cat moved.txt",
    "ln vault/key.txt hard.txt; cat hard.txt",
    "tar cf - vault | tar xOf -",
    "python3 -c 'print(open(\"vault/key.txt\").read())'",
    "perl -pe1 vault/key.txt",
    "git show HEAD:vault/../vault/key.txt; cat $(git ls-files vault)",
    "cat < vault/key.txt",
    "echo $(<vault/key.txt)",
    "while read line; do echo $line; done < vault/key.txt",
    "cat link/key.txt",
    "cat sub/../vault/key.txt",
    "cd vault && cat key.txt",
    "cat va*/k*.txt",
    "x=vault; cat $x/key.txt",
    "bash -c 'cat vault/key.txt'",
    "eval 'cat vault/key.txt'",
    "base64 vault/key.txt | base64 -d",
    "diff vault/key.txt /dev/null",
    "sort vault/key.txt",
    "dd if=vault/key.txt status=none",
    "env cat vault/key.txt",
    "timeout 5 cat vault/key.txt",
    "source vault/key.txt 2>&1",
    "cat /proc/self/cwd/vault/key.txt",
    "cat $(echo vault/key.txt)",
    "cat vault/$(echo key.txt)",
    "xargs cat <<< vault/key.txt",
    "ls; nl < $(echo vault/key.txt)",
    "cat /proc/*/root/$PWD/vault/key.txt",
    "cat /proc/*/cwd/vault/key.txt",
    "(cd $(echo vault); cat key.txt)",
]
CALLS: list[tuple[str, dict[str, Any]]] = [
    *(("Bash", {"command": command}) for command in COMMANDS),
    ("Read", {"file_path": "vault/key.txt"}),
    ("Read", {"file_path": "link/key.txt"}),
    ("Read", {"file_path": "sub/../vault/key.txt"}),
    ("Grep", {"pattern": "xyzzy", "output_mode": "content"}),
    ("Grep", {"pattern": "xyzzy", "path": "vault", "output_mode": "content"}),
    ("Grep", {"pattern": "xyzzy", "path": "link/key.txt", "output_mode": "content"}),
    ("Glob", {"pattern": "vault/*"}),
    ("Edit", {"file_path": "vault/key.txt", "old_string": "xyzzy", "new_string": "open"}),
    ("Write", {"file_path": "vault/key.txt", "content": "open"}),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    workspace = tmp_path / "workspace"
    (workspace / "vault").mkdir(parents=True)
    (workspace / "sub").mkdir()
    (workspace / "vault" / "key.txt").write_text(f"{SECRET}\n")
    (workspace / "link").symlink_to("vault")
    return workspace


@pytest.fixture(params=[Mode.DEFAULT, Mode.BYPASS])
async def session(folder: Path, request: pytest.FixtureRequest) -> AsyncIterator[Session]:
    settings = Settings(
        cwd=str(folder),
        rules=rules_of({"deny": ["Read(./vault/**)"]}),
        mode=request.param,
        state_folder=folder.parent / "state",
    )
    async with open_session(settings, approver=Answering(allow())) as opened:
        yield opened


@requirement("PERM-5", "BOX-4")
async def test_no_door_leads_to_what_a_rule_denies(session: Session, folder: Path) -> None:
    """Whoever is asked says yes every time, and it is not enough."""
    outcomes = await session.run([ToolCall(str(at), tool, call) for at, (tool, call) in enumerate(CALLS)])

    for outcome, (_, call) in zip(outcomes, CALLS, strict=True):
        assert SECRET not in plain_text(outcome.content), call
    assert (folder / "vault" / "key.txt").read_text() == f"{SECRET}\n"
    assert [path for path in folder.rglob("*") if path.is_file() and SECRET in path.read_text()] == [
        folder / "vault" / "key.txt"
    ]


@requirement("BOX-4")
async def test_a_program_that_may_do_anything_still_works_where_something_is_hidden(
    session: Session, folder: Path
) -> None:
    command = 'python3 -c \'open("made.txt", "w").write("hello")\' && cat made.txt && touch -d @0 made.txt && id -u'
    (outcome,) = await session.run([ToolCall("1", "Bash", {"command": command})])

    assert plain_text(outcome.content).splitlines() == [f"hello{os.getuid()}"]
    assert (folder / "made.txt").stat().st_mtime == 0


@requirement("BOX-4")
async def test_a_pattern_with_wildcards_hides_every_file_it_means(folder: Path) -> None:
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "dev.pem").write_text(SECRET)
    settings = Settings(
        cwd=str(folder),
        rules=rules_of({"deny": ["Read(**/*.pem)"]}),
        mode=Mode.BYPASS,
        state_folder=folder.parent / "state",
    )
    async with open_session(settings) as session:
        said = [
            plain_text(outcome.content)
            for outcome in await session.run(
                [
                    ToolCall("1", "Bash", {"command": "python3 -c 'print(open(\"a/b/dev.pem\").read())'"}),
                    ToolCall("2", "Bash", {"command": "grep -r xyzzy a"}),
                ]
            )
        ]

    assert not [text for text in said if SECRET in text]


@requirement("BOX-2")
async def test_in_plan_mode_a_program_runs_and_can_write_nothing(folder: Path) -> None:
    settings = Settings(cwd=str(folder), mode=Mode.PLAN, state_folder=folder.parent / "state")
    async with open_session(settings) as session:
        write = "import os; print(6 * 7, flush=True); open('made.txt', 'w')"
        (outcome,) = await session.run([ToolCall("1", "Bash", {"command": f'python3 -c "{write}"'})])

    said = plain_text(outcome.content)
    assert "42" in said
    assert "PermissionError" in said or "Read-only file system" in said
    assert not (folder / "made.txt").exists()


@requirement("BOX-2")
async def test_in_plan_mode_a_write_that_is_declared_is_refused_before_it_runs(folder: Path) -> None:
    settings = Settings(cwd=str(folder), mode=Mode.PLAN, state_folder=folder.parent / "state")
    async with open_session(settings, approver=Answering(allow())) as session:
        (outcome,) = await session.run([ToolCall("1", "Bash", {"command": "touch made.txt"})])

    assert "plan mode changes nothing" in plain_text(outcome.content)
    assert not (folder / "made.txt").exists()


def test_this_machine_has_git() -> None:
    """Two of the doors need it."""
    assert subprocess.run(["git", "--version"], capture_output=True, check=False).returncode == 0

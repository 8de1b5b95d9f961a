"""What is granted so that all may be read but for what is hidden."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.host.processes.command_runner import CommandRunner
from ferrule.host.processes.sandbox import CannotConfine, Offers, Profile, Sandbox
from ferrule.host.processes.spawner.read_grants import SETTLED, ReadGrants
from tests.host.processes.held import furnish, reading
from tests.host.processes.shell import GENEROUS, need_sandbox, offers, opened
from tests.requirement import requirement

NAMES = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join)


def _is_at_or_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


@requirement("HELD-21")
@given(st.sets(NAMES, max_size=12), st.sets(NAMES, max_size=4))
def test_everything_is_granted_but_what_is_hidden(files: set[str], hidden: set[str]) -> None:
    with tempfile.TemporaryDirectory() as root:
        for name in files:
            path = Path(root, name + ".d/file")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        wanted = [os.path.join(root, name + ".d") for name in hidden]

        granted = ReadGrants([root], [path for path in wanted if os.path.exists(path)]).paths

        for path in (str(one) for one in Path(root).rglob("file")):
            is_hidden = any(_is_at_or_below(path, one) for one in wanted)
            assert any(_is_at_or_below(path, one) for one in granted) != is_hidden


def test_grants_are_good_until_something_moves(tmp_path: Path) -> None:
    (tmp_path / "work/sub").mkdir(parents=True)
    (tmp_path / "work/.env").touch()
    _settle(tmp_path / "work")
    grants = ReadGrants([str(tmp_path / "work")], [str(tmp_path / "work/.env")])
    assert grants.is_current()

    (tmp_path / "work/sub/new").touch()
    assert grants.is_current(), "what is granted with its folder needs no new grant"
    (tmp_path / "work/new").touch()
    assert not grants.is_current()

    _settle(tmp_path / "work")
    grants = ReadGrants([str(tmp_path / "work")], [])
    (tmp_path / "work").rename(tmp_path / "old")
    (tmp_path / "work").mkdir()
    assert not grants.is_current()


def _settle(folder: Path) -> None:
    while time.time_ns() - folder.stat().st_ctime_ns <= SETTLED:
        time.sleep(0.001)


@pytest.fixture
async def commands(tmp_path: Path) -> AsyncIterator[CommandRunner]:
    need_sandbox()
    if not offers().reads:
        pytest.skip("; ".join(offers().gaps()))
    async with opened(tmp_path) as commands:
        yield commands


@requirement("HELD-21")
async def test_what_was_made_since_the_last_command_can_be_read_by_the_next(
    commands: CommandRunner, tmp_path: Path
) -> None:
    ws = furnish(tmp_path)
    (ws / ".env").write_text("hidden")
    for number in range(5):
        (ws / f"made-{number}").write_text(str(number))

        ran = await commands.run(reading(f"cat made-{number} .env", ws, ws / ".env"), timeout=GENEROUS)

        assert ran.output.text().startswith(f"{number}cat: .env: Permission denied")


@requirement("HELD-21")
async def test_hiding_from_a_command_that_only_reads_takes_no_mount(tmp_path: Path) -> None:
    need_sandbox()
    (tmp_path / ".env").touch()
    no_mounts = Offers(landlock=offers().landlock, filter=True)
    sandbox = Sandbox(profile=Profile.READ_ONLY, readable=(str(tmp_path),), hidden=(str(tmp_path / ".env"),))

    jail = no_mounts.jail(sandbox)

    assert jail
    assert not jail["mounts"]
    with pytest.raises(CannotConfine, match="Landlock 2 cannot hold a command to what it may read"):
        Offers(landlock=2, filter=True, mounts=True).jail(sandbox)

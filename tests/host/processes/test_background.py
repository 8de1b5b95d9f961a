"""Commands beside the conversation: what is new, what ended, what is ready."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ferrule.host.processes.background_tasks import Background, NoSuchCommand, TaskState
from ferrule.host.processes.command_runner import CommandRunner
from ferrule.host.processes.line_filter import BadPattern
from tests.host.processes.shell import GENEROUS, alive_with, command, opened, unique, until
from tests.requirement import requirement

STEPS = "for name in a b c; do echo line-$name; while [ ! -e $name ]; do sleep 0.01; done; done"
"""Goes on to the next line when a file of that name is there."""


@pytest.fixture
async def commands(tmp_path: Path) -> AsyncIterator[CommandRunner]:
    async with opened(tmp_path) as commands:
        yield commands


@pytest.fixture
async def background(commands: CommandRunner) -> AsyncIterator[Background]:
    background = Background(commands)
    yield background
    await background.close(grace=0)


@requirement("BASH-5")
async def test_each_look_gives_what_is_new(background: Background, tmp_path: Path) -> None:
    id = await background.start(command(STEPS, tmp_path))
    first = await background.output(id, wait_for="news", seconds=GENEROUS)
    nothing = await background.output(id)
    (tmp_path / "a").touch()
    second = await background.output(id, wait_for="news", seconds=GENEROUS)
    again = await background.output(id, cursor=0)
    for name in "bc":
        (tmp_path / name).touch()
    last = await background.output(id, wait_for="end", seconds=GENEROUS)

    assert [news.text for news in (first, nothing, second, again, last)] == [
        "line-a\n", "", "line-b\n", "line-a\nline-b\n", "line-c\n"
    ]  # fmt: skip
    assert (first.status.state, last.status.state, last.status.exit_code) == (TaskState.RUNNING, TaskState.COMPLETED, 0)


@requirement("BASH-5")
async def test_lines_that_a_filter_drops_count_as_seen(background: Background, tmp_path: Path) -> None:
    text = "printf 'error one\\nfine\\nerror two\\nhalf an er'; while [ ! -e a ]; do sleep 0.01; done; echo ror"
    id = await background.start(command(text, tmp_path))
    await until(lambda: background.listing()[0].total == 35)

    first = await background.output(id, filter="^error")
    (tmp_path / "a").touch()
    second = await background.output(id, filter="error", wait_for="end", seconds=GENEROUS)

    assert (first.text, first.dropped_lines) == ("error one\nerror two", 1)
    assert (second.text, second.dropped_lines) == ("half an error", 0)


async def test_a_pattern_that_cannot_be_used_is_said_to_be(background: Background, tmp_path: Path) -> None:
    id = await background.start(command("echo x", tmp_path))

    with pytest.raises(BadPattern, match="unclosed group"):
        await background.output(id, filter="(")
    assert (await background.output(id, wait_for="end", seconds=GENEROUS)).text == "x\n", "nothing was lost by it"


async def test_a_pattern_cannot_hold_up_the_program(background: Background, tmp_path: Path) -> None:
    id = await background.start(command(f"echo {'a' * 5_000}", tmp_path))

    news = await background.output(id, filter="(a+)+$|(a|aa)+b", wait_for="end", seconds=GENEROUS)

    assert len(news.text) == 5_000


@requirement("BASH-5")
async def test_killing_ends_the_tree_and_frees_it(background: Background, tmp_path: Path) -> None:
    marker = unique()
    id = await background.start(command("echo first; (setsid sleep 1010 &); sleep 1010", tmp_path, MARKED=marker))
    await until(lambda: len(alive_with(marker)) >= 3)

    news = await background.kill(id)

    assert (news.text, news.status.state, news.status.signal) == ("first\n", TaskState.KILLED, "SIGTERM")
    assert not alive_with(marker)
    assert background.listing() == ()
    with pytest.raises(NoSuchCommand, match="Available: none"):
        await background.output(id)


@requirement("BASH-5")
async def test_an_end_is_told_once_and_only_if_nobody_saw_it(background: Background, tmp_path: Path) -> None:
    seen = await background.start(command("true", tmp_path))
    unseen = await background.start(command("exit 3", tmp_path))
    running = await background.start(command("sleep 1011", tmp_path))
    await background.output(seen, wait_for="end", seconds=GENEROUS)
    await until(lambda: [status.state for status in background.listing()].count(TaskState.RUNNING) == 1)

    (notice,) = background.notices()

    assert (notice.id, notice.state, notice.exit_code) == (unseen, TaskState.FAILED, 3)
    assert background.notices() == ()
    assert [status.id for status in background.listing()] == [seen, unseen, running]


@requirement("BASH-5")
async def test_a_server_can_be_waited_for(background: Background, tmp_path: Path) -> None:
    text = "echo starting; printf 'server lis'; while [ ! -e a ]; do sleep 0.01; done; echo 'tening on 80'; sleep 1012"
    id = await background.start(command(text, tmp_path))
    waiting = asyncio.create_task(background.ready(id, "listening on \\d+", GENEROUS))
    await until(lambda: background.listing()[0].total > 10)
    (tmp_path / "a").touch()

    assert await waiting == "server listening on 80"
    assert (await background.output(id)).text == "starting\nserver listening on 80\n", "waiting is not looking"


@requirement("BASH-5")
async def test_a_server_that_ends_or_is_slow_is_not_ready(background: Background, tmp_path: Path) -> None:
    failing = await background.start(command("echo 'port in use'; exit 1", tmp_path))
    slow = await background.start(command("sleep 1013", tmp_path))

    assert await background.ready(failing, "listening", GENEROUS) is None
    assert await background.ready(slow, "listening", 0.01) is None


@requirement("BASH-7")
async def test_a_command_whose_time_was_up_goes_on_under_an_id(
    background: Background, commands: CommandRunner, tmp_path: Path
) -> None:
    running = await commands.start(command(STEPS, tmp_path))
    assert await running.within(0.01) is None

    id = background.adopt(running)
    for name in "abc":
        (tmp_path / name).touch()

    news = await background.output(id, wait_for="end", seconds=GENEROUS)
    assert (news.text, news.status.state) == ("line-a\nline-b\nline-c\n", TaskState.COMPLETED)


async def test_much_output_is_given_by_its_ends(background: Background, tmp_path: Path) -> None:
    id = await background.start(command("seq 300000", tmp_path))

    news = await background.output(id, wait_for="end", seconds=GENEROUS)

    assert news.text.startswith("1\n2\n")
    assert news.text.endswith("\n299999\n300000\n")
    assert len(news.text) < 30_100
    assert (news.missed, Path(news.saved).read_text().splitlines()[-1]) == (0, "300000")
    assert (await background.output(id)).text == ""


async def test_a_flood_says_what_cannot_be_had_any_more(background: Background, tmp_path: Path) -> None:
    id = await background.start(command("head -c 80000000 /dev/zero | tr '\\0' '\\n'; echo end", tmp_path))

    news = await background.output(id, wait_for="end", seconds=GENEROUS)
    filtered = await background.output(id, cursor=0, filter="end")

    assert news.text.endswith("end\n")
    assert 80_000_000 - (64 << 20) - 400_000 < news.missed < 80_000_004 - (64 << 20)
    assert (filtered.text, filtered.cursor) == ("end", 80_000_004)
    assert filtered.missed > news.missed


async def test_a_lost_command_is_said_to_be(background: Background, tmp_path: Path) -> None:
    id = await background.start(command("echo $PPID; sleep 1014", tmp_path))
    spawner = int((await background.output(id, wait_for="news", seconds=GENEROUS)).text)

    os.kill(spawner, signal.SIGKILL)

    news = await background.output(id, wait_for="end", seconds=GENEROUS)
    assert (news.status.state, news.text) == (TaskState.LOST, "")
    assert "Run it again" in news.status.trouble


@requirement("BASH-4")
async def test_closing_ends_them_all(commands: CommandRunner, tmp_path: Path) -> None:
    marker = unique()
    background = Background(commands)
    for _ in range(3):
        await background.start(command("trap '' TERM; sleep 1015 & wait; wait", tmp_path, MARKED=marker))
    await until(lambda: len(alive_with(marker)) >= 6)

    await background.close(grace=0.1)

    assert not alive_with(marker)

"""Read: the same again, what the ledger learns, the reminder, and links planted meanwhile."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import ToolCall
from ferrule.core.content import Block, Text
from ferrule.core.context import Facts, ToolContext
from ferrule.core.effects import Effects, ReadsPath
from ferrule.core.model import ResultTurn, ToolResult, Turn, UserTurn
from ferrule.core.tool import ToolError
from ferrule.host.documents import text_pages as pages
from ferrule.host.documents.contents import FileUnchanged, ReadOutput
from ferrule.host.files.ledger import Knowledge, Ledgers, NotSeen
from ferrule.host.files.open_files import read_document
from ferrule.permissions.modes import Mode
from ferrule.providers.scripted import ScriptedModel, says
from ferrule.testing import run_call
from ferrule.testing.doubles import NoPort
from ferrule.tools.read import REMINDER, Read, ReadInput
from tests.host.documents.making import pdf, png
from tests.requirement import requirement


class Talk:
    """A conversation in which one tool is called, each result standing in it until it is taken out."""

    def __init__(self, tool: Read, **facts: Any) -> None:
        self.tool = tool
        self.turns: list[Turn] = [UserTurn.saying("go")]
        self.facts = facts

    async def read(self, path: Path, **more: Any) -> ReadOutput:
        call_id = f"call-{len(self.turns)}"
        facts = Facts(conversation=tuple(self.turns), **self.facts)
        output = await self.tool.call(
            ReadInput(file_path=str(path), **more), ToolContext(call_id, str(path.parent), facts, NoPort())
        )
        self.turns.append(ResultTurn((ToolResult(call_id, self.tool.to_model(output), is_error=False),)))
        return output

    def replace_last(self, content: tuple[Block, ...], *, is_error: bool = False) -> None:
        last = self.turns.pop()
        assert isinstance(last, ResultTurn)
        self.turns.append(ResultTurn((ToolResult(last.results[0].call_id, content, is_error),)))


async def _is_stub(talk: Talk, path: Path, **more: Any) -> bool:
    return isinstance(await talk.read(path, **more), FileUnchanged)


# The same again


@requirement("READ-2", "READ-3")
async def test_the_same_range_of_an_unchanged_file_again_gives_a_stub(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    talk = Talk(Read())

    stubs = [await _is_stub(talk, tmp_path / "a.txt", **more) for more in ({}, {}, {"offset": 2}, {"offset": 2}, {})]

    assert stubs == [False, True, False, True, True]


@requirement("READ-3")
@pytest.mark.parametrize("name", ["a.png", "a.pdf", "a.ipynb", "long.txt", "big.txt"])
async def test_any_kind_of_file_again_gives_a_stub(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.png").write_bytes(png(3000, 20))
    (tmp_path / "a.pdf").write_bytes(pdf(["one", ""]))
    (tmp_path / "a.ipynb").write_text('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}')
    (tmp_path / "long.txt").write_text("x" * 200_000)
    (tmp_path / "big.txt").write_text("words\n" * 400_000)
    talk = Talk(Read(parts_folder=tmp_path / "parts"))

    assert [await _is_stub(talk, tmp_path / name) for _ in range(2)] == [False, True]


@requirement("READ-3")
@pytest.mark.parametrize("filling", ["", "word\n" * 100_000])
async def test_a_change_of_one_byte_with_the_same_time_gives_the_content(tmp_path: Path, filling: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"one\n{filling}")
    before = path.stat()
    talk = Talk(Read())
    await talk.read(path)

    with path.open("r+") as file:
        file.write("two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert not await _is_stub(talk, path)
    assert await _is_stub(talk, path)


@requirement("READ-3")
async def test_a_touch_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    talk = Talk(Read())
    await talk.read(path)

    os.utime(path, (1, 1))

    assert await _is_stub(talk, path)


@requirement("READ-3")
async def test_a_result_that_is_gone_from_the_conversation_is_given_again(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    talk = Talk(Read())

    await talk.read(path)
    talk.turns.clear()
    gone = await _is_stub(talk, path)
    talk.replace_last((Text("[left out]"),))
    shortened = await _is_stub(talk, path)
    talk.replace_last((Text("1\tone"), Text(REMINDER)), is_error=True)
    failed = await _is_stub(talk, path)
    talk.replace_last((Text("1\tone"), Text(REMINDER), Text("added by a hook")))
    amended = await _is_stub(talk, path)

    assert (gone, shortened, failed, amended) == (False, False, False, True)


@requirement("READ-3")
async def test_a_file_that_the_agent_wrote_since_is_given_again(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    ledgers = Ledgers()
    talk = Talk(Read(ledgers))
    await talk.read(path)

    now = read_document(str(path))
    ledgers.of("main").wrote(now.identity, now.document.text)

    assert not await _is_stub(talk, path)


@requirement("READ-3")
async def test_what_one_agent_read_another_has_not(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    tool = Read()
    first, second = Talk(tool, agent="first"), Talk(tool, agent="second")
    await first.read(tmp_path / "a.txt")
    second.turns = first.turns

    assert not await _is_stub(second, tmp_path / "a.txt")


@requirement("READ-3")
async def test_in_a_session_the_second_read_costs_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n" * 100)
    calls = [ToolCall(str(number), "Read", {"file_path": "a.txt"}) for number in range(3)]
    model = ScriptedModel([says("", *calls[:2]), says("", calls[2]), says("done")])
    session = open_session(Settings(cwd=str(tmp_path), mode=Mode.BYPASS, state_folder=tmp_path / "state"))

    async with session.ask("go", model) as events:
        async for _ in events:
            pass

    results = [result for turn in session.history if isinstance(turn, ResultTurn) for result in turn.results]
    assert [len(_first_text(result)) > 400 for result in results] == [True, False, False]
    assert {_first_text(result) for result in results[1:]} == {
        f"{tmp_path}/a.txt has not changed: what an earlier result shows of it is still current."
    }


def _first_text(result: ToolResult) -> str:
    assert isinstance(result.content[0], Text)
    return result.content[0].text


# What the ledger learns


async def _knows(path: Path, *reads: dict[str, Any], **options: Any) -> bool:
    ledgers = Ledgers()
    talk = Talk(Read(ledgers, **options))
    for more in reads:
        await talk.read(path, **more)
    try:
        ledgers.of("main").check_whole(str(path), read_document(str(path)))
    except NotSeen:
        return False
    return True


@requirement("READ-3")
@pytest.mark.parametrize("text", ["", "\n", "one\ntwo\n", "one\r\ntwo", "one\rtwo\r", "漢字\n", "x" * 5 + "\r"])
async def test_who_read_a_whole_file_knows_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode())

    assert await _knows(tmp_path / "a.txt", {})


@requirement("READ-3")
async def test_who_read_all_pages_of_a_large_file_knows_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("word " * 10 + "\n" + "other words\n" * 15_000)

    pages = [{"offset": 1}, {"offset": 4_751}, {"offset": 9_500}, {"offset": 14_200}]

    assert await _knows(path, *pages)
    assert not await _knows(path, *pages[:-1])


@requirement("READ-3")
async def test_a_line_that_was_cut_is_known_once_it_was_read_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n" + "x" * 5_000 + "\nthree\n")

    assert not await _knows(path, {})
    assert await _knows(path, {}, {"offset": 2, "limit": 1})


@requirement("READ-3", "READ-7", "FILE-2")
@pytest.mark.parametrize("length", [2_001, 90_000, 120_000, 400_000])
async def test_who_read_some_of_a_long_line_has_read_the_file_in_part(tmp_path: Path, length: int) -> None:
    path = tmp_path / "a.min.js"
    path.write_text("x" * length)
    ledgers = Ledgers()
    await Talk(Read(ledgers, parts_folder=tmp_path / "parts")).read(path)

    assert ledgers.of("main").knows(read_document(str(path))) == Knowledge(everything=False, changed=False)


@requirement("READ-3", "FILE-2")
async def test_a_long_line_that_changed_since_it_was_written_is_known_in_part_once_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.min.js"
    path.write_text("x" * 5_000)
    ledgers = Ledgers()
    ledger = ledgers.of("main")
    ledger.wrote(read_document(str(path)).identity, "x" * 5_000)

    path.write_text("y" * 6_000)
    await Talk(Read(ledgers)).read(path)

    assert ledger.knows(read_document(str(path))) == Knowledge(everything=False, changed=False)


@requirement("READ-3", "FILE-2")
async def test_a_long_line_that_is_known_stays_known_when_some_of_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.min.js"
    path.write_text("x" * 5_000)

    assert await _knows(path, {"limit": 1}, {})


@requirement("READ-5", "FILE-2")
async def test_who_read_pages_of_a_document_has_looked_at_it(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(["one", "two"]))
    ledgers = Ledgers()
    await Talk(Read(ledgers)).read(tmp_path / "a.pdf", pages="2")

    seen = ledgers.of("main").seen(str(tmp_path / "a.pdf"))

    assert seen is not None
    assert seen.whole is None


@requirement("READ-3", "READ-6")
@pytest.mark.parametrize("indent", [1, None])
async def test_who_read_all_cells_of_a_notebook_knows_it(tmp_path: Path, indent: int | None) -> None:
    cells = [{"cell_type": "raw", "id": f"c{number}", "source": "x"} for number in range(4)]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=indent))

    assert await _knows(path, {})
    assert not await _knows(path, {"limit": 2})
    assert not await _knows(path, {"limit": 2}, {"offset": 4})
    assert await _knows(path, {"offset": 3}, {"limit": 2})


@requirement("READ-3", "READ-7")
async def test_a_cell_that_went_into_parts_is_known(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "raw", "id": f"c{number}", "source": "word " * length} for number, length in ((0, 1), (1, 2000))
    ]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1))

    options = {"token_budget": 1_000, "parts_folder": tmp_path / "parts"}

    assert not await _knows(path, {}, **options)
    assert await _knows(path, {}, {"offset": 2}, **options)


@requirement("READ-3", "READ-6")
async def test_cells_of_two_versions_of_a_notebook_do_not_add_up(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    ledgers = Ledgers()
    talk = Talk(Read(ledgers))
    for source, more in (("x", {"limit": 1}), ("y", {"offset": 2})):
        cells = [{"cell_type": "raw", "id": id, "source": source} for id in ("a", "b")]
        path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
        await talk.read(path, **more)

    with pytest.raises(NotSeen):
        ledgers.of("main").check_whole(str(path), read_document(str(path)))


# The reminder


async def _said(folder: Path, tool: Read, model: str = "", name: str = "a.txt") -> Sequence[Block]:
    talk = Talk(tool, model=model)
    return tool.to_model(await talk.read(folder / name))


@requirement("READ-10")
async def test_text_comes_with_a_reminder_that_can_be_changed_and_switched_off(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "empty.txt").touch()
    line = Text("1\tone")

    assert await _said(tmp_path, Read()) == (line, Text(REMINDER))
    assert await _said(tmp_path, Read(reminder="Mind.")) == (line, Text("Mind."))
    assert await _said(tmp_path, Read(reminder=None)) == (line,)
    assert await _said(tmp_path, Read(reminder_off_for=["calm"]), "calm") == (line,)
    assert await _said(tmp_path, Read(reminder_off_for=["calm"]), "other") == (line, Text(REMINDER))
    assert len(await _said(tmp_path, Read(), name="empty.txt")) == 1
    assert "\n" not in REMINDER


@requirement("READ-1", "READ-10")
async def test_a_file_too_long_to_count_says_so_and_has_its_reminder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MOST_COUNTED", 1_000)
    (tmp_path / "a.txt").write_text("word\n" * 100_000)

    text, reminder = await _said(tmp_path, Read())

    assert isinstance(text, Text)
    assert text.text.endswith("[Lines 1 to 8636, and more than can be counted quickly. Read on with offset 8637.]")
    assert reminder == Text(REMINDER)


# Links


@requirement("SEC-3")
async def test_a_link_that_was_planted_after_the_decision_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "a.txt").write_text("harmless")
    path = str(tmp_path / "a.txt")
    judged = NoPort(effects=Effects.of(ReadsPath(path, real=path)))
    (tmp_path / "a.txt").unlink()
    (tmp_path / "a.txt").symlink_to("secret")

    with pytest.raises(ToolError, match=r"leads to .*/secret now"):
        await Read().call(ReadInput(file_path=path), ToolContext("1", str(tmp_path), Facts(), judged))


@requirement("READ-1")
async def test_a_link_is_read_as_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "link").symlink_to("a.txt")

    outcome = await run_call(tmp_path, Read(), {"file_path": "link"})

    assert outcome.content[0] == Text("1\tone")


# Options


@requirement("READ-1")
async def test_the_budget_is_a_setting(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("word " * 10 + "\n" + ("word " * 10 + "\n") * 999)

    text = (await _said(tmp_path, Read(token_budget=1_000)))[0]

    assert isinstance(text, Text)
    assert len(text.text) // 4 <= 1_000 + 20
    assert "[Lines 1 to 74 of 1000. Read on with offset 75.]" in text.text


@requirement("READ-1")
def test_a_budget_too_small_for_any_page_is_refused() -> None:
    with pytest.raises(ValueError, match="1,000 or more"):
        Read(token_budget=999)

"""A server that works, and servers that do not, over real pipes."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from ferrule.core.ports import Answer, Question, Unanswered
from ferrule.host.processes.spawner.descendants import is_alive
from ferrule.mcp.config import Stdio
from ferrule.mcp.server_context import Phase, ServerTrouble, Timing
from ferrule.mcp.server_process import LARGEST_LOG, ErrorLog
from tests.mcp.running import HANG, QUICK, connected, nothing, raw, text_of, until
from tests.requirement import requirement


@requirement("MCP-1")
async def test_a_call_comes_back_and_the_server_says_what_it_is(tmp_path: Path) -> None:
    async with connected(tmp_path, raw()) as server:
        assert await text_of(server, "echo", {"text": "h\u00e9 \U0001f600"}) == "h\u00e9 \U0001f600"
        assert (server.phase, server.instructions) == (Phase.UP, "Be careful.")
        assert server.listing is not None
        assert {"echo", "hang", "roots"} <= {tool.name for tool in server.listing.tools}  # more than one page of them
        assert [prompt.arguments for prompt in server.listing.prompts] == [(("who", True),)]


@requirement("MCP-1")
async def test_garbage_on_standard_output_is_passed_over(tmp_path: Path) -> None:
    async with connected(tmp_path, raw("garbage")) as server:
        assert await text_of(server, "flood") == "flooded"
        assert await text_of(server, "echo", {"text": "still here"}) == "still here"


@requirement("MCP-2")
async def test_a_server_that_dies_in_a_call_is_an_error_with_its_last_words_and_comes_back(tmp_path: Path) -> None:
    async with connected(tmp_path, raw()) as server:
        with pytest.raises(ServerTrouble, match=r"exit code 7\. Its last output: out of luck"):
            await text_of(server, "die")
        with pytest.raises(ServerTrouble, match="is down"):
            await text_of(server, "echo", {"text": "too early"})
        await until(lambda: server.phase is Phase.UP)

        assert await text_of(server, "echo", {"text": "back"}) == "back"


@requirement("MCP-2")
async def test_the_pauses_grow_and_a_server_that_never_starts_is_told_at_once(tmp_path: Path) -> None:
    timing = Timing(begin_after=0, first_pause=3600, longest_pause=3600)
    async with connected(tmp_path, raw("die-at-start"), timing=timing) as server:
        for _ in range(2):
            with pytest.raises(ServerTrouble, match=r"exit code 3\. Its last output: no configuration found") as caught:
                async with asyncio.timeout(HANG):
                    await server.ready()

        assert "retried in 3600 seconds" in str(caught.value)


@requirement("MCP-2")
async def test_after_many_failures_a_server_is_started_again_only_for_somebody_who_wants_it(tmp_path: Path) -> None:
    timing = Timing(begin_after=0, first_pause=0.001, longest_pause=0.001)
    async with connected(tmp_path, Stdio("/nonexistent/server"), timing=timing) as server:
        server.start()
        await until(lambda: server._failures >= 6)  # pyright: ignore[reportPrivateUsage]
        failures = server._failures  # pyright: ignore[reportPrivateUsage]
        await asyncio.sleep(0.05)  # several pauses long

        with pytest.raises(ServerTrouble, match="cannot be started: No such file"):
            await server.ready()
        assert server._failures == failures + 1  # pyright: ignore[reportPrivateUsage]


@requirement("MCP-2")
async def test_a_server_begins_in_a_quiet_moment_and_in_the_end_without_one(tmp_path: Path) -> None:
    timing = Timing(begin_after=0.2, begin_within=1.0)
    async with connected(tmp_path, Stdio("/nonexistent/server"), timing=timing) as server:
        server.start()
        began = time.monotonic()
        while server.phase is Phase.IDLE and time.monotonic() - began < HANG:
            waited = time.monotonic() - began
            time.sleep(0.09)  # noqa: ASYNC251 - it is what keeps the loop busy
            await asyncio.sleep(0)

        assert waited > 0.5  # twice what a quiet process would have waited
    async with connected(tmp_path, raw(), timing=Timing(begin_after=3600, begin_within=3600)) as server:
        assert await text_of(server, "echo", {"text": "wanted"}) == "wanted"


@requirement("MCP-2")
async def test_a_server_that_hangs_at_its_start_is_given_up(tmp_path: Path) -> None:
    async with connected(tmp_path, raw("hang-start"), timing=Timing(begin_after=0, start=0.3)) as server:
        with pytest.raises(ServerTrouble, match=r"not up after 0\.3 seconds"):
            await server.ready()


@requirement("MCP-2")
async def test_a_hung_call_is_cut_off_and_the_server_is_told(tmp_path: Path) -> None:
    async with connected(tmp_path, raw(), timeout=0.2) as server:
        with pytest.raises(ServerTrouble, match=r"was silent for 0\.2 seconds, and was cancelled"):
            await text_of(server, "hang")
        assert await text_of(server, "cancelled") == "1"


@requirement("MCP-1")
async def test_progress_keeps_a_call_alive_beyond_its_limit(tmp_path: Path) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with connected(tmp_path, raw(), timeout=0.3) as server:
        result = await server.call("steps", {}, listen)

    assert result["content"][0]["text"] == "done"
    assert heard == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


@requirement("MCP-2")
async def test_progress_does_not_keep_a_call_alive_for_ever(tmp_path: Path) -> None:
    async with connected(tmp_path, raw(), timeout=0.1) as server:
        with pytest.raises(ServerTrouble, match="took longer than 1 seconds"):
            await text_of(server, "endless")


@requirement("MCP-1")
async def test_a_cancelled_call_is_cancelled_at_the_server_too(tmp_path: Path) -> None:
    async with connected(tmp_path, raw()) as server:
        await server.ready()
        call = asyncio.ensure_future(server.call("hang", {}, nothing))
        assert await text_of(server, "echo", {"text": "behind it"}) == "behind it"
        call.cancel()
        await asyncio.wait((call,), timeout=HANG)

        assert call.cancelled()
        assert await text_of(server, "cancelled") == "1"


async def test_errors_of_the_protocol_are_told_in_the_servers_words(tmp_path: Path) -> None:
    async with connected(tmp_path, raw()) as server:
        with pytest.raises(ServerTrouble, match="answered `refuse` with an error: not today"):
            await text_of(server, "refuse")
        assert server.phase is Phase.UP


@requirement("MCP-1")
async def test_closing_ends_the_process_and_all_that_it_started(tmp_path: Path) -> None:
    async with connected(tmp_path, raw(f"child={tmp_path / 'pid'}")) as server:
        pid = json.loads(await text_of(server, "environment")).get("FERRULE_MCP_PROCESS")
        child = int((tmp_path / "pid").read_text())
        assert pid
        assert is_alive(child)

    await until(lambda: not is_alive(child))


@requirement("MCP-2")
async def test_closing_while_it_starts_does_not_wait_for_it(tmp_path: Path) -> None:
    async with connected(tmp_path, raw("hang-start")) as server:
        server.start()
        await until(lambda: server.phase is Phase.CONNECTING)
        async with asyncio.timeout(HANG):
            await server.close()
        assert server.phase is Phase.CLOSED
        with pytest.raises(ServerTrouble, match="was closed"):
            await server.ready()


async def test_a_server_has_none_of_our_keys_and_all_of_its_own_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-something-long")
    async with connected(tmp_path, raw(env={"TOKEN": "its own"})) as server:
        there = json.loads(await text_of(server, "environment"))

    assert "ANTHROPIC_API_KEY" not in there
    assert (there["TOKEN"], there["PATH"]) == ("its own", os.environ["PATH"])


class Person:
    """Answers what it is told to, and remembers the questions."""

    def __init__(self, *answers: Answer | Unanswered) -> None:
        self.asked: list[Question] = []
        self._answers = list(answers)

    async def ask(self, questions: tuple[Question, ...], /, *, asker: str) -> tuple[Answer, ...] | Unanswered:
        self.asked += questions
        given = [self._answers.pop(0) for _ in questions if self._answers]
        refused = next((one for one in given if isinstance(one, Unanswered)), None)
        return refused or tuple(one for one in given if isinstance(one, Answer))


@requirement("MCP-1")
async def test_a_servers_question_reaches_the_person_and_the_answer_the_server(tmp_path: Path) -> None:
    answers = (Answer(text="Bern"), Answer(text="2"), Answer(chosen=("second",)), Answer(chosen=("Yes",)), Answer())
    person = Person(*answers)
    async with connected(tmp_path, raw(), questioner=person, timeout=0.5) as server:
        answer = json.loads(await text_of(server, "ask"))

    assert answer == {
        "action": "accept",
        "content": {"city": "Bern", "seats": 2, "class": "second", "return": True, "meal": "soup"},
    }
    assert person.asked[0].text == "Where to?\ncity: A city."
    assert [choice.label for choice in person.asked[2].choices] == ["first", "second"]


@requirement("MCP-1")
@pytest.mark.parametrize(("why", "action"), [("declined", "decline"), ("nobody", "cancel")])
async def test_a_person_need_not_answer(tmp_path: Path, why: str, action: str) -> None:
    async with connected(tmp_path, raw(), questioner=Person(Unanswered(why))) as server:  # pyright: ignore[reportArgumentType]
        assert json.loads(await text_of(server, "ask")) == {"action": action}


@requirement("MCP-1")
async def test_a_page_that_has_to_be_opened_first_is_put_to_the_person_and_the_call_made_again(tmp_path: Path) -> None:
    person = Person(Answer(chosen=("I have opened it",)), Answer(chosen=("No",)))
    async with connected(tmp_path, raw(), questioner=person) as server:
        assert await text_of(server, "pages_first") == "done at last"
        with pytest.raises(ServerTrouble, match=r"Agree first\. A person has to open https://a\.test/agree first\."):
            await text_of(server, "pages_first")

    assert [question.text for question in person.asked] == ["Agree here.\nhttps://a.test/agree"] * 2


@requirement("MCP-1")
async def test_without_a_person_the_page_is_named(tmp_path: Path) -> None:
    async with connected(tmp_path, raw()) as server:
        with pytest.raises(ServerTrouble, match=r"A person has to open https://a\.test/agree first"):
            await text_of(server, "pages_first")


async def test_a_tool_that_answers_as_a_task_only_is_left_out(tmp_path: Path) -> None:
    async with connected(tmp_path, raw()) as server:
        await server.ready()
        assert server.listing is not None
        assert "as_task" not in {tool.name for tool in server.listing.tools}


async def test_what_a_server_logs_stands_beside_its_complaints(tmp_path: Path) -> None:
    async with connected(tmp_path, raw()) as server:
        await text_of(server, "tell")
        await until((tmp_path / "mcp" / "logs" / "raw.log").exists)

    assert (tmp_path / "mcp" / "logs" / "raw.log").read_text() == '[warning] disk: {"free": 3}\n'


@requirement("MCP-1")
async def test_without_a_person_a_question_is_refused_in_words(tmp_path: Path) -> None:
    async with connected(tmp_path, raw()) as server:
        assert "not supported" in await text_of(server, "ask")


async def test_a_person_who_thinks_long_does_not_run_out_the_clock(tmp_path: Path) -> None:
    class Slow(Person):
        async def ask(self, questions: tuple[Question, ...], /, *, asker: str) -> tuple[Answer, ...] | Unanswered:
            await asyncio.sleep(0.5)
            return Unanswered("declined")

    async with connected(tmp_path, raw(), questioner=Slow(), timeout=0.2) as server:
        assert json.loads(await text_of(server, "ask")) == {"action": "decline"}


async def test_a_server_that_asks_for_the_roots_gets_the_workspace(tmp_path: Path) -> None:
    async with connected(tmp_path, raw()) as server:
        assert json.loads(await text_of(server, "roots")) == {"roots": [{"uri": "file:///project"}]}


@requirement("MCP-2")
async def test_tools_are_known_from_the_last_time_before_the_server_is_up(tmp_path: Path) -> None:
    async with connected(tmp_path, raw()) as server:
        await server.ready()
        before = server.listing

    async with connected(tmp_path, raw(), timing=QUICK) as again:
        assert (again.phase, again.listing) == (Phase.IDLE, before)
    for broken in ("", "[]", '{"version": 1, "tools": [1]}'):
        for path in (tmp_path / "mcp" / "lists").iterdir():
            path.write_text(broken)
        async with connected(tmp_path, raw()) as without:
            assert without.listing is None


def test_the_log_of_errors_stays_small_and_private(tmp_path: Path) -> None:
    log = ErrorLog(tmp_path / "logs" / "a.log")

    for at in range(40):
        log.write(b"%d " % at + b"x" * (LARGEST_LOG // 16) + b"\nthe end\n")

    files = sorted(log.path.parent.iterdir())
    assert [path.name for path in files] == ["a.log", "a.log.1"]
    assert all(path.stat().st_size <= LARGEST_LOG and path.stat().st_mode & 0o077 == 0 for path in files)
    assert log.last_words.endswith("the end")

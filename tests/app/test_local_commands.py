"""Commands of Ferrule itself, and names that are no commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.app.prompting.local_commands import ANSWERED, ELSEWHERE, PROMPTS
from ferrule.app.session_opening import Which
from ferrule.output.run_answer import Ending
from tests.app.talking import talk
from tests.requirement import requirement


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@requirement("PROG-5")
async def test_a_command_that_does_not_exist_costs_no_request_and_names_the_nearest(folder: Path) -> None:
    async with talk(folder) as at:
        near = await at.ask("/compcat now")
        far = await at.ask("/zzz")

        assert (near.exit_code, near.errors) == (1, ("Unknown command: /compcat. Did you mean /compact?",))
        assert (far.exit_code, far.errors) == (1, ("Unknown command: /zzz. /help lists the commands.",))
        assert at.server.requests == []


@requirement("PROG-5")
@pytest.mark.parametrize("prompt", ["/usr/bin/x does what?", "/etc is what?", "/ alone", "/a.txt", "see /nope", "//"])
async def test_what_begins_like_a_path_is_an_ordinary_prompt(folder: Path, prompt: str) -> None:
    async with talk(folder) as at:
        assert (await at.ask(prompt)).ending is Ending.SUCCESS
        assert at.prompt() == prompt


@requirement("PROG-5")
@pytest.mark.parametrize("name", sorted(set(ANSWERED) - {"compact"}))
async def test_a_command_that_is_answered_here_costs_no_request(folder: Path, name: str) -> None:
    async with talk(folder) as at:
        answer = await at.ask(f"/{name}")

        assert (answer.ending, bool(answer.text), at.server.requests) == (Ending.SUCCESS, True, [])


@requirement("PROG-5")
@pytest.mark.parametrize("name", sorted(ELSEWHERE))
async def test_a_command_that_needs_a_terminal_says_what_to_do_instead(folder: Path, name: str) -> None:
    async with talk(folder) as at:
        answer = await at.ask(f"/{name}")

        assert (answer.exit_code, at.server.requests) == (1, [])
        assert answer.errors == (f"/{name} needs a terminal. {ELSEWHERE[name]}",)


@requirement("PROG-5")
async def test_what_was_used_and_what_fills_the_window_are_told(folder: Path) -> None:
    usage = {"input_tokens": 1000, "output_tokens": 100}

    async with talk(folder, {"text": "Well.", "usage": usage}) as at:
        await at.ask("Hello")
        cost, context, model = [(await at.ask(f"/{name}")).text for name in ("cost", "context", "model")]

        assert len(at.server.requests) == 1
    assert "claude-sonnet-5-5: $0.0030 (1,000 tokens in, 100 out" in cost
    assert "of 1,000,000 (" in context
    assert "- Messages: " in context
    assert model == "The model is claude-sonnet-5-5."


@requirement("PROG-5")
async def test_a_cleared_conversation_is_not_sent_again_nor_resumed(folder: Path) -> None:
    async with talk(folder, {"text": "One."}, {"text": "Two."}) as at:
        await at.ask("the first prompt")
        await at.ask("/clear")
        await at.ask("the second prompt")
        id = at.opened.session.id

        assert b"the first prompt" not in at.server.requests[1].raw
    async with talk(folder, which=Which(resume=id)) as again:
        await again.ask("the third prompt")

        assert b"the first prompt" not in again.server.requests[0].raw
        assert b"the second prompt" in again.server.requests[0].raw


@requirement("PROG-5", "LOOP-2")
async def test_a_resumed_conversation_can_be_compacted_by_a_prompt(folder: Path) -> None:
    async with talk(folder, {"text": "One."}) as at:
        await at.ask("the first prompt")
        id = at.opened.session.id
    usage = {"input_tokens": 700, "output_tokens": 70}
    summary = {"text": "# Task\nTalk.\n\n# State\nIt was about names.", "usage": usage}
    async with talk(folder, summary, which=Which(resume=id)) as second:
        answer = await second.ask("/compact keep the names")

        assert answer.text.startswith("The conversation was compacted: from about ")
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (700, 70)
        assert "keep the names" in second.prompt()
    async with talk(folder, which=Which(resume=id)) as third:
        await third.ask("Go on.")

        raw = third.server.requests[0].raw
        assert b"It was about names." in raw
        assert b"the first prompt" in raw
        assert b"One." not in raw


@requirement("PROG-5")
async def test_there_is_nothing_to_compact_in_a_new_conversation(folder: Path) -> None:
    async with talk(folder) as at:
        answer = await at.ask("/compact")

        assert (answer.exit_code, at.server.requests) == (1, [])
        assert answer.errors[0].startswith("There is nothing to compact yet.")


@requirement("PROG-5")
@pytest.mark.parametrize("name", sorted(PROMPTS))
async def test_some_commands_become_a_prompt_with_their_arguments(folder: Path, name: str) -> None:
    (folder / "f.txt").write_text("the content")

    async with talk(folder) as at:
        await at.ask(f"/{name} number 12 and @f.txt")

        sent = at.prompt()
    assert sent.startswith(PROMPTS[name][1])
    assert "number 12" in sent
    assert "the content" in sent


@requirement("PROG-5")
async def test_the_model_can_be_changed_for_the_prompts_that_follow(folder: Path) -> None:
    async with talk(folder) as at:
        answer = await at.ask("/model opus")
        await at.ask("Hello")

        assert answer.text == "The model is now claude-opus-5-5."
        assert at.server.bodies[0]["model"] == "claude-opus-5-5"


@requirement("PROG-5")
async def test_commands_can_be_switched_off_and_mentions_stay(folder: Path) -> None:
    (folder / "f.txt").write_text("the content")

    async with talk(folder) as at:
        at.opened.commands.are_off = True
        await at.ask("/compact @f.txt")

        assert at.prompt().startswith("/compact @f.txt")
        assert "the content" in at.prompt()
        assert at.opened.commands.names() == ()

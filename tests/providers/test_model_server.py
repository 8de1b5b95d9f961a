"""The loopback model server, as tests and as other programs use it."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from ferrule.core.content import Text
from ferrule.core.model import ModelError, Request, ResultTurn, ToolResult, UserTurn
from ferrule.host.http.http_client import HttpClient
from ferrule.providers.model_catalog import open_model
from ferrule.testing import ModelServer
from tests.providers.hearing import calls_of, heard, models_at, text_of

TURN = {
    "thinking": "hm",
    "text": "Two words",
    "calls": [{"name": "Read", "input": {"path": "a"}}],
    "usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_tokens": 5},
}


async def test_all_languages_tell_the_same_turn() -> None:
    async with ModelServer.playing({"turns": [TURN] * 3}) as server, models_at(server) as models:
        heard_by = [await heard(model) for model in models]

    assert [text_of(events) for events in heard_by] == ["Two words"] * 3
    assert [calls_of(events)[0].arguments for events in heard_by] == [{"path": "a"}] * 3
    assert [request.path for request in server.requests] == [
        "/v1/messages",
        "/v1/chat/completions",
        "/v1/responses",
    ]


async def test_the_vendors_own_clients_understand_it() -> None:
    async with ModelServer.playing({"turns": [TURN] * 3}) as server:
        async with (
            AsyncAnthropic(base_url=server.url, api_key="k", max_retries=0) as anthropic,
            anthropic.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]) as stream,
        ):
            message = await stream.get_final_message()
        async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0) as openai:
            chunks = await openai.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "hi"}], stream=True
            )
            deltas = [chunk.choices[0].delta async for chunk in chunks if chunk.choices]
            async with openai.responses.stream(model="m", input="hi") as events:
                response = await events.get_final_response()

    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert message.usage.cache_read_input_tokens == 5
    assert "".join(delta.content or "" for delta in deltas) == "Two words"
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call"]
    assert (response.output_text, response.usage and response.usage.input_tokens) == ("Two words", 8)


@pytest.mark.parametrize("which", [0, 1, 2])
async def test_a_call_may_use_what_the_last_results_say(which: int) -> None:
    turns = [{"calls": [{"name": "TaskOutput", "input": {"task_id": {"$found": r"task (\w+)"}}}]}] * 2
    history = [UserTurn.saying("go"), ResultTurn((ToolResult("1", (Text("Started task b7."),), is_error=False),))]
    async with ModelServer.playing({"turns": turns}) as server, models_at(server) as models:
        found = await heard(models[which], Request(history, ()))
        with pytest.raises(ModelError, match="do not contain it"):
            await heard(models[which])

    assert calls_of(found)[0].arguments == {"task_id": "b7"}


async def test_one_turn_too_many_is_refused_in_words() -> None:
    async with ModelServer.playing({"turns": [TURN]}) as server, models_at(server) as (model, *_):
        await heard(model)
        with pytest.raises(ModelError, match="has 1 turns and was asked for one more"):
            await heard(model)


async def test_a_process_plays_a_script_and_logs_what_it_is_asked(tmp_path: Path) -> None:
    script, log = tmp_path / "script.json", tmp_path / "log.jsonl"
    script.write_text(json.dumps({"turns": [TURN]}))
    command = (sys.executable, "-m", "ferrule.testing.model_server", "--script", str(script), "--log", str(log))
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        url = (await process.stdout.readline()).decode().strip()
        async with HttpClient({}) as client:
            events = await heard(open_model("m", {"ANTHROPIC_BASE_URL": url}, client=client))
    finally:
        process.send_signal(signal.SIGINT)
        await process.wait()

    assert text_of(events) == "Two words"
    assert process.returncode == 0
    assert [json.loads(line)["model"] for line in log.read_text().splitlines()] == ["m"]


def test_a_process_with_a_bad_script_says_so_and_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ferrule.testing.model_server", "--script", str(tmp_path / "none.json")]

    ended = subprocess.run(command, capture_output=True, text=True, check=False)

    assert ended.returncode == 2
    assert "none.json cannot be read" in ended.stderr

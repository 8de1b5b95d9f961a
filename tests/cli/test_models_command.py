"""`ferrule models` and `ferrule models probe`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.providers.fact_servers import LLAMA_CPP, fact_server

from .running import ferrule

MODELS = {"models": {"mine": {"window": 50_000, "input_price": 0.5, "output_price": 2}}}


def test_it_lists_what_is_known_and_from_where(tmp_path: Path) -> None:
    done = ferrule(tmp_path, "models", "--json", "--settings", json.dumps(MODELS))

    assert done.returncode == 0, done.stderr
    mine, *others = json.loads(done.stdout)
    assert (mine["name"], mine["window"], mine["input_price"]) == ("mine", 50_000, 0.5)
    assert (mine["sources"]["window"], mine["sources"]["images"]) == ("settings", "default")
    assert {other["sources"]["window"] for other in others} == {"table"}

    listed = ferrule(tmp_path, "models", "--settings", json.dumps(MODELS)).stdout.decode().splitlines()
    assert listed[1].split() == ["mine", "50,000", "16,000", "no", "no", "0.5", "/", "2", "settings,", "default"]


async def test_a_probe_asks_the_server_and_keeps_what_it_says(tmp_path: Path) -> None:
    async with fact_server(LLAMA_CPP) as (url, _):
        env = {"OPENAI_BASE_URL": url}
        probed = await asyncio.to_thread(ferrule, tmp_path, "models", "probe", "openai:qwen3", env=env)
        listed = await asyncio.to_thread(ferrule, tmp_path, "models", "--json")

    assert (probed.returncode, probed.stdout) == (0, b"window: 24576\nimages: True\n")
    (kept,) = [one for one in json.loads(listed.stdout) if one["server"]]
    assert (kept["name"], kept["window"], kept["server"], kept["sources"]["window"]) == ("qwen3", 24_576, url, "server")
    assert kept["date"]


async def test_a_server_that_does_not_say_is_reported_with_what_to_set(tmp_path: Path) -> None:
    async with fact_server({"/v1/models": {"data": []}}) as (url, _):
        env = {"OPENAI_BASE_URL": url}
        probed = await asyncio.to_thread(ferrule, tmp_path, "models", "probe", "openai:qwen3", env=env)

    assert probed.returncode == 1
    assert b'"models": {"qwen3": {"window": N}}' in probed.stderr

"""What a session does by the facts of its model: pictures, documents, usage and costs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from ferrule.output.run_answer import result_line
from ferrule.permissions.modes import Mode
from ferrule.providers.service_model import ServiceModel
from tests.host.documents.making import pdf, png

from .talking import Talk, talk


def reading(name: str) -> dict[str, Any]:
    return {"calls": [{"name": "Read", "input": {"file_path": name}}]}


def last_result(at: Talk) -> list[dict[str, Any]]:
    (result,) = [one for one in at.server.bodies[-1]["messages"][-1]["content"] if one["type"] == "tool_result"]
    return result["content"]


async def test_read_says_what_a_model_without_eyes_cannot_see(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(80, 60))

    async with talk(tmp_path, reading("a.png"), {"text": "Done."}, model="anthropic:mine") as at:
        await at.ask("Look")

        (block,) = last_result(at)
    assert block["type"] == "text"
    assert block["text"].endswith("a.png: an image of 80x60 pixels, which this model cannot see]")


async def test_a_model_that_takes_documents_gets_them_and_another_their_pages(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(["one", "two"]))

    async with talk(tmp_path, reading("a.pdf"), {"text": "Done."}) as at:
        await at.ask("Look")
        assert last_result(at)[0]["type"] == "document"

    async with talk(tmp_path, reading("a.pdf"), {"text": "Done."}, model="anthropic:mine") as at:
        await at.ask("Look")
        assert "[Page 1 of 2]\none" in last_result(at)[0]["text"]


async def test_the_usage_of_a_prompt_has_that_of_a_summary(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a line of words\n" * 4_000)
    usage = {"input_tokens": 30_000, "output_tokens": 10}
    summary = "# Task\n" + "What was asked for is this. " * 20 + "\n\n# State\nNothing is done yet."
    turns = ({**reading("a.txt"), "usage": usage}, {"text": summary, "usage": usage}, {"text": "Done.", "usage": usage})

    async with talk(tmp_path, *turns, mode=Mode.BYPASS) as at:
        assert isinstance(at.model.model, ServiceModel)
        at.model.model.facts = replace(at.model.facts, window=34_000, source="learned")
        answer = await at.ask("Read it")

        assert len(at.server.bodies) == 3
    (spent,) = answer.spent.values()
    assert answer.usage == spent.usage
    assert answer.usage.input_tokens == 90_000


async def test_a_cost_by_estimate_is_called_one_and_an_unknown_one_is_null(tmp_path: Path) -> None:
    async with talk(tmp_path, {"text": "Done."}) as at:
        line = result_line(await at.ask("Go"), session_id="s", uuid="u")
    assert 0 < line["total_cost_usd"] < 1
    assert [model["isEstimate"] for model in line["modelUsage"].values()] == [True]

    async with talk(tmp_path, {"text": "Done."}, model="anthropic:mine") as at:
        line = result_line(await at.ask("Go"), session_id="s", uuid="u")
    assert line["total_cost_usd"] is None
    assert json.dumps(line)

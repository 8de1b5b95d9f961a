"""The outputs of the built-in tools, in the shapes that hooks and consumers of stream-json know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ferrule.app.build import Settings, open_session
from ferrule.app.headless_run import Headless, lines_of, shape_if_known
from ferrule.app.tool_responses import amend_output
from ferrule.core.calls import Status, ToolCall, ToolOutcome
from ferrule.core.content import Line, Text
from ferrule.core.events import Envelope
from ferrule.core.model import Usage
from ferrule.output.stream_json import encode_json_line
from ferrule.permissions.modes import Mode
from ferrule.providers.asked_model import AskedModel
from ferrule.providers.scripted import ScriptedModel, says
from ferrule.tools.agent import AgentOutput
from tests.cli.prompting import fits

FIELDS = {
    "Bash": {"stdout", "stderr", "interrupted", "isImage"},
    "Edit": {"filePath", "oldString", "newString", "originalFile", "structuredPatch", "userModified", "replaceAll"},
    "Write": {"type", "filePath", "content", "structuredPatch", "originalFile"},
    "Read": {"type", "file"},
    "Glob": {"filenames", "numFiles", "truncated", "durationMs", "totalMatches"},
    "Grep": {"mode", "numFiles", "filenames"},
    "Agent": {"status", "agentId", "content", "totalTokens", "totalDurationMs", "totalToolUseCount", "usage"},
}


async def results(folder: Path, *messages: list[ToolCall]) -> dict[str, Any]:
    """`tool_use_result` of each call, by its id."""
    session = open_session(Settings(cwd=str(folder), state_folder=folder / ".state", mode=Mode.ACCEPT_EDITS))
    stream = lines_of(session.id, lambda: "m")
    found: dict[str, Any] = {}

    def hear(envelope: Envelope) -> None:
        for line in stream.lines(envelope):
            fits(json.loads(encode_json_line(line)))
            if line["type"] == "user":
                found[line["message"]["content"][0]["tool_use_id"]] = line["tool_use_result"]

    async def watch(envelope: Envelope) -> None:
        hear(envelope)

    model = AskedModel(ScriptedModel([*(says("", *calls) for calls in messages), says("Done.")]))
    async with session:
        await Headless(session, model, watch=watch, watch_last=hear).ask("Hi")
    return found


async def test_results_in_the_stream_have_the_fields_that_consumers_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")

    found = await results(
        tmp_path,
        [
            ToolCall("Read", "Read", {"file_path": "a.txt"}),
            ToolCall("Grep", "Grep", {"pattern": "one"}),
            ToolCall("Glob", "Glob", {"pattern": "*.txt"}),
            ToolCall("Bash", "Bash", {"command": "echo hi"}),
        ],
        [
            ToolCall("Edit", "Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "uno"}),
            ToolCall("Write", "Write", {"file_path": "b.txt", "content": "b\n"}),
        ],
        [ToolCall("Again", "Write", {"file_path": "b.txt", "content": "c\n"})],
    )

    for tool in ("Bash", "Edit", "Write", "Read", "Glob", "Grep"):
        assert set(found[tool]) == FIELDS[tool]
    assert found["Read"]["file"] == {
        "filePath": f"{tmp_path}/a.txt",
        "content": "one\ntwo",
        "numLines": 2,
        "startLine": 1,
        "totalLines": 2,
    }
    assert (found["Edit"]["oldString"], found["Edit"]["newString"]) == ("one", "uno")
    assert found["Edit"]["originalFile"] == "one\ntwo\n"
    (hunk,) = found["Edit"]["structuredPatch"]
    assert hunk["lines"] == ["-one", "+uno", " two"]
    assert (found["Write"]["type"], found["Write"]["originalFile"]) == ("create", None)
    assert (found["Again"]["type"], found["Again"]["originalFile"]) == ("update", "b\n")


async def test_a_call_that_failed_is_told_in_words(tmp_path: Path) -> None:
    found = await results(tmp_path, [ToolCall("1", "Read", {"file_path": "missing.txt"})])

    assert found["1"].startswith("Error: ")


def agent_outcome() -> ToolOutcome:
    output = AgentOutput("completed", "Explore_1", "Found.", total_tokens=12, usage=Usage(10, 2))
    return ToolOutcome(ToolCall("1", "Agent", {}), Status.OK, (Text("Found."),), Line(""), output=output)


def test_what_an_agent_reports_has_its_shape_too() -> None:
    shape = shape_if_known(agent_outcome())

    assert shape is not None
    assert set(shape) == FIELDS["Agent"]
    assert shape["content"] == [{"type": "text", "text": "Found."}]
    assert shape["usage"]["input_tokens"] == 10


def test_a_hook_may_put_other_words_in_the_place_of_a_report() -> None:
    changed = amend_output(agent_outcome(), {"content": [{"type": "text", "text": "Hidden."}]})

    assert changed is not None
    assert changed.output.content == "Hidden."


@pytest.mark.parametrize("given", ["words", {}, {"content": "words"}, {"content": [{"type": "image"}]}])
def test_what_has_not_the_shape_of_a_report_changes_nothing(given: object) -> None:
    assert amend_output(agent_outcome(), given) is None

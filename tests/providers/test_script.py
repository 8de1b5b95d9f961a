"""Script files: what they play, and what is said of bad ones."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import fastjsonschema
import pytest

from ferrule.core.calls import ToolCall
from ferrule.core.content import Text
from ferrule.core.model import (
    CallDelta,
    CallReady,
    FailureKind,
    ModelError,
    Request,
    ResultTurn,
    Retrying,
    Stopped,
    TextDelta,
    Thought,
    ThoughtDelta,
    ThoughtReady,
    ToolResult,
    Usage,
    UserTurn,
)
from ferrule.providers.model_catalog import open_model
from ferrule.providers.script import SCHEMA_FILE, BadScript, ScriptedError, check_script, load_script, schema
from tests.providers.hearing import calls_of, heard, heard_until_error
from tests.requirement import requirement

WHOLE: dict[str, Any] = {
    "$schema": "script.schema.json",
    "turns": [
        {
            "retries": [{"reason": "Overloaded", "seconds": 0}],
            "thinking": "hm",
            "text": "Two words",
            "calls": [{"name": "Read", "input": {"path": "a"}}, {"id": "mine", "name": "Glob"}],
            "usage": {"input_tokens": 1, "output_tokens": 2},
        },
        {"text": "Done.", "stop": "max_tokens", "delay": 0, "pause": 0},
        {"text": "Half", "error": {"kind": "cut", "message": "The stream broke off."}},
    ],
}


def written(folder: Path, script: Any) -> str:
    path = folder / "script.json"
    path.write_text(script if isinstance(script, str) else json.dumps(script), encoding="utf-8")
    return str(path)


@requirement("LOOP-1")
async def test_a_script_is_played_turn_by_turn(tmp_path: Path) -> None:
    model = open_model(f"scripted:{written(tmp_path, WHOLE)}", {})

    assert await heard(model) == [
        Retrying(2, 2, 0, "Overloaded"),
        ThoughtDelta("hm"),
        ThoughtReady(Thought("hm")),
        TextDelta("Two "),
        TextDelta("words"),
        CallDelta("call_1_1", "Read"),
        CallDelta("call_1_1", "Read", '{"path":"a"}'),
        CallReady(ToolCall("call_1_1", "Read", {"path": "a"})),
        CallDelta("mine", "Glob"),
        CallDelta("mine", "Glob", "{}"),
        CallReady(ToolCall("mine", "Glob", {})),
        Usage(1, 2),
        Stopped("tool_use"),
    ]
    assert (await heard(model))[-1] == Stopped("max_tokens")
    events, error = await heard_until_error(model)
    assert (events, error.kind, str(error)) == ([TextDelta("Half")], "cut", "The stream broke off.")
    with pytest.raises(ModelError, match="asked for turn 4 and has 3"):
        await heard(model)


async def test_a_call_may_use_what_the_last_results_say(tmp_path: Path) -> None:
    input = {"task_id": {"$found": r"task (\w+)"}, "all": [{"$found": "b7"}]}
    script = {"turns": [{"calls": [{"name": "TaskOutput", "input": input}]}] * 2}
    model = open_model(f"scripted:{written(tmp_path, script)}", {})
    results = ResultTurn((ToolResult("1", (Text("Started task b7."),), is_error=False),))

    found = await heard(model, Request([UserTurn.saying("go"), results], ()))
    _, error = await heard_until_error(model)

    assert calls_of(found)[0].arguments == {"task_id": "b7", "all": ["b7"]}
    assert str(error) == r'The script looks for "task (\w+)" in the last results, which do not contain it.'


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("{", "is not valid JSON: Expecting property name enclosed in double quotes in line 1, column 2"),
        ("[" * 100_000, "is nested too deeply"),
        ([], "the script: Input should be"),
        ({}, "turns is missing. Add it."),
        ({"turns": []}, "turns: List should have at least 1 item"),
        ({"turns": [{"txt": "x"}]}, "turns[0].txt is unknown"),
        ({"turns": [{}, {"calls": [{"input": {}}]}]}, "turns[1].calls[0].name is missing"),
        ({"turns": [{"stop": "later"}]}, "turns[0].stop: Input should be 'end'"),
        ({"turns": [{"delay": -1}]}, "turns[0].delay: Input should be greater than or equal to 0"),
        ({"turns": [{"fault": {"status": 529}}]}, "turns[0].fault is for the model server"),
    ],
)
def test_a_bad_script_is_told_with_its_file_the_place_and_the_fix(tmp_path: Path, script: Any, words: str) -> None:
    path = written(tmp_path, script)

    with pytest.raises(ModelError) as caught:
        open_model(f"scripted:{path}", {})

    assert caught.value.kind == "request"
    assert path in str(caught.value)
    assert words in str(caught.value)


def test_a_script_that_is_no_text_is_told(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(BadScript, match="Save it as UTF-8"):
        load_script(path)


def test_the_shipped_schema_is_that_of_the_loader() -> None:
    assert json.loads(SCHEMA_FILE.read_text(encoding="utf-8")) == schema()


def test_the_schema_takes_what_the_loader_takes_and_refuses_what_it_refuses() -> None:
    valid = fastjsonschema.compile(schema())

    assert valid(WHOLE) == WHOLE
    assert check_script(WHOLE, "x").turns[0].text == "Two words"
    for bad in ({}, {"turns": [{"txt": "x"}]}, {"turns": [{"calls": [{}]}]}):
        with pytest.raises(fastjsonschema.JsonSchemaValueException):
            valid(bad)


def test_a_script_can_fail_in_every_way_a_model_can() -> None:
    assert set(get_args(ScriptedError.model_fields["kind"].annotation)) == set(get_args(FailureKind))


def test_the_script_and_the_program_of_the_documentation_work() -> None:
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (script,) = (block for block in blocks if '"turns"' in block)
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert len(check_script(json.loads(script), "the page").turns) == 3
    assert done.stdout == "Hello.\nHi\n", done.stderr

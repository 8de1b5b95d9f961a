"""No line of `--jsonl` ends the program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given

from ferrule.cli.jsonl import CallLine, Rejected, encode_line, rejection, requests
from ferrule.core.calls import ToolCall
from tests.cli.explaining import answer_to
from tests.cli.odd_lines import DEPTHS, nested, odd_lines
from tests.cli.running import ferrule
from tests.requirement import requirement

CALLS: tuple[dict[str, Any], ...] = (
    {"id": 1, "tool": "Read", "input": {"file_path": "a", "limit": 2}},
    {"id": "x", "tool": "Bash", "input": {"command": "ls"}},
    {"batch": {"id": 1, "tool": "Read", "input": "{}"}},
)
SCENES: tuple[dict[str, Any], ...] = (
    {"id": 1, "tool": "Bash", "input": {"command": "ls > y"}, "cwd": "/srv/r", "home": "/h", "rules": {"allow": []}},
    {"id": 2, "tool": "a", "input": {}, "mcp": {"server": "s"}, "rules": {"deny": ["mcp__s"]}, "mode": "plan"},
    {"id": 3, "tool": "Read", "input": {"file_path": "a"}, "rules": {}, "symlinks": {"/a": "/b"}, "project_root": "/"},
    {"id": 4, "tool": "WebFetch", "input": {"url": "http://a.b/"}, "rules": {}, "resolve": "", "redirect_to": ""},
    {"id": 5, "tool": "Edit", "input": {}, "hook": {"decision": "", "stdout": "{}", "exit_code": 0}, "rules": {}},
)


@requirement("FAULT-1")
def test_the_lines_that_once_ended_a_run_are_answered_and_the_next_one_too(tmp_path: Path) -> None:
    asked = [b'{"id":1,"tool":"Read","input":"\\ud800"}', b'{"id":2,"tool":"Glob","input":{"pattern":"*"}}']

    called = ferrule(tmp_path, "call", "--jsonl", stdin=b"\n".join(asked))

    answers = [json.loads(line) for line in called.stdout.splitlines()]
    assert [(answer["id"], answer["status"]) for answer in answers] == [(1, "invalid"), (2, "ok")]
    assert (called.returncode, called.stderr) == (0, b"")

    asked = [
        b'{"id":1,"tool":"a/b","input":{},"rules":{"allow":[]},"mcp":{"server":"s"}}',
        b'{"id":2,"tool":"Bash","input":{"command":"ls"},"rules":{}}',
    ]

    explained = ferrule(tmp_path, "explain", "--jsonl", stdin=b"\n".join(asked))

    refused, told = [json.loads(line) for line in explained.stdout.splitlines()]
    assert (refused["id"], told["id"], told["decision"]) == (1, 2, "allow")
    assert "it has 'a/b'" in refused["error"]
    assert explained.returncode == 0


@requirement("FAULT-1")
@given(odd_lines(*CALLS))
def test_an_odd_call_is_asked_or_rejected(line: bytes) -> None:
    for part in requests(line, 1):
        assert isinstance(part, CallLine | Rejected)
        if isinstance(part, Rejected):
            assert json.loads(encode_line(rejection(part)))["is_error"]


@requirement("FAULT-1")
@given(odd_lines(*SCENES))
def test_an_odd_scene_is_explained_or_refused(line: bytes) -> None:
    answer = answer_to(line)

    assert "decision" in answer or (answer["error"] and "bug" not in answer["error"])
    assert json.loads(json.dumps(answer))


@requirement("FAULT-1")
def test_arguments_of_any_depth_are_a_call_or_malformed() -> None:
    for depth in DEPTHS:
        assert ToolCall.from_text("1", "Read", nested(depth)).malformed == nested(depth)

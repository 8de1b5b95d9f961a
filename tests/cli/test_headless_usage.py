"""What `ferrule -p` refuses before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.cli.parser import run
from ferrule.cli.session_flags import split_rules
from tests.cli.prompting import script
from tests.requirement import requirement


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["Hi", "--outputformat", "json"], "--outputformat"),
        (["Hi", "there"], "there"),
        (["Hi", "--max-turns", "0"], "0 is not a number above 0"),
        (["Hi", "--tools", "Raed"], "Did you mean Read?"),
        (["Hi", "--permission-prompt-tool", "ask"], "ask is neither `stdio` nor a tool such as mcp__server__tool"),
        (["Hi", "--replay-user-messages"], "needs --input-format stream-json"),
        (["Hi", "--resume-session-at", "x"], "needs --resume ID or --continue"),
        (["Hi", "--system-prompt-file", "nowhere"], "--system-prompt-file: nowhere cannot be read"),
        (["Hi", "--system-prompt", "a", "--system-prompt-file", "b"], "say the same; give one of them"),
        (["Hi", "--agents", "{bad"], "--agents is not valid JSON"),
        (["Hi", "--agents", "[]"], "--agents must be a JSON object"),
        (["Hi", "--agents", '{"a": {"prompt": "p"}}'], "`a` needs a description and a prompt"),
        (["Hi", "--managed-settings", "{"], "--managed-settings"),
        (["Hi", "--managed-settings", '{"allowManagedHooksOnly": true}'], "in a file of an administrator only"),
        (["Hi", "--setting-sources", "projekt"], "Did you mean project?"),
        (["Hi", "--include-partial-messages"], "needs --output-format stream-json"),
        (["--input-format", "stream-json"], "needs --output-format stream-json"),
        (["Hi", "--json-schema", "[1]"], "must be a JSON object"),
        (["Hi", "--json-schema", '{"type": "objekt"}'], "`type` must be"),
        (["Hi", "--json-schema", '{"properties": 3}'], "--json-schema: properties: 3 is not of type"),
        (
            ["Hi", "--json-schema", '{"properties": {"a": {"$ref": "#/$defs/b"}}}'],
            "its `$ref` #/$defs/b cannot be resolved",
        ),
        (
            ["Hi", "--json-schema", '{"allOf": [{"$ref": "http://localhost/s"}]}'],
            "http://localhost/s cannot be resolved",
        ),
        (["Hi", "--json-schema", "nowhere.json"], "nowhere.json is neither valid JSON nor a readable file"),
        (["Hi", "--resume", ""], "--resume: the id is empty"),
        (["Hi", "--session-id", ""], "--session-id: the id is empty"),
        (["Hi", "--dangerously-skip-permissions", "--permission-mode", "default"], "contradict each other"),
    ],
)
@requirement("CLI-1")
def test_wrong_usage_is_exit_code_two_with_a_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    flags: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    code = run(["-p", *flags, "--model", script(tmp_path, {"text": "Not reached."})])

    said = capfd.readouterr()
    assert (code, said.out) == (2, "")
    assert words in said.err


def test_rules_are_split_at_commas_and_spaces_outside_of_parentheses() -> None:
    assert split_rules("Bash(git log *, now),Edit  Read") == ["Bash(git log *, now)", "Edit", "Read"]
    assert split_rules("Bash(a (b), c) Read(") == ["Bash(a (b), c)", "Read("]
    assert split_rules(" ,, ") == []

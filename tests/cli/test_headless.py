"""`ferrule -p`: what a script can rely on."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from ferrule.core.content import Text
from ferrule.engine.transcript_entries import kind_of, user_turn
from tests.cli.prompting import ask, call, kinds, lines_of
from tests.cli.running import ferrule
from tests.requirement import requirement

DONE = {"text": "All done."}
SCHEMA = '{"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}'


@requirement("CLI-1")
def test_the_answer_is_all_that_is_printed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")

    done = ask(tmp_path, [{"text": "Looking.", "calls": [call("Read", file_path="a.txt")]}, DONE], "What is there?")

    assert (done.returncode, done.stdout, done.stderr) == (0, b"All done.\n", b"")


@requirement("CLI-1")
def test_a_json_result_has_what_a_script_needs(tmp_path: Path) -> None:
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 3}

    done = ask(tmp_path, [{**DONE, "usage": usage}], "Hi", "--output-format", "json")

    (result,) = lines_of(done)
    assert done.returncode == 0
    assert (result["subtype"], result["is_error"], result["result"]) == ("success", False, "All done.")
    assert (result["num_turns"], result["stop_reason"]) == (1, "end_turn")
    assert result["usage"] == {
        "input_tokens": 10,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 3,
        "output_tokens": 5,
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
    }
    assert result["terminal_reason"] == "completed"
    assert result["total_cost_usd"] is None  # nobody knows what a script costs


@requirement("CLI-1")
def test_a_stream_tells_everything_in_order_and_needs_no_verbose(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    reads = [call("Read", "r1", file_path="a.txt"), call("Read", "r2", file_path="missing.txt")]

    done = ask(
        tmp_path, [{"thinking": "Hm.", "text": "Looking.", "calls": reads}, DONE], "Hi", "--output-format=stream-json"
    )

    lines = lines_of(done)
    assert kinds(lines) == ["system/init", *["assistant"] * 4, "user", "user", "assistant", "result/success"]
    assert [line["message"]["content"][0]["type"] for line in lines[1:5]] == [
        "thinking",
        "text",
        "tool_use",
        "tool_use",
    ]
    assert len({line["message"]["id"] for line in lines[1:5]}) == 1
    assert [line["message"]["content"][0]["tool_use_id"] for line in lines[5:7]] == ["r1", "r2"]
    assert [line["message"]["content"][0].get("is_error") for line in lines[5:7]] == [None, True]
    assert lines[6]["tool_use_result"].startswith("Error: ")
    assert len({line["session_id"] for line in lines}) == 1
    assert len({line["uuid"] for line in lines}) == len(lines)


@requirement("CLI-1")
def test_partial_messages_add_up_to_the_whole_ones(tmp_path: Path) -> None:
    flags = ("Hi", "--output-format", "stream-json", "--include-partial-messages")

    lines = lines_of(ask(tmp_path, [{"text": "Two words.", "calls": [call("Glob", "g", pattern="*")]}, DONE], *flags))

    events = [line["event"] for line in lines if line["type"] == "stream_event"]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(delta.get("text", "") for delta in deltas) == "Two words.All done."
    assert json.loads("".join(delta.get("partial_json", "") for delta in deltas)) == {"pattern": "*"}
    assert [event["type"] for event in events].count("message_stop") == 2
    assert [event["index"] for event in events if event["type"] == "content_block_start"] == [0, 1, 0]


@requirement("CLI-1")
def test_a_refused_tool_is_not_a_success(tmp_path: Path) -> None:
    outside = tmp_path.parent / "outside.txt"

    done = ask(
        tmp_path,
        [{"calls": [call("Write", "w", file_path=str(outside), content="x")]}, DONE],
        "Hi",
        "--output-format=json",
    )

    (result,) = lines_of(done)
    assert done.returncode == 3
    assert result["subtype"] == "success"
    (denial,) = result["permission_denials"]
    assert (denial["tool_name"], denial["tool_use_id"]) == ("Write", "w")
    assert not outside.exists()


@requirement("CLI-1")
def test_a_limit_is_exit_code_four_and_gives_way_to_no_refusal(tmp_path: Path) -> None:
    turns = [{"calls": [call("Write", file_path="/etc/x", content="x")]}, DONE]

    done = ask(tmp_path, turns, "Hi", "--max-turns", "1", "--output-format", "json")

    (result,) = lines_of(done)
    assert (done.returncode, result["subtype"], result["num_turns"]) == (4, "error_max_turns", 1)
    assert result["permission_denials"] != []


def test_a_budget_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    done = ask(tmp_path, [DONE], "Hi", "--max-budget-usd", "1")

    assert (done.returncode, done.stdout) == (2, b"")
    assert b"a budget cannot be enforced" in done.stderr


@requirement("CLI-1")
def test_a_model_that_fails_is_exit_code_one(tmp_path: Path) -> None:
    turns = [{"text": "Well", "error": {"kind": "request", "message": "No such model."}}]

    text = ask(tmp_path, turns, "Hi")
    (result,) = lines_of(ask(tmp_path, turns, "Hi", "--output-format", "json"))

    assert (text.returncode, text.stdout, text.stderr) == (1, b"", b"ferrule: No such model.\n")
    assert (result["subtype"], result["errors"]) == ("error_during_execution", ["No such model."])


@pytest.mark.parametrize(
    ("flags", "stdin", "prompt"),
    [
        (["From the flag"], "", "From the flag"),
        ([], "From the pipe\n", "From the pipe"),
        (["Explain this:"], "a log\n", "Explain this:\n\na log"),
    ],
)
def test_prompt_and_pipe_are_joined(tmp_path: Path, flags: list[str], stdin: str, prompt: str) -> None:
    done = ask(tmp_path, [DONE], *flags, "--output-format", "json", "--verbose", stdin=stdin)

    assert done.returncode == 0
    assert json.loads(done.stdout)[-1]["result"] == "All done."
    assert _prompts(tmp_path) == [prompt]


@requirement("CLI-1")
def test_no_model_and_no_key_says_what_to_set_and_programs_read_it_too(tmp_path: Path) -> None:
    keys = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL")
    env = dict.fromkeys(keys, "")

    done = ferrule(tmp_path, "-p", "Hi", env=env)
    in_json = ferrule(tmp_path, "-p", "Hi", "--output-format", "json", env=env)

    assert (done.returncode, done.stdout, in_json.returncode) == (1, b"", 1)
    assert b"Set ANTHROPIC_API_KEY" in done.stderr
    (line,) = lines_of(in_json)
    assert (line["is_error"], "Set ANTHROPIC_API_KEY" in line["errors"][0]) == (True, True)


@requirement("CLI-1")
def test_a_refused_call_is_named_with_the_rule_that_would_allow_it(tmp_path: Path) -> None:
    touches = {"calls": [call("Bash", command="touch x")]}

    done = ask(tmp_path, [touches, {"text": "No."}], "Hi", "--output-format", "json")

    assert done.returncode == 3
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("ferrule: Bash was not allowed: ")
    assert line.endswith("To allow it, add --allow 'Bash(touch x)'.")
    assert ask(tmp_path, [touches, {"text": "Yes."}], "Hi", "--allow", "Bash(touch x)").returncode == 0


def test_only_the_chosen_tools_are_there(tmp_path: Path) -> None:
    flags = ("Hi", "--output-format", "stream-json", "--tools", "Read,Glob")

    lines = lines_of(ask(tmp_path, [{"calls": [call("Bash", command="true")]}, DONE], *flags))

    assert lines[0]["tools"] == ["Glob", "Read"]
    assert "not among the tools chosen" in lines[2]["message"]["content"][0]["content"]


def test_rules_come_with_commas_or_as_several_flags(tmp_path: Path) -> None:
    turns = [{"calls": [call("Write", file_path="a.txt", content="x"), call("Bash", command="touch b.txt")]}, DONE]

    done = ask(tmp_path, turns, "Hi", "--allowedTools", "Write,Bash")

    assert done.returncode == 0
    assert (tmp_path / "a.txt").exists()
    assert (tmp_path / "b.txt").exists()


@requirement("CLI-1")
def test_an_answer_is_held_to_its_schema(tmp_path: Path) -> None:
    turns = [{"calls": [call("StructuredOutput", count="many")]}, {"calls": [call("StructuredOutput", count=3)]}]

    text = ask(tmp_path, turns, "How many?", "--json-schema", SCHEMA)
    (result,) = lines_of(ask(tmp_path, turns, "How many?", "--json-schema", SCHEMA, "--output-format", "json"))

    assert (text.returncode, text.stdout) == (0, b'{"count": 3}\n')
    assert (result["subtype"], result["structured_output"], result["num_turns"]) == ("success", {"count": 3}, 2)


def test_a_model_that_never_gives_a_fitting_answer_is_given_up(tmp_path: Path) -> None:
    turns = [{"calls": [call("StructuredOutput", count="many")]}, *[DONE] * 8]

    done = ask(tmp_path, turns, "How many?", "--json-schema", SCHEMA, "--output-format", "json")

    (result,) = lines_of(done)
    assert (done.returncode, result["subtype"]) == (4, "error_max_structured_output_retries")
    assert "structured_output" not in result


def _prompts(folder: Path) -> list[str]:
    """What users said, by the transcripts of the run."""
    found: list[str] = []
    for path in (folder / "xdg-state").rglob("*.jsonl"):
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            if kind_of(entry) == "user":
                found += [block.text for block in user_turn(entry).content if isinstance(block, Text)]
    return found


def test_a_message_that_never_came_has_no_reason_to_stop(tmp_path: Path) -> None:
    refused = {"error": {"kind": "key", "message": "No."}}

    done = ask(tmp_path, [refused], "Hi", "--output-format", "json")

    (result,) = lines_of(done)
    assert done.returncode == 1
    assert (result["stop_reason"], result["num_turns"], result["errors"]) == (None, 0, ["No."])


def test_a_script_that_has_no_more_to_say_is_not_asked_again(tmp_path: Path) -> None:
    done = ask(tmp_path, [{"calls": [call("Glob", pattern="*")]}], "Hi")

    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == "ferrule: The script was asked for turn 2 and has 1.\n"


def test_a_conversation_that_cannot_be_kept_goes_on_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "xdg-state").write_text("no folder")

    done = ask(tmp_path, [DONE], "Hi")

    assert (done.returncode, done.stdout) == (0, b"All done.\n")
    assert b"ferrule: this conversation cannot be resumed as it was: " in done.stderr


def test_a_listing_for_scripts_says_when_with_the_zone(tmp_path: Path) -> None:
    ask(tmp_path, [DONE], "Hi", "--session-id", "mine")

    (listed,) = json.loads(ferrule(tmp_path, "sessions", "--json").stdout)

    assert (listed["session_id"], listed["first_prompt"], listed["turns"]) == ("mine", "Hi", 1)
    assert datetime.fromisoformat(listed["last_used"]).tzinfo is not None

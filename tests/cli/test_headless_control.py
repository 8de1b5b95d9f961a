"""`ferrule -p --input-format stream-json`: a conversation with a program."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.prompting import call, fits, kinds, script
from tests.cli.running import FERRULE, HANG, environment
from tests.requirement import requirement
from tests.settings.folders import put


class Program:
    """The other side."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def send(self, line: dict[str, Any] | str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
        self.process.stdin.flush()

    def say(self, content: Any) -> None:
        self.send({"type": "user", "message": {"role": "user", "content": content}})

    def request(self, id: str, subtype: str, **more: Any) -> None:
        self.send({"type": "control_request", "request_id": id, "request": {"subtype": subtype, **more}})

    def until(self, kind: str) -> list[dict[str, Any]]:
        """The lines up to the first of this kind."""
        assert self.process.stdout is not None
        lines: list[dict[str, Any]] = []
        for text in self.process.stdout:
            line = json.loads(text)
            fits(line)
            lines.append(line)
            if kinds([line]) == [kind]:
                return lines
        raise AssertionError(f"no {kind} in {kinds(lines)}")

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(HANG)


@contextmanager
def program(folder: Path, *turns: dict[str, Any], flags: tuple[str, ...] = ()) -> Generator[Program]:
    formats = ("--input-format", "stream-json", "--output-format", "stream-json")
    with subprocess.Popen(
        [*FERRULE, "-p", "--model", script(folder, *turns), *formats, *flags],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Program(process)
        finally:
            process.kill()


@requirement("CLI-1")
def test_several_turns_and_bad_lines_in_one_process(tmp_path: Path) -> None:
    with program(tmp_path, {"text": "One."}, {"text": "Two."}) as other:
        other.request("i", "initialize", hooks=None)
        assert other.until("control_response")[-1]["response"]["subtype"] == "success"
        for bad in ("garbage", "[]", '{"type": "user"}', '{"type": "user", "message": {"content": [{"type": "x"}]}}'):
            other.send(bad)
            assert kinds(other.until("system/input_error")) == ["system/input_error"]
        other.say("first")
        assert other.until("result/success")[-1]["result"] == "One."
        other.say([{"type": "text", "text": "second"}])
        assert other.until("result/success")[-1]["result"] == "Two."
        assert other.end() == 0


@requirement("CLI-1")
def test_permission_is_asked_for_and_the_answer_counts(tmp_path: Path) -> None:
    writes = [call("Write", "w1", file_path="a.txt", content="a"), call("Write", "w2", file_path="b.txt", content="b")]
    flags = ("--permission-prompt-tool", "stdio")

    with program(tmp_path, {"calls": writes}, {"text": "Done."}, flags=flags) as other:
        other.say("go")
        answers = {
            "w1": {"behavior": "allow", "updatedInput": {"file_path": str(tmp_path / "a.txt"), "content": "changed"}},
            "w2": {"behavior": "deny", "message": "not this one"},
        }
        told: list[str] = []
        for _ in writes:
            lines = other.until("control_request")
            told += [line["message"]["content"][0].get("id") for line in lines if line["type"] == "assistant"]
            asked = lines[-1]
            assert asked["request"]["tool_use_id"] in told
            answer = answers[asked["request"]["tool_use_id"]]
            response = {"subtype": "success", "request_id": asked["request_id"], "response": answer}
            other.send({"type": "control_response", "response": response})
        result = other.until("result/success")[-1]
        assert other.end() == 0

    assert (tmp_path / "a.txt").read_text() == "changed"
    assert not (tmp_path / "b.txt").exists()
    assert [denial["tool_use_id"] for denial in result["permission_denials"]] == ["w2"]


@requirement("CLI-1", "PIPE-5")
def test_an_interrupt_ends_the_turn_and_the_conversation_goes_on(tmp_path: Path) -> None:
    sleep = {"calls": [call("Bash", command="sleep 100", timeout=200_000)]}

    with program(tmp_path, sleep, {"text": "Here."}, flags=("--allow", "Bash")) as other:
        other.say("go")
        other.until("assistant")
        other.request("stop", "interrupt")
        assert kinds(other.until("result/error_during_execution"))[-2:] == ["user", "result/error_during_execution"]
        other.say("still there?")
        assert other.until("result/success")[-1]["result"] == "Here."
        assert other.end() == 0


def test_requests_that_cannot_be_honoured_are_answered(tmp_path: Path) -> None:
    with program(tmp_path, {"text": "One."}) as other:
        refused: list[tuple[str, dict[str, Any], str]] = [
            ("set_permission_mode", {"mode": "bypassPermissions"}, "must be chosen when the conversation is opened"),
            ("set_permission_mode", {"mode": "yolo"}, "is not a mode"),
            ("set_model", {"model": "scripted:/nowhere.json"}, "nowhere.json"),
            ("initialize", {}, "has begun already"),
            ("rewind_files", {"user_message_id": "u"}, "were not kept"),
            ("mcp_reconnect", {"serverName": "nobody"}, "`nobody` was not found"),
            ("mcp_toggle", {"serverName": "nobody"}, "`enabled` must be"),
            ("stop_task", {"task_id": "nothing"}, "nothing was not found"),
            ("set_max_thinking_tokens", {"max_thinking_tokens": "many"}, "must be a number"),
            ("apply_flag_settings", {"settings": {}}, "`apply_flag_settings` is not supported"),
        ]
        for number, (subtype, more, words) in enumerate(refused):
            other.request(str(number), subtype, **more)
            response = other.until("control_response")[-1]["response"]
            assert (response["subtype"], response["request_id"]) == ("error", str(number))
            assert words in response["error"]
        assert other.end() == 0


def test_the_mode_that_is_set_last_counts_whoever_set_the_one_before(tmp_path: Path) -> None:
    write = {"calls": [call("Write", "w", file_path="a.txt", content="a")]}
    plan = {"calls": [call("EnterPlanMode")]}

    turns = (plan, {"text": "Planning."}, write, {"text": "Done."}, write, {"text": "No."})
    with program(tmp_path, *turns, flags=("--permission-prompt-tool", "stdio")) as other:
        other.say("plan it")
        other.until("result/success")
        other.request("1", "set_permission_mode", mode="acceptEdits")
        assert other.until("control_response")[-1]["response"]["response"] == {"mode": "acceptEdits"}
        other.say("now do it")
        lines = other.until("result/success")
        assert lines[-1]["permission_denials"] == []
        assert "Plan mode is off" in json.dumps([line for line in lines if line.get("isSynthetic")])
        other.request("2", "set_permission_mode", mode="plan")
        other.until("control_response")
        other.say("again")
        assert len(other.until("result/success")[-1]["permission_denials"]) == 1
        assert other.end() == 0


def test_a_program_learns_which_commands_there_are_and_may_go_back_to_the_first_model(tmp_path: Path) -> None:
    put(
        tmp_path / ".claude" / "commands" / "fix.md", '---\ndescription: Fix it.\nargument-hint: "[file]"\n---\nFix $0.'
    )

    with program(tmp_path, {"text": "One."}) as other:
        other.request("1", "initialize")
        told = other.until("control_response")[-1]["response"]["response"]
        assert (told["output_style"], told["available_output_styles"][:2]) == ("default", ["default", "Explanatory"])
        assert {"name": "fix", "description": "Fix it.", "argumentHint": "[file]"} in told["commands"]
        other.request("2", "set_model", model=None)
        first = other.until("control_response")[-1]["response"]
        assert first["response"]["model"].startswith("scripted:")
        assert other.end() == 0


@requirement("TASK-3", "TASK-5")
def test_a_program_answers_questions_and_approves_plans(tmp_path: Path) -> None:
    question = {"question": "Which?", "header": "Which", "options": [{"label": "One"}, {"label": "Two"}]}
    asks = {"calls": [call("AskUserQuestion", "q", questions=[question])]}
    plans = {"calls": [call("ExitPlanMode", "p", plan="Write it.")]}
    writes = {"calls": [call("Write", "w", file_path="a.txt", content="a")]}
    flags = ("--permission-prompt-tool", "stdio", "--permission-mode", "plan")

    with program(tmp_path, asks, plans, plans, writes, {"text": "Done."}, flags=flags) as other:
        other.say("go")
        told = [
            answered(other, "allow", answers={"Which?": "Two"}),
            answered(other, "deny"),
            answered(other, "allow"),
            answered(other, "allow"),
        ]
        assert [one["tool_use_id"] for one in other.until("result/success")[-1]["permission_denials"]] == ["p"]
        assert other.end() == 0

    assert told == ["AskUserQuestion", "ExitPlanMode", "ExitPlanMode", "Write"]
    assert (tmp_path / "a.txt").read_text() == "a"


def answered(other: Program, behavior: str, **more: Any) -> str:
    """Wait for a question and answer it, with more in the input; the name of the tool that it is about."""
    asked = other.until("control_request")[-1]
    answer = {"behavior": behavior, "message": "Say where", "updatedInput": {**asked["request"]["input"], **more}}
    response = {"subtype": "success", "request_id": asked["request_id"], "response": answer}
    other.send({"type": "control_response", "response": response})
    return asked["request"]["tool_name"]

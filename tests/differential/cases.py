"""What is put to both programs: a command line, what the model says, and what lies in the project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

STREAM = ("-p", "go", "--output-format", "stream-json", "--verbose")
DONE: Mapping[str, Any] = {"text": "Done.", "usage": {"input_tokens": 10, "output_tokens": 5}}


@dataclass(frozen=True)
class Case:
    name: str
    arguments: tuple[str, ...]
    turns: Sequence[Mapping[str, Any]] = (DONE,)
    stdin: str = ""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """In the project; a name that begins with `~/` is one of the home. HERE in a text is the project's path."""


def call(name: str, **input: Any) -> Mapping[str, Any]:
    return {"calls": [{"name": name, "input": input}]}


def calls(*every: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"calls": [one for each in every for one in each["calls"]]}


BASH = ("--allowedTools", "Bash")
EDITS = ("--permission-mode", "acceptEdits")
SCHEMA = '{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"]}'
TWO = "one\ntwo\nMARK4\n"
READ = call("Read", file_path="HERE/a.txt")
HOOK = '{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"echo no >&2; exit 2"}]}]}}'
DENY = '{"permissions":{"deny":["Read(./secret.txt)"]}}'
USER_LINE = '{"type":"user","message":{"role":"user","content":"%s"}}\n'

CASES = (
    # Output and command line
    Case("text", ("-p", "go")),
    Case("json", ("-p", "go", "--output-format", "json")),
    Case("stream", STREAM),
    Case("stream without verbose", ("-p", "go", "--output-format", "stream-json")),
    Case("partial messages", (*STREAM, "--include-partial-messages")),
    Case("a piped prompt", ("-p", "--output-format", "json"), stdin="MARK1 is the prompt\n"),
    Case("a piped prompt behind another", ("-p", "go", "--output-format", "json"), stdin="MARK2 is piped\n"),
    Case("no prompt", ("-p",)),
    Case("an unknown flag", ("-p", "go", "--no-such-flag")),
    Case(
        "several values",
        ("-p", "--disallowedTools", "WebFetch", "Bash(touch *)", "--output-format", "json"),
        [call("Bash", command="touch made"), DONE],
        stdin="MARK1 is the prompt\n",
    ),
    Case(
        "prompts as lines",
        ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
        [DONE, {"text": "Again."}],
        stdin=USER_LINE % "one" + USER_LINE % "two",
    ),
    Case("an answer by schema", (*STREAM, "--json-schema", SCHEMA), [call("StructuredOutput", count=3), DONE, DONE]),
    Case("a limit of turns", (*STREAM, *BASH, "--max-turns", "1"), [call("Bash", command="true"), DONE]),
    Case("an error of the service", STREAM, [{"fault": {"status": 400}}]),
    Case("overloaded twice", STREAM, [*[{"fault": {"status": 529, "retry_after": "0"}}] * 2, DONE]),
    Case("thinking", (*STREAM, "--max-thinking-tokens", "2000"), [{"thinking": "Hm.", "text": "Done."}]),
    Case("a system prompt", (*STREAM, "--system-prompt", "MARK3")),
    Case(
        "a command of the project",
        ("-p", "/greet you", "--output-format", "json"),
        files={".claude/commands/greet.md": "MARK6 says hello to $ARGUMENTS.\n"},
    ),
    Case("a command that does not exist", ("-p", "/nope", "--output-format", "json")),
    Case("a file that is mentioned", ("-p", "look at @a.txt", "--output-format", "json"), files={"a.txt": TWO}),
    # Tools
    Case("Bash", (*STREAM, *BASH), [call("Bash", command="echo hi; echo there >&2"), DONE]),
    Case("Bash that fails", (*STREAM, *BASH), [call("Bash", command="echo out; exit 3"), DONE]),
    Case(
        "Bash in the background", (*STREAM, *BASH), [call("Bash", command="true", run_in_background=True), DONE, DONE]
    ),
    Case("Read", STREAM, [READ, DONE], files={"a.txt": TWO}),
    Case(
        "Read of some lines",
        STREAM,
        [call("Read", file_path="HERE/a.txt", offset=2, limit=1), DONE],
        files={"a.txt": TWO},
    ),
    Case("Read of nothing", STREAM, [READ, DONE]),
    Case("Write", (*STREAM, *EDITS), [call("Write", file_path="HERE/b.txt", content="new\n"), DONE]),
    Case(
        "Edit",
        (*STREAM, *EDITS),
        [READ, call("Edit", file_path="HERE/a.txt", old_string="two", new_string="2"), DONE],
        files={"a.txt": TWO},
    ),
    Case(
        "Edit of what was not read",
        (*STREAM, *EDITS),
        [call("Edit", file_path="HERE/a.txt", old_string="two", new_string="2"), DONE],
        files={"a.txt": TWO},
    ),
    Case("Glob", STREAM, [call("Glob", pattern="**/*.txt"), DONE], files={"a.txt": TWO, "sub/b.txt": TWO}),
    Case("Grep", STREAM, [call("Grep", pattern="two"), DONE], files={"a.txt": TWO, "sub/b.txt": "no\n"}),
    Case("Grep with lines", STREAM, [call("Grep", pattern="two", output_mode="content"), DONE], files={"a.txt": TWO}),
    Case("a tool that does not exist", STREAM, [call("Nope", x=1), DONE]),
    Case("wrong arguments", STREAM, [call("Read", path="a.txt"), DONE]),
    Case(
        "calls side by side",
        (*STREAM, *BASH),
        [calls(call("Bash", command="echo one"), READ, call("Bash", command="echo three")), DONE],
        files={"a.txt": TWO},
    ),
    Case(
        "an agent",
        STREAM,
        [
            call("Agent", description="d", prompt="Look.", subagent_type="general-purpose", run_in_background=False),
            {"text": "Seen."},
            DONE,
        ],
    ),
    # Permissions
    Case("a refusal", STREAM, [call("Write", file_path="HERE/b.txt", content="x"), DONE]),
    Case(
        "a refusal under a host",
        ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
        [call("Write", file_path="HERE/b.txt", content="x"), DONE],
        stdin=USER_LINE % "go",
    ),
    Case(
        "everything allowed",
        (*STREAM, "--dangerously-skip-permissions"),
        [call("Write", file_path="HERE/b.txt", content="x\n"), DONE],
    ),
    Case("plan", (*STREAM, "--permission-mode", "plan"), [call("Write", file_path="HERE/b.txt", content="x"), DONE]),
    Case(
        "a deny rule of the project",
        (*STREAM, "--dangerously-skip-permissions"),
        [call("Read", file_path="HERE/secret.txt"), DONE],
        files={"secret.txt": "sesame\n", ".claude/settings.json": DENY},
    ),
    Case(
        "an allow rule",
        (*STREAM, "--allowedTools", "Bash(echo *)"),
        [call("Bash", command="echo ok > made"), call("Bash", command="touch other"), DONE],
    ),
    # Settings, hooks, sessions
    Case(
        "a hook of the user",
        (*STREAM, *BASH),
        [call("Bash", command="echo hi"), DONE],
        files={"~/.claude/settings.json": HOOK},
    ),
    Case(
        "a hook of the project",
        (*STREAM, *BASH),
        [call("Bash", command="echo hi"), DONE],
        files={".claude/settings.json": HOOK},
    ),
    Case("instructions", ("-p", "go", "--output-format", "json"), files={"CLAUDE.md": "MARK5 of the project.\n"}),
    Case(
        "a session that does not exist",
        ("-p", "go", "--resume", "c0ffee00-1111-4222-8333-444455556666", "--output-format", "json"),
    ),
    Case("nothing to continue", ("-p", "go", "--continue", "--output-format", "json")),
    Case("a model's short name", ("-p", "go", "--model", "opus", "--output-format", "json")),
)

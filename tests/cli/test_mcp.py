"""`ferrule mcp`, and servers in a call of the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ferrule.cli.main import main
from tests.cli.running import ferrule
from tests.mcp.running import RAW
from tests.requirement import requirement
from tests.settings.folders import put

SERVER = (sys.executable, "-S", str(RAW))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path


@requirement("MCP-1")
def test_a_server_is_added_tried_used_and_removed(folder: Path) -> None:
    before = '{\n\t"model": "x"\n}\n'
    file = put(folder / ".ferrule" / "settings.local.json", before)

    added = ferrule(folder, "mcp", "add", "raw", "-e", "A=b", "--", *SERVER)
    listed = ferrule(folder, "mcp", "list", "--json")
    tried = ferrule(folder, "mcp", "test", "raw", "--json")
    called = ferrule(folder, "call", "mcp__raw__echo", '{"text": "hello"}', "--allow", "mcp__raw__echo")
    removed = ferrule(folder, "mcp", "remove", "raw")

    assert [done.returncode for done in (added, listed, tried, called, removed)] == [0, 0, 0, 0, 0]
    (one,) = json.loads(listed.stdout)
    assert (one["name"], one["type"], one["env"], one["origin"]) == ("raw", "stdio", ["A"], f"{file}:4")
    assert "echo" in json.loads(tried.stdout)["tools"]
    assert called.stdout == b"hello\n"
    assert file.read_text() == '{\n\t"model": "x",\n\t"mcpServers": {}\n}\n'


@requirement("MCP-1")
def test_a_server_for_a_project_goes_to_the_file_that_all_share(folder: Path) -> None:
    done = ferrule(folder, "mcp", "add", "--scope", "project", "web", "https://a.test/mcp", "-H", "X-Key: ${KEY}")

    assert done.returncode == 0
    assert json.loads((folder / ".mcp.json").read_text()) == {
        "mcpServers": {"web": {"type": "http", "url": "https://a.test/mcp", "headers": {"X-Key": "${KEY}"}}}
    }


@requirement("MCP-1", "SET-4")
def test_servers_of_a_folder_that_nobody_trusts_are_listed_as_waiting(folder: Path) -> None:
    put(folder / ".mcp.json", json.dumps({"mcpServers": {"raw": {"command": "x"}, "web": {"command": "${UNSET}"}}}))

    listed = ferrule(folder, "mcp", "list")
    waiting = json.loads(ferrule(folder, "mcp", "list", "--json").stdout)
    trusted = ferrule(folder, "mcp", "list", "--json", "--trust")

    assert listed.stdout.count(b"waits for trust") == 2
    assert [(one["name"], one["waiting"]) for one in waiting] == [("raw", True), ("web", True)]
    assert [(one["name"], one["waiting"]) for one in json.loads(trusted.stdout)] == [("raw", False), ("web", False)]
    assert trusted.stderr.count(b"left as written") == 1


@requirement("MCP-2")
def test_a_server_that_does_not_start_is_said_with_its_reason(folder: Path) -> None:
    server = json.dumps({"mcpServers": {"raw": {"command": SERVER[0], "args": [*SERVER[1:], "die-at-start"]}}})

    done = ferrule(folder, "mcp", "test", "raw", "--mcp-config", server)

    assert done.returncode == 1
    assert b"exit code 3. Its last output: no configuration found" in done.stderr


def test_what_cannot_be_done_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    monkeypatch.chdir(folder)
    broken = put(folder / ".mcp.json", "{")
    wrong = {
        ("mcp", "add", "x", "--transport", "http", "command"): (2, "URL that begins with http"),
        ("mcp", "add", "workspace", "command"): (2, "is reserved"),
        ("mcp", "add", " ", "command"): (2, "a server needs a name"),
        ("mcp", "add", "x", ""): (2, "a server needs a command"),
        ("mcp", "add", "x", "wss://a.test"): (2, "WebSocket servers are not supported"),
        ("mcp", "add", "x", "ftp://a.test"): (2, "is a URL, not a command"),
        ("mcp", "add", "x", "https://a.test", "--transport", "stdio"): (2, "is a URL, not a command"),
        ("mcp", "add", "x", "https://"): (2, "has no host"),
        ("mcp", "add", "x", "A=1", "command"): (2, "Give each variable its own flag"),
        ("mcp", "add-json", "x", "{"): (2, "is not valid JSON"),
        ("mcp", "add-json", "x", "[]"): (2, "must be a JSON object"),
        ("mcp", "add-json", "x", '{"command": 1}'): (2, "the server cannot be saved: `command`"),
        ("mcp", "add-json", "workspace", '{"command": "a"}'): (2, "is reserved"),
        ("mcp", "add", "x", "-e", "A", "--", "command"): (2, "A is not NAME=VALUE"),
        ("mcp", "add", "x", "https://a.test", "-H", "X"): (2, "X is not NAME:VALUE"),
        ("mcp", "add", "--scope", "project", "x", "command"): (1, "was not changed"),
        ("mcp", "remove", "--scope", "user", "x"): (1, "the server `x` was not found"),
        ("mcp", "get", "x", "--strict-mcp-config"): (1, "no server `x` may be started"),
        ("mcp", "list", "--mcp-config", "missing"): (2, "the file does not exist"),
    }

    for arguments, (code, words) in wrong.items():
        assert main([*arguments]) == code, arguments
        assert words in capsys.readouterr().err
    assert broken.read_text() == "{"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add", "x", "npx", "-y", "server"), "there is no flag -y. Put a command with its own flags after --."),
        (("add", "x", "--timeout", "5", "--", "command"), "5 must be a number of milliseconds, at least 1,000"),
        (("test", "x", "--timeout", "0"), "0 is not a number of seconds"),
        (("get", "x", "--jsn"), "there is no flag --jsn. Did you mean --json?"),
        (("get",), "required: NAME"),
        (("add", "-s", "usr", "x", "y"), "`usr` is not one of local, project, user. Did you mean user?"),
        (("lst",), "there is no action lst. Did you mean list?"),
        ((), "name an action. The actions are list, get,"),
    ],
)
def test_a_wrong_flag_is_named_by_the_command_it_was_given_to(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mcp", *arguments]) == 2

    said = capsys.readouterr().err
    assert said.startswith("ferrule mcp: ")
    assert words in said


def test_servers_are_added_by_the_flags_and_the_json_of_claude_code(folder: Path) -> None:
    lines = (
        ("add", "-s", "user", "a", "-e", "A=1", "B=2", "--", "npx", "-y", "server"),
        ("add", "-t", "http", "b", "https://b.test/mcp", "-H", "X-A: 1", "X-B: 2"),
        ("add", "-e", "A=1", "c", "command"),
        ("add", "-H", "X: 1", "d", "https://d.test/mcp"),
        ("add-json", "-s", "project", "e", '{"type": "stdio", "command": "x", "args": ["-y"]}'),
    )
    for line in lines:
        assert ferrule(folder, "mcp", *line).returncode == 0, line

    listed = json.loads(ferrule(folder, "mcp", "list", "--json", "--trust").stdout)
    found = {one["name"]: (one.get("args"), one.get("env"), one.get("headers"), one.get("url")) for one in listed}
    removed = ferrule(folder, "mcp", "remove", "a", "-s", "user")

    assert found == {
        "a": (["-y", "server"], ["A", "B"], None, None),
        "b": (None, None, ["X-A", "X-B"], "https://b.test/mcp"),
        "c": ([], ["A"], None, None),
        "d": (None, None, ["X"], "https://d.test/mcp"),
        "e": (["-y"], [], None, None),
    }
    assert removed.returncode == 0


def test_a_command_may_have_any_flags_also_ours(folder: Path) -> None:
    """`-p` after the name of a command is no prompt."""
    added = ferrule(folder, "mcp", "add", "x", "--", "docker", "run", "-p", "80:80", "--scope", "y")
    again = ferrule(folder, "mcp", "add", "x", "--", "docker", "run", "-p", "81:80")
    listed = ferrule(folder, "mcp", "list", "--json")

    assert (added.returncode, again.returncode) == (0, 0)
    assert again.stdout.startswith(b"Replaced x in ")
    assert json.loads(listed.stdout)[0]["args"] == ["run", "-p", "81:80"]


def test_what_a_project_writes_does_not_reach_the_terminal_as_it_is(folder: Path) -> None:
    put(folder / ".mcp.json", {"mcpServers": {"a\x1b[31m\nb": {"command": "x\x07"}}})

    listed = ferrule(folder, "mcp", "list", "--trust")
    got = ferrule(folder, "mcp", "get", "a\x1b[31m\nb", "--trust")

    assert listed.stdout.count(b"\n") == 1
    for done in (listed, got):
        assert not {b"\x1b", b"\x07"} & {bytes([byte]) for byte in done.stdout + done.stderr}

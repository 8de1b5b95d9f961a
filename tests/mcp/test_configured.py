"""Which servers of the settings are started, and what is said of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.mcp.config import Remote, Stdio
from ferrule.mcp.configured_servers import Configured, read_configured
from ferrule.mcp.foreign_schemas import flatten_schema
from ferrule.mcp.naming import LONGEST, server_parts, split, tool_name
from ferrule.settings.settings_sources import SettingsError, claude_servers, load_given_servers, open_layers
from tests.requirement import requirement
from tests.settings.folders import put

FILES = {"command": "files", "args": ["--root", "${ROOT:-/srv}", "${CLAUDE_PROJECT_DIR}"], "env": {"KEY": "${KEY}"}}
WEB = {"type": "http", "url": "https://${HOST}/mcp", "headers": {"X": "${HOST}"}, "timeout": 5000, "alwaysLoad": True}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    return tmp_path


def found(folder: Path, *, trusting: bool = True, strict: bool = False, more: Any = (), **variables: str) -> Configured:
    cwd = str(folder / "project")
    live = open_layers(cwd, folder / "state", trusting=trusting, more=more)
    return read_configured(live.current(), cwd=cwd, environment=variables, strict=strict)


def names(configured: Configured) -> list[str]:
    return sorted(server.name for server in configured.servers)


@requirement("MCP-1")
def test_variables_are_put_in_and_one_that_is_not_set_stays_with_a_warning(folder: Path) -> None:
    path = put(folder / "project" / ".mcp.json", {"mcpServers": {"files": FILES, "web": WEB}})

    there = found(folder, HOST="a.test")
    files, web = there.servers

    assert files.transport == Stdio(
        "files", ("--root", "/srv", str(folder / "project")), {"KEY": "${KEY}"}, str(folder / "project")
    )
    assert web.transport == Remote("http", "https://a.test/mcp", {"X": "a.test"})
    assert (web.timeout, web.always_load, web.trusted) == (5.0, True, False)
    assert there.warnings == (f"{path}:1: `mcpServers.files`: not set, and so left as written: KEY.",)


@requirement("MCP-1", "SET-4")
def test_a_projects_servers_do_not_count_before_somebody_trusts_them(folder: Path) -> None:
    put(folder / "project" / ".mcp.json", {"mcpServers": {"theirs": FILES}})
    put(folder / "home" / ".ferrule" / "settings.json", {"mcpServers": {"mine": FILES}})

    assert names(found(folder, trusting=False, KEY="1")) == ["mine"]
    assert names(found(folder, trusting=True, KEY="1")) == ["mine", "theirs"]


@requirement("MCP-1")
def test_a_bad_entry_is_skipped_alone_and_named(folder: Path) -> None:
    broken = {
        "no_type": {"url": "https://a.test"},
        "socket": {"type": "ws", "url": "wss://a.test"},
        "bare": {"type": "http", "url": "a.test/mcp"},
    }
    put(folder / "project" / ".mcp.json", {"mcpServers": {"good": {"command": "x"}, **broken}})

    live = open_layers(str(folder / "project"), folder / "state", trusting=True)
    there = found(folder)

    assert names(there) == ["good"]
    assert "`mcpServers.no_type` is skipped: `url` needs a `type`" in str(live.current().skipped[0])
    assert "`mcpServers.socket`: WebSocket servers are not supported" in there.warnings[0]
    assert "`mcpServers.bare`: `url` must begin with http:// or https://." in there.warnings[1]


@requirement("MCP-1")
@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({"disabledMcpjsonServers": ["a"]}, ["b", "mine"]),
        ({"enabledMcpjsonServers": ["a"]}, ["a", "mine"]),
        ({"enabledMcpjsonServers": ["a"], "enableAllProjectMcpServers": True}, ["a", "b", "mine"]),
        ({"deniedMcpServers": [{"serverCommand": ["x", "1"]}]}, ["b", "mine"]),
        ({"allowedMcpServers": [{"serverName": "b"}, {"serverUrl": "https://*.test/*"}]}, ["b", "mine"]),
        ({"allowedMcpServers": []}, []),
    ],
)
def test_lists_say_which_are_started(folder: Path, settings: dict[str, Any], left: list[str]) -> None:
    mine = {"mine": {"type": "http", "url": "https://my.test/mcp"}}
    put(folder / "project" / ".mcp.json", {"mcpServers": {"a": {"command": "x", "args": ["1"]}, "b": {"command": "y"}}})
    put(folder / "home" / ".claude" / "settings.json", {"mcpServers": mine, **settings})

    assert names(found(folder)) == left


@requirement("MCP-1")
def test_the_command_line_stands_over_the_files_and_can_stand_alone(folder: Path) -> None:
    put(folder / "home" / ".claude" / "settings.json", {"mcpServers": {"a": {"command": "old"}, "b": {"command": "b"}}})
    file = put(folder / "given.json", {"mcpServers": {"a": {"command": "new"}}})
    more = tuple(load_given_servers([str(file), '{"mcpServers": {"c": {"command": "c"}}}']))

    both = found(folder, more=more)

    assert {server.name: str(server.transport) for server in both.servers} == {"a": "new", "b": "b", "c": "c"}
    assert names(found(folder, more=more, strict=True)) == ["a", "c"]
    with pytest.raises(SettingsError, match="the file does not exist"):
        list(load_given_servers(["missing.json"]))
    with pytest.raises(SettingsError, match="--mcp-config"):
        list(load_given_servers(["{no json"]))


@requirement("MCP-1")
def test_servers_of_the_other_programs_own_file_are_the_users(folder: Path) -> None:
    project = str(folder / "project")
    content = {"mcpServers": {"a": {"command": "a"}}, "projects": {project: {"mcpServers": {"b": {"command": "b"}}}}}
    put(folder / "home" / ".claude.json", {**content, "history": ["much"]})

    assert names(found(folder, trusting=False, more=claude_servers(str(folder / "home"), project))) == ["a", "b"]


@requirement("MCP-3", "SCHED-7")
def test_trust_and_concurrency_are_for_the_user_to_give(folder: Path) -> None:
    put(folder / "project" / ".mcp.json", {"mcpServers": {"a": {"command": "x", "trusted": True}}})
    before = found(folder).servers[0]
    put(folder / "home" / ".claude" / "settings.json", {"trustedMcpServers": ["a"], "concurrentMcpServers": ["a"]})
    after = found(folder).servers[0]

    assert (before.trusted, before.concurrent) == (False, False)
    assert (after.trusted, after.concurrent) == (True, True)


NAMES = st.text(alphabet=st.sampled_from("ab_-./ \u00e9"), max_size=20)


@given(st.lists(NAMES, unique=True, max_size=6), st.lists(NAMES, unique=True, max_size=6))
def test_names_are_unique_and_lead_back_to_server_and_tool(servers: list[str], tools: list[str]) -> None:
    made: dict[str, tuple[str, str]] = {}
    for server, part in server_parts(servers).items():
        for tool in tools:
            name = tool_name(part, tool, made)
            assert name not in made
            made[name] = (server, tool)
            assert (split(name) or ("", ""))[0] == part
            assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
            assert len(name) <= LONGEST


def test_a_name_that_is_too_long_is_cut_and_still_its_own() -> None:
    one, other = tool_name("s", "x" * 200 + "1"), tool_name("s", "x" * 200 + "2")

    assert (len(one), len(other), one == other) == (LONGEST, LONGEST, False)


@pytest.mark.parametrize(
    ("schema", "properties", "required"),
    [
        ({"type": "object", "properties": {"a": {"anyOf": []}}, "required": ["a"]}, {"a"}, ["a"]),
        ({"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]}, {"a", "b"}, ["a"]),
        (
            {"anyOf": [{"required": ["a", "b"]}, {"required": ["b"]}], "properties": {"a": {}, "b": {}}},
            {"a", "b"},
            ["b"],
        ),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {}}, "required": ["a"]}}}, {"a"}, ["a"]),
        ({"$ref": "#"}, set(), None),
        ({"$ref": "https://elsewhere.test/"}, set(), None),
        ({"anyOf": "nonsense", "required": 3}, set(), None),
    ],
)
def test_choices_at_the_root_of_a_schema_become_one_object(
    schema: dict[str, Any], properties: set[str], required: list[str] | None
) -> None:
    flat = flatten_schema(schema)

    assert (flat["type"], set(flat["properties"])) == ("object", properties)
    assert not {"anyOf", "oneOf", "allOf", "$ref"} & flat.keys()
    if required is not None:
        assert flat["required"] == required

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ferrule.settings.faults import faults_in
from ferrule.settings.json_places import parse
from ferrule.settings.plain_servers import is_plain
from ferrule.settings.settings_files import SettingsKind

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5000) | st.floats(0, 5000) | st.sampled_from(["", "x", "http"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", ""]), inner, max_size=2),
    max_leaves=3,
)
KEYS = ("type", "command", "args", "env", "url", "headers", "headersHelper", "timeout", "alwaysLoad", "oauth")
KINDS = ("stdio", "http", "streamable-http", "sse", "ws", "tcp")
ENTRY = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys((*KEYS, "always_load", "model_config", "disabled"), ANYTHING),
        "type": st.sampled_from(KINDS) | ANYTHING,
        "args": st.lists(st.text(max_size=2), max_size=2) | ANYTHING,
    },
)
NAMES = st.sampled_from(["a", "", "workspace", "b c"])
CONTENT = st.fixed_dictionaries(
    {"mcpServers": st.dictionaries(NAMES, ENTRY | ANYTHING, max_size=2) | ANYTHING},
    optional={"$schema": ANYTHING, "permissions": ANYTHING},
)


@given(CONTENT | ANYTHING, st.sampled_from(SettingsKind))
@example({"mcpServers": {"a": {"command": "x", "timeout": True}}}, SettingsKind.MCP)
@example({"mcpServers": {"a": {"type": "http", "url": "x", "oauth": {"callbackPort": 0}}}}, SettingsKind.MCP)
@example({"mcpServers": {}, "permissions": {"denny": []}}, SettingsKind.SETTINGS)
def test_what_is_plain_has_no_fault(content: Any, kind: SettingsKind) -> None:
    parsed = parse(json.dumps(content))

    if is_plain(kind, parsed):
        assert faults_in(kind, parsed) == (set(), [])


@pytest.mark.parametrize("kind", [SettingsKind.MCP, SettingsKind.SETTINGS])
def test_servers_of_the_common_shapes_are_plain(kind: SettingsKind) -> None:
    program = {"command": "npx", "args": ["-y", "x"], "env": {"KEY": "${KEY}"}, "timeout": 1000, "disabled": False}
    address = {"type": "http", "url": "https://a.test", "headers": {"X": "y"}, "alwaysLoad": True}

    assert is_plain(kind, parse(json.dumps({"mcpServers": {"a": program, "b": address, "c": {"command": "d"}}})))


def test_a_name_that_stands_twice_is_not_plain() -> None:
    assert not is_plain(SettingsKind.MCP, parse('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}'))

"""What "always" would add: enough for the call, and nothing beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.calls import Refusal
from ferrule.core.verdicts import Behavior
from ferrule.permissions.judge import RuleJudge
from ferrule.permissions.modes import Mode
from ferrule.permissions.rules import parse_rule
from ferrule.permissions.suggesting import suggest_rules
from tests.permissions.scene import CWD, places, proposed, tool_named
from tests.requirement import requirement


def allowed(rules: tuple[str, ...], tool: str, arguments: Mapping[str, Any]) -> bool:
    parsed = [parse_rule(text, Behavior.ALLOW, "test") for text in rules]
    verdict = RuleJudge(parsed, Mode.DEFAULT, places()).judge(proposed(tool_named(tool), arguments))
    return verdict is not None and verdict.behavior is Behavior.ALLOW


def offered(tool: str, **arguments: Any) -> tuple[str, ...]:
    proposal = proposed(tool_named(tool), arguments)
    return suggest_rules(proposal, CWD, lambda texts: allowed(texts, tool, arguments))


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        ("npm test", ["Bash(npm test)"]),
        ("npm test && git push origin main", ["Bash(npm test)", "Bash(git push origin main)"]),
        ("cat a.txt | npm test", ["Bash(npm test)"]),
        ("echo '*' | tool", ["Bash(tool)"]),
        ("tool '*'", [r"Bash(tool \*)"]),
        ("rm -rf /", []),
        ("touch .git/config", ["Edit(./.git/config)"]),
        ("$(npm test", ["Bash($\\(npm test)"]),
    ],
)
@requirement("PERM-8")
def test_a_command_is_offered_as_it_is_written_part_by_part(command: str, rules: list[str]) -> None:
    assert list(offered("Bash", command=command)) == rules


@requirement("PERM-8")
def test_files_hosts_and_servers_are_offered_by_their_names() -> None:
    assert offered("Edit", file_path=f"{CWD}/src/a.py") == ("Edit(./src/a.py)",)
    assert offered("Read", file_path="/etc/hosts") == ("Read(//etc/hosts)",)
    assert offered("Edit", file_path=f"{CWD}/src/[a]*.py") == (r"Edit(./src/\[a\]\*.py)",)
    assert offered("WebFetch", url="https://example.com/x") == ("WebFetch(domain:example.com)",)
    assert offered("Write", file_path=f"{CWD}/.bashrc", content="x") == ("Edit(./.bashrc)",)


@requirement("PERM-8")
@given(st.text(alphabet="ab *?\\():'\"$&|;\n", min_size=1, max_size=12), st.text(alphabet="ab *?\\():;&", max_size=4))
def test_what_is_offered_for_a_command_allows_it_and_not_a_longer_one(command: str, more: str) -> None:
    try:
        rules = offered("Bash", command=command)
    except Refusal:
        return
    if rules:
        assert allowed(rules, "Bash", {"command": command})
        if not allowed((), "Bash", {"command": f"zz{more}"}):
            assert not allowed(rules, "Bash", {"command": f"zz{more}"})

"""What is explained of a call is what the engine decides of it; and laws of rules for commands as people write them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.app.build import open_session
from ferrule.app.explaining import described, explain
from ferrule.app.live_rules import LiveRules, Policy
from ferrule.app.settings import Settings
from ferrule.core.calls import ToolCall, ToolOutcome
from ferrule.core.context import Facts
from ferrule.core.verdicts import strictest
from ferrule.engine.judging import ask_all, the_rest
from ferrule.engine.session import Session
from ferrule.permissions.domains import PreApproval
from ferrule.permissions.modes import Mode
from ferrule.permissions.rules import Origin
from ferrule.testing import bare_context
from tests.permissions.scene import KINDS, Named, command, rules_of
from tests.requirement import requirement

SIMPLE = (
    "ls", "cat a", "cat secrets/key", "git status", "git log -p", "git push", "npm run test", "npm install",
    "rm -rf sub", "rm sub/*", "touch x", "curl https://a.example", "python build.py", "sed -i s/a/b/ src/a",
    "cp a secrets/b", "cd sub", "echo $(cat secrets/key)", "timeout 5 git status", "sudo rm x",
    "bash -c 'git push'", "grep -rA3 x .", "less a", "cat ../outside", "ln -s secrets x", "git -C sub diff",
    "echo hi > out", "echo hi > ~/.bashrc", "X=1 npm run test",
)  # fmt: skip
JOINED = (" && ", " || ", "; ", " | ", " & ", "\n")
commands = st.lists(st.sampled_from(SIMPLE), min_size=1, max_size=3).flatmap(
    lambda parts: st.sampled_from(JOINED).map(lambda between: between.join(parts))
)
command_rules = st.sampled_from(
    [
        "git *",
        "git:*",
        "git status",
        "git * -p",
        "npm run *",
        "npm run test",
        "rm *",
        "curl *",
        "cat *",
        "ls",
        "*",
        "sudo *",
    ]
).map("Bash({})".format)
path_rules = st.builds(
    "{}({})".format,
    st.sampled_from(["Read", "Edit"]),
    st.sampled_from(["./secrets/**", "secrets/key", "/src/**", "*.py", "**", "//etc/**", "~/x", "sub", "./a", "../x"]),
)
host_rules = st.sampled_from(["a.example", "*.example", "b.a.example", "127.0.0.1", "*"]).map(
    "WebFetch(domain:{})".format
)
server_rules = st.sampled_from(
    ["mcp__srv", "mcp__srv__*", "mcp__srv__x", "mcp__srv__y", "mcp__*", "mcp__s*__x", "mcp__srv__x(value:1)", "*"]
)
rule_texts = st.one_of(
    command_rules, path_rules, host_rules, server_rules, st.sampled_from(["Bash", "Read", "Edit", "WebFetch"])
)
rule_sets = st.fixed_dictionaries({kind: st.lists(rule_texts, max_size=3) for kind in KINDS})
files = st.sampled_from(
    ["a", "secrets/key", "src/a.py", "/etc/hosts", "~/x", "sub/../secrets/key", ".env", ".git/config"]
)
calls = st.one_of(
    commands.map(lambda text: ("Bash", {"command": text})),
    files.map(lambda path: ("Read", {"file_path": path})),
    files.map(lambda path: ("Edit", {"file_path": path, "old_string": "a", "new_string": "b"})),
    files.map(lambda path: ("Grep", {"path": path, "pattern": "x"})),
    st.sampled_from(["https://a.example/x", "https://b.a.example", "http://127.0.0.1/", "https://c.test"]).map(
        lambda url: ("WebFetch", {"url": url, "prompt": "x"})
    ),
    st.sampled_from(["mcp__srv__x", "mcp__srv__y"]).map(lambda name: (name, {"value": 1})),
)
modes = st.sampled_from([Mode.DEFAULT, Mode.ACCEPT_EDITS, Mode.PLAN, Mode.DONT_ASK, Mode.BYPASS])


class _Engine:
    """A session that decides about calls and makes none."""

    def __init__(self, folder: Path) -> None:
        self.cwd = str(folder / "workspace")
        self.policy = Policy((), Mode.DEFAULT)
        self.session: Session = open_session(
            Settings(
                cwd=self.cwd,
                state_folder=folder / "state",
                reload=lambda: self.policy,
                pre_approval=PreApproval(allowed=()),
            ),
            tools=[Named("mcp__srv__x", "srv"), Named("mcp__srv__y", "srv")],
        )
        for judge in self.session.pipeline.judges:
            if isinstance(judge, LiveRules):
                judge.box = None  # what a sandbox would hold is asked about, as it is in an explanation

    async def decides(self, rules: Mapping[str, list[str]], mode: Mode, name: str, arguments: dict[str, Any]) -> str:
        self.policy = Policy(rules_of(rules, Origin("rules", base=self.cwd)), mode)
        ctx = bare_context(self.cwd, facts=Facts(workspace=self.cwd))
        ready = self.session.pipeline.prepare(ToolCall("1", name, arguments), self.session.registry.pool, ctx)
        if isinstance(ready, ToolOutcome):
            return "deny"
        heard, waiting = ask_all(ready.proposal, self.session.pipeline.judges)
        return strictest([*heard, *await the_rest(waiting)]).behavior.name.lower()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> _Engine:
    folder = tmp_path_factory.mktemp("explained")
    (folder / "workspace").mkdir()
    return _Engine(folder)


@requirement("PERM-1")
@settings(max_examples=150, deadline=None)
@given(rules=rule_sets, mode=modes, call=calls)
def test_what_is_explained_is_what_the_engine_decides(
    engine: _Engine, rules: dict[str, list[str]], mode: Mode, call: tuple[str, dict[str, Any]]
) -> None:
    name, arguments = call
    scene = described(cwd=engine.cwd, home=os.path.expanduser("~"), rules=rules, mode=mode)

    said = asyncio.run(explain(name, arguments, scene, server="srv" if name.startswith("mcp__") else None))

    assert said.verdict.behavior.name.lower() == asyncio.run(engine.decides(rules, mode, name, arguments))


@requirement("PERM-1")
@settings(max_examples=150, deadline=None)
@given(rules=rule_sets, more=rule_texts, mode=modes, text=commands)
def test_one_more_deny_never_makes_a_command_freer(
    rules: dict[str, list[str]], more: str, mode: Mode, text: str
) -> None:
    order = ("allow", "ask", "deny")
    tightened = {**rules, "deny": [*rules["deny"], more]}

    assert order.index(command(tightened, text, mode=mode)) >= order.index(command(rules, text, mode=mode))


@requirement("PERM-4")
@settings(max_examples=150, deadline=None)
@given(
    rules=st.fixed_dictionaries({"allow": st.lists(command_rules.filter("Bash(*)".__ne__), max_size=3)}),
    parts=st.lists(st.sampled_from(SIMPLE), min_size=2, max_size=4),
    between=st.sampled_from(JOINED),
    mode=st.sampled_from([Mode.DEFAULT, Mode.ACCEPT_EDITS]),
)
def test_a_compound_is_allowed_only_if_each_part_is(
    rules: dict[str, list[str]], parts: list[str], between: str, mode: Mode
) -> None:
    if command(rules, between.join(parts), mode=mode) == "allow":
        assert {part: command(rules, part, mode=mode) for part in parts} == dict.fromkeys(parts, "allow")

"""What is explained of a call is what the engine decides of it; and laws of rules for commands as people write them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.app.build import open_session
from ferrule.app.explain_stand_ins import described, open_scene
from ferrule.app.explaining import Explanation, explain
from ferrule.app.session_settings import Settings
from ferrule.core.calls import Status, ToolCall, ToolOutcome
from ferrule.core.context import Facts
from ferrule.core.ports import Proposal
from ferrule.core.verdicts import Behavior, Verdict, strictest
from ferrule.engine.judging import ask_all, the_rest
from ferrule.engine.session import Session
from ferrule.permissions.domains import PreApproval
from ferrule.permissions.live_rules import Policy
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
    """A session, and a scene that is explained, in one folder and under one policy that changes."""

    def __init__(self, folder: Path) -> None:
        self.cwd = str(folder / "workspace")
        self.policy = Policy((), Mode.DEFAULT)
        self.settings = Settings(
            cwd=self.cwd,
            state_folder=folder / "state",
            reload=lambda: self.policy,
            pre_approval=PreApproval(allowed=()),
        )
        self.session: Session = open_session(
            self.settings, tools=[Named("mcp__srv__x", "srv"), Named("mcp__srv__y", "srv")]
        )
        self.scene = open_scene(self.settings)
        self.runner = asyncio.Runner()
        """Sandboxes are tried once, by processes that belong to one event loop."""

    def set(self, rules: Mapping[str, list[str]], mode: Mode) -> None:
        self.policy = Policy(rules_of(rules, Origin("rules", base=self.cwd)), mode)

    def explained(self, name: str, arguments: dict[str, Any]) -> Explanation:
        server = "srv" if name.startswith("mcp__") else None
        return self.runner.run(explain(name, arguments, self.scene, server=server))

    def decided(self, name: str, arguments: dict[str, Any]) -> Verdict | None:
        """`None` for a call that is refused before anybody judges it."""
        ctx = bare_context(self.cwd, facts=Facts(workspace=self.cwd))
        ready = self.session.pipeline.prepare(ToolCall("1", name, arguments), self.session.registry.pool, ctx)
        return None if isinstance(ready, ToolOutcome) else self.runner.run(self._heard(ready.proposal))

    async def _heard(self, proposal: Proposal) -> Verdict:
        heard, waiting = ask_all(proposal, self.session.pipeline.judges)
        return strictest([*heard, *await the_rest(waiting)])

    def called(self, name: str, arguments: dict[str, Any]) -> ToolOutcome:
        return self.runner.run(self._outcome(ToolCall("1", name, arguments)))

    async def _outcome(self, call: ToolCall) -> ToolOutcome:
        executor = self.session.executor()
        async with executor:
            executor.submit(call)
            return (await executor.drain())[0]

    def close(self) -> None:
        with self.runner:
            self.runner.run(self.scene.close())
            self.runner.run(self.session.close())


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Engine]:
    folder = tmp_path_factory.mktemp("explained")
    (folder / "workspace" / "secrets").mkdir(parents=True)
    (folder / "workspace" / "secrets" / "key").write_text("k")
    (folder / "workspace" / "a").write_text("a")
    engine = _Engine(folder)
    yield engine
    engine.close()


@requirement("PERM-1", "PERM-9", "HELD-30")
@settings(max_examples=250, deadline=None)
@given(rules=rule_sets, mode=modes, call=calls)
def test_what_is_explained_is_what_the_engine_decides(
    engine: _Engine, rules: dict[str, list[str]], mode: Mode, call: tuple[str, dict[str, Any]]
) -> None:
    engine.set(rules, mode)

    said, decided = engine.explained(*call).verdict, engine.decided(*call)

    if call[0] == "WebFetch":  # what the fetch itself refuses is told beside what the rules say
        assert said.behavior is (decided.behavior if decided else Behavior.DENY)
    else:
        assert said == decided


@requirement("PERM-1", "PERM-9", "HELD-30")
@settings(max_examples=150, deadline=None)
@given(rules=rule_sets, mode=modes, call=calls)
def test_a_scene_that_is_told_of_is_decided_as_on_a_machine_that_may_have_no_sandbox(
    engine: _Engine, rules: dict[str, list[str]], mode: Mode, call: tuple[str, dict[str, Any]]
) -> None:
    engine.set(rules, mode)
    server = "srv" if call[0].startswith("mcp__") else None

    def told(*, sandbox: bool) -> Verdict:
        scene = described(cwd=engine.cwd, home=os.path.expanduser("~"), rules=rules, mode=mode, sandbox=sandbox)
        return asyncio.run(explain(*call, scene, server=server)).verdict

    assert told(sandbox=True).behavior <= told(sandbox=False).behavior
    assert told(sandbox=True).behavior <= engine.explained(*call).verdict.behavior


@requirement("PERM-9", "HELD-30")
@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.ACCEPT_EDITS, Mode.PLAN, Mode.DONT_ASK, Mode.BYPASS])
@pytest.mark.parametrize(
    "rules",
    [{}, {"deny": ["Read(./secrets/**)"]}, {"allow": ["Bash"], "deny": ["Edit(./secrets/**)"]}],
    ids=["no rules", "a denied path", "an allowed tool and a denied path"],
)
def test_a_call_runs_if_and_only_if_it_is_explained_as_allowed(
    engine: _Engine, rules: dict[str, list[str]], mode: Mode
) -> None:
    texts = ("cat a", "touch made", "python3 -c 'print(1)'", "cat secrets/key", "echo x > secrets/key")
    engine.set({kind: rules.get(kind, []) for kind in KINDS}, mode)

    for text in texts:
        said = engine.explained("Bash", {"command": text})
        ran = engine.called("Bash", {"command": text})

        assert (text, ran.status is not Status.DENIED) == (text, said.verdict.behavior is Behavior.ALLOW)


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

"""Who approves a command, and what one that nobody approved is held to."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from ferrule.core.effects import Change, Effects, ReachesHost, ReadsPath, WritesPath
from ferrule.core.state import SessionState
from ferrule.core.verdicts import Behavior, Confinement, DeclaredWrite, Grants, Verdict, describe_grants, strictest
from ferrule.permissions.judge import UNHELD
from ferrule.permissions.live_rules import LiveRules, Policy
from ferrule.permissions.modes import Mode
from ferrule.permissions.name_table import means
from tests.permissions.scene import command, judged, places, proposed, rules_of, tool_named
from tests.requirement import requirement

HELD, FREE, ASKED = "held", "free", "asked"


def outcome(rules: Mapping[str, list[str]], text: str, mode: Mode = Mode.DEFAULT, **more: Any) -> str:
    verdict = judged(rules, "Bash", {"command": text}, mode=mode, confines=lambda needed: True, **more)
    if verdict is None or verdict.behavior is not Behavior.ALLOW:
        return ASKED
    return FREE if verdict.approved else HELD


@requirement("HELD-10")
@pytest.mark.parametrize(
    ("allow", "text", "mode", "expected"),
    [
        # A mode approves nothing
        ([], "ls", Mode.DEFAULT, HELD),
        ([], "touch a", Mode.ACCEPT_EDITS, HELD),
        ([], "cat a", Mode.DONT_ASK, HELD),
        ([], "cat a", Mode.AUTO, HELD),
        ([], "make", Mode.PLAN, HELD),
        ([], "make", Mode.DEFAULT, ASKED),
        ([], "make", Mode.BYPASS, FREE),
        # Rules for the command do
        (["Bash"], "make", Mode.DEFAULT, FREE),
        (["Bash(ls *)"], "ls -l", Mode.DEFAULT, FREE),
        (["Bash(ls -l)"], "ls -l", Mode.DEFAULT, FREE),
        (["Bash(make *)"], "make test", Mode.DEFAULT, FREE),
        (["Bash(ls *)", "Bash(cat *)"], "ls a | cat b", Mode.DEFAULT, FREE),
        # Rules for some of the parts do not, unless a part that is not known is among them
        (["Bash(ls *)"], "ls a | wc", Mode.DEFAULT, HELD),
        (["Bash(cat *)"], "cat a && touch b", Mode.ACCEPT_EDITS, HELD),
        (["Bash(echo *)"], "echo a > b", Mode.ACCEPT_EDITS, HELD),
        (["Bash(make *)"], "make test && touch b", Mode.ACCEPT_EDITS, FREE),
        # Rules for a path do not
        (["Edit(./src/**)"], "touch src/a", Mode.DEFAULT, HELD),
        (["Edit(./src/**)"], "tee src/a", Mode.DEFAULT, HELD),
        (["Read(//data/**)"], "cat /data/a", Mode.DEFAULT, HELD),
    ],
)
def test_a_command_is_held_unless_somebody_stands_for_it(
    allow: list[str], text: str, mode: Mode, expected: str
) -> None:
    assert outcome({"allow": allow}, text, mode) == expected


@requirement("HELD-10")
def test_the_grants_are_the_effects_and_nothing_else() -> None:
    effects = Effects.of(
        ReadsPath("/srv/repo/a", "/srv/repo/a"),
        WritesPath("/srv/repo/l", Change.REPLACES, "/srv/repo/b", ("/srv/repo/l",)),
        WritesPath("/srv/repo/c", Change.UNLINKS, "/srv/repo/c"),
        ReachesHost("docs.rs", sends=False),
    )

    grants = Grants.for_effects(effects)

    assert grants.reads == ("/srv/repo/a",)
    assert {one.path for one in grants.writes} == {"/srv/repo/b", "/srv/repo/l", "/srv/repo/c"}
    assert (grants.network, Grants.for_effects(Effects.of())) == (True, Grants())


@requirement("HELD-10")
def test_a_path_that_is_not_known_is_granted_to_nobody() -> None:
    assert Grants.for_effects(Effects.of(ReadsPath("/", "/"), ReadsPath("/"))).reads == ()
    assert Grants.for_effects(Effects.of(ReadsPath("/srv", "/data"))).reads == ("/data",)


@requirement("HELD-10")
def test_where_the_machine_cannot_hold_it_a_command_is_asked_about_and_an_approval_answers() -> None:
    asked = judged({}, "Bash", {"command": "ls"}, confines=lambda needed: False)
    ruled = judged({"allow": ["Bash(ls)"]}, "Bash", {"command": "ls"}, confines=lambda needed: False)
    assert asked is not None
    assert ruled is not None
    hook = Verdict(behavior=Behavior.ALLOW, source="hook", reason="x", approved=True)
    classifier = Verdict(behavior=Behavior.ALLOW, source="classifier", reason="x")

    assert (asked.behavior, asked.source, asked.reason) == (Behavior.ASK, "default", UNHELD)
    assert ruled.approved
    assert strictest([asked, hook]).approved
    assert strictest([asked, classifier]).behavior is Behavior.ASK


@requirement("HELD-10")
def test_an_approval_by_one_judge_holds_though_another_only_allows_by_its_mode() -> None:
    held = judged({}, "Bash", {"command": "ls"}, confines=lambda needed: True)
    hook = Verdict(behavior=Behavior.ALLOW, source="hook", reason="x", approved=True)
    deny = Verdict(behavior=Behavior.DENY, source="rule", reason="x")

    together = strictest([held, hook])

    assert (together.behavior, together.approved) == (Behavior.ALLOW, True)
    assert not strictest([held, None]).approved
    assert not strictest([hook, deny]).approved


@requirement("HELD-10", "PERM-5")
@pytest.mark.parametrize("text", ["ls", "cat a", "touch a", "make", "rm a"])
def test_in_bypass_every_command_is_kept_from_paths_that_rules_deny(text: str) -> None:
    rules = {"deny": ["Read(./private/**)", "Edit(./dist)"]}

    verdict = judged(rules, "Bash", {"command": text}, mode=Mode.BYPASS, confines=lambda needed: True)
    unheld = judged(rules, "Bash", {"command": text}, mode=Mode.BYPASS, confines=lambda needed: False)

    assert verdict is not None
    assert verdict.needs_confinement is not None
    assert verdict.approved
    assert verdict.needs_confinement.grants is None
    assert "/srv/repo/**/private" in verdict.needs_confinement.unreadable
    assert "/srv/repo/**/dist" in verdict.needs_confinement.unwritable
    assert unheld is not None
    assert unheld.behavior is Behavior.ASK


@requirement("HELD-10")
def test_a_rule_approves_a_command_as_before_where_denies_cannot_be_held() -> None:
    rules = {"allow": ["Bash(cat *)"], "deny": ["Read(./private/**)"]}

    assert command(rules, "cat a", confines=lambda needed: False) == "allow"


@requirement("HELD-13")
@pytest.mark.parametrize("text", ["cat .e*", "head .env*", "cat *.pem", "tail sub/id_r*", "cat cred*"])
def test_a_pattern_that_means_a_secret_is_asked_about(text: str) -> None:
    assert command({}, text) == "ask"
    assert command({"allow": [f"Bash({text.replace('*', '?')})"]}, text) == "ask"
    assert command({"allow": ["Bash"]}, text) == "ask"
    assert command({}, text, mode=Mode.BYPASS) == "allow"


@requirement("HELD-13")
@pytest.mark.parametrize("text", ["cat *", "grep -r x .", "cat *.py", "ls .e*", "ls *.pem", "cat src/*"])
def test_what_merely_passes_over_a_secret_runs(text: str) -> None:
    assert command({}, text, confines=lambda needed: True) == "allow"


def test_a_pattern_is_read_by_what_it_spells() -> None:
    assert not means("*.p?m", "*.pem")
    assert means(".?nv", ".env")
    assert not means("*", "credentials")
    assert means("id_*", "id_rsa*")


@requirement("HELD-10")
def test_what_the_kernel_grants_is_said_in_lines() -> None:
    lines = describe_grants(Grants(reads=("/data",), writes=(DeclaredWrite(path="/srv/a"),), network=True))

    assert lines == (
        "reads the system, its tools and the workspace without secrets, and /data",
        "writes only /srv/a",
        "reaches the network",
    )


class Box:
    """A machine that holds what it is told that it holds."""

    is_tried = True

    def __init__(self, *, holds: bool) -> None:
        self.holds = holds

    async def try_it(self) -> None: ...

    def confines(self, needed: Confinement, /) -> bool:
        return self.holds

    def why_unheld(self) -> str:
        return "" if self.holds else "Landlock is too old here."


def live(mode: Mode, *, holds: bool, **rules: list[str]) -> LiveRules:
    policy = Policy(rules_of(rules), mode)
    made = LiveRules(lambda: policy, places(), SessionState("/srv/repo"))
    made.box = Box(holds=holds)
    return made


@requirement("HELD-10")
def test_one_line_of_warning_says_why_commands_are_asked_about(caplog: pytest.LogCaptureFixture) -> None:
    rules = live(Mode.DEFAULT, holds=False)
    with caplog.at_level(logging.WARNING):
        verdicts = [rules.judge(proposed(tool_named("Bash"), {"command": text})) for text in ("ls", "cat a")]

    assert [str(one.reason) for one in verdicts if isinstance(one, Verdict)] == [
        f"{UNHELD}: Landlock is too old here"
    ] * 2
    assert len(caplog.records) == 1


@requirement("HELD-10")
@pytest.mark.parametrize("holds", [True, False])
async def test_a_classifiers_yes_holds_a_command_to_its_effects_or_to_the_workspace(holds: bool) -> None:
    rules = live(Mode.AUTO, holds=holds)
    safe = Verdict(behavior=Behavior.ALLOW, source="classifier", reason="safe")

    known = await rules.hold(proposed(tool_named("Bash"), {"command": "touch a"}), safe)
    unknown = await rules.hold(proposed(tool_named("Bash"), {"command": "make"}), safe)
    edit = await rules.hold(proposed(tool_named("Write"), {"file_path": "a"}), safe)

    assert edit == safe
    assert known is not None
    assert unknown is not None
    assert [known.behavior, unknown.behavior] == [Behavior.ALLOW if holds else Behavior.ASK] * 2
    assert known.needs_confinement == Confinement(
        grants=Grants(writes=(DeclaredWrite(path="/srv/repo/a"),)), then=Behavior.ALLOW
    )
    assert unknown.needs_confinement is not None
    assert (unknown.needs_confinement.writable, unknown.needs_confinement.grants) == (("/srv/repo",), Grants())

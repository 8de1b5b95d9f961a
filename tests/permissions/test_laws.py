"""Laws of the judge, for rules and calls that nobody thought of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.calls import ToolCall
from ferrule.core.effects import (
    Change,
    ChangesState,
    Effects,
    Opaque,
    ReachesHost,
    ReadsPath,
    ReadsState,
    RunsCommand,
    Touch,
    WritesPath,
)
from ferrule.core.ports import Proposal
from ferrule.core.verdicts import Behavior, strictest
from ferrule.permissions.judge import RuleJudge
from ferrule.permissions.lint import lint
from ferrule.permissions.modes import Mode
from ferrule.permissions.patterns import TextPattern
from ferrule.permissions.rules import Rule, RuleError, parse_rule, parse_valid_rules
from ferrule.testing import bare_context
from tests.drawing import examples
from tests.permissions.scene import AnyInput, Named, places
from tests.requirement import requirement

NAMES = ("Bash", "Read", "Edit", "Write", "WebFetch", "Agent", "Skill", "Acts", "mcp__srv__x")
PARTS = ("a", "b", ".env", ".git", "src", "*", "**", "?", "x y", "[", "\\", "..", "", "ä", "\n", "secrets", "~")

paths = st.lists(st.sampled_from([part for part in PARTS if part]), max_size=4).map("/".join)
absolute = st.builds("{}/{}".format, st.sampled_from(["/srv/repo", "/home/u", "", "/etc"]), paths)
commands = st.lists(st.sampled_from(["npm", "run", "*", "rm", "-rf", "curl", "/", "$X", ""]), min_size=1, max_size=4)
hosts = st.sampled_from(["", "a.b", "*.b", "evil.net", "127.0.0.1", "[::1]", "x..y", "ü.de", "." * 300])
touches: st.SearchStrategy[Touch] = st.one_of(
    st.builds(ReadsPath, absolute, absolute),
    st.builds(WritesPath, absolute, st.sampled_from(Change), absolute),
    st.builds(RunsCommand, commands.map(tuple), commands.map(" ".join), st.booleans()),
    st.builds(ReachesHost, hosts, st.booleans()),
    st.builds(ReadsState, st.just("cwd")),
    st.builds(ChangesState, st.sampled_from(["grants", "todos"])),
    st.just(Opaque()),
)
specifiers = st.one_of(
    st.builds("{}{}".format, st.sampled_from(["", "/", "//", "~/", "./"]), paths),
    commands.map(" ".join),
    commands.map(lambda words: f"{' '.join(words)}:*"),
    hosts.map("domain:{}".format),
    st.text(max_size=8),
)
texts = st.one_of(
    st.sampled_from([*NAMES, "*", "mcp__*", "mcp__srv"]),
    st.builds("{}({})".format, st.sampled_from(NAMES), specifiers),
    st.text(max_size=12),
)
arguments = st.dictionaries(
    st.sampled_from(["command", "url", "subagent_type", "skill", "x"]),
    st.one_of(st.text(max_size=6), st.integers(), st.none(), st.lists(st.integers(), max_size=1)),
    max_size=3,
)


def _proposal(name: str, touched: list[Touch], given: dict[str, Any]) -> Proposal:
    tool = Named(name, "srv" if name.startswith("mcp__") else None)
    effects = Effects.of(*touched)
    return Proposal(ToolCall("1", name, given), tool, AnyInput(), given, effects, bare_context("/srv/repo"))


proposals = st.builds(_proposal, st.sampled_from(NAMES), st.lists(touches, max_size=4), arguments)


def _rules(written: list[tuple[str, Behavior]]) -> list[Rule]:
    return [rule for text, behavior in written for rule in parse_valid_rules([text], behavior, "settings.json")]


def _said(rules: list[Rule], mode: Mode, proposal: Proposal) -> Behavior:
    return strictest([RuleJudge(rules, mode, places()).judge(proposal)]).behavior


@requirement("PERM-1")
@examples(60)
@given(st.lists(st.tuples(texts, st.sampled_from(Behavior)), max_size=4), texts, st.sampled_from(Mode), proposals)
def test_one_more_rule_that_denies_or_asks_never_makes_a_call_freer(
    written: list[tuple[str, Behavior]], text: str, mode: Mode, proposal: Proposal
) -> None:
    rules = _rules(written)
    before = _said(rules, mode, proposal)

    for behavior in (Behavior.DENY, Behavior.ASK):
        assert _said([*rules, *_rules([(text, behavior)])], mode, proposal) >= before


@requirement("PERM-1")
@examples(60)
@given(
    st.lists(st.tuples(texts, st.sampled_from(Behavior)), max_size=6), st.sampled_from(Mode), proposals, st.randoms()
)
def test_the_order_of_the_rules_does_not_matter(
    written: list[tuple[str, Behavior]], mode: Mode, proposal: Proposal, random: Any
) -> None:
    rules = _rules(written)
    shuffled = list(rules)
    random.shuffle(shuffled)

    assert _said(rules, mode, proposal) is _said(shuffled, mode, proposal)


@requirement("PERM-3")
@examples(100)
@given(st.one_of(texts, st.text(max_size=30)), st.sampled_from(Behavior))
def test_a_text_is_a_rule_or_is_refused_with_words(text: str, behavior: Behavior) -> None:
    rules = parse_valid_rules([text], behavior, "settings.json")

    assert [rule.text for rule in rules] == [text] * len(rules)
    if not rules:
        with pytest.raises(RuleError, match=r"^settings\.json: "):
            parse_rule(text, behavior, "settings.json")
    lint(rules * 2)
    RuleJudge(rules, Mode.DEFAULT, places())


@requirement("PERM-3")
@examples(60)
@given(st.text("ab *?\\:", max_size=8), st.text("ab *?\\:", max_size=10))
def test_wildcards_match_as_a_plain_reading_of_them_does(pattern: str, text: str) -> None:
    compiled = TextPattern(pattern)

    assert compiled.matches(text) is _plainly(list(_wildcards(pattern)), text)
    if compiled.exact is not None:
        assert compiled.matches(compiled.exact)


def test_a_hostile_pattern_takes_no_time() -> None:
    pattern = TextPattern("*a" * 40 + "*b")

    assert not pattern.matches("a" * 5_000)


def _wildcards(pattern: str) -> list[tuple[str, str]]:
    """The pattern as (kind, character); the ending that means "any arguments" as one item."""
    items: list[tuple[str, str]] = []
    at = 0
    while at < len(pattern):
        rest = pattern[at:]
        if rest in (":*", " *") and pattern[:at].strip():
            while rest == " *" and items and items[-1][0] == "plain" and items[-1][1].isspace():
                items.pop()
            items.append(("arguments", ""))
            break
        if rest[0] == "\\" and len(rest) > 1:
            items.append(("plain", rest[1]))
            at += 2
        else:
            items.append({"*": ("any", ""), "?": ("one", "")}.get(rest[0], ("plain", rest[0])))
            at += 1
    return items


def _plainly(items: list[tuple[str, str]], text: str) -> bool:
    if not items:
        return not text
    (kind, character), rest = items[0], items[1:]
    match kind:
        case "arguments":
            return not text or text[0].isspace()
        case "any":
            return any(_plainly(rest, text[at:]) for at in range(len(text) + 1))
        case "one":
            return bool(text) and _plainly(rest, text[1:])
        case _:
            return text[:1] == character and _plainly(rest, text[1:])

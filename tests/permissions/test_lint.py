"""Rules that can never match, that another one settles, or that are not as wide as they look."""

from __future__ import annotations

import pytest

from ferrule.core.verdicts import Behavior
from ferrule.permissions.lint import Flaw, lint
from ferrule.permissions.rules import Origin, parse_rule
from tests.requirement import requirement

KINDS = {"allow": Behavior.ALLOW, "ask": Behavior.ASK, "deny": Behavior.DENY}
TOOLS = ("Bash", "Read", "Edit", "WebFetch", "Agent")


def _flaws(*written: tuple[str, str]) -> list[tuple[str, Flaw]]:
    rules = [parse_rule(text, KINDS[kind], Origin("settings.json")) for kind, text in written]
    return [(remark.rule.text, remark.flaw) for remark in lint(rules, TOOLS)]


@requirement("PERM-9")
@pytest.mark.parametrize(
    ("kind", "text", "flaw"),
    [
        ("allow", "bash(git status)", Flaw.NEVER),
        ("deny", "Raed", Flaw.NEVER),
        ("allow", "Bash(git:* push)", Flaw.NEVER),
        ("allow", "Bash(cd x && npm *)", Flaw.NEVER),
        ("allow", "Bash(watch *)", Flaw.NEVER),
        ("allow", "Bash(echo 'a' | b 'c' *)", Flaw.NEVER),
        ("allow", "Bash(DEBUG=1:*)", Flaw.NARROW),
        ("deny", "Read(/etc/passwd)", Flaw.NEVER),
        ("allow", "Bash(* *)", Flaw.WIDE),
        ("allow", "Bash(* install)", Flaw.WIDE),
        ("allow", "Bash(python3 *)", Flaw.WIDE),
        ("allow", "Bash(ls*)", Flaw.WIDE),
        ("allow", "Edit(//**)", Flaw.WIDE),
        ("allow", "Edit(~/**)", Flaw.WIDE),
        ("deny", "Read", Flaw.NARROW),
    ],
)
def test_a_rule_that_is_not_what_it_looks_like_is_named(kind: str, text: str, flaw: Flaw) -> None:
    assert (text, flaw) in _flaws((kind, text))


@requirement("PERM-9")
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("allow", "Bash(npm run test *)"),
        ("allow", "Bash(git status)"),
        ("allow", r'Bash(grep -n "a\\|b" *)'),
        ("allow", "Bash(grep -n 'a|b;c' *)"),
        ("allow", r"Bash(grep -n a\|b *)"),
        ("allow", "Bash(TESTPATH=* uv run *)"),
        ("deny", "Bash(curl:*)"),
        ("deny", "Read(./secrets/**)"),
        ("allow", "Edit(src/**)"),
        ("allow", "WebFetch(domain:example.com)"),
        ("deny", "mcp__srv"),
        ("ask", "Task(Explore)"),
    ],
)
def test_a_plain_rule_is_left_alone(kind: str, text: str) -> None:
    assert _flaws((kind, text)) == []


@requirement("PERM-9")
@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        (("deny", "Bash(git *)"), ("allow", "Bash(git status)")),
        (("deny", "Bash(git *)"), ("allow", "Bash(git push *)")),
        (("ask", "Bash"), ("allow", "Bash(npm test)")),
        (("allow", "Bash(npm *)"), ("allow", "Bash(npm test)")),
        (("deny", "mcp__srv"), ("allow", "mcp__srv__read")),
        (("deny", "mcp__*"), ("allow", "mcp__srv__read")),
        (("allow", "WebFetch(domain:*.example.com)"), ("allow", "WebFetch(domain:a.example.com)")),
    ],
)
def test_a_rule_that_another_one_settles_is_named(wide: tuple[str, str], narrow: tuple[str, str]) -> None:
    assert (narrow[1], Flaw.SHADOWED) in _flaws(wide, narrow)
    assert (wide[1], Flaw.SHADOWED) not in _flaws(wide, narrow)


@requirement("PERM-9")
def test_a_narrow_deny_beside_a_wide_allow_is_what_rules_are_for() -> None:
    assert _flaws(("allow", "Bash(git *)"), ("deny", "Bash(git push *)")) == []
    assert _flaws(("allow", "Edit"), ("deny", "Edit(src/**)")) == []


@requirement("PERM-9")
def test_a_remark_says_where_and_what_to_do() -> None:
    rules = [
        parse_rule("Bash(git *)", Behavior.DENY, Origin("a.json", 3)),
        parse_rule("Bash(git status)", Behavior.ALLOW, Origin("b.json", 7)),
    ]

    assert [str(remark) for remark in lint(rules)] == [
        "b.json:7: `Bash(git status)` has no effect: what it matches is already denied by `Bash(git *)` in a.json:3. "
        "Remove one of them."
    ]

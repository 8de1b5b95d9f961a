"""An analysis in words."""

from __future__ import annotations

from ferrule.bash_analysis.analysis import explain_analysis
from tests.bash_analysis.looking import look
from tests.requirement import requirement


@requirement("PERM-9")
def test_each_command_is_told_with_what_it_does_and_what_is_not_known() -> None:
    assert explain_analysis(look("cd sub && timeout 5 grep x f > out; frobnicate")) == [
        "What this does is not known for certain.",
        "cd sub",
        "  reads /srv/repo/sub",
        "timeout 5 grep x f > out",
        "  replaces /srv/repo/sub/out",
        "  runs grep x f",
        "  reads /srv/repo/sub/f",
        "frobnicate",
        "  not known: frobnicate is not known",
    ]


def test_what_only_looks_says_so() -> None:
    assert explain_analysis(look("ls"))[0] == "This only looks."


def test_a_risk_that_denies_says_so() -> None:
    assert explain_analysis(look("rm /dev/sda"))[-1] == "Risk (critical, denied): It writes to the device /dev/sda."


def test_a_command_that_cannot_be_read_says_why() -> None:
    assert explain_analysis(look("ls 'x")) == [
        "What this does is not known for certain.",
        "The command cannot be read: a single quote is not closed.",
        "Risk (medium): The command cannot be read: a single quote is not closed.",
    ]

"""Commands that once reached what a rule denies, or what lies outside of the workspace."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ferrule.bash_analysis.commands.git import READING
from ferrule.permissions.modes import Mode
from ferrule.permissions.programs import reads_below
from tests.permissions.scene import command
from tests.requirement import requirement

LINKS = {
    "/srv/repo/out": "/home/u/stuff",
    "/srv/repo/deep": "/srv/repo/secrets/deep",
    "/srv/repo/hidden": "/srv/repo/secrets",
    "/srv/repo/repository": "/srv/repo/.git",
}


@requirement("PERM-5")
@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.ACCEPT_EDITS, Mode.PLAN, Mode.BYPASS])
@pytest.mark.parametrize(
    "text",
    [
        "grep -rA3 key .",
        "grep -nrC2 key",
        "grep -re. .",
        "grep -d recurse key .",
        "grep -nd rec key .",
        "grep --directories=recurse key .",
        "diff -rU3 . sub",
        "diff . sub",
        "diff -N . /tmp/empty",
        "cp -rt/tmp/x .",
        "cp -rS.bak . sub",
        "git log -U5",
        "git log --binary",
        "git log --diff-merges=on",
        "git reflog --unified=1",
        "git status -vv",
        "git status --verbose",
        "git -C status show HEAD:secrets/key",
        "git -P -C log diff",
        "git tag --format='%(raw)'",
        'for f in */*; do cat "$f"; done',
        'for f in *; do base64 "$f"; done',
        "ln -s . x; cat x/secrets/key",
        "cat deep/../key",
        "cd deep && cat ../key",
        "rm hidden/*",
        "mv hidden/k* sub",
        "cat /proc/self/cwd/../repo/secrets/key",
    ],
)
def test_a_denied_folder_is_not_read_past_its_rule(text: str, mode: Mode) -> None:
    denied = {"deny": ["Read(//srv/repo/secrets/**)"], "allow": ["Bash(git *)"]}

    assert command(denied, text, mode=mode, links=LINKS) != "allow"


@pytest.mark.parametrize(
    "text",
    [
        "grep -n key a.txt",
        "cp a.txt b.txt",
        "git status -s",
        "git log --stat",
        "git branch -v",
        "git -C sub log",
        "ls -R",
    ],
)
def test_what_shows_no_content_of_a_denied_folder_is_not_minded(text: str) -> None:
    assert command({"deny": ["Read(./secrets/**)"]}, text, mode=Mode.BYPASS) == "allow"


@requirement("PERM-5")
@pytest.mark.parametrize("mode", [Mode.ACCEPT_EDITS, Mode.BYPASS])
@pytest.mark.parametrize(
    "text",
    [
        "rm sub/*",
        "rm sub/k??",
        "touch sub/*",
        "sed -i s/a/b/ sub/ke[y]",
        'for f in sub/*; do sed -i s/a/b/ "$f"; done',
        "cp x/key sub",
        "cp -t sub x/key",
        "cp x/key alias",
        "cp x/* sub",
    ],
)
def test_a_denied_file_is_not_changed_by_what_may_name_it(text: str, mode: Mode) -> None:
    denied = {"deny": ["Edit(./sub/key)"]}

    assert command(denied, text, mode=mode, links={"/srv/repo/alias": "/srv/repo/sub"}) != "allow"


@requirement("PERM-5", "PERM-6")
@pytest.mark.parametrize(
    "text",
    [
        "rm -rf out/*",
        "rm -rf out/?",
        "rm -rf out/",
        "rm -rf out/../x",
        "mv out/* sub",
        "rmdir out/*",
        "touch out/../x",
        "cp a.txt out/../x",
        "cd out && touch ../x",
        "rm -rf repository/*",
    ],
)
def test_edits_that_are_accepted_stay_inside_whatever_a_link_leads_to(text: str) -> None:
    assert command({}, text, mode=Mode.ACCEPT_EDITS, links=LINKS) == "ask"


@pytest.mark.parametrize("text", ["rm out", "mv out sub", "touch sub/../x", "rm sub/../x"])
def test_a_link_itself_and_dots_without_one_are_inside(text: str) -> None:
    assert command({}, text, mode=Mode.ACCEPT_EDITS, links=LINKS) == "allow"


@pytest.mark.parametrize("text", ["cat out/../x", "cat < out/../x", "cd out; cat ../x"])
def test_dots_behind_a_link_lead_out_of_the_workspace_for_commands_too(text: str) -> None:
    assert command({}, text, links=LINKS) == "ask"


@pytest.mark.parametrize("name", ["\u00e9-\u00e9", "e\u0301-e\u0301", "\u00e9-e\u0301"])
@pytest.mark.parametrize("rule", ["\u00e9-\u00e9", "e\u0301-e\u0301", "e\u0301-\u00e9"])
def test_a_name_is_denied_in_every_mixture_of_its_spellings(rule: str, name: str) -> None:
    assert command({"deny": [f"Read(./{rule}/**)"]}, f"cat {name}/key") == "deny"


@requirement("PERM-4")
@pytest.mark.parametrize(
    "text",
    [
        "bash -c '${x:-curl} x'",
        "bash -c 'cu$@rl x'",
        "bash -c 'cu${z}rl x'",
        "sh -c 'cu$()rl x'",
        "sh -c 'cu``rl x'",
        "eval 'cu\\\nrl x'",
    ],
)
def test_what_is_nothing_in_the_middle_of_a_word_hides_no_denied_command(text: str) -> None:
    assert command({"deny": ["Bash(curl *)"], "allow": ["Bash(bash *)"]}, text, mode=Mode.BYPASS) in ("ask", "deny")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every version of the one file holds the word, in commits, in a merge, in the index and on disk."""
    folder = tmp_path_factory.mktemp("repository")
    key = folder / "key"

    def commit(number: int) -> None:
        key.write_text(f"TOKEN {number}\n")
        _git(folder, "add", ".")
        _git(folder, "commit", "-m", f"change {number}")

    _git(folder, "init", "-b", "main")
    commit(1)
    _git(folder, "checkout", "-b", "side")
    commit(2)
    _git(folder, "checkout", "main")
    commit(3)
    _git(folder, "merge", "side")
    commit(4)
    _git(folder, "tag", "blob", "HEAD:key")
    key.write_text("TOKEN 5\n")
    _git(folder, "add", ".")
    key.write_text("TOKEN 6\n")
    return folder


@requirement("PERM-5")
@pytest.mark.parametrize("name", ["log", "reflog", "status", "tag", "branch", "ls-files", "rev-parse", "config"])
def test_every_option_with_which_git_shows_content_counts_as_reading_it(repository: Path, name: str) -> None:
    for option in _options(READING[name].partition("|")[0]):
        if not reads_below(("git", name, option)):
            assert "TOKEN" not in _git(repository, name, option), option


def _options(usage: str) -> Iterator[str]:
    values = ("1", "on", "combined", "plain", "%(raw)")
    for written in usage.split():
        option, takes = re.fullmatch(r"(--?[^:?=]+)([:?=]?).*", written, re.DOTALL).groups()  # pyright: ignore[reportOptionalMemberAccess]
        if not option.startswith("--"):
            yield from (f"-{letter}{value}" for letter in option[1:] for value in (("", "1") if takes else ("",)))
        else:
            yield from ((option,) if takes != "=" else ())
            yield from (f"{option}={value}" for value in (values if takes else ()))


def _git(folder: Path, *words: str) -> str:
    who = {f"GIT_{role}_{what}": "somebody" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment: Mapping[str, str] = {**os.environ, **who, "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    ran = subprocess.run(
        ["git", *words], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return ran.stdout.decode(errors="replace")

"""What commands read, write, run and reach."""

from __future__ import annotations

import pytest

from ferrule.core.effects import Change, Opaque, ReachesHost, ReadsPath, RunsCommand, WritesPath
from tests.bash_analysis.looking import is_read_only, look, reads, runs, touches, writes
from tests.requirement import requirement


@requirement("SHELL-1")
def test_each_command_of_a_compound_one_contributes_its_touches() -> None:
    assert touches("cat a | sort > b && curl https://h.example/x") == (
        WritesPath("/srv/repo/b", Change.REPLACES),
        RunsCommand(("cat", "a"), "cat a", accounted=True),
        ReadsPath("/srv/repo/a"),
        RunsCommand(("sort",), "sort", accounted=True),
        RunsCommand(("curl", "https://h.example/x"), "curl https://h.example/x", accounted=True),
        ReachesHost("h.example", sends=True),
    )


@requirement("SHELL-1")
@pytest.mark.parametrize(
    "command",
    [
        "no-such-program",
        "ls --no-such-option",
        "ls 'unterminated",
        "ls |",
        "a=(1 2); ls",
        "echo $((x))",
        "ls " + "a" * 100_000,
        "ls; " * 600,
        "{|" * 150,
    ],
)
def test_what_is_not_understood_is_unknown(command: str) -> None:
    analysis = look(command)

    assert analysis.effects.unknown
    assert analysis.reasons


@requirement("HELD-5")
@pytest.mark.parametrize(
    "command",
    [
        "ls; " * 51 + "ls",
        "ls\n" * 300,
        " && ".join(f"cat file{number} | sort | uniq -c" for number in range(60)),
        "grep " + "a" * 10_001 + " b",
        "cat " + " ".join(f"src/file{number}.py" for number in range(1_500)),
        "cat <<'E'\n" + "a line of text\n" * 2_000 + "E",
    ],
    ids=lambda command: f"{command[:12]}, {len(command)} characters",
)
def test_a_command_of_many_parts_or_characters_is_still_read(command: str) -> None:
    assert look(command).effects.read_only


@requirement("HELD-5")
def test_what_stands_at_the_end_of_many_parts_counts() -> None:
    assert [str(touch.path) for touch in look("ls; " * 120 + "rm x").effects.writes] == ["/srv/repo/x"]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat a", ["/srv/repo/a"]),
        ("cat ./a ../b /c", ["/srv/repo/a", "/srv/b", "/c"]),
        ("cat ~/a $HOME/b", ["/home/u/a", "/home/u/b"]),
        ("cat src/*.py", ["/srv/repo/src"]),
        ("cat */*.py", ["/srv/repo"]),
        ("cat ../x/*", ["/srv/x"]),
        ("cat *.py/../../y", ["/"]),
        ('cat "$unknown"', ["/"]),
        ("cat a/{b,c}", ["/srv/repo/a/b", "/srv/repo/a/c"]),
        ("cat < a", ["/srv/repo/a"]),
        ("cat /dev/null /dev/stdin -", []),
        ("ls", ["/srv/repo"]),
        ("grep -r x", ["/srv/repo"]),
        ("grep x a", ["/srv/repo/a"]),
        ("grep -e x a", ["/srv/repo/a"]),
        ("grep -f patterns a", ["/srv/repo/patterns", "/srv/repo/a"]),
        ("rg x src", ["/srv/repo/src"]),
        ("git -C sub log", ["/srv/repo/sub"]),
        ("git diff --no-index a /b", ["/srv/repo", "/srv/repo/a", "/b"]),
        ("find src -newer x", ["/srv/repo/src", "/srv/repo/x"]),
        ("sed -n 1p a b", ["/srv/repo/a", "/srv/repo/b"]),
        ("awk -F: '{print}' a x=1", ["/srv/repo/a"]),
        ("jq --rawfile n f . a", ["/srv/repo/f", "/srv/repo/a"]),
        ("[ -f a ] && [[ b -nt c ]]", ["/srv/repo/a", "/srv/repo/b", "/srv/repo/c"]),
        ("for f in a b; do cat $f; done", ["/srv/repo/a", "/srv/repo/b"]),
        ("timeout 5 nice cat a", ["/srv/repo/a"]),
        ("cat 'a b' \"c d\" e\\ f $'g\\x20h'", [f"/srv/repo/{name}" for name in ("a b", "c d", "e f", "g h")]),
        ("cat naïve", ["/srv/repo/naïve"]),
    ],
)
def test_paths_are_made_absolute_without_the_disk(command: str, expected: list[str]) -> None:
    assert reads(command) == expected
    assert is_read_only(command)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cd sub && cat a", ["/srv/repo/sub", "/srv/repo/sub/a"]),
        ("cd sub; cat a", ["/srv/repo/sub", "/srv/repo/a", "/srv/repo/sub/a"]),
        ("cd sub || cat a", ["/srv/repo/sub", "/srv/repo/a", "/srv/repo/sub/a"]),
        ("(cd sub && cat a); cat b", ["/srv/repo/sub", "/srv/repo/sub/a", "/srv/repo/b"]),
        ("cd sub | cat a", ["/srv/repo/sub", "/srv/repo/a"]),
        ("cd sub & cat a", ["/srv/repo/sub", "/srv/repo/a"]),
        ("cd .. && cd x && cat a", ["/srv", "/srv/x", "/srv/x/a"]),
        ("cd && cat a", ["/home/u/a"]),
        ("cd /tmp && pushd x && cat a", ["/tmp", "/tmp/x", "/tmp/x/a"]),
        ('cd "$unknown" && cat a', ["/", "/"]),
        ("if cd sub; then cat a; fi", ["/srv/repo/sub", "/srv/repo/a", "/srv/repo/sub/a"]),
        ("cat $(cd sub && echo x) b", ["/", "/srv/repo/b", "/srv/repo/sub"]),
        ('cd sub && cat "$PWD/a"', ["/srv/repo/sub", "/srv/repo/sub/a"]),
    ],
)
@requirement("SHELL-1")
def test_a_change_of_directory_moves_what_relative_paths_mean(command: str, expected: list[str]) -> None:
    assert reads(command) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ls > a", [("replaces", "/srv/repo/a")]),
        ("ls >> a 2> b", [("replaces", "/srv/repo/a"), ("replaces", "/srv/repo/b")]),
        ("ls &> a", [("replaces", "/srv/repo/a")]),
        ("ls >| a", [("replaces", "/srv/repo/a")]),
        ("ls >& a", [("replaces", "/srv/repo/a")]),
        ("> a", [("replaces", "/srv/repo/a")]),
        ("{ ls; pwd; } > a", [("replaces", "/srv/repo/a")]),
        ("for f in a b; do ls > $f; done", [("replaces", "/srv/repo/a"), ("replaces", "/srv/repo/b")]),
        ("cd sub && ls > a", [("replaces", "/srv/repo/sub/a")]),
        ("ls > /dev/null 2>&1", []),
        ("tee -a a b < c", [("replaces", "/srv/repo/a"), ("replaces", "/srv/repo/b")]),
        ("mkdir -p a/b", [("creates", "/srv/repo/a/b")]),
        ("rm a", [("removes", "/srv/repo/a")]),
        ("rm -r a/", [("deletes", "/srv/repo/a")]),
        ("rm -r src/*.o", [("deletes", "/srv/repo/src")]),
        ("mv a b", [("removes", "/srv/repo/a"), ("replaces", "/srv/repo/b")]),
        ("cp a b", [("replaces", "/srv/repo/b")]),
        ("cp -t d a", [("replaces", "/srv/repo/d")]),
        ("ln -s a b", [("replaces", "/srv/repo/b")]),
        ("touch a", [("replaces", "/srv/repo/a")]),
        ("chmod +x a", [("replaces", "/srv/repo/a")]),
        ("sed -i s/a/b/ f", [("replaces", "/srv/repo/f")]),
        ("sort -o a b", [("replaces", "/srv/repo/a")]),
        ("sort --out=a b", [("replaces", "/srv/repo/a")]),
        ("uniq a b", [("replaces", "/srv/repo/b")]),
        ("git log --output=a", [("replaces", "/srv/repo/a")]),
        ("find . -delete", [("deletes", "/srv/repo")]),
        ("curl -o a https://h.example", [("replaces", "/srv/repo/a")]),
    ],
)
@requirement("SHELL-1")
def test_writes_are_stated_with_what_they_do(command: str, expected: list[tuple[str, str]]) -> None:
    assert writes(command) == expected
    assert not is_read_only(command) or not expected


def test_known_writes_are_not_unknown() -> None:
    for command in ("mkdir a && touch a/b", "cp a b; mv c d; rm e", "echo x > f", "sed -i s/a/b/ f"):
        assert not look(command).effects.unknown, command


@pytest.mark.parametrize(
    ("command", "inner"),
    [
        ("timeout 5 rm x", "rm x"),
        ("env rm x", "rm x"),
        ("nice -n 5 nohup rm x", "rm x"),
        ("command rm x", "rm x"),
        ("xargs rm < f", "rm …"),
        ("find . -exec rm {} +", "rm ./…"),
        ("bash -c 'git push'", "git push"),
        ("sudo -u root rm x", "rm x"),
        ("eval 'rm x'", "rm x"),
        ("echo $(git push)", "git push"),
        ("echo `git push`", "git push"),
        ("cat <(git push)", "git push"),
        ("cat <<E\n$(git push)\nE", "git push"),
        ("f() { git push; }", "git push"),
        ("if ls; then git push; fi", "git push"),
        ("trap 'git push' EXIT", "git push"),
        ("x=push; git $x", "git push"),
    ],
)
@requirement("SHELL-1")
def test_a_command_is_found_wherever_it_hides(command: str, inner: str) -> None:
    assert inner in runs(command)


def test_a_command_that_is_not_known_is_not_accounted_for() -> None:
    (command,) = look("no-such-program x").effects.commands

    assert command == RunsCommand(("no-such-program", "x"), "no-such-program x", accounted=False)


def test_what_a_connection_of_the_shell_itself_reaches_is_a_host() -> None:
    effects = look("cat < /dev/tcp/evil.example/80").effects

    assert effects.hosts == (ReachesHost("evil.example", sends=True),)
    assert not effects.read_only


def test_variables_that_are_given_are_known() -> None:
    assert [touch.path for touch in look("cat $D/f", D="/data").effects.reads] == ["/data/f"]


def test_no_command_at_all_is_unknown() -> None:
    for command in ("", "   ", "# only a comment", "\n"):
        assert Opaque() in look(command).effects.touches

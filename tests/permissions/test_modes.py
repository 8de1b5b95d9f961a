"""Modes, by what a call touches and where. The table is the specification."""

from __future__ import annotations

import pytest

from ferrule.core.effects import (
    GRANTS,
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
from ferrule.core.verdicts import Behavior, Confinement, Grants, Verdict
from ferrule.permissions.domains import PreApproval
from ferrule.permissions.judge import RuleJudge
from ferrule.permissions.modes import Mode
from ferrule.permissions.protected import PathLists
from tests.permissions.scene import Named, command, decided, judged, places, proposed, rules_of, tool_named
from tests.requirement import requirement

REPO = "/srv/repo"
COLUMNS = (Mode.DEFAULT, Mode.ACCEPT_EDITS, Mode.PLAN, Mode.DONT_ASK, Mode.BYPASS)
LETTERS = {"a": "allow", "?": "ask", "d": "deny"}


def _deletes(path: str) -> WritesPath:
    return WritesPath(path, Change.DELETES)


def _replaces(path: str) -> WritesPath:
    return WritesPath(path, Change.REPLACES)


LOOKS = RunsCommand(("ls",), "ls", accounted=True)
RUNS = RunsCommand(("make",), "make")
TABLE: list[tuple[str, tuple[Touch, ...], str]] = [
    # what, its touches, then default, acceptEdits, plan, dontAsk and bypassPermissions
    ("nothing", (), "aaaaa"),
    ("a read inside", (ReadsPath(f"{REPO}/a"),), "aaaaa"),
    ("a read outside", (ReadsPath("/usr/share/a"),), "???da"),
    ("a read through a link to outside", (ReadsPath(f"{REPO}/l", "/usr/a", (f"{REPO}/l",)),), "???da"),
    ("a read of a secret inside", (ReadsPath(f"{REPO}/.env"),), "???da"),
    ("a read of a secret outside", (ReadsPath("/home/u/.ssh/id_rsa"),), "???da"),
    ("a read of what looks like a secret", (ReadsPath(f"{REPO}/.env.example"),), "aaaaa"),
    ("a read of a protected file", (ReadsPath(f"{REPO}/.git/config"),), "aaaaa"),
    ("a read of a system file", (ReadsPath("/etc/passwd"),), "???da"),
    ("a write inside", (_replaces(f"{REPO}/a"),), "?adda"),
    ("a removal inside", (_deletes(f"{REPO}/a"),), "?adda"),
    ("a write outside", (_replaces("/usr/share/a"),), "??dda"),
    ("a write through a link to outside", (WritesPath(f"{REPO}/l", Change.REPLACES, "/usr/a"),), "??dda"),
    ("a write of a sensitive file", (_replaces(f"{REPO}/deploy.key"),), "??dda"),
    ("a write of a workflow", (_replaces(f"{REPO}/.github/workflows/ci.yml"),), "??dda"),
    ("a write of a protected file", (_replaces(f"{REPO}/.git/hooks/pre-commit"),), "??dda"),
    ("the same in other letters", (_replaces(f"{REPO}/.GIT/hooks/pre-commit"),), "??dda"),
    (
        "a write through a link to a protected file",
        (WritesPath(f"{REPO}/l", Change.REPLACES, "/home/u/.bashrc"),),
        "??dda",
    ),
    ("a write in a worktree", (_replaces(f"{REPO}/.claude/worktrees/x/a"),), "?adda"),
    ("a write of a worktree's git folder", (_replaces(f"{REPO}/.claude/worktrees/x/.git/config"),), "??dda"),
    ("a write of a system file", (_replaces("/etc/sudoers.d/x"),), "ddddd"),
    ("a removal of the root", (_deletes("/"),), "??dd?"),
    ("a removal of a folder in the root", (_deletes("/usr"),), "??dd?"),
    ("a removal of the home folder", (_deletes("/home/u"),), "??dd?"),
    ("a removal of the workspace", (_deletes(REPO),), "??dd?"),
    ("a removal of what the workspace lies in", (_deletes("/srv"),), "??dd?"),
    ("a command that looks", (LOOKS, ReadsPath(REPO)), "aaaaa"),
    ("a command that looks outside", (LOOKS, ReadsPath("/usr")), "???da"),
    ("a command that nobody knows", (RUNS,), "???da"),
    ("an edit by a known command", (RunsCommand(("mv",), "mv", accounted=True), _deletes(f"{REPO}/a")), "?adda"),
    ("an edit by another command", (RunsCommand(("tee",), "tee", accounted=True), _replaces(f"{REPO}/a")), "??dda"),
    ("a redirection inside", (_replaces(f"{REPO}/a"), LOOKS), "?adda"),
    ("a removal of whatever a variable names", (RunsCommand(("rm", "-rf", '"$X"/*'), "rm"),), "???d?"),
    ("a fetch from a pre-approved domain", (ReachesHost("docs.rs", sends=False),), "aaaaa"),
    ("a fetch from another", (ReachesHost("example.net", sends=False),), "???da"),
    ("a fetch from this machine", (ReachesHost("127.0.0.1", sends=False),), "???da"),
    ("something sent to a pre-approved domain", (ReachesHost("docs.rs"),), "???da"),
    ("a look at the session", (ReadsState("cwd"),), "aaaaa"),
    ("a change of the session", (ChangesState("todos"),), "aaaaa"),
    ("a change of its grants", (ChangesState(GRANTS),), "???da"),
    ("something that cannot be said", (Opaque(),), "???da"),
]


@requirement("PERM-13", "PERM-2", "PERM-6", "PERM-10", "PERM-12")
@pytest.mark.parametrize(("touches", "letters"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_what_each_mode_says_without_a_rule(touches: tuple[Touch, ...], letters: str) -> None:
    verdicts = [_verdict(mode, *touches) for mode in COLUMNS]

    said = ["ask" if verdict is None else verdict.behavior.name.lower() for verdict in verdicts]
    assert dict(zip(COLUMNS, said, strict=True)) == {
        mode: LETTERS[letter] for mode, letter in zip(COLUMNS, letters, strict=True)
    }


@pytest.mark.parametrize("touches", [row[1] for row in TABLE], ids=[row[0] for row in TABLE])
def test_auto_is_default_until_a_classifier_speaks(touches: tuple[Touch, ...]) -> None:
    assert _verdict(Mode.AUTO, *touches) == _verdict(Mode.DEFAULT, *touches)
    assert Mode("manual") is Mode.DEFAULT


@requirement("PERM-6", "PERM-10")
@pytest.mark.parametrize(
    "touch",
    [
        _replaces(f"{REPO}/.git/config"),
        _replaces(f"{REPO}/.env"),
        _replaces(f"{REPO}/Jenkinsfile"),
        _deletes(REPO),
        _deletes("/home/u"),
    ],
)
@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.ACCEPT_EDITS])
def test_no_allow_rule_that_does_not_name_it_approves_what_is_protected_sensitive_or_critical(
    touch: Touch, mode: Mode
) -> None:
    verdict = _verdict(mode, touch, rules=("Acts", "Edit", "Edit(//**)", "Edit(./**)", "Edit(.g*/**)", "Edit(.e*)"))

    assert verdict is not None
    assert (verdict.behavior, verdict.source) == (Behavior.ASK, "safety")


@requirement("PERM-10")
@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.ACCEPT_EDITS, Mode.BYPASS])
@pytest.mark.parametrize("path", [REPO, "/home/u", "/usr", "/"])
def test_no_rule_and_no_mode_approves_the_removal_of_a_critical_path(path: str, mode: Mode) -> None:
    verdict = _verdict(mode, _deletes(path), rules=("Acts", "Edit(//**)", "Edit(//srv/repo)", "Edit(//home/u)"))

    assert verdict is not None
    assert (verdict.behavior, verdict.source) == (Behavior.ASK, "safety")


@requirement("PERM-6", "HELD-5")
@pytest.mark.parametrize(
    ("rule", "path", "decision"),
    [
        ("Edit(.github/**)", ".github/workflows/ci.yml", "allow"),
        ("Edit(.claude/settings.json)", ".claude/settings.json", "allow"),
        ("Edit(./.git/hooks/**)", ".git/hooks/pre-commit", "allow"),
        ("Edit(.git/**)", "sub/.git/config", "ask"),
        ("Edit(**/.git/**)", "sub/.git/config", "allow"),
        ("Edit(~/.config/git/config)", "~/.config/git/config", "allow"),
        ("Edit(~/.config/**)", "~/.config/git/config", "ask"),
        ("Edit(lefthook.yml)", "lefthook.yml", "allow"),
        ("Edit(lefthook.*)", "lefthook.yml", "ask"),
        ("Edit(./.env)", ".env", "allow"),
        ("Edit(./**)", ".claude/settings.json", "ask"),
        ("Edit(.*/**)", ".claude/settings.json", "ask"),
        ("Edit", ".claude/settings.json", "ask"),
        ("Edit(*)", ".bashrc", "ask"),
        ("Read(.bashrc)", ".bashrc", "ask"),
    ],
)
def test_an_allow_rule_that_spells_a_protected_name_without_a_wildcard_counts(
    rule: str, path: str, decision: str
) -> None:
    assert decided({"allow": [rule]}, "Write", {"file_path": path}) == decision


@requirement("PERM-6")
@pytest.mark.parametrize(
    ("rule", "path", "decision"),
    [
        ("Read", ".env", "ask"),
        ("Read(./**)", ".env", "ask"),
        ("Read(./.env)", ".env", "allow"),
        ("Read(.env*)", ".env.local", "allow"),
        ("Edit(config/.env)", "config/.env", "allow"),
        ("Read(config/**)", "config/.env", "ask"),
        ("Read(secrets/**)", "secrets/a", "allow"),
        ("Read(~/.ssh/config)", "~/.ssh/config", "allow"),
        ("Read(~/**)", "~/.ssh/config", "ask"),
        ("Read(*.pem)", "a.pem", "allow"),
    ],
)
def test_a_secret_is_read_only_under_a_rule_that_names_it(rule: str, path: str, decision: str) -> None:
    assert decided({"allow": [rule]}, "Read", {"file_path": path}) == decision


@requirement("PERM-6")
def test_a_command_reads_a_secret_only_under_a_rule_that_spells_it_out() -> None:
    assert command({"allow": ["Bash(cat *)"]}, "cat .env") == "ask"
    assert command({"allow": ["Bash(cat .env)"]}, "cat .env") == "allow"


@requirement("PERM-6")
@pytest.mark.parametrize("cwd", ["/srv/secrets/repo", "/srv/secrets", "/srv/secrets/.aws/repo"])
def test_a_workspace_in_a_folder_named_like_a_secret_is_no_secret_as_a_whole(cwd: str) -> None:
    judge = RuleJudge((), Mode.ACCEPT_EDITS, places(cwd))

    def decision(tool: str, path: str) -> str:
        verdict = judge.judge(proposed(tool_named(tool), {"file_path": path}, cwd=cwd))
        return verdict.behavior.name.lower() if verdict else "ask"

    for tool in ("Read", "Write"):
        found = {path: decision(tool, path) for path in ("a.py", "src/a.py", "secrets/a", "src/.env")}
        assert found == {"a.py": "allow", "src/a.py": "allow", "secrets/a": "ask", "src/.env": "ask"}


@requirement("PERM-6")
def test_the_lists_can_be_changed() -> None:
    lists = PathLists(run_later=("Makefile",), secrets=("~/vault", "*.kdbx"))
    rules = {"allow": ["Edit", "Read"]}

    assert decided(rules, "Write", {"file_path": "Makefile"}, lists=lists) == "ask"
    assert decided(rules, "Write", {"file_path": ".bashrc"}, lists=lists) == "allow"
    assert decided(rules, "Read", {"file_path": "~/vault/x"}, lists=lists) == "ask"
    assert decided(rules, "Read", {"file_path": "vault/x"}, lists=lists) == "allow"


@requirement("PERM-12")
def test_a_blocked_domain_is_not_pre_approved_whatever_else_says_so() -> None:
    domains = PreApproval(allowed=("example.com",), blocked=("bad.example.com",), https=True)
    hosts = {
        "https://example.com/": "allow",
        "https://sub.example.com/": "allow",
        "https://bad.example.com/": "ask",
        "https://a.bad.example.com/": "ask",
        "https://elsewhere.net/": "allow",
        "http://elsewhere.net/": "ask",
        "https://10.0.0.1/": "ask",
        "https://0x7f000001/": "ask",
    }

    said = {url: decided({}, "WebFetch", {"url": url}, domains=domains) for url in hosts}

    assert said == hosts


@requirement("PERM-7")
@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/", "http://localhost:8000/", "http://[::1]/", "http://2130706433/"]
)
def test_a_private_host_is_fetched_from_only_under_a_rule_that_names_it(url: str) -> None:
    assert decided({"allow": ["WebFetch"]}, "WebFetch", {"url": url}) == "ask"
    assert decided({"allow": ["WebFetch", "WebFetch(domain:localhost)"]}, "WebFetch", {"url": url}) == (
        "allow" if "localhost" in url else "ask"
    )


# Denies that a call's own account cannot rule out


@requirement("PERM-5")
@pytest.mark.parametrize(
    "text", ["npm test", "python x.py", "grep -rn key .", "cat *", "rg key", "tar cf - .", "git diff"]
)
@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.BYPASS])
def test_a_deny_out_of_reach_asks_in_every_mode_whatever_allows_the_call(text: str, mode: Mode) -> None:
    verdict = judged({"allow": ["Bash"], "deny": ["Read(./private/**)"]}, "Bash", {"command": text}, mode=mode)

    assert verdict is not None
    assert verdict.behavior is Behavior.ASK
    assert verdict.rule == "Read(./private/**)"
    assert verdict.needs_confinement is not None
    assert verdict.needs_confinement.unreadable == ("/srv/repo/**/private",)
    assert verdict.needs_confinement.then is Behavior.ALLOW


@requirement("PERM-5")
@pytest.mark.parametrize("text", ["ls", "git status", "cat a.txt", "grep key a.txt", "find . -name x", "git log -n 3"])
def test_a_command_that_shows_nothing_of_what_is_denied_is_not_asked_about(text: str) -> None:
    assert command({"deny": ["Read(./private/**)"]}, text) == "allow"


@requirement("PERM-5")
def test_a_sandbox_that_enforces_the_deny_lets_the_call_be_and_the_verdict_says_so() -> None:
    rules = {
        "allow": ["Bash(npm test)"],
        "deny": ["Read(~/private/**)", "Edit(./dist)", "WebFetch(domain:evil.net)"],
    }
    needed = Confinement(
        unreadable=("/home/u/private",),
        unwritable=("/home/u/private", "/srv/repo/**/dist"),
        unreachable=("evil.net",),
        then=Behavior.ALLOW,
    )

    inside = judged(rules, "Bash", {"command": "npm test"}, confines=needed.__eq__)
    without = judged(rules, "Bash", {"command": "npm test"}, confines=_never)
    headless = judged(rules, "Bash", {"command": "npm test"}, mode=Mode.DONT_ASK)
    not_granted = judged(rules, "Bash", {"command": "npm ci"}, confines=_always)

    assert inside is not None
    assert (inside.behavior, inside.needs_confinement) == (Behavior.ALLOW, needed)
    assert without is not None
    assert (without.behavior, without.needs_confinement) == (Behavior.ASK, needed)
    assert headless is not None
    assert headless.behavior is Behavior.DENY
    assert not_granted is not None
    assert not_granted.behavior is Behavior.ASK


@requirement("PERM-13")
def test_in_plan_mode_an_unknown_command_runs_only_where_it_cannot_write() -> None:
    outside = judged({"allow": ["Bash"]}, "Bash", {"command": "make"}, mode=Mode.PLAN)
    inside = judged({}, "Bash", {"command": "make"}, mode=Mode.PLAN, confines=_keeps_from_writing)

    assert outside is not None
    assert outside.behavior is Behavior.ASK
    assert inside is not None
    assert inside.behavior is Behavior.ALLOW
    assert inside.needs_confinement == Confinement(read_only=True, grants=Grants(), then=Behavior.ALLOW)


@requirement("PERM-5", "HELD-6")
def test_a_servers_tool_is_asked_about_unless_the_server_is_kept_from_the_paths_or_a_rule_names_the_tool() -> None:
    tool = Named("mcp__srv__x", "srv")
    paths, hosts = {"deny": ["Read(./private/**)"]}, {"deny": ["WebFetch(domain:evil.example)"]}

    for rules in (paths, hosts):
        assert decided(rules, tool, {}, mode=Mode.BYPASS, confines=_always) == "ask"
        for named in ("mcp__srv__x", "mcp__srv", "mcp__srv__*"):
            assert decided({"allow": [named], **rules}, tool, {}, confines=_always) == "allow"
    assert decided(paths, tool, {}, mode=Mode.BYPASS, keeps_from_paths=_is_srv) == "allow"
    assert decided(hosts, tool, {}, mode=Mode.BYPASS, keeps_from_paths=_is_srv) == "ask"
    assert decided(paths, Named("mcp__other__x", "other"), {}, mode=Mode.BYPASS, keeps_from_paths=_is_srv) == "ask"
    assert decided({"deny": ["mcp__srv"], "allow": ["mcp__srv__x"]}, tool, {}, keeps_from_paths=_is_srv) == "deny"


def _is_srv(server: str) -> bool:
    return server == "srv"


def _always(asked: Confinement) -> bool:
    return True


def _never(asked: Confinement) -> bool:
    return False


def _keeps_from_writing(asked: Confinement) -> bool:
    return asked.read_only


def _verdict(mode: Mode, *touches: Touch, rules: tuple[str, ...] = ()) -> Verdict | None:
    proposal = proposed(Named("Acts"), {})
    stated = type(proposal)(
        proposal.call, proposal.tool, proposal.input, proposal.arguments, Effects.of(*touches), proposal.ctx
    )
    return RuleJudge(rules_of({"allow": rules}), mode, places()).judge(stated)


@requirement("PERM-6", "HELD-5")
@pytest.mark.parametrize(
    "path",
    [
        "~/.config/fish/config.fish",
        "~/.config/systemd/user/x.service",
        "~/.config/autostart/x.desktop",
        "~/.vimrc",
        "~/.gdbinit",
        "~/.hg/hgrc",
        "~/.cursor/mcp.json",
        "~/.codex/config.toml",
        "~/.local/state/ferrule/trust.json",
        "~/.local/bin/ls",
        "~/.local/lib/python3.12/site-packages/usercustomize.py",
        "~/.emacs.d/init.el",
        "~/.tmux.conf",
        "~/.xprofile",
        "~/.config/environment.d/x.conf",
        "~/.curlrc",
        "~/.psqlrc",
        "~/Library/LaunchAgents/x.plist",
        "sub/.hg/hgrc",
        "sub/.cursor/mcp.json",
        "sub/.codex/config.toml",
        "sub/.gdbinit",
    ],
)
def test_start_up_files_and_settings_are_protected_where_they_are_such(path: str) -> None:
    assert decided({"allow": ["Edit", "Edit(//**)"]}, "Write", {"file_path": path}) == "ask"


@requirement("HELD-5")
@pytest.mark.parametrize(
    "path",
    [
        "sub/.config/fish/config.fish",
        ".vimrc",
        "bin/run",
        "lib/x.py",
        "docs/.jq",
        ".config/nvim/init.lua",
        "tests/.tmux.conf",
        ".editorconfig",
        "Makefile",
        "~/project/main.py",
        "~/notes.md",
    ],
)
def test_ordinary_files_of_a_project_stay_free(path: str) -> None:
    assert decided({"allow": ["Edit(//**)"]}, "Write", {"file_path": path}) == "allow"


@requirement("HELD-5")
@pytest.mark.parametrize(
    ("rule", "text", "decision"),
    [
        ("Bash(NODE_ENV=test npm run *)", "NODE_ENV=test npm run b", "allow"),
        ("Bash(export GOOGLEQ=./g.json:*)", "export GOOGLEQ=./g.json", "allow"),
        ("Bash(API_URL=https://a pnpm build:*)", "API_URL=https://a pnpm build --x", "allow"),
        ("Bash(export GOOGLEQ=./g.json:*)", "export GOOGLEQ=./g.json; rm -rf x", "ask"),
        ("Bash(FOO=1 tool *)", "FOO=1 tool $(x)", "ask"),
        (
            "Bash(PYRIGHT_PYTHON_IGNORE_WARNINGS=1 uv run pyright *)",
            "PYRIGHT_PYTHON_IGNORE_WARNINGS=1 uv run pyright x",
            "allow",
        ),
        ("Bash(FOO=* tool *)", "FOO=1 tool b", "allow"),
        ("Bash(FOO=* BAR=2 tool *)", "FOO= BAR=2 tool b", "allow"),
        ('Bash(FOO="a b" tool *)', 'FOO="a b" tool b', "allow"),
        ("Bash(FOO=* tool *)", "FOO=1 LD_PRELOAD=./x tool b", "ask"),
        ("Bash(FOO=* tool *)", "FOO=1 other tool b", "ask"),
        ("Bash(FOO=* tool *)", "LD_PRELOAD=./x FOO=1 tool b", "ask"),
        ("Bash(FOO=* tool *)", "FOO=$(x) tool b", "ask"),
        ("Bash(FOO=* tool *)", "FOO=1 tool b; rm x", "ask"),
        ("Bash(FOO=* *)", "FOO=1 tool", "ask"),
        ("Bash(FOO=1:*)", "FOO=1", "allow"),
        ("Bash(FOO=1:*)", "FOO=1 tool", "ask"),
        ("Bash(export FOO=1:*)", "export FOO=1 LD_PRELOAD=./x", "ask"),
        ("Bash(export FOO=*)", "export FOO=1", "allow"),
        ("Bash(export:*)", "export FOO=1 BAR=2", "allow"),
        ("Bash(tool *)", "FOO=1 tool b", "ask"),
        ("Bash(FOO=1 tool *)", "FOO=1 LD_PRELOAD=./x tool b", "ask"),
        ("Bash(FOO=1:*)", "FOO=1 LD_PRELOAD=./x tool", "ask"),
        ("Bash(FOO=1 *)", "FOO=1 rm x", "ask"),
        ("Bash(FOO=1 find *)", "FOO=1 find . -delete", "ask"),
    ],
)
def test_a_rule_that_begins_with_a_variable_is_for_the_command_that_spells_it(
    rule: str, text: str, decision: str
) -> None:
    assert command({"allow": [rule]}, text) == decision


@requirement("PERM-1")
@pytest.mark.parametrize("allowed", [(), ("Bash(X=* rm *)",), ("Bash(X=1 rm a)",)])
@pytest.mark.parametrize("text", ["X=1 rm a", "export X=1; rm a", "X='1' Y=2 rm a"])
def test_a_variable_hides_nothing_from_a_deny(allowed: tuple[str, ...], text: str) -> None:
    assert command({"allow": list(allowed), "deny": ["Bash(rm *)"]}, text) == "deny"


@requirement("PERM-3")
@pytest.mark.parametrize(
    ("rule", "text", "decision"),
    [
        (r'Bash("K:\Tools\node.exe" "K:\cli.js" --debug)', r'"K:\Tools\node.exe" "K:\cli.js" --debug', "allow"),
        (r"Bash(C:\\Users\\x\\conda.bat:*)", r"C:\\Users\\x\\conda.bat list", "allow"),
        (r'Bash("K:\Tools\node.exe" --debug)', r'"K:\Tools\node.exe" --debug; rm x', "ask"),
        (r'Bash("K:\Tools\node.exe" --debug)', r'"K:\Tools\other.exe" --debug', "ask"),
    ],
)
def test_a_rule_with_backslashes_is_for_the_command_that_has_them(rule: str, text: str, decision: str) -> None:
    assert command({"allow": [rule]}, text) == decision
    if decision == "allow":
        assert command({"deny": [rule]}, text) == "deny"


@requirement("PERM-10")
@pytest.mark.parametrize(
    ("rule", "text", "decision"),
    [
        ('Bash(rm -f "$VAR/x")', 'rm -f "$VAR/x"', "allow"),
        ('Bash(rm -f "$VAR/x")', 'rm -f "$VAR/y"', "ask"),
        ("Bash(rm:*)", 'rm -f "$VAR/x"', "ask"),
        ("Bash", 'rm -f "$VAR/x"', "ask"),
        ('Bash(rm -rf "$VAR/x")', 'rm -rf "$VAR/x"', "ask"),
        ('Bash(rm -f "$VAR"/*)', 'rm -f "$VAR"/*', "ask"),
        ('Bash(rm -f "$VAR")', 'rm -f "$VAR"', "ask"),
        ('Bash(rm -f "$VAR/../x")', 'rm -f "$VAR/../x"', "ask"),
    ],
)
def test_only_the_very_rule_lets_a_file_in_a_folder_that_a_variable_names_be_removed(
    rule: str, text: str, decision: str
) -> None:
    assert command({"allow": [rule]}, text) == decision


@requirement("PERM-3")
def test_a_wildcard_in_the_first_word_is_one_whatever_follows() -> None:
    assert command({"deny": ["Bash(git* push *)"]}, "gitk push now") == "deny"

"""What rules mean, one sentence for each point that is easily mistaken."""

from __future__ import annotations

from typing import Any

import pytest

from ferrule.core.context import ToolContext
from ferrule.core.effects import Effects
from ferrule.core.tool import Alias, Tool
from ferrule.core.verdicts import Behavior, Verdict
from ferrule.permissions.modes import Mode
from ferrule.permissions.rules import RuleError, parse_rule
from tests.permissions.scene import AnyInput, CommandInput, Named, command, decided, judged
from tests.requirement import requirement


class Shell(Tool[CommandInput, str]):
    """Run a command of which nothing is known."""

    input_model = CommandInput

    def __init__(self, name: str) -> None:
        self.name = name

    async def call(self, input: CommandInput, ctx: ToolContext) -> str:
        return ""


NPM = {"allow": ["Bash(npm run test *)"]}
NO_CURL = {"allow": ["Bash"], "deny": ["Bash(curl *)"]}


def _file(path: str) -> dict[str, Any]:
    return {"file_path": path}


# Commands


@requirement("PERM-3")
@pytest.mark.parametrize(
    ("rule", "text", "decision"),
    [
        ("npm run build", "npm run build", "allow"),
        ("npm run build", "npm run build --fast", "ask"),
        ("npm run test *", "npm run test", "allow"),
        ("npm run test:*", "npm run test --watch", "allow"),
        ("npm run test:*", "npm run tests", "ask"),
        ("mytool*", "mytoolbox x", "allow"),
        ("mytool *", "mytoolbox x", "ask"),
        ("* install", "foo install", "allow"),
        ("git * main", "git push origin main", "allow"),
        ("git * main", "git push origin mainline", "ask"),
        ("make targe?", "make target", "allow"),
        ("make targe?", "make targetx", "ask"),
        ("make 2\\*3", "make '2*3'", "allow"),
        ("make 2\\*3", "make 2xx3", "ask"),
        ("git:* push", "git remote push", "ask"),
        ("ssh * uptime *", "ssh host uptime", "allow"),
    ],
)
def test_wildcards_in_a_command(rule: str, text: str, decision: str) -> None:
    assert command({"allow": [f"Bash({rule})"]}, text) == decision


@requirement("PERM-4")
@pytest.mark.parametrize(
    "text",
    [
        "npm run test | grep x",
        "npm run test && npm run test --all",
        "cd sub; npm run test",
        "npm run test 2>&1 > /dev/null",
        "for i in 1 2; do npm run test; done",
        "timeout 5 nice -n 3 npm run test",
        "NODE_ENV=test npm run test",
    ],
)
def test_a_compound_command_is_allowed_when_every_part_is(text: str) -> None:
    assert command(NPM, text) == "allow"


@requirement("PERM-4")
@pytest.mark.parametrize(
    "text",
    [
        "npm run test && npm publish",
        "npm run test $(npm publish)",
        "npm run test <(npm publish)",
        "npm run test > out.txt",
        "npm run test > $somewhere",
        "PATH=/tmp npm run test",
        "sudo npm run test",
        "npx npm run test",
        "bash -c 'npm run test'",
        "./npm run test",
        "'npm run test'",
        "npm run test &&",
        "npm run test; if",
    ],
)
def test_a_rule_for_one_command_speaks_for_no_other_and_for_no_redirection(text: str) -> None:
    assert command(NPM, text) == "ask"


@requirement("PERM-4")
@pytest.mark.parametrize("text", ["npx prettier x", "timeout 5 npx prettier x", "ls && npx prettier x"])
def test_what_an_allowed_command_runs_is_allowed_with_it(text: str) -> None:
    assert command({"allow": ["Bash(npx prettier *)"]}, text) == "allow"


@requirement("PERM-4")
@pytest.mark.parametrize("text", ["npx prettier x; prettier x", "docker exec c rm a; rm a"])
def test_but_not_the_same_command_standing_alone(text: str) -> None:
    assert command({"allow": ["Bash(npx prettier *)", "Bash(docker exec *)"]}, text) == "ask"


@requirement("PERM-4")
@pytest.mark.parametrize(
    "text",
    [
        "ls && curl x",
        "echo $(curl x)",
        "cat <(curl x)",
        "{ curl x; }",
        "FOO=1 PATH=/y curl x",
        "sudo -u me curl x",
        "/usr/bin/curl x",
        "c'ur'l x",
        "xargs -n 1 curl",
        "bash -c 'ls; curl x'",
        "eval curl x",
        "find . -exec curl {} +",
        "X=curl; $X y",
        "f() { curl x; }; f",
    ],
)
@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.BYPASS])
def test_a_deny_holds_in_every_part_past_wrappers_and_assignments(text: str, mode: Mode) -> None:
    assert command(NO_CURL, text, mode=mode) == "deny"


@requirement("PERM-3")
@pytest.mark.parametrize(
    "text", ["watch ls", "setsid make", "flock x make", "find . -exec ls {} +", "find src -delete"]
)
def test_some_programs_are_allowed_by_no_wildcard(text: str) -> None:
    name = text.split()[0]

    assert command({"allow": [f"Bash({name} *)"]}, text) == "ask"


@requirement("PERM-3")
def test_a_rule_that_spells_the_whole_call_out_allows_what_nobody_understands() -> None:
    text = "watch 'npm run x' > $out"

    assert command({"allow": [f"Bash({text})"]}, text) == "allow"
    assert command({"allow": ["Bash(watch *)"]}, text) == "ask"


@requirement("PERM-3")
@pytest.mark.parametrize(("tool", "decision"), [("PowerShell", "deny"), ("Monitor", "ask")])
def test_powershell_does_not_tell_cases_apart(tool: str, decision: str) -> None:
    rules = {"deny": [f"{tool}(Remove-Item *)"]}

    assert decided(rules, Shell(tool), {"command": "remove-item x"}) == decision


@requirement("PERM-3")
def test_command_v_is_no_wrapper() -> None:
    assert command({"deny": ["Bash(curl *)"]}, "command -v curl") == "allow"
    assert command({"deny": ["Bash(curl *)"]}, "command curl x") == "deny"


@requirement("PERM-5")
@pytest.mark.parametrize(
    "text", ["cat secret/x", "head -n 3 < secret/x", "cat secret/../secret/x", "sort a secret/x", "cp secret/x b"]
)
def test_a_path_rule_holds_for_what_a_command_reads(text: str) -> None:
    assert command({"allow": ["Bash"], "deny": ["Read(./secret/**)"]}, text) == "deny"


@requirement("PERM-5")
@pytest.mark.parametrize("text", ["echo x > secret/a", "sed -i s/a/b/ secret/a", "tee secret/a", "rm secret/a"])
@pytest.mark.parametrize("rule", ["Edit(./secret/**)", "Read(./secret/**)"])
def test_a_path_rule_holds_for_what_a_command_writes(text: str, rule: str) -> None:
    assert command({"allow": ["Bash"], "deny": [rule]}, text, mode=Mode.BYPASS) == "deny"


# Paths


@requirement("PERM-3")
@pytest.mark.parametrize(
    ("rule", "path", "decision"),
    [
        ("Read(//srv/repo/x)", "x", "deny"),
        ("Read(~/notes)", "/home/u/notes/a", "deny"),
        ("Read(/lib/*.json)", "/srv/repo/lib/a.json", "deny"),
        ("Read(/etc/hosts)", "/etc/hosts", "ask"),
        ("Read(./lib/a)", "lib/a", "deny"),
        ("Read(lib/a)", "sub/lib/a", "allow"),
        ("Read(notes.txt)", "deep/er/notes.txt", "deny"),
        ("Read(notes.txt)", "/elsewhere/notes.txt", "ask"),
        ("Read(#x)", "#x", "deny"),
        ("Read(a\\[1\\])", "a[1]", "deny"),
        ("Read(two\nlines/**)", "two\nlines/x", "deny"),
        ("Read(notes.txt)", "odd\nfolder/notes.txt", "deny"),
    ],
)
def test_where_a_path_rule_is_anchored(rule: str, path: str, decision: str) -> None:
    assert decided({"deny": [rule]}, "Read", _file(path)) == decision


@requirement("PERM-3")
def test_a_folder_is_denied_at_any_depth_and_allowed_only_where_it_is_written() -> None:
    paths = ("src/a", "sub/src/a")

    assert [decided({"deny": ["Edit(src/**)"]}, "Edit", _file(path)) for path in paths] == ["deny", "deny"]
    assert [decided({"allow": ["Edit(src/**)"]}, "Edit", _file(path)) for path in paths] == ["allow", "ask"]


@requirement("PERM-5")
@pytest.mark.parametrize(
    ("rules", "decision"),
    [
        ({"allow": ["Edit(src/**)"]}, "ask"),
        ({"allow": ["Edit(./link)"]}, "ask"),
        ({"allow": ["Edit(src/**)", "Edit(./link)"]}, "allow"),
        ({"allow": ["Edit"], "deny": ["Edit(src/**)"]}, "deny"),
        ({"allow": ["Edit"], "deny": ["Edit(./link)"]}, "deny"),
    ],
)
def test_allowing_needs_the_link_and_its_target_denying_either(rules: dict[str, list[str]], decision: str) -> None:
    assert decided(rules, "Edit", _file("link"), links={"/srv/repo/link": "/srv/repo/src/a"}) == decision


@requirement("PERM-3")
def test_allowing_an_edit_allows_reading_and_denying_a_read_denies_edits() -> None:
    outside = "/home/u/notes/a"

    assert decided({"allow": ["Edit(~/notes/**)"]}, "Read", _file(outside)) == "allow"
    assert decided({"allow": ["Read(~/notes/**)"]}, "Edit", _file(outside)) == "ask"
    for tool, name in (("Edit", "file_path"), ("Write", "file_path"), ("NotebookEdit", "notebook_path")):
        assert decided({"allow": ["Edit"], "deny": ["Read(~/notes/**)"]}, tool, {name: outside}) == "deny"


@requirement("PERM-3")
@pytest.mark.parametrize(
    ("rule", "tool"), [("Edit", "Write"), ("Edit", "NotebookEdit"), ("Read", "Grep"), ("Read", "Glob")]
)
def test_read_and_edit_speak_for_the_tools_of_their_kind(rule: str, tool: str) -> None:
    arguments = {"Write": _file("a"), "NotebookEdit": {"notebook_path": "a.ipynb"}}.get(tool, {"path": "/usr/share"})

    assert decided({"allow": [rule]}, tool, arguments) == "allow"
    assert decided({"deny": [rule]}, tool, arguments) == "deny"


@requirement("PERM-3")
def test_a_path_rule_under_another_name_restricts_that_tool_alone() -> None:
    rules = {"allow": ["Edit"], "deny": ["Write(src/**)"]}

    assert [decided(rules, tool, _file("src/a")) for tool in ("Write", "Edit")] == ["deny", "allow"]


# Hosts


@requirement("PERM-7")
@pytest.mark.parametrize(
    ("domain", "host", "decision"),
    [
        ("example.com", "example.com", "allow"),
        ("example.com", "EXAMPLE.com.", "allow"),
        ("example.com", "evilexample.com", "ask"),
        ("example.com", "example.com.evil.net", "ask"),
        ("example.com", "www.example.com", "ask"),
        ("*.example.com", "a.b.example.com", "allow"),
        ("*.example.com", "example.com", "ask"),
        ("api-*.example.com", "api-1.example.com", "allow"),
        ("api-*.example.com", "api-1.evil.example.com", "ask"),
        ("*", "anything.example.net", "allow"),
        ("bücher.example", "xn--bcher-kva.example", "allow"),
    ],
)
def test_domains_match_by_label(domain: str, host: str, decision: str) -> None:
    assert decided({"allow": [f"WebFetch(domain:{domain})"]}, "WebFetch", {"url": f"https://{host}/x"}) == decision


@requirement("PERM-7")
def test_a_denied_domain_is_denied_to_commands_and_an_allowed_one_is_no_leave_to_send() -> None:
    assert command({"allow": ["Bash"], "deny": ["WebFetch(domain:evil.net)"]}, "curl https://evil.net/x") == "deny"
    assert command({"allow": ["WebFetch(domain:fine.net)"]}, "curl https://fine.net/x") == "ask"


@requirement("PERM-12")
@pytest.mark.parametrize(
    ("host", "decision"), [("docs.rs", "allow"), ("docs.python.org", "allow"), ("mydocs.rs", "ask"), ("a.net", "ask")]
)
def test_some_domains_are_fetched_from_without_a_rule(host: str, decision: str) -> None:
    assert decided({}, "WebFetch", {"url": f"https://{host}/"}) == decision


# Names


@requirement("PERM-3")
@pytest.mark.parametrize(
    ("rule", "name", "server", "allows", "denies"),
    [
        ("mcp__srv", "mcp__srv__read", "srv", True, True),
        ("mcp__srv__*", "mcp__srv__a__b", "srv", True, True),
        ("mcp__srv__get_*", "mcp__srv__get_x", "srv", True, True),
        ("mcp__srv__read", "mcp__srv__read_all", "srv", False, False),
        ("mcp__srv", "mcp__srv_evil__read", "srv_evil", False, False),
        ("mcp__a", "mcp__a__b__c", "a__b", False, False),
        ("mcp__a", "mcp__a__b__c", None, False, True),
        ("mcp__my server", "mcp__my_server__x", "my server", True, True),
        ("mcp__*__read", "mcp__srv__read", "srv", False, True),
        ("Read", "mcp__srv__Read", "srv", False, False),
        ("*", "mcp__srv__x", "srv", False, True),
        ("read", "Read", None, False, False),
    ],
)
def test_which_tools_a_rule_names(rule: str, name: str, server: str | None, allows: bool, denies: bool) -> None:
    tool = Named(name, server)

    assert decided({"allow": [rule]}, tool, {}) == ("allow" if allows else "ask")
    assert decided({"deny": [rule]}, tool, {}) == ("deny" if denies else "ask")


@requirement("PERM-3")
@pytest.mark.parametrize(
    ("rule", "arguments", "decision"),
    [
        ("Agent(Explore)", {"subagent_type": "Explore"}, "deny"),
        ("Task(Explore)", {"subagent_type": "Explore"}, "deny"),
        ("Task(*)", {"subagent_type": "Plan"}, "deny"),
        ("Agent(Explore)", {"subagent_type": "Explorer"}, "ask"),
        ("Agent(model:opus)", {"subagent_type": "Plan", "model": "opus"}, "deny"),
        ("Agent(model:opus*)", {"model": "opus-4"}, "deny"),
        ("Agent(model:*)", {"subagent_type": "Plan"}, "ask"),
        ("Agent(value:true)", {"value": True}, "deny"),
        ("Agent(value:3)", {"value": 3}, "deny"),
        ("Agent(value:x)", {"value": ["x"]}, "ask"),
    ],
)
def test_agents_by_name_and_by_argument(rule: str, arguments: dict[str, Any], decision: str) -> None:
    assert decided({"deny": [rule]}, Named("Agent", aliases=(Alias("Task"),)), arguments) == decision


@requirement("PERM-3")
def test_an_argument_can_deny_and_never_allow() -> None:
    arguments = {"command": "make", "run_in_background": True}

    assert decided({"allow": ["Bash"], "deny": ["Bash(run_in_background:true)"]}, "Bash", arguments) == "deny"
    assert decided({"allow": ["Bash(run_in_background:true)"]}, "Bash", arguments) == "ask"
    assert decided({"allow": ["Bash"], "deny": ["Bash(command:make)"]}, "Bash", arguments) == "allow"


@requirement("PERM-3")
def test_a_skill_is_allowed_by_name_or_with_any_arguments() -> None:
    skill = Named("Skill")

    assert decided({"allow": ["Skill(deploy)"]}, skill, {"skill": "deploy"}) == "allow"
    assert decided({"allow": ["Skill(deploy *)"]}, skill, {"skill": "deploy", "args": "prod"}) == "allow"
    assert decided({"allow": ["Skill(deploy *)"]}, skill, {"skill": "deployment"}) == "ask"


# A tool that reads its own specifiers


class Dialer(Tool[AnyInput, str]):
    """Call a number. A rule's specifier is a country."""

    name = "Dialer"
    input_model = AnyInput

    def effects(self, input: AnyInput, ctx: ToolContext) -> Effects:
        return Effects()

    def matches(self, specifier: str, input: AnyInput) -> bool | None:
        if specifier == "broken":
            raise ValueError(specifier)
        return str(input.value).startswith(specifier)

    async def call(self, input: AnyInput, ctx: ToolContext) -> str:
        return ""


@requirement("CON-16")
@pytest.mark.parametrize(
    ("kind", "specifier", "decision"),
    [
        ("allow", "+49", "allow"),
        ("allow", "+1", "ask"),
        ("deny", "+49", "deny"),
        ("deny", "+1", "ask"),
        ("allow", "broken", "ask"),
        ("deny", "broken", "deny"),
        ("deny", "value:+49*", "deny"),
    ],
)
def test_a_tool_may_match_its_own_specifiers_and_pass_no_rule(kind: str, specifier: str, decision: str) -> None:
    assert decided({kind: [f"Dialer({specifier})"]}, Dialer(), {"value": "+49 30"}) == decision


# Words


@requirement("PERM-1")
def test_a_decision_names_the_rule_its_file_and_what_it_is_about() -> None:
    verdict = judged({"deny": ["Read(./secret/**)"]}, "Bash", {"command": "ls; cat secret/x"})

    assert isinstance(verdict, Verdict)
    assert (verdict.rule, verdict.origin, verdict.reason) == (
        "Read(./secret/**)",
        "settings.json",
        "rule `Read(./secret/**)` in settings.json denies that it reads /srv/repo/secret/x",
    )


@requirement("HELD-5")
@pytest.mark.parametrize(
    "domain", ["*.", "*..", ".", "..", "*.*", "*.*.", "*.com.", "*.*.com", "example.*", "ex*.com", "**"]
)
def test_a_domain_that_names_nothing_is_refused(domain: str) -> None:
    with pytest.raises(RuleError):
        parse_rule(f"WebFetch(domain:{domain})", Behavior.ALLOW, "--allow")


@requirement("HELD-5")
@pytest.mark.parametrize("domain", ["*.", "."])
def test_a_domain_that_names_nothing_denies_nothing_silently(domain: str) -> None:
    with pytest.raises(RuleError):
        parse_rule(f"WebFetch(domain:{domain})", Behavior.DENY, "--deny")

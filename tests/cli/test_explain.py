"""`ferrule explain` says what would happen, and nothing happens."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.explaining import answer_to
from tests.cli.running import ferrule
from tests.requirement import requirement
from tests.settings.folders import put


def lines(folder: Path, *requests: Any) -> list[dict[str, Any]]:
    text = "".join((request if isinstance(request, str) else json.dumps(request)) + "\n" for request in requests)
    done = ferrule(folder, "explain", "--jsonl", stdin=text)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@requirement("PERM-9")
def test_a_command_is_explained_for_people(tmp_path: Path) -> None:
    done = ferrule(tmp_path, "explain", "Bash", '{"command": "cat a.txt > b.txt"}')

    assert done.returncode == 0
    assert done.stdout.decode().splitlines() == [
        "A person is asked: nothing allows it.",
        "It would be allowed by: `Bash(cat a.txt > b.txt)`",
        "",
        "This changes something.",
        "cat a.txt > b.txt",
        f"  replaces {tmp_path}/b.txt",
        f"  reads {tmp_path}/a.txt",
    ]
    assert os.listdir(tmp_path) == []


@requirement("PERM-9")
def test_hooks_that_would_be_asked_are_named_and_not_run(tmp_path: Path) -> None:
    guard = {"type": "command", "command": "touch ran", "if": "Bash(git *)"}
    asks = {"type": "prompt", "prompt": "is it safe?"}
    settings = json.dumps({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [guard, asks]}]}})

    done = ferrule(tmp_path, "explain", "Bash", '{"command": "ls"}', "--settings", settings)
    data = ferrule(tmp_path, "explain", "--json", "Bash", '{"command": "ls"}', "--settings", settings)

    named = "the PreToolUse hook `is it safe?` in --settings:1"
    assert f"Before it runs, {named} is asked, and may refuse it." in done.stdout.decode().splitlines()
    assert json.loads(data.stdout)["hooks"] == [named]
    assert os.listdir(tmp_path) == []


@requirement("PERM-9")
def test_any_tool_is_explained_as_data(tmp_path: Path) -> None:
    done = ferrule(tmp_path, "explain", "--json", "read_file", '{"file_path": "sub/../a.txt"}')

    assert json.loads(done.stdout) == {
        "decision": "allow",
        "reason": "it only reads inside the workspace",
        "rule": None,
        "source": "mode",
        "read_only": True,
        "effects": {"reads": [f"{tmp_path}/a.txt"], "writes": [], "hosts": [], "commands": [], "unknown": False},
        "risks": [],
        "reasons": [],
        "grants": None,
    }


@requirement("PERM-9")
def test_many_are_explained_line_by_line_each_in_its_own_world(tmp_path: Path) -> None:
    first, second = lines(
        tmp_path,
        {"id": "a", "tool": "Bash", "input": {"command": "rm -rf ~"}, "cwd": "/srv/repo", "home": "/home/u"},
        {"id": 7, "tool": "Bash", "input": {"command": "frobnicate"}, "cwd": "/srv/repo"},
    )

    assert (first["id"], first["read_only"], first["effects"]["writes"]) == ("a", False, ["/home/u"])
    assert [risk["severity"] for risk in first["risks"]] == ["critical"]
    assert (second["id"], second["effects"]["unknown"]) == (7, True)
    assert second["reasons"] == ["`frobnicate`: frobnicate is not known."]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("{", "The line is not valid JSON"),
        ('{"id": NaN, "tool": "Bash"}', "NaN is not JSON"),
        ("[]", "A call must be a JSON object"),
        ('{"input": {}}', "`tool` must be the name of a tool."),
        ('{"tool": "Bash", "input": 3}', "`input` must be a JSON object."),
        ('{"tool": "Bash", "input": {}}', "`command` is missing"),
        ('{"tool": "Bsh", "input": {}}', "Did you mean Bash"),
        ('{"tool": "Bash", "input": {"command": "ls"}, "cwd": "rel"}', "`cwd` must be an absolute path."),
    ],
)
def test_a_bad_line_is_answered_and_the_next_one_too(tmp_path: Path, line: str, error: str) -> None:
    bad, good = lines(tmp_path, line, {"tool": "Bash", "input": {"command": "ls"}})

    assert error in bad["error"]
    assert good["read_only"] is True


def test_a_call_that_cannot_be_made_is_exit_code_one(tmp_path: Path) -> None:
    done = ferrule(tmp_path, "explain", "Raed", "{}")

    assert done.returncode == 1
    assert b"Did you mean Read" in done.stderr


@pytest.mark.parametrize("arguments", [("explain",), ("explain", "--jsonl", "Read"), ("explain", "Read", "[]")])
def test_wrong_use_is_exit_code_two(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert ferrule(tmp_path, *arguments).returncode == 2


@requirement("BOX-3")
def test_the_doctor_says_what_this_machine_offers(tmp_path: Path) -> None:
    done = ferrule(tmp_path, "doctor", "--json")

    findings = {finding["what"]: finding for finding in json.loads(done.stdout)}
    assert findings["ripgrep"]["good"]
    assert set(findings) >= {"ferrule", "bash", "ripgrep", "git", "sandbox", "mounts", "held writes", "control group"}
    assert done.returncode == (0 if all(finding["good"] for finding in findings.values()) else 1)


RULES = Path(__file__).parent.parent / "corpus" / "rules.jsonl"
PASSES = {"allow": {"allow"}, "ask": {"ask"}, "deny": {"deny"}, "not_allow": {"ask", "deny"}}
OF_THE_ENGINE = {"r-path_race-001"}
"""A link planted after the check: what is opened is what was judged, which no explanation can show."""


@requirement("PERM-9", "PERM-1")
def test_every_case_of_the_corpus_is_decided_with_its_reason_and_no_look_at_the_disk(tmp_path: Path) -> None:
    cases = [json.loads(line) for line in RULES.read_text(encoding="utf-8").splitlines()]
    keys = ("id", "tool", "input", "cwd", "home", "project_root", "rules", "mcp", "hook")
    asked = [
        {key: case[key] for key in keys if key in case} | {"symlinks": case.get("fs", {}).get("symlinks", {})}
        for case in cases
    ]

    answers = lines(tmp_path, *asked)

    wrong = {
        case["id"]: (case["expect"], answer)
        for case, answer in zip(cases, answers, strict=True)
        if not case["contested"] and case["id"] not in OF_THE_ENGINE
        if answer.get("decision") not in PASSES[case["expect"]] or not answer["reason"]
    }
    assert wrong == {}


@requirement("PERM-9")
def test_the_rule_that_decided_is_named_with_its_file_and_line(tmp_path: Path) -> None:
    settings = tmp_path / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n  "permissions": {\n    "deny": ["Read(./secrets/**)"]\n  }\n}\n')

    done = ferrule(tmp_path, "explain", "--json", "Bash", '{"command": "cat secrets/key"}')

    said = json.loads(done.stdout)
    assert (said["decision"], said["rule"], said["source"]) == ("deny", "Read(./secrets/**)", f"{settings}:3")


@requirement("PERM-9")
def test_rules_that_do_not_do_what_they_seem_to_are_named(tmp_path: Path) -> None:
    done = ferrule(tmp_path, "explain", "--lint", "--allow", "Bash(sudo *)", "--deny", "Bash(rm *)")

    assert done.returncode == 1
    assert "`Bash(sudo *)` allows whatever sudo is asked to run" in done.stdout.decode()
    assert "Bash(rm" not in done.stdout.decode()


def test_a_rule_that_is_ignored_is_a_problem_too(tmp_path: Path) -> None:
    put(tmp_path / "home" / ".claude" / "settings.json", '{"permissions": {"allow": ["mcp__*__read"]}}')

    done = ferrule(tmp_path, "explain", "--lint")

    assert done.returncode == 1
    assert "`mcp__*__read` allows tools of any server" in done.stdout.decode()


def test_rules_that_are_well_are_counted(tmp_path: Path) -> None:
    done = ferrule(tmp_path, "explain", "--lint", "--deny", "Bash(rm *)")

    assert (done.returncode, done.stdout) == (0, b"No problems found in the rules. Checked: 1.\n")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"rules": {"alow": []}}, "`rules.alow` is not one of allow, ask, deny"),
        ({"rules": {"allow": "Bash"}}, "`rules.allow` must be a list of rules"),
        ({"rules": []}, "`rules` must be a JSON object"),
        ({"mode": "yolo"}, "`mode` must be one of default"),
        ({"symlinks": {"a": "/b"}}, "`symlinks` must have an absolute path"),
        ({"project_root": "repo"}, "`project_root` must be an absolute path"),
    ],
)
def test_a_scene_that_cannot_be_is_refused_in_words(tmp_path: Path, asked: dict[str, object], words: str) -> None:
    (answer,) = lines(tmp_path, {"id": 1, "tool": "Bash", "input": {"command": "ls"}, **asked})

    assert words in answer["error"]


@requirement("PERM-9", "WEB-2")
def test_what_the_network_would_answer_decides_with_the_rules(tmp_path: Path) -> None:
    asked = {"tool": "WebFetch", "cwd": "/srv/repo", "home": "/home/u", "rules": {"allow": ["WebFetch"]}}
    page = {"url": "https://example.com/"}

    plain, inside, moved = lines(
        tmp_path,
        {**asked, "input": page, "resolve": ["93.184.216.34"]},
        {**asked, "input": page, "resolve_sequence": ["93.184.216.34", ["10.0.0.1"]]},
        {**asked, "input": page, "redirect_to": "https://other.example.org/"},
    )

    assert [answer["decision"] for answer in (plain, inside, moved)] == ["allow", "deny", "ask"]
    assert "not followed" in moved["reason"]


@requirement("PERM-9", "WEB-2")
def test_a_url_whose_host_is_read_in_two_ways_is_asked_about_and_refused_once_it_is_allowed(tmp_path: Path) -> None:
    asked = {
        "tool": "WebFetch",
        "input": {"url": "https://evil.example\\@example.com/"},
        "cwd": "/srv",
        "home": "/home/u",
    }
    rules = (
        {"allow": ["WebFetch(domain:example.com)"]},
        {"allow": ["WebFetch"]},
        {"deny": ["WebFetch(domain:evil.example)"]},
    )

    by_domain, by_tool, denied = lines(tmp_path, *({**asked, "rules": given} for given in rules))

    assert [answer["decision"] for answer in (by_domain, by_tool, denied)] == ["ask", "deny", "deny"]
    assert "is ambiguous about where its host ends" in by_domain["reason"]
    assert by_domain["effects"]["hosts"] == ["evil.example", "example.com"]


def test_each_line_has_one_answer_that_is_json_whatever_its_bytes(tmp_path: Path) -> None:
    call = b'{"tool": "Bash", "input": {"command": "ls"}, "rules": {"allow": null}}'
    odd = [
        b"\xef\xbb\xbf" + call,
        b"\xff",
        b"[" * 50_000,
        call[:-1] + b', "id": 1e999}',
        call.replace(b"ls", b"l" * 10**6),
    ]

    done = ferrule(tmp_path, "explain", "--jsonl", stdin=b"\r\n".join((*odd, call)))

    answers = [json.loads(line, parse_constant=pytest.fail) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2, 3, 4, 5, 6]
    assert [answer.get("decision") for answer in answers] == ["allow", None, None, "allow", "ask", "allow"]
    assert all(answer["error"] for answer in answers if "decision" not in answer)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12) | st.sampled_from(["/etc", "rm -rf /", "Bash("]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["command", "server", "x"]), inner),
    max_leaves=4,
)
KEYS = ["input", "cwd", "home", "rules", "project_root", "mode", "symlinks", "mcp", "hook", "resolve", "redirect_to"]


@given(
    st.sampled_from(["Bash", "Read", "WebFetch", "Agent", "mcp__a__b"]), st.dictionaries(st.sampled_from(KEYS), JSON)
)
def test_no_line_stops_the_answers(tool: str, asked: dict[str, object]) -> None:
    answer = answer_to(json.dumps({"tool": tool, "cwd": "/srv/repo", **asked}).encode())

    assert "decision" in answer or (answer["error"] and "bug" not in answer["error"])


def told(**asked: Any) -> dict[str, Any]:
    """The answer to one line, whose scene is told of unless it says otherwise."""
    scene: dict[str, Any] = {"cwd": "/srv/repo", "home": "/home/u", "rules": {}}
    return answer_to(json.dumps({"tool": "Bash", **scene, **asked}).encode())


@requirement("PERM-9", "HELD-30")
@pytest.mark.parametrize("mode", ["bypassPermissions", "default"])
def test_what_is_explained_of_a_command_in_a_sandbox_is_what_the_call_does(tmp_path: Path, mode: str) -> None:
    (tmp_path / "a.txt").write_text("hidden")
    call = ("Bash", json.dumps({"command": 'python3 -c "print(1)"'}))
    flags = ("--deny", "Read(./a.txt)", "--permission-mode", mode)

    explained = ferrule(tmp_path, "explain", *call, *flags).stdout.decode()
    called = ferrule(tmp_path, "call", *call, *flags)

    assert explained.startswith("It may run") == (called.returncode == 0)
    if called.returncode == 0:
        assert called.stdout == b"1\n"
        assert "It runs inside a sandbox: it reads all that this user may" in explained
        assert f"cannot see {tmp_path}/**/a.txt" in explained


@requirement("PERM-9", "HELD-30")
def test_what_the_kernel_would_grant_is_told_for_a_command_that_nobody_approved() -> None:
    edits = {"command": "sed -i s/a/b/ a.txt; rm -r sub; cat /data/x"}

    held = told(input=edits, mode="acceptEdits", rules={"allow": ["Read(//data/**)"], "deny": ["Read(//data/key)"]})
    reads = told(input={"command": "ls"})
    approved = told(input={"command": "make"}, rules={"allow": ["Bash(make)"]})
    denied = told(input={"command": "ls"}, rules={"deny": ["Bash"]})

    assert (held["decision"], held["grants"]) == (
        "allow",
        {
            "reads": ["/data/x"],
            "writes": [{"path": "/srv/repo/a.txt", "tree": False}, {"path": "/srv/repo/sub", "tree": True}],
            "network": False,
            "hidden": ["/data/key"],
            "unwritable": ["/data/key"],
        },
    )
    assert (reads["grants"]["writes"], reads["grants"]["network"]) == ([], False)
    assert (approved["decision"], approved["grants"]) == ("allow", None)
    assert denied["grants"] is None


@requirement("PERM-9", "HELD-30")
@pytest.mark.parametrize(
    "hook",
    [
        {"updatedInput": {"command": "rm x"}},
        {"decision": "allow", "updatedInput": {"command": "rm x"}},
        {"hookSpecificOutput": {"updatedInput": {"command": "rm x"}}},
        {"stdout": '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "rm x"}}}'},
    ],
)
def test_an_input_that_a_hook_changed_is_judged_as_changed(hook: dict[str, Any]) -> None:
    answer = told(input={"command": "ls"}, hook=hook, rules={"deny": ["Bash(rm *)"]})

    assert (answer["decision"], answer["rule"]) == ("deny", "Bash(rm *)")
    assert answer["effects"]["writes"] == ["/srv/repo/x"]


@requirement("PERM-9", "HELD-30")
def test_what_a_hook_leaves_out_of_a_changed_input_is_stood_in_for() -> None:
    answer = told(tool="Edit", input={"file_path": "a"}, hook={"updatedInput": {"file_path": "/etc/x"}})

    assert (answer["decision"], answer["effects"]["writes"]) == ("ask", ["/etc/x"])


@requirement("PERM-9", "HELD-30")
@pytest.mark.parametrize(
    ("hook", "decision", "words"),
    [
        ({"error": "timed out"}, "allow", "it only reads inside the workspace"),
        ({"error": True, "decision": "allow"}, "allow", "it only reads inside the workspace"),
        ({"error": "timed out", "failClosed": True}, "deny", "it failed (timed out) and fails closed"),
        ({"exit_code": 1, "stderr": "oh"}, "allow", "it only reads inside the workspace"),
        ({"exit_code": 2, "stderr": "not today"}, "deny", "PreToolUse hook `hook` says: not today"),
        ({"exit_code": 2, "decision": "allow"}, "deny", "it gave no reason"),
        ({"decision": "ask"}, "ask", "ask first"),
        ({"decision": "block"}, "deny", "no"),
        ({"updatedInput": 3}, "allow", "it only reads inside the workspace"),
    ],
)
def test_a_hook_that_fails_or_speaks_is_heard_as_in_a_session(hook: dict[str, Any], decision: str, words: str) -> None:
    answer = told(input={"command": "ls"}, hook=hook)

    assert answer["decision"] == decision
    assert words in answer["reason"]


@requirement("PERM-9", "HELD-30")
def test_a_scene_that_is_told_of_is_not_looked_for_on_disk_and_a_real_folder_is(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    line = {"tool": "Read", "input": {"file_path": "link/hosts"}, "cwd": str(tmp_path)}

    assert answer_to(json.dumps({**line, "rules": {}}).encode())["decision"] == "allow"
    assert answer_to(json.dumps(line).encode())["decision"] == "ask"


@requirement("PERM-9", "HELD-30")
def test_a_scene_may_say_that_its_machine_has_a_sandbox() -> None:
    line = {"input": {"command": "patch foo.txt p"}, "rules": {"allow": ["Bash"], "deny": ["Edit(./foo.txt)"]}}

    unsaid, said = told(**line), told(**line, sandbox=True)

    assert (unsaid["decision"], said["decision"]) == ("ask", "allow")
    assert said["grants"] == {
        "reads": None,
        "writes": None,
        "network": True,
        "hidden": [],
        "unwritable": ["/srv/repo/**/foo.txt"],
    }
    assert told(**line, sandbox=1)["error"] == "`sandbox` must be true or false."

# ruff: noqa: E501 (a table reads better with its rows on as few lines as they fit)
"""Changes of settings files: what stood there, what shall stand there, and whether that may be.

Data only, so that every tool that writes files can be run through the same table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RULES: Final = '{"permissions": {"allow": ["Read"], "deny": ["Bash(rm *)"]}}'
HOOK: Final = '{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./check"}]}]}}'
NEWER: Final = '{"permissions": {"allow": ["Read"], "shades": 3}, "hooks": {"MoonRise": {"new": 1}}}'


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    file: str
    before: str | None
    """`None`: there is no file yet."""
    after: str
    refused: str | None = None
    """A part of the refusal; `None` for a change that is made."""


SETTINGS: Final = ".claude/settings.json"
LOCAL: Final = ".ferrule/settings.local.json"
HOOKS: Final = ".ferrule/hooks.json"
PERMISSIONS: Final = ".ferrule/permissions.json"
SERVERS: Final = ".mcp.json"

MADE: Final = (
    Case("a new file", SETTINGS, None, "{}"),
    Case("a rule more", SETTINGS, RULES, RULES.replace('"Read"', '"Read", "Bash(npm run *)"')),
    Case("a rule less", LOCAL, RULES, RULES.replace('"Bash(rm *)"', "")),
    Case("every form of rule", SETTINGS, "{}", '{"permissions": {"allow": ["Read(//etc/**)", "Edit(~/a b/*)", '
         '"WebFetch(domain:*.x.org)", "mcp__srv", "mcp__*__read", "Task(*)", "Agent()", "Bash(npm test:*)", '
         '"Bash(echo \\\\()", "Bash(f(x))", "*"], "ask": ["Skill(pdf *)"], "deny": ["mcp__*"]}}'),
    Case("the older rules", SETTINGS, None, '{"permissions": {"allowed_tools": ["Bash(npm *)"], "disabled_tools": '
         '["Task(Bash)"], "pre_approval": {"allowed_domains": ["docs.rs"], "auto_approve_https": false}}}'),
    Case("the older keys", LOCAL, "{}", '{"model": "m", "apiKey": "k", "customApiUrl": "http://x", "theme": "system"}'),
    Case("long results", LOCAL, "{}", '{"oversized_results": {"max_chars": 30000, "persist_dir": "~/.claude/oversized/", '
         '"truncation_strategy": "keep_both"}}'),
    Case("a hook", SETTINGS, "{}", HOOK),
    Case("every type of hook", SETTINGS, HOOK, '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", '
         '"args": ["a"], "async": true, "timeout": 0.5, "if": "Bash(git *)"}, {"type": "http", "url": "http://x", '
         '"headers": {"A": "$B"}, "allowedEnvVars": ["B"]}, {"type": "mcp_tool", "server": "s", "tool": "t", '
         '"input": {"a": [1, null]}}, {"type": "prompt", "prompt": "p", "continueOnBlock": true}, '
         '{"type": "agent", "prompt": "p", "model": "m"}]}], "SessionStart": []}}'),
    Case("hooks as a list", SETTINGS, "{}", '{"hooks": [{"event": "PreToolUse", "command": "x", "timeout_sec": 5, '
         '"tool_matcher": "Bash"}]}'),
    Case("a key of a newer version at the top", SETTINGS, RULES, '{"tomorrow": {"deep": [1, {"x": null}]}}'),
    Case("a key of a newer version that stood there", SETTINGS, NEWER, NEWER.replace('"Read"', '"Read", "Glob"')),
    Case("a key of a newer version goes away", SETTINGS, NEWER, "{}"),
    Case("the sandbox", SETTINGS, "{}", '{"sandbox": {"enabled": true, "filesystem": {"denyRead": ["~/.ssh"]}, "network": '
         '{"allowedDomains": ["x.org"], "httpProxyPort": 8080}, "credentials": {"envVars": [{"name": "T", "mode": "mask"}]}}}'),
    Case("one model or many", SETTINGS, '{"fallbackModel": "a"}', '{"fallbackModel": ["a", "b"], "env": {"A": "1"}}'),
    Case("a whole number with a fraction of zero", SETTINGS, "{}", '{"cleanupPeriodDays": 30.0}'),
    Case("a byte order mark", SETTINGS, "\ufeff{}", '\ufeff{"model": "m"}'),
    Case("the hooks file as a list", HOOKS, "[]", '[{"event": "Stop", "command": "x"}, {"event": "PreToolUse"}]'),
    Case("the hooks file as an object", HOOKS, None, '{"description": "d", "hooks": {"Stop": [{"hooks": []}]}}'),
    Case("the permissions file", PERMISSIONS, "{}", '{"allowed_tools": ["Read"], "blocked_domains": ["x.org"], "deny": []}'),
    Case("servers", SERVERS, '{"mcpServers": {}}', '{"mcpServers": {"a": {"command": "x", "args": ["-y"], "disabled": true}, '
         '"b": {"type": "http", "url": "${U:-http://x}", "timeout": 1000, "oauth": {"clientId": "c"}}}}'),
    Case("an empty file is filled", SETTINGS, "", "{}"),
    Case("blanks are filled", SETTINGS, "\n", HOOK),
    Case("a trailing comma is repaired", SETTINGS, '{"model": "m",}', '{"model": "m"}'),
    Case("a wrong type is repaired", LOCAL, '{"permissions": {"allow": "Read"}}', RULES),
    Case("a repeated key is repaired", SETTINGS, '{"model": "a", "model": "b"}', '{"model": "b"}'),
    Case("a list becomes an object", SETTINGS, "[]", "{}"),
)  # fmt: skip

REFUSED: Final = (
    Case("the file is emptied", SETTINGS, RULES, "", "the file is empty"),
    Case("a trailing comma", SETTINGS, "{}", '{"model": "m",}', "line 1, column 15: expected a key in double quotes, "
         "found `}`. Remove the comma before it."),
    Case("a comment", SETTINGS, "{}", "{\n  // mine\n}", "line 2, column 3: expected a key in double quotes or `}`, "
         "found a comment. JSON has no comments"),
    Case("a lost bracket", SETTINGS, RULES, RULES[:-1], "expected `,` or `}`, found the end of the file"),
    Case("single quotes", LOCAL, "{}", "{'model': 'm'}", "Use straight double quotes."),
    Case("a number that is none", SETTINGS, "{}", '{"cleanupPeriodDays": NaN}', "found `NaN`. JSON has no such number."),
    Case("half a character", SETTINGS, "{}", r'{"model": "\ud800"}', "half of a surrogate pair"),
    Case("too deep", SETTINGS, "{}", '{"a":' * 200 + "1" + "}" * 200, "nested more than 100 levels deep"),
    Case("a repeated key", SETTINGS, RULES, '{"model": "a",\n "model": "b"}', "- `model`: the key occurs twice, "
         "in lines 1 and 2. Keep one."),
    Case("no object", SETTINGS, "{}", "[]", "- the file: expected an object, found a list."),
    Case("a number for a rule", SETTINGS, RULES, RULES.replace('"Read"', '"Read", 5'),
         "- `permissions.allow[1]`: expected a string, found 5."),
    Case("a rule that is not closed", SETTINGS, RULES, RULES.replace("rm *)", "rm *"),
         "- `permissions.deny[0]`: `Bash(rm *` has a parenthesis that is not closed. Write `Bash(rm *)`."),
    Case("a rule without a tool", SETTINGS, "{}", '{"permissions": {"ask": ["(x)"]}}', "names no tool"),
    Case("an empty rule", PERMISSIONS, "{}", '{"disabled_tools": [" "]}', "- `disabled_tools[0]`: a rule is empty."),
    Case("one rule without a list", SETTINGS, "{}", '{"permissions": {"allow": "Read"}}',
         '- `permissions.allow`: expected a list, found "Read". Write ["Read"].'),
    Case("a misspelt key of the permissions", SETTINGS, RULES, RULES.replace("deny", "denny"),
         "- `permissions.denny`: this key is unknown. Did you mean `deny`?"),
    Case("one more unknown key", SETTINGS, NEWER, NEWER.replace('"shades"', '"hades": 1, "shades"'),
         "- `permissions.hades`: this key is unknown."),
    Case("an unknown mode", SETTINGS, "{}", '{"permissions": {"defaultMode": "acceptedits"}}',
         'Did you mean "acceptEdits"?'),
    Case("a boolean in quotes", LOCAL, "{}", '{"disableAllHooks": "true"}',
         '- `disableAllHooks`: expected true or false, found "true". Write true, without quotes.'),
    Case("null", SETTINGS, "{}", '{"model": null}', "- `model`: expected a string, found null. Leave it out instead."),
    Case("zero days", SETTINGS, "{}", '{"cleanupPeriodDays": 0}', "- `cleanupPeriodDays`: expected at least 1, found 0."),
    Case("an unknown event", SETTINGS, HOOK, HOOK.replace("PreToolUse", "PreTooluse"),
         "- `hooks.PreTooluse`: this key is unknown. Did you mean `PreToolUse`?"),
    Case("an unknown type of hook", SETTINGS, HOOK, HOOK.replace('"command",', '"shell",'),
         "- `hooks.PreToolUse[0].hooks[0]`: `type` must be one of command, python, http, mcp_tool, prompt, agent."),
    Case("a hook without a command", SETTINGS, HOOK, HOOK.replace('"command": "./check"', '"cmd": "./check"'),
         "- `hooks.PreToolUse[0].hooks[0]`: `command` is missing."),
    Case("a group without hooks", SETTINGS, "{}", '{"hooks": {"Stop": [{"type": "command", "command": "x"}]}}',
         "- `hooks.Stop[0]`: `hooks` is missing."),
    Case("a number in the environment", SETTINGS, "{}", '{"env": {"A B": 1}}', '- `env["A B"]`: expected a string, found 1.'),
    Case("two ways to name a server", SETTINGS, "{}", '{"deniedMcpServers": [{"serverName": "a", "serverUrl": "b"}]}',
         "- `deniedMcpServers[0]`: it must have exactly one of"),
    Case("a misspelt key of the sandbox", SETTINGS, "{}", '{"sandbox": {"filesystem": {"denyReads": []}}}',
         "- `sandbox.filesystem.denyReads`: this key is unknown. Did you mean `denyRead`?"),
    Case("a listed hook without an event", HOOKS, "[]", '[{"command": "x"}]', "- `[0]`: `event` is missing."),
    Case("a misspelt key of a listed hook", HOOKS, "[]", '[{"event": "Stop", "timeout": 5}]',
         "- `[0].timeout`: this key is unknown. Did you mean `timeout_sec`?"),
    Case("a hooks file that is text", HOOKS, "[]", '"x"', '- the file: expected an object, found "x".'),
    Case("an address without a type", SERVERS, None, '{"mcpServers": {"a": {"url": "http://x"}}}',
         "- `mcpServers.a`: `url` needs a `type`."),
    Case("servers without their key", SERVERS, None, '{"a": {"command": "x"}}', "- the file: `mcpServers` is missing."),
    Case("a reserved name", SERVERS, None, '{"mcpServers": {"workspace": {"command": "x"}}}', "is reserved"),
    Case("a broken file stays broken", SETTINGS, '{"model": "a",}', '{"model": "b",}', "is already an invalid settings file"),
    Case("a broken file is emptied", SETTINGS, "{", " ", "is already an invalid settings file"),
    Case("a violation stays beside a good change", SETTINGS, '{"env": 1}', '{"env": 1, "model": "m"}', "is already an invalid settings file"),
    Case("a repair that breaks another place", SETTINGS, '{"env": 1}', '{"env": {}, "model": 2}',
         "- `model`: expected a string, found 2."),
)  # fmt: skip

CASES: Final = (*MADE, *REFUSED)

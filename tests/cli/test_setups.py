"""What real set-ups hold, through the command line: odd heads, styles, plugins, servers that wait."""

from __future__ import annotations

from pathlib import Path

from tests.agents.test_agent_files import put
from tests.cli.prompting import ask, lines_of
from tests.cli.running import ferrule
from tests.requirement import requirement


@requirement("TASK-1", "TASK-2", "CLI-1")
def test_odd_heads_are_used_and_a_warning_names_each_kind_of_file(tmp_path: Path) -> None:
    put(tmp_path / ".claude/agents/star.md", "---\nname: star\ndescription: d\ntools: *\n---\nDo it.")
    put(tmp_path / ".claude/agents/none.md", "---\ndescription: d\n---\nDo it.")
    put(tmp_path / ".claude/commands/deploy.md", "---\nallowed-tools: *\n---\nDeploy.")

    asked = ask(tmp_path, [{"text": "Well."}], "Hello", "--trust", "--output-format", "stream-json", "--verbose")
    listed = ferrule(tmp_path, "tools", "--trust")

    first = lines_of(asked)[0]
    assert "star" in first["agents"]
    assert "deploy" in first["slash_commands"]
    for done in (asked, listed):
        for words in (b"agents/star.md: a value begins with", b"commands/deploy.md: a value", b"none.md is skipped"):
            assert done.stderr.count(words) == 1


@requirement("CLI-1", "SET-4")
def test_an_output_style_of_the_folder_is_in_the_init_line_once_it_is_trusted(tmp_path: Path) -> None:
    put(tmp_path / ".claude/output-styles/house.md", "---\ndescription: Ours.\n---\nBe brief.")
    put(tmp_path / ".claude/settings.json", '{"outputStyle": "house"}')
    flags = ("Hello", "--output-format", "stream-json", "--verbose")

    trusted = ask(tmp_path, [{"text": "Well."}], *flags, "--trust")
    untrusted = ask(tmp_path, [{"text": "Well."}], *flags)

    assert lines_of(trusted)[0]["output_style"] == "house"
    assert lines_of(untrusted)[0]["output_style"] == "default"
    assert b"outputStyle" in untrusted.stderr


@requirement("CLI-1", "TASK-2", "HOOK-1")
def test_an_enabled_plugin_is_in_the_init_line_and_its_hook_refuses(tmp_path: Path) -> None:
    plugin = tmp_path / "home/.claude/plugins/marketplaces/market/demo"
    put(plugin.parent / ".claude-plugin/marketplace.json", '{"plugins": [{"name": "demo", "source": "./demo"}]}')
    put(plugin / "commands/greet.md", "Greet $ARGUMENTS.")
    hook = 'test -d \\"$CLAUDE_PLUGIN_ROOT\\" && echo not here >&2; exit 2'
    group = f'[{{"matcher": "Bash", "hooks": [{{"type": "command", "command": "{hook}"}}]}}]'
    put(plugin / "hooks/hooks.json", f'{{"description": "x", "hooks": {{"PreToolUse": {group}}}}}')
    put(tmp_path / "home/.claude/settings.json", '{"enabledPlugins": {"demo@market": true, "gone@market": true}}')
    touch = {"name": "Bash", "input": {"command": "touch gone"}}

    done = ask(tmp_path, [{"calls": [touch]}, {"text": "."}], "/demo:greet Ann", "--output-format", "stream-json")

    lines = lines_of(done)
    assert lines[0]["plugins"] == [{"name": "demo", "path": str(plugin)}]
    assert "demo:greet" in lines[0]["slash_commands"]
    assert any("not here" in str(line) for line in lines if line["type"] == "user")
    assert not (tmp_path / "gone").exists()
    assert b"the plugin gone@market is not loaded" in done.stderr

"""Plugins that settings enable, wherever they are on this disk, and plugins whose folder a person names."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ferrule import Settings
from ferrule.agents.agent_catalog import Agents
from ferrule.app.session_settings import SessionPolicy
from ferrule.app.settings_interpretation import load_session_settings
from ferrule.instructions.output_styles import OutputStyles
from ferrule.mcp.config import Stdio
from ferrule.settings.settings_sources import SettingsError, open_layers
from ferrule.skills.skill_catalog import Skills
from tests.agents.test_agent_files import put
from tests.requirement import requirement

ON = {"enabledPlugins": {"demo@market": True}}
HOOK = {"type": "command", "command": 'python3 "${CLAUDE_PLUGIN_ROOT}/hooks/check.py"'}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def _write(path: Path, value: Any) -> Path:
    return put(path, json.dumps(value))


def _plugin(folder: Path, name: str = "demo", **manifest: Any) -> Path:
    _write(folder / ".claude-plugin/plugin.json", {"name": name, **manifest})
    put(folder / "commands/deep/greet.md", "---\nallowed-tools: Bash(${CLAUDE_PLUGIN_ROOT}/x:*)\n---\nGreet.")
    put(folder / "skills/tidy/SKILL.md", "Tidy up with ${CLAUDE_PLUGIN_ROOT}/tidy.py.")
    put(folder / "agents/critic.md", "---\nname: critic\ndescription: d\n---\nSee ${CLAUDE_PLUGIN_ROOT}/notes.")
    put(folder / "agents/bad.md", "nothing")
    put(folder / "output-styles/calm.md", "Stay calm.")
    _write(folder / "hooks/hooks.json", {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [HOOK]}]}})
    _write(folder / ".mcp.json", {"mcpServers": {"tool": {"command": "${CLAUDE_PLUGIN_ROOT}/server"}}})
    return folder


def _market(folder: Path, *entries: dict[str, Any], **more: Any) -> Path:
    _write(folder / ".claude-plugin/marketplace.json", {"name": "market", "plugins": list(entries), **more})
    return folder


@dataclass(frozen=True)
class Gathered:
    settings: Settings
    policy: SessionPolicy

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.policy.warnings


def _gather(project: Path, *folders: Path, trusting: bool = False) -> Gathered:
    base = Settings(cwd=str(project), state_folder=project.parent / "state")
    return Gathered(*load_session_settings(base, plugin_folders=folders, trusting=trusting))


def _skills(found: Gathered) -> Skills:
    assert found.settings.pages is not None
    return Skills(found.settings.pages)


def _has_all(found: Gathered, plugin: Path) -> None:
    settings = found.settings
    skills, agents = _skills(found), Agents(settings.pages)
    assert {"demo:deep:greet", "demo:tidy"} <= set(skills.all)
    assert skills.all["demo:deep:greet"].allowed == (f"Bash({plugin}/x:*)",)
    assert skills.all["demo:tidy"].body == f"Tidy up with {plugin}/tidy.py."
    assert agents.all["demo:critic"].prompt == f"See {plugin}/notes."
    assert any("bad.md is skipped" in warning for warning in agents.warnings)
    assert "demo:calm" in OutputStyles(settings.pages).names
    (server,) = settings.servers
    assert server.name == "plugin_demo_tool"
    assert isinstance(server.transport, Stdio)
    assert server.transport.command == f"{plugin}/server"
    (hook,) = settings.hooks.all
    assert f"export CLAUDE_PLUGIN_ROOT={plugin}; " in str(hook)
    assert [one.line for one in settings.plugins] == [{"name": "demo", "path": str(plugin)}]


def _installed_v1(home: Path) -> Path:
    plugin = _plugin(home / ".claude/plugins/cache/market/demo/1.0")
    entry = {"version": "1.0", "installPath": str(plugin)}
    _write(home / ".claude/plugins/installed_plugins.json", {"version": 1, "plugins": {"demo@market": entry}})
    return plugin


def _installed_v2(home: Path) -> Path:
    plugin = _plugin(home / "elsewhere")
    entries = [{"scope": "project", "projectPath": "/other", "installPath": "/gone"}, {"installPath": str(plugin)}]
    _write(home / ".claude/plugins/installed_plugins.json", {"version": 2, "plugins": {"demo@market": entries}})
    return plugin


def _known_marketplace(home: Path) -> Path:
    market = _market(home / "markets/m", {"name": "demo", "source": "demo"}, metadata={"pluginRoot": "./plugins"})
    _write(home / ".claude/plugins/known_marketplaces.json", {"market": {"installLocation": str(market)}})
    return _plugin(market / "plugins/demo")


def _usual_place(home: Path) -> Path:
    market = _market(home / ".claude/plugins/marketplaces/market", {"name": "demo", "source": "./demo"})
    return _plugin(market / "demo")


def _cached(home: Path) -> Path:
    return _plugin(home / ".claude/plugins/cache/market/demo/abc")


@requirement("TASK-1", "TASK-2", "HOOK-1", "MCP-1")
@pytest.mark.parametrize("make", [_installed_v1, _installed_v2, _known_marketplace, _usual_place, _cached])
def test_an_enabled_plugin_is_found_where_the_other_program_keeps_it(project: Path, make: Any) -> None:
    home = project.parent / "home"
    _write(home / ".claude/settings.json", ON)

    plugin = make(home)

    _has_all(_gather(project), plugin)


@requirement("TASK-1", "TASK-2", "HOOK-1", "MCP-1")
def test_a_plugin_whose_folder_is_named_needs_no_settings(project: Path) -> None:
    plugin = _plugin(project.parent / "plugin")
    other = _plugin(project.parent / "other", "other")

    found = _gather(project, plugin, other)

    assert [one.name for one in found.settings.plugins] == ["demo", "other"]
    assert {"demo:tidy", "other:tidy"} <= set(_skills(found).all)
    _has_all(_gather(project, plugin), plugin)


def test_a_plugin_may_be_loaded_without_its_servers(project: Path) -> None:
    plugin = _plugin(project.parent / "named")
    base = Settings(cwd=str(project), state_folder=project.parent / "state")

    settings, _ = load_session_settings(base, folders_without_servers=[plugin])

    assert [one.name for one in settings.plugins] == ["demo"]
    assert (len(settings.hooks.all), settings.servers) == (1, ())


@requirement("SET-4")
def test_what_a_folder_enables_waits_for_trust_and_is_trusted_as_it_was(project: Path) -> None:
    market = _market(project / "tools", {"name": "demo", "source": "./demo"})
    plugin = _plugin(market / "demo")
    extra = {"market": {"source": {"source": "directory", "path": "./tools"}}}
    _write(project / ".claude/settings.json", {**ON, "extraKnownMarketplaces": extra})
    untrusted = _gather(project)

    trusted = _gather(project, trusting=True)

    assert (untrusted.settings.plugins, untrusted.settings.servers) == ((), ())
    assert "setting `enabledPlugins.demo@market: true`" in untrusted.warnings[0]
    _has_all(trusted, plugin)


@requirement("SET-4")
def test_a_plugin_of_the_folder_that_changed_since_it_was_trusted_is_not_loaded(project: Path) -> None:
    market = _market(project / "tools", {"name": "demo", "source": "./demo"})
    plugin = _plugin(market / "demo")
    extra = {"market": {"source": {"source": "directory", "path": "./tools"}}}
    _write(project / ".claude/settings.json", {**ON, "extraKnownMarketplaces": extra})
    live = open_layers(str(project), project.parent / "state")
    live.trust(live.current().standing.items)
    before = _gather(project)
    put(plugin / "hooks/check.py", "print('something else')")

    after = _gather(project)

    _has_all(before, plugin)
    assert after.settings.plugins == ()
    assert "setting `extraKnownMarketplaces.market" in after.warnings[0]
    assert any("the plugin demo@market is not loaded" in warning for warning in after.warnings)


def _changed_since_trusted(project: Path, changed: Path) -> tuple[Any, Any]:
    """The plugins before and after the change of a file, in a folder that was trusted before it."""
    live = open_layers(str(project), project.parent / "state")
    live.trust(live.current().standing.items)
    before = _gather(project).settings.plugins
    put(changed, changed.read_text() + "\n")
    return before, _gather(project).settings.plugins


@requirement("SET-4")
@pytest.mark.parametrize("changed", ["conf/hooks.json", "conf/more.json", "orders/a.md", "bin/check.py", "bin/server"])
def test_a_plugin_that_is_the_whole_project_is_trusted_with_every_file_that_it_names(
    project: Path, changed: str
) -> None:
    entry = {"name": "demo", "source": "./", "hooks": "./conf/more.json", "commands": ["./orders"]}
    _market(project, entry)
    server = {"a": {"command": "${CLAUDE_PLUGIN_ROOT}/bin/server"}}
    _write(project / ".claude-plugin/plugin.json", {"name": "demo", "hooks": "./conf/hooks.json", "mcpServers": server})
    check = {"type": "command", "command": "python3 ${CLAUDE_PLUGIN_ROOT}/bin/check.py"}
    for name in ("conf/hooks.json", "conf/more.json"):
        _write(project / name, {"Stop": [{"hooks": [check]}]})
    for name in ("orders/a.md", "bin/check.py", "bin/server"):
        put(project / name, "x")
    extra = {"market": {"source": {"source": "directory", "path": "."}}}
    _write(project / ".claude/settings.json", {**ON, "extraKnownMarketplaces": extra})

    before, after = _changed_since_trusted(project, project / changed)

    assert ([one.name for one in before], after) == (["demo"], ())


@requirement("SET-4")
@pytest.mark.parametrize("large", [False, True])
def test_what_a_plugin_reaches_through_a_link_is_trusted_with_it(project: Path, *, large: bool) -> None:
    market = _market(project / "tools", {"name": "demo", "source": "./demo"})
    _write(market / "demo/.claude-plugin/plugin.json", {"name": "demo"})
    (market / "demo/hooks").symlink_to("../../elsewhere")
    (market / "demo/round").symlink_to("..")
    check = put(project / "elsewhere/check.py", "#" * (2 << 20 if large else 1))
    _write(project / "elsewhere/hooks.json", {"hooks": {"Stop": [{"hooks": [HOOK]}]}})
    extra = {"market": {"source": {"source": "directory", "path": "./tools"}}}
    _write(project / ".claude/settings.json", {**ON, "extraKnownMarketplaces": extra})

    before, after = _changed_since_trusted(project, check)

    assert ([one.name for one in before], after) == (["demo"], ())


@requirement("SET-4")
def test_a_relative_marketplace_of_the_user_does_not_mean_the_one_of_any_folder(project: Path) -> None:
    _plugin(_market(project / "tools", {"name": "demo", "source": "./demo"}) / "demo")
    extra = {"market": {"source": {"source": "directory", "path": "./tools"}}}
    _write(project.parent / "home/.claude/settings.json", {**ON, "extraKnownMarketplaces": extra})

    found = _gather(project)

    assert found.settings.plugins == ()
    assert "the plugin demo@market is not loaded" in found.warnings[0]


@requirement("SET-4", "SEC-2")
def test_a_plugin_inside_of_the_workspace_is_protected_and_counts_as_it_was_at_the_start(project: Path) -> None:
    plugin = _plugin(project / "my-plugin")
    found = _gather(project, plugin)
    skills = _skills(found)
    assert skills.read("demo:tidy").may_run

    put(plugin / "skills/tidy/SKILL.md", "---\nallowed-tools: Bash\n---\nTidy up.")

    assert skills.read("demo:tidy").allowed == ()
    assert not skills.read("demo:tidy").may_run
    assert str(plugin) in found.policy.more_paths.protected


def test_what_is_not_there_is_named_and_the_rest_is_loaded(project: Path) -> None:
    home = project.parent / "home"
    plugin = _usual_place(home)
    _write(home / ".claude/settings.json", {"enabledPlugins": {**ON["enabledPlugins"], "x@y": True, "plain": True}})

    found = _gather(project)

    _has_all(found, plugin)
    first, second = found.warnings
    assert "'plain' is ignored. Write it as plugin@marketplace." in first
    assert "the plugin x@y is not loaded: it is not installed" in second


@pytest.mark.parametrize("value", [False, []])
def test_a_plugin_that_is_switched_off_is_not_looked_for(project: Path, value: Any) -> None:
    _write(project.parent / "home/.claude/settings.json", {"enabledPlugins": {"demo@market": value}})

    found = _gather(project)

    assert (found.settings.plugins, found.warnings) == ((), ())


def test_a_project_does_not_put_its_own_marketplace_in_the_place_of_the_users(project: Path) -> None:
    home = project.parent / "home"
    plugin = _usual_place(home)
    _write(home / ".claude/settings.json", ON)
    _plugin(_market(project / "evil", {"name": "demo", "source": "./demo"}) / "demo")
    extra = {"market": {"source": {"source": "directory", "path": "./evil"}}}
    _write(project / ".claude/settings.json", {"extraKnownMarketplaces": extra})

    _has_all(_gather(project, trusting=True), plugin)


def test_a_manifest_and_a_marketplace_may_name_more_parts_inside_of_the_plugin(project: Path) -> None:
    home = project.parent / "home"
    outside = put(project.parent / "outside/x.md", "secret")
    entry = {"name": "demo", "source": "./", "skills": ["./docs/xlsx"], "commands": ["./more.md", "../outside"]}
    market = _market(home / ".claude/plugins/marketplaces/market", entry)
    put(market / "docs/xlsx/SKILL.md", "Sheets.")
    put(market / "more.md", "More.")
    inline = {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}
    _write(market / ".claude-plugin/plugin.json", {"name": "demo", "hooks": inline, "mcpServers": "./servers.json"})
    _write(market / "servers.json", {"a": {"command": "x"}})
    _write(home / ".claude/settings.json", ON)

    found = _gather(project)

    assert sorted(_skills(found).all) == ["demo:more", "demo:xlsx"]
    assert [server.name for server in found.settings.servers] == ["plugin_demo_a"]
    assert len(found.settings.hooks.all) == 1
    assert any("../outside is outside the plugin" in warning for warning in found.warnings)
    assert outside.exists()


@requirement("SET-2")
def test_hooks_that_cannot_be_read_are_an_error_or_leave_nothing_allowed(project: Path) -> None:
    home = project.parent / "home"
    plugin = _usual_place(home)
    put(plugin / "hooks/hooks.json", "{")
    _write(home / ".claude/settings.json", ON)

    assert "hooks.json cannot be read" in (_gather(project).policy.lost or "")
    with pytest.raises(SettingsError, match="cannot be read"):
        _gather(project.parent, plugin)


def test_an_administrators_choice_of_marketplaces_leaves_none(project: Path) -> None:
    home = project.parent / "home"
    _usual_place(home)
    _write(home / ".claude/settings.json", {**ON, "strictKnownMarketplaces": [{"source": "github", "repo": "a/b"}]})

    found = _gather(project)

    assert found.settings.plugins == ()
    assert any("`strictKnownMarketplaces` is not supported" in warning for warning in found.warnings)


def test_without_plugins_nothing_is_loaded_for_them(project: Path) -> None:
    program = (
        "import sys; from ferrule import Settings;"
        "from ferrule.app.settings_interpretation import load_session_settings;"
        f"load_session_settings(Settings(cwd={str(project)!r})); print('ferrule.settings.plugins' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, timeout=60)

    assert done.stdout == b"False\n"

"""A folder that nobody trusts can only narrow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from ferrule.app.session_settings import SessionPolicy
from ferrule.app.settings_interpretation import interpret_settings, load_configured_servers
from ferrule.core.ports import Proposal
from ferrule.core.state import SessionState
from ferrule.core.verdicts import Behavior, Confinement
from ferrule.permissions.live_rules import LiveRules
from ferrule.permissions.modes import Mode
from ferrule.permissions.sandbox_policy import SandboxPolicy
from ferrule.settings.hook_entries import DescribedHooks
from ferrule.settings.levels import Level
from ferrule.settings.reload import EVERY_LEVEL, LiveSettings
from ferrule.settings.settings_models import FileSuggestion, PermissionsFile, SettingsFile, StatusLine
from ferrule.settings.settings_sources import SettingsError
from ferrule.settings.untrusted_keys import KEYS, in_words
from tests.permissions.scene import CWD, Bash, CommandInput, places, proposed, tool_named
from tests.requirement import requirement
from tests.settings.folders import Folders, hook, put
from tests.settings.schema_values import fullest, settings_values

PAGE: Final = Path(__file__).parent.parent.parent / "docs" / "settings.md"
ROW: Final = re.compile(r"^\| `([^`]+)` \| (.+) \|$", re.MULTILINE)

CALLS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("Read", {"file_path": f"{CWD}/a"}),
    ("Read", {"file_path": "/etc/hosts"}),
    ("Write", {"file_path": f"{CWD}/a"}),
    ("Write", {"file_path": "/elsewhere/a"}),
    ("Write", {"file_path": f"{CWD}/.git/config"}),
    ("Bash", {"command": "ls"}),
    ("Bash", {"command": "python3 x.py"}),
    ("Bash", {"command": "curl http://evil.test"}),
    ("WebFetch", {"url": "https://evil.test"}),
    ("WebSearch", {"query": "xyz"}),
    ("mcp__evil__do", {}),
)
OWN: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"permissions": {"defaultMode": "plan"}},
    {"permissions": {"defaultMode": "dontAsk"}},
    {"permissions": {"defaultMode": "auto"}},
    {"permissions": {"defaultMode": "acceptEdits", "deny": ["Bash(curl *)"]}},
    {"permissions": {"defaultMode": "bypassPermissions", "ask": ["WebFetch"]}},
    {"permissions": {"allow": ["Bash(python3 *)", "WebFetch"], "additionalDirectories": ["/srv/more"]}},
    {"sandbox": {"enabled": True, "filesystem": {"denyRead": ["~/.ssh"]}}},
    {"sandbox": {"enabled": True, "allowUnsandboxedCommands": False, "failIfUnavailable": True}},
    {"sandbox": {"enabled": True, "autoAllowBashIfSandboxed": False}},
    {**hook("./own"), "model": "opus", "smallModel": "haiku", "env": {"PATH": "/bin"}, "apiKey": "k"},
    {
        "allowedMcpServers": [{"serverName": "own"}],
        "mcpServers": {"own": {"command": "a"}, "PATH": {"command": "b"}},
    },
)
"""What a user has in their own settings."""


WHOLE: Final = (StatusLine, FileSuggestion)
"""Objects that are one value."""


def keys_of(model: type[BaseModel], above: str = "") -> Iterator[str]:
    """Every key of a model, and of the objects in it whose members count one by one."""
    for field in model.model_fields.values():
        inner = [part for part in get_args(field.annotation) if isinstance(part, type) and issubclass(part, BaseModel)]
        if inner and inner[0] not in WHOLE:
            yield from keys_of(inner[0], f"{above}{field.alias}.")
        else:
            yield f"{above}{field.alias}"


EVERY_KEY: Final = sorted({*keys_of(SettingsFile), *keys_of(PermissionsFile, "permissions."), *keys_of(DescribedHooks)})


@requirement("HELD-2")
def test_it_is_decided_for_every_key_whether_it_narrows_or_waits() -> None:
    assert sorted(KEYS) == EVERY_KEY


@requirement("HELD-2")
def test_the_page_on_settings_lists_every_key_as_the_code_has_it() -> None:
    listed = dict(ROW.findall(PAGE.read_text(encoding="utf-8")))

    assert {key: listed.get(key) for key in KEYS} == {key: in_words(key) for key in KEYS}


@requirement("HELD-2", "SEC-2")
@settings(max_examples=30)
@given(own=st.sampled_from(OWN), said=settings_values(), local=settings_values())
def test_no_settings_of_an_untrusted_folder_widen_anything(
    own: dict[str, Any], said: dict[str, Any], local: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folders = Folders.made(tmp_path_factory.getbasetemp() / "any")
    without = understood_alone(folders, own)
    put(folders.project / ".claude" / "settings.json", said)
    put(folders.project / ".ferrule" / "settings.local.json", local)

    require_at_most(folders, without)


@requirement("HELD-2", "SEC-2")
@pytest.mark.parametrize("switch", [True, False])
@pytest.mark.parametrize("own", OWN)
def test_all_keys_at_once_in_an_untrusted_folder_widen_nothing(
    own: dict[str, Any], switch: bool, tmp_path: Path
) -> None:
    folders = Folders.made(tmp_path)
    without = understood_alone(folders, own)
    said = fullest(switch=switch)
    said["permissions"]["deny"] = []  # which would hide what the rest allows
    said["permissions"]["pre_approval"]["blocked_domains"] = ["evil.test"]
    put(folders.project / ".claude" / "settings.json", said)

    assert understood_in(folders).lost is None
    require_at_most(folders, without)


def understood_alone(folders: Folders, own: dict[str, Any]) -> SessionPolicy:
    """With what the user says and nothing of the folder."""
    for name in (".claude/settings.json", ".ferrule/settings.local.json"):
        (folders.project / name).unlink(missing_ok=True)
    put(folders.home / ".claude" / "settings.json", own)
    return understood_in(folders)


def understood_in(folders: Folders) -> SessionPolicy:
    return interpret_settings(LiveSettings(folders.around(), folders.store).current(), str(folders.project))


def require_at_most(folders: Folders, without: SessionPolicy) -> None:
    try:
        found = understood_in(folders)
    except SettingsError:
        return  # nothing runs at all
    assert found.environment == without.environment
    assert found.model == without.model
    assert [(one.event, one.name) for one in found.hooks.all] == [(one.event, one.name) for one in without.hooks.all]
    assert set(found.directories) == set(without.directories)
    assert found.approves_https <= without.approves_https
    assert (found.result_limit, found.results_folder, found.cleanup_days) == (
        without.result_limit,
        without.results_folder,
        without.cleanup_days,
    )
    assert found.mode in allowed_modes(without.mode)
    require_rules_at_most(found, without)
    require_sandbox_at_most(found.sandbox, without.sandbox)
    assert servers_of(folders) <= servers_of(folders, project=False)
    before, after = (decisions(one) for one in (without, found))
    assert all(now <= then for now, then in zip(after, before, strict=True)), (before, after)


def servers_of(folders: Folders, *, project: bool = True) -> set[str]:
    """The servers that would be started, by name."""
    levels = EVERY_LEVEL if project else frozenset({Level.USER})
    layered = LiveSettings(folders.around(), folders.store, levels=levels).current()
    servers, _ = load_configured_servers(layered, str(folders.project))
    return {one.name for one in servers}


def allowed_modes(mode: Mode) -> set[Mode]:
    stricter = {mode}
    if mode is not Mode.PLAN:
        stricter.add(Mode.DONT_ASK)
    if mode in (Mode.ACCEPT_EDITS, Mode.BYPASS, Mode.AUTO):  # `disableAutoMode` turns the last one off
        stricter.add(Mode.DEFAULT)
    return stricter


def require_rules_at_most(found: SessionPolicy, without: SessionPolicy) -> None:
    now, then = ({(rule.behavior, rule.text) for rule in one.rules} for one in (found, without))
    assert {text for behavior, text in now if behavior is Behavior.ALLOW} <= {text for _, text in then}
    assert {one for one in then if one[0] is not Behavior.ALLOW} <= now


def require_sandbox_at_most(found: SandboxPolicy | None, without: SandboxPolicy | None) -> None:
    if found is None or without is None:
        assert found is without is None
        return
    assert found.auto_allow <= without.auto_allow
    assert found.may_leave <= without.may_leave
    assert found.required >= without.required
    assert {one.text for one in found.excluded} <= {one.text for one in without.excluded}
    assert set(found.writable) <= set(without.writable)
    assert set(found.unwritable) >= set(without.unwritable)
    assert set(found.unreadable) >= set(without.unreadable)


class EveryBox:
    """A machine whose sandbox can hold a process to anything."""

    is_tried = True

    async def try_it(self) -> None: ...

    def confines(self, needed: Confinement, /) -> bool:
        return True


def decisions(found: SessionPolicy) -> list[int]:
    """For each of the calls: 0 refused, 1 asked about, 2 made."""
    rules = LiveRules(lambda: found, places(CWD, *found.directories), SessionState(CWD))
    rules.box = EveryBox()
    return [_rank(rules, proposal, found.mode) for proposal in PROPOSALS]


def _rank(rules: LiveRules, proposal: Proposal, mode: Mode) -> int:
    verdict: Any = rules.judge(proposal)
    behavior = Behavior.ASK if verdict is None else verdict.behavior
    asked = 0 if mode is Mode.DONT_ASK else 1
    return {Behavior.DENY: 0, Behavior.ASK: asked, Behavior.ALLOW: 2}[behavior]


class _BoxedInput(CommandInput):
    dangerously_disable_sandbox: bool = False


class _Bash(Bash):
    """With the parameter that a sandbox asks for."""

    input_model = _BoxedInput


def _proposal(name: str, given: dict[str, Any]) -> Proposal:
    return proposed(_Bash() if name == "Bash" else tool_named(name, "evil" if "__" in name else None), given)


PROPOSALS: Final = tuple(_proposal(name, given) for name, given in CALLS)

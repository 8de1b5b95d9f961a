"""Hooks as they stand in settings files, trusted or not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ferrule import Settings, ToolCall, hook, open_session
from ferrule.app.settings_interpretation import ReloadedPolicy, interpret_settings
from ferrule.core.calls import Status
from ferrule.hooks.event_names import NEVER_TOLD
from ferrule.hooks.hook import AgentPrompt, Condition, Hook, ModelPrompt, ServerTool
from ferrule.hooks.hook_loading import Loading, load_hooks
from ferrule.permissions.modes import Mode
from ferrule.settings.layers import SourcedHook
from ferrule.settings.levels import Level, Source
from ferrule.settings.reload import LiveSettings
from ferrule.settings.settings_sources import SettingsError, open_layers
from tests.requirement import requirement
from tests.settings.folders import put

REFUSE = {"type": "command", "command": "echo no >&2; exit 2"}


def refusing(event: Mapping[str, Any]) -> dict[str, Any]:
    return {"decision": "block", "reason": "from a module"}


def saying(event: str = "PreToolUse", matcher: str = "Read", **handler: Any) -> dict[str, Any]:
    return {"hooks": {event: [{"matcher": matcher, "hooks": [handler or REFUSE]}]}}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    put(tmp_path / "project" / "a.txt", "one\n")
    return tmp_path / "home" / ".claude" / "settings.json"


def live(folder: Path, **more: Any) -> LiveSettings:
    return open_layers(str(folder / "project"), folder / "state", **more)


def hooks_of(folder: Path, content: Mapping[str, Any]) -> tuple[Hook, ...]:
    found = interpret_settings(live(folder, settings=json.dumps(content)).current(), str(folder / "project"))
    return found.hooks.of("PreToolUse")


async def statuses(folder: Path, *steps: Any, **more: Any) -> list[Status]:
    """Of the same call, before any and after each of the steps."""
    base = Settings(cwd=str(folder / "project"), state_folder=folder / "state")
    settings = live(folder, **more)
    found = []
    async with open_session(replace(base, reload=ReloadedPolicy(settings, Mode.DEFAULT, base.cwd))) as session:
        for step in (lambda: None, *steps):
            step()
            (outcome,) = await session.run([ToolCall("1", "Read", {"file_path": "a.txt"})])
            found.append(outcome.status)
    return found


@requirement("HOOK-1", "SET-3")
async def test_a_hook_of_the_user_counts_as_soon_as_it_is_written(home: Path, tmp_path: Path) -> None:
    found = await statuses(tmp_path, lambda: put(home, saying()), home.unlink)

    assert found == [Status.OK, Status.DENIED, Status.OK]


@requirement("HOOK-4", "SET-3")
async def test_a_question_that_is_written_meanwhile_shuts_the_gate_where_nobody_can_answer(
    home: Path, tmp_path: Path
) -> None:
    found = await statuses(tmp_path, lambda: put(home, saying(type="prompt", prompt="p")), home.unlink)

    assert found == [Status.OK, Status.DENIED, Status.OK]


@requirement("SET-4", "SEC-2")
async def test_a_hook_of_a_folder_runs_only_within_trust(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "project" / ".claude" / "settings.json"
    trace = {"type": "command", "command": "touch ran; exit 2"}
    put(file, saying(**trace))

    assert await statuses(tmp_path) == [Status.OK]
    assert not (tmp_path / "project" / "ran").exists()
    assert await statuses(tmp_path, trusting=True) == [Status.DENIED]


@requirement("SET-4")
async def test_a_hook_that_changes_after_trust_does_not_run(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "project" / ".claude" / "settings.json"
    put(file, saying(type="command", command="true"))
    changed = saying(type="command", command="touch ran; exit 0")

    await statuses(tmp_path, lambda: put(file, changed), trusting=True)

    assert not (tmp_path / "project" / "ran").exists()


async def test_hooks_can_be_switched_off(home: Path, tmp_path: Path) -> None:
    put(home, saying() | {"disableAllHooks": True})

    assert await statuses(tmp_path) == [Status.OK]


@requirement("HOOK-4")
async def test_a_function_of_an_installed_module_is_a_hook(home: Path, tmp_path: Path) -> None:
    put(home, saying(type="python", function=f"{__name__}:refusing"))

    assert await statuses(tmp_path) == [Status.DENIED]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("nowhere_at_all:x", "ModuleNotFoundError"),
        ("json:nothing", "AttributeError"),
        ("json:__name__", "is not a function"),
        ("planted:x", "the module planted is inside the workspace"),
    ],
)
def test_a_function_that_cannot_be_had_is_an_error(
    function: str, words: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "project" / "planted.py", "raise SystemExit('it ran')\n")
    monkeypatch.syspath_prepend(str(tmp_path / "project"))

    with pytest.raises(SettingsError, match=words):
        hooks_of(tmp_path, saying(type="python", function=function))


@requirement("HOOK-4")
@pytest.mark.parametrize(
    ("handler", "work", "seconds"),
    [
        (
            {"type": "prompt", "prompt": "p", "model": "m", "continueOnBlock": True},
            ModelPrompt("p", "m", goes_on=True),
            30.0,
        ),
        ({"type": "agent", "prompt": "p"}, AgentPrompt("p"), 60.0),
        (
            {"type": "mcp_tool", "server": "s", "tool": "t", "input": {"b": 1, "a": 2}},
            ServerTool("s", "t", '{"a": 2, "b": 1}'),
            600.0,
        ),
    ],
)
def test_a_question_is_loaded_as_it_stands_and_fails_closed_at_a_gate_alone(
    handler: Any, work: Any, seconds: float, home: Path, tmp_path: Path
) -> None:
    (gate,) = hooks_of(tmp_path, saying(**handler))
    (open_one,) = hooks_of(tmp_path, saying(**handler, failClosed=False))
    later = live(tmp_path, settings=json.dumps(saying("PostToolUse", **handler))).current()
    (after,) = interpret_settings(later, str(tmp_path)).hooks.of("PostToolUse")

    assert (gate.work, gate.seconds) == (work, seconds)
    assert [hook.fails_closed for hook in (gate, open_one, after)] == [True, False, False]


def test_a_question_to_a_model_is_a_warning_where_the_event_takes_none(home: Path, tmp_path: Path) -> None:
    current = live(tmp_path, settings=json.dumps(saying("SessionStart", type="prompt", prompt="p"))).current()

    assert "hooks of the type prompt are not run for this event" in "".join(interpret_settings(current).warnings)


@pytest.mark.parametrize("event", sorted(NEVER_TOLD))
def test_a_hook_for_an_event_that_no_session_tells_of_is_a_warning(event: str, home: Path, tmp_path: Path) -> None:
    current = live(tmp_path, settings=json.dumps(saying(event, type="command", command="x"))).current()

    assert f"`{event}` cannot be run: this version never reports that event." in "".join(
        interpret_settings(current).warnings
    )
    with pytest.raises(ValueError, match="would never run"):
        hook(event, print)


def test_the_keys_of_a_hook_are_understood(home: Path, tmp_path: Path) -> None:
    (one,) = hooks_of(
        tmp_path,
        saying(type="command", command="x", timeout=3, failClosed=True, asyncRewake=True, **{"if": "Bash"}),
    )

    assert (one.seconds, one.fails_closed, one.beside, one.rewakes) == (3.0, True, True, True)
    assert one.condition is not None
    assert one.origin == "--settings:1"


def test_a_condition_that_is_not_understood_keeps_no_hook_from_running() -> None:
    def cannot(text: str) -> Condition:
        raise ValueError(f"{text} is too new")

    source = Source(Level.USER, "settings.json")
    found = SourcedHook(event="PreToolUse", matcher="", hook={**REFUSE, "if": "Bash(x)"}, source=source)
    loaded = load_hooks([found], Loading(workspace="/project", condition=cannot, services={}))

    assert loaded.book.of("PreToolUse")[0].condition is None


@requirement("SET-2")
@pytest.mark.parametrize(
    ("limits", "loads"),
    [({}, True), ({"allowedHttpHookUrls": ["https://a.test/*"]}, True), ({"allowedHttpHookUrls": []}, False)],
    ids=["no list", "a list that names it", "an empty list"],
)
def test_a_list_of_addresses_leaves_those_that_it_names(limits: Any, loads: bool, home: Path, tmp_path: Path) -> None:
    said = saying(type="http", url="https://a.test/hook") | limits
    if loads:
        assert len(hooks_of(tmp_path, said)) == 1
        return
    with pytest.raises(SettingsError, match="is not among `allowedHttpHookUrls`"):
        hooks_of(tmp_path, said)


@requirement("HOOK-1")
async def test_a_condition_chooses_calls(home: Path, tmp_path: Path) -> None:
    put(home, saying(matcher="*", **REFUSE, **{"if": "Bash"}))
    others = await statuses(tmp_path)
    put(home, saying(matcher="*", **REFUSE, **{"if": "Read"}))

    assert (others, await statuses(tmp_path)) == ([Status.OK], [Status.DENIED])


@requirement("PIPE-3")
def test_a_setting_leaves_changing_input_to_managed_hooks(home: Path, tmp_path: Path) -> None:
    free = hooks_of(tmp_path, saying())
    bound = hooks_of(tmp_path, saying() | {"allowManagedInputChangesOnly": True})

    assert [hook.may_change_input for hook in (*free, *bound)] == [True, False]


@requirement("HOOK-1")
@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("git push origin", True),
        ("cd x && git push", True),
        ("ls", False),
        ("python3 -V", False),
        ("$(printf git) push", True),
    ],
    ids=["the command itself", "a part of it", "another", "one with unknown effects", "one that cannot be read"],
)
async def test_a_condition_with_a_specifier_looks_into_a_command(
    command: str, runs: bool, home: Path, tmp_path: Path
) -> None:
    put(home, saying(matcher="Bash", **REFUSE, **{"if": "Bash(git push *)"}))
    settings = live(tmp_path)
    base = Settings(cwd=str(tmp_path / "project"), state_folder=tmp_path / "state", mode=Mode.BYPASS)
    async with open_session(replace(base, hooks=interpret_settings(settings.current(), base.cwd).hooks)) as session:
        (outcome,) = await session.run([ToolCall("1", "Bash", {"command": command})])

    assert (outcome.status is Status.DENIED) is runs

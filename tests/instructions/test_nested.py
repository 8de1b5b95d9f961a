from __future__ import annotations

from pathlib import Path

from ferrule.app.build import Settings
from ferrule.app.session_opening import OpenedSession, open_conversation
from ferrule.core.calls import ToolCall
from ferrule.core.model import ResultTurn
from ferrule.providers.scripted import says
from ferrule.testing import RecordingModel
from tests.requirement import requirement


def opened(folder: Path) -> OpenedSession:
    return open_conversation(Settings(cwd=str(folder), state_folder=folder.parent / "state"))


async def told(folder: Path, *paths: str) -> list[tuple[str, ...]]:
    """What is added to the results of reading each of these files, a message for each."""
    reads = [says("", ToolCall(str(number), "Read", {"file_path": path})) for number, path in enumerate(paths)]
    async with opened(folder).session as session:
        async with session.ask("Go", RecordingModel(*reads, says("Done."))) as events:
            async for _ in events:
                pass
        return [turn.messages for turn in session.history if isinstance(turn, ResultTurn)]


@requirement("READ-11", "LOOP-3")
async def test_the_instructions_of_a_folder_are_told_once_when_a_file_there_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "sub" / "CLAUDE.md").write_text("Mind the sub.")
    (folder / "sub" / "deep" / "AGENTS.md").write_text("Mind the deep.")
    for path in ("top.txt", "sub/a.txt", "sub/deep/b.txt"):
        (folder / path).write_text("x\n")

    none, first, second = await told(folder, "top.txt", "sub/a.txt", "sub/deep/b.txt")

    assert none == ()
    assert first == (f'<instructions from="{folder}/sub/CLAUDE.md">\nMind the sub.\n</instructions>',)
    assert len(second) == 1
    assert "Mind the deep." in second[0]


@requirement("READ-11")
async def test_files_of_one_folder_that_are_read_side_by_side_tell_its_instructions_once(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "CLAUDE.md").write_text("Mind the sub.")
    names = [f"sub/{number}.txt" for number in range(10)]
    for name in names:
        (folder / name).write_text("x\n")
    at_once = says("", *(ToolCall(name, "Read", {"file_path": name}) for name in names))

    async with opened(folder).session as session:
        async with session.ask("Go", RecordingModel(at_once, says("Done."))) as events:
            async for _ in events:
                pass
        (results,) = [turn for turn in session.history if isinstance(turn, ResultTurn)]

    assert ["Mind the sub." in message for message in results.messages] == [True]


@requirement("READ-11")
async def test_a_rule_for_some_files_is_told_when_one_of_them_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    rules = folder / ".claude" / "rules"
    rules.mkdir(parents=True)
    (rules / "py.md").write_text("---\npaths: 'src/**/*.py'\n---\nTyped, please.\n")
    (folder / "src").mkdir()
    (folder / "src" / "a.py").write_text("x\n")
    (folder / "src" / "a.txt").write_text("x\n")

    text, python, again = await told(folder, "src/a.txt", "src/a.py", "src/a.py")

    assert (text, again) == ((), ())
    assert "Typed, please." in python[0]


@requirement("LOOP-4")
async def test_the_system_prompt_is_the_same_in_every_request(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "CLAUDE.md").write_text("Use tabs.")
    model = RecordingModel(says("", ToolCall("1", "Glob", {"pattern": "*"})), says("Done."))

    async with opened(folder).session as session, session.ask("Go", model) as events:
        async for _ in events:
            (folder / "CLAUDE.md").write_text("Use spaces.")

    systems = {request.system for request, _ in model.requests}
    assert len(model.requests) == 2
    assert len(systems) == 1
    (system,) = systems
    assert "Use tabs." in system
    assert system.index("# How to work") < system.index("Use tabs.") < system.index(f"Working directory: {folder}")


@requirement("LOOP-4")
def test_every_built_in_tool_has_a_guide_of_more_than_a_sentence(tmp_path: Path) -> None:
    tmp_path.joinpath("w").mkdir()

    thin = [tool.name for tool in opened(tmp_path / "w").session.registry.pool if len(tool.spec.description) < 300]

    assert thin == []

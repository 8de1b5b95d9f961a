"""What an edit of a very large file may cost, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import ToolCall
from ferrule.core.content import plain_text
from ferrule.permissions.modes import Mode
from ferrule.text.diffs import MORE_CHANGES, of_edits
from ferrule.text.edit_messages import not_found
from ferrule.text.lines import CHUNK, LineView, content, split_lines
from ferrule.text.matching import MOST_PLACES, Edited, TextEdit, TooMany, apply
from ferrule.text.nearest import MOST_LINES
from ferrule.tools.edit import MOST_EDITED
from tests.requirement import requirement

EDITING = """
import asyncio, resource, sys
from pathlib import Path
from ferrule.app.build import Settings, open_session
from ferrule.core.calls import ToolCall
from ferrule.permissions.modes import Mode

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

async def main(folder):
    async with open_session(Settings(cwd=folder, state_folder=Path(folder, "state"), mode=Mode.BYPASS)) as session:
        small = {"old_string": "b", "new_string": "c"}
        for name in ("small.txt", "large.txt"):
            before = peak()
            last = {"pattern": "THE END", "path": name, "output_mode": "content"}
            await session.run([ToolCall("1", "Grep", last)])
            edit = {"file_path": name, "old_string": "THE END", "new_string": "the end"}
            (outcome,) = await session.run([ToolCall("2", "Edit", edit)])
            assert not outcome.is_error, outcome.content
    print(peak() - before)

asyncio.run(main(sys.argv[1]))
"""


@requirement("FILE-4")
def test_an_edit_takes_a_small_multiple_of_the_file_however_short_its_lines_are(tmp_path: Path) -> None:
    size = 12_000_000
    (tmp_path / "small.txt").write_text("THE END\n")
    (tmp_path / "large.txt").write_text("ab\n" * (size // 3) + "THE END\n")

    done = subprocess.run(
        [sys.executable, "-c", EDITING, str(tmp_path)], capture_output=True, check=True, timeout=60, text=True
    )

    assert int(done.stdout) < 8 * size
    assert (tmp_path / "large.txt").read_text()[-12:] == "b\nab\nthe end\n"[-12:]


@requirement("FILE-4")
async def test_a_file_beyond_the_bound_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"the first line\n" + b"x" * MOST_EDITED)
    read = ToolCall("1", "Read", {"file_path": "a.txt", "limit": 1})
    edit = ToolCall("2", "Edit", {"file_path": "a.txt", "old_string": "first", "new_string": "1st"})

    async with open_session(Settings(cwd=str(tmp_path), state_folder=tmp_path / "s", mode=Mode.BYPASS)) as session:
        await session.run([read])
        (outcome,) = await session.run([edit])

    assert plain_text(outcome.content) == (
        f"{path} is too large to be edited: it has {MOST_EDITED + 15:,} bytes, and at most {MOST_EDITED:,} can be "
        "loaded. Use a command, such as sed with Bash."
    )


@requirement("FILE-4")
def test_more_places_than_one_edit_may_change_are_counted_and_not_changed() -> None:
    most = "ab\n" * MOST_PLACES

    assert apply(most + "ab\n", "ab", "c", replace_all=True) == TooMany(MOST_PLACES + 1)
    assert isinstance(found := apply(most, "ab", "c", replace_all=True), Edited)
    assert found.count == MOST_PLACES


@requirement("FILE-4")
def test_in_a_very_long_text_nothing_like_it_is_looked_for() -> None:
    short, long = "ab\n" * MOST_LINES, "ab\n" * (MOST_LINES + 1)

    assert "nor is anything like it" in not_found("a.txt", short, "something else")
    assert not_found("a.txt", long, "something else") == (
        "`old_string` is not in a.txt, which is too long to look for something like it. Find the text with Grep."
    )


def test_the_patch_of_very_many_edits_is_made_of_the_first_of_them() -> None:
    text = "ab\n" * 100_000
    edits = [TextEdit(at, at + 2, "c") for at in range(0, len(text), 3)]

    lines = of_edits(text, edits, "a.txt", limit=200).splitlines()

    assert len(lines) == 200
    assert lines[2].startswith("@@ -1,")
    assert lines[-1] == MORE_CHANGES


@given(st.text(st.sampled_from("ab\r\n"), max_size=40), st.integers(1, 12), st.integers(0, 12), st.integers(0, 3))
def test_lines_by_their_numbers_are_those_of_the_whole_text(text: str, first: int, last: int, far: int) -> None:
    text = ("x\n" if "\n" in text else "x\r") * (far * CHUNK // 2) + text if far else text
    shift = far * CHUNK // 2
    every = [content(line) for line in split_lines(text)]

    view = LineView(text)

    assert view.total == len(every)
    assert view.some(shift + first, shift + last) == every[shift + first - 1 : shift + last]

"""Diffs that are true, small and cheap."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from ferrule.text.changes import changes, common, pair_lines
from ferrule.text.diffs import of_edits, preview, unified_diff
from ferrule.text.matching import TextEdit, splice_edits
from tests.drawing import examples
from tests.requirement import requirement

line_lists = st.lists(st.sampled_from(["a", "b", "c", "", "  d"]), max_size=25)
files = st.builds(
    "".join, st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "\n", "d\re\n", "é\x0cf\n", "-g\n"]), max_size=20)
)
unfinished = st.sampled_from(["", "end", "end\r"])


@given(files, unfinished, files, unfinished, st.integers(1, 4))
@requirement("EDIT-6")
def test_git_makes_the_new_text_of_the_old_one_and_the_diff(
    before: str, before_end: str, after: str, after_end: str, context: int
) -> None:
    before, after = before + before_end, after + after_end
    assume(before != after and "\n" in before + after)

    assert applied_by_git(before, unified_diff(before, after, "some/file.txt", context=context)) == after


@given(files, unfinished, st.data())
@examples(60)
@requirement("EDIT-6")
def test_git_makes_the_edited_text_of_the_old_one_and_the_diff_of_its_edits(
    text: str, end: str, data: st.DataObject
) -> None:
    text += end
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=6)))
    news = data.draw(st.lists(st.sampled_from(["", "x", "y\nz", "\n", "q\r\n"]), min_size=3, max_size=3))
    edits = [TextEdit(low, high, new) for low, high, new in zip(cuts[::2], cuts[1::2], news, strict=False)]
    after = splice_edits(text, edits)
    assume(text != after and "\n" in text)

    assert applied_by_git(text, of_edits(text, edits, "some/file.txt")) == after


def test_the_diff_of_an_edit_has_the_line_numbers_of_the_whole_text() -> None:
    text = "".join(f"line {n}\n" for n in range(1, 1001))
    edits = [TextEdit(at, at + 8, f"new {n}\nmore") for n in (500, 900) for at in [text.index(f"line {n}")]]

    assert of_edits(text, edits, "f") == unified_diff(text, splice_edits(text, edits), "f")


def test_a_long_line_is_clipped_where_the_diff_is_limited() -> None:
    patch = unified_diff("a" * 5_000, "b" * 5_000, "f", limit=10)

    assert max(map(len, patch.splitlines())) < 2_100


@given(line_lists, line_lists)
def test_what_two_lists_have_in_common_is_in_both_and_in_order(a: list[str], b: list[str]) -> None:
    same = common(a, b)

    assert all(a[i] == b[j] for i, j in pair_lines(same))
    assert sorted(pair_lines(same)) == list(pair_lines(same))
    assert len({j for _, j in pair_lines(same)}) == sum(part.size for part in same)


@given(st.integers(0, 999).map(random.Random), st.booleans(), st.booleans())
@examples(10)
def test_of_thousands_of_lines_in_another_order_those_in_common_rise_in_both(
    chance: random.Random, blocks: bool, repeats: bool
) -> None:
    a = [f"line {n}" for n in range(3_000)] + ["again"] * (300 if repeats else 0)
    b = [line for block in chance.sample(range(0, len(a), 50), len(a) // 50) for line in a[block : block + 50]]
    b = b if blocks else chance.sample(a, len(a))
    same = common(a, b)

    assert all(a[i] == b[j] for i, j in pair_lines(same))
    assert all(one.a + one.size <= two.a and one.b + one.size <= two.b for one, two in pairwise(same))
    assert sum(part.size for part in same) >= (50 if blocks else 2), "what keeps its order is found"


@given(line_lists, line_lists)
def test_the_changes_make_the_one_list_of_the_other(a: list[str], b: list[str]) -> None:
    made = list(a)
    for change in reversed(changes(a, b)):
        made[change.a] = b[change.b]

    assert made == b


def test_a_few_changes_in_a_large_file_are_found_one_by_one() -> None:
    before = [f"line {n}" for n in range(30_000)]
    after = [line.replace("7", "seven") for line in before]

    assert sum(change.a.stop - change.a.start for change in changes(before, after)) == sum("7" in n for n in before)


def test_a_large_part_without_anything_unique_is_one_change() -> None:
    chance = random.Random(1)
    before, after = (["x", *chance.choices("abcdefgh", k=30_000), "z"] for _ in range(2))

    assert len(changes(before, after)) < 10


@requirement("EDIT-6")
def test_the_line_numbers_are_those_of_the_file() -> None:
    before = "".join(f"line {n}\n" for n in range(1, 101))

    assert unified_diff(before, before.replace("line 50\n", "new\nnewer\n"), "/srv/a.txt", context=1) == snapshot("""\
--- a/srv/a.txt
+++ b/srv/a.txt
@@ -49,3 +49,4 @@
 line 49
-line 50
+new
+newer
 line 51
""")


@requirement("EDIT-6")
def test_distant_changes_are_hunks_of_their_own() -> None:
    before = "".join(f"{n}\n" for n in range(20))

    diff = unified_diff(before, before.replace("2\n", "two\n", 1).replace("\n17\n", "\n"), "f", context=1)

    assert diff == snapshot("""\
--- a/f
+++ b/f
@@ -2,3 +2,3 @@
 1
-2
+two
 3
@@ -17,3 +17,2 @@
 16
-17
 18
""")


def test_a_missing_last_newline_is_said() -> None:
    assert unified_diff("a", "a\n", "f") == snapshot("""\
--- a/f
+++ b/f
@@ -1 +1 @@
-a
\\ No newline at end of file
+a
""")


def test_a_carriage_return_can_be_shown() -> None:
    assert unified_diff("a\r\nb\r\n", "a\nb\r\n", "f", show_cr=True) == snapshot("""\
--- a/f
+++ b/f
@@ -1,2 +1,2 @@
-a␍
+a
 b␍
""")
    assert unified_diff("a\rb\rc", "a\rB\rc", "f", context=1) == snapshot("""\
--- a/f
+++ b/f
@@ -1,3 +1,3 @@
 a␍
-b␍
+B␍
 c
\\ No newline at end of file
""")


def test_equal_texts_have_no_diff() -> None:
    assert unified_diff("a\n", "a\n", "f") == ""


@given(files, files, st.integers(1, 12))
def test_a_limit_is_kept_and_what_is_missing_is_counted(before: str, after: str, limit: int) -> None:
    whole = unified_diff(before, after, "f").split("\n")[:-1]
    cut = unified_diff(before, after, "f", limit=limit).split("\n")[:-1]

    if len(whole) <= limit:
        assert cut == whole
    else:
        assert cut == [*whole[: limit - 1], f"[{len(whole) - limit + 1} more lines of this diff]"]


@requirement("WRITE-1")
def test_a_preview_has_the_first_lines_and_the_total() -> None:
    assert preview("a\r\nb\n") == "a\nb"
    assert preview("".join(f"{n}\n" for n in range(2_000)), 2) == "0\n1\n[2 of 2,000 lines]"
    assert preview("x" * 2_500) == f"{'x' * 2_000} [500 more characters]"
    assert preview("") == ""


def applied_by_git(before: str, diff: str) -> str:
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed, so there is nothing to compare with")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "some", "file.txt")
        file.parent.mkdir()
        file.write_bytes(before.encode())
        quiet = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CEILING_DIRECTORIES": folder}
        subprocess.run(
            [git, "apply", "--whitespace=nowarn", "-"],
            cwd=folder,
            env={**os.environ, **quiet},
            input=diff.encode(),
            capture_output=True,
            check=True,
            timeout=60,
        )
        return file.read_bytes().decode() if file.exists() else ""

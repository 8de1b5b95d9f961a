"""Grep: the content of files, by regular expression."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from ferrule.core.calls import Status, ToolCall
from ferrule.core.content import Listing, Table, Text
from ferrule.core.effects import Effects
from ferrule.host.search.file_search import Search
from ferrule.testing import bare_context, run_call, run_calls
from ferrule.testing.tool_contract import ToolContract
from ferrule.tools.grep import Grep, GrepInput, MatchCounts, MatchingFiles
from tests.host.search.slow_ripgrep import HANGING_SECONDS, hanging_after
from tests.requirement import requirement
from tests.tools.test_bash import A_FEW_STEPS


class TestGrepContract(ToolContract):
    steps = A_FEW_STEPS
    samples = (
        {"pattern": "def"},
        {"pattern": "def", "output_mode": "content", "-C": 1, "-i": True, "path": "."},
        {"pattern": "d", "output_mode": "count", "path": "sub/a.py", "glob": "*.py", "type": "py"},
        {"pattern": "nowhere", "head_limit": "0", "path": None},
    )

    def make(self) -> Grep:
        return Grep()

    def arrange(self, folder: Path) -> None:
        (folder / "sub").mkdir()
        (folder / "sub" / "a.py").write_text("def one(): ...\n\ndef two(): ...\n")
        (folder / "b.txt").write_text("default\n")


def _file(folder: Path, name: str, content: str | bytes, *, age: int = 0) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.utime(path, (1_000_000 - age, 1_000_000 - age))
    return str(path)


async def _grep(folder: Path, pattern: str, **more: Any) -> str:
    status, words = await _answer(folder, pattern, **more)
    assert status is Status.OK, words
    return words


async def _content(folder: Path, pattern: str, **more: Any) -> str:
    return await _grep(folder, pattern, output_mode="content", **more)


async def _answer(folder: Path, pattern: str, **more: Any) -> tuple[Status, str]:
    outcome = await run_call(folder, Grep(concise=False), {"pattern": pattern, **more})
    (block,) = outcome.content
    assert isinstance(block, Text)
    return outcome.status, block.text


# Files


@requirement("GREP-1")
async def test_files_with_matches_come_newest_first_unless_told_otherwise(tmp_path: Path) -> None:
    old = _file(tmp_path, "old.py", "needle\n", age=20)
    new = _file(tmp_path, "sub/new.txt", "a needle here\nneedle\n")
    _file(tmp_path, "other.py", "hay\n")

    outcome = await run_call(tmp_path, Grep(concise=False), {"pattern": "needle"})

    assert outcome.content == (Text(f"{new}\n{old}"),)
    assert outcome.output == MatchingFiles((new, old), 0, 2, searched=str(tmp_path))
    assert outcome.view == Listing((new, old), 2)


@requirement("GREP-1")
async def test_files_are_paged_newest_first_with_the_true_total(tmp_path: Path) -> None:
    names = [_file(tmp_path, f"{number:03}", "x", age=number) for number in range(150)]

    first = (await _grep(tmp_path, "x", head_limit=100)).splitlines()
    second = (await _grep(tmp_path, "x", offset=100)).splitlines()
    few = (await _grep(tmp_path, "x", offset=1, head_limit=2)).splitlines()

    assert first == [*names[:100], "[Files 1 to 100 of 150, newest first. Continue with offset 100.]"]
    assert second == [*names[100:], "[Files 101 to 150 of 150, newest first.]"]
    assert few == [*names[1:3], "[Files 2 to 3 of 150, newest first. Continue with offset 3.]"]
    assert await _grep(tmp_path, "x", head_limit=0) == "\n".join(names)
    assert await _grep(tmp_path, "x", offset=150) == "[There are only 150 files, and `offset` is 150.]"


@requirement("GREP-1")
async def test_at_most_two_hundred_and_fifty_files_come_unless_told_otherwise(tmp_path: Path) -> None:
    names = tuple(_file(tmp_path, f"{number:03}", "x", age=number) for number in range(300))

    outcome = await run_call(tmp_path, Grep(concise=False), {"pattern": "x"})

    assert outcome.output == MatchingFiles(names[:250], 0, 300, searched=str(tmp_path))


@requirement("GREP-1")
async def test_counts_come_with_their_sum(tmp_path: Path) -> None:
    one = _file(tmp_path, "one", "x\nx x\ny\n")
    two = _file(tmp_path, "two", "x\n", age=1)

    outcome = await run_call(tmp_path, Grep(concise=False), {"pattern": "x", "output_mode": "count"})

    assert outcome.content == (Text(f"{one}:2\n{two}:1\n[3 in all, in 2 files.]"),)
    assert outcome.output == MatchCounts(((one, 2), (two, 1)), 0, 2, 3, searched=str(tmp_path))
    assert outcome.view == Table(("file", "matches"), ((one, "2"), (two, "1")))


@requirement("GREP-1")
async def test_matches_are_counted_one_by_one_when_asked(tmp_path: Path) -> None:
    path = _file(tmp_path, "one", "x\nx x\n")

    words = await _grep(tmp_path, "x", output_mode="count", **{"-o": True})

    assert words == f"{path}:3\n[3 in all, in 1 file.]"


@requirement("GREP-1")
async def test_counts_know_the_sum_of_what_they_do_not_show(tmp_path: Path) -> None:
    names = [_file(tmp_path, str(number), "x\n", age=number) for number in range(5)]

    words = await _grep(tmp_path, "x", output_mode="count", head_limit=1)

    assert words == (
        f"{names[0]}:1\n[Files 1 to 1 of 5, newest first. Continue with offset 1.]\n[5 in all, in 5 files.]"
    )


# Lines


@requirement("GREP-1")
async def test_content_shows_path_number_and_line(tmp_path: Path) -> None:
    path = _file(tmp_path, "a.txt", "one\ntwo\r\nthree\n")

    assert await _content(tmp_path, "t") == f"{path}:2:two\n{path}:3:three"
    assert await _content(tmp_path, "t", **{"-n": False}) == f"{path}:two\n{path}:three"
    assert await _content(tmp_path, "T", **{"-i": "true"}) == f"{path}:2:two\n{path}:3:three"
    assert await _content(tmp_path, "t.", **{"-o": True}) == f"{path}:2:tw\n{path}:3:th"
    assert await _content(tmp_path, "two", path="a.txt") == f"{path}:2:two"


@requirement("GREP-1")
async def test_lines_around_a_match_are_marked_and_gaps_shown(tmp_path: Path) -> None:
    path = _file(tmp_path, "a.txt", "1\n2\n3 x\n4\n5\n6\n7\n8 x\n9\n")

    both = [f"{path}-2-2", f"{path}:3:3 x", f"{path}-4-4", "--", f"{path}-7-7", f"{path}:8:8 x", f"{path}-9-9"]
    assert (await _content(tmp_path, "x", **{"-C": 1})).splitlines() == both
    assert (await _content(tmp_path, "x", context=1)).splitlines() == both
    assert (await _content(tmp_path, "x", **{"-A": 1, "-n": False})).splitlines() == [
        f"{path}:3 x",
        f"{path}-4",
        "--",
        f"{path}:8 x",
        f"{path}-9",
    ]
    assert (await _content(tmp_path, "8", **{"-B": 2})).splitlines() == [f"{path}-6-6", f"{path}-7-7", f"{path}:8:8 x"]


@requirement("GREP-1")
async def test_a_match_may_span_lines_when_asked(tmp_path: Path) -> None:
    path = _file(tmp_path, "a.txt", "start {\n  field\n}\n")

    assert await _content(tmp_path, r"start \{.*?field", multiline=True) == f"{path}:1:start {{\n{path}:2:  field"
    assert await _content(tmp_path, r"\{.*?fi", multiline=True, **{"-o": True}) == f"{path}:1:{{\n{path}:2:  fi"
    assert await _content(tmp_path, "start.*field") == f"No match in {tmp_path}."


@requirement("GREP-1")
async def test_a_stopped_search_says_how_many_lines_there_are_where_that_is_quickly_counted(tmp_path: Path) -> None:
    path = _file(tmp_path, "a.txt", "x\n" * 10_000)

    outcome = await run_call(tmp_path, Grep(concise=False), {"pattern": "x", "output_mode": "content"})

    assert [(line.path, line.number, line.text) for line in outcome.output.lines] == [
        (path, number, "x") for number in range(1, 251)
    ]
    assert isinstance(outcome.content[0], Text)
    assert outcome.content[0].text.splitlines()[-1] == (
        "[Stopped after 250 lines; there are 10,000. Narrow the search, or continue with offset 250.]"
    )
    assert (outcome.output.seen, outcome.output.complete) == (251, False)


@requirement("GREP-1")
async def test_with_lines_around_each_match_no_total_is_claimed(tmp_path: Path) -> None:
    _file(tmp_path, "a.txt", "x\n" * 1_000)

    outcome = await run_call(tmp_path, Grep(concise=False), {"pattern": "x", "output_mode": "content", "-A": 1})

    assert isinstance(outcome.content[0], Text)
    assert "there are at least 251." in outcome.content[0].text


@requirement("GREP-1")
async def test_a_search_that_ended_knows_its_total(tmp_path: Path) -> None:
    path = _file(tmp_path, "a.txt", "x\n" * 10)

    assert await _content(tmp_path, "x", offset=8) == f"{path}:9:x\n{path}:10:x\n[Lines 9 to 10 of 10.]"
    assert await _content(tmp_path, "x", offset=10) == "[There are only 10 lines, and `offset` is 10.]"
    assert len((await _content(tmp_path, "x", head_limit=10)).splitlines()) == 10


@requirement("GREP-1")
async def test_ten_thousand_lines_come_whole_when_the_limit_is_lifted(tmp_path: Path) -> None:
    _file(tmp_path, "a.txt", "x\n" * 10_000)

    outcome = await run_call(tmp_path, Grep(concise=False), {"pattern": "x", "output_mode": "content", "head_limit": 0})

    assert (len(outcome.output.lines), outcome.output.seen, outcome.output.complete) == (10_000, 10_000, True)
    assert outcome.record is not None
    assert outcome.record.sent_chars <= 20_000
    assert outcome.record.saved_to


@requirement("GREP-1")
async def test_a_long_line_is_clipped_around_its_match(tmp_path: Path) -> None:
    path = _file(tmp_path, "min.js", "é" * 3_000_000 + "needle" + "b" * 1_000_000)

    assert await _content(tmp_path, "needle") == (
        f"{path}:1:[2,999,875 characters] {'é' * 125}needle{'b' * 369} [999,631 characters]"
    )


@requirement("GREP-1")
async def test_a_line_of_exactly_the_limit_is_whole(tmp_path: Path) -> None:
    path = _file(tmp_path, "a", "x" * 500)

    assert await _content(tmp_path, "x$") == f"{path}:1:{'x' * 500}"


# What is searched


@requirement("GREP-1")
async def test_glob_and_type_narrow_the_search(tmp_path: Path) -> None:
    py = _file(tmp_path, "src/a.py", "x")
    pyi = _file(tmp_path, "src/deep/b.pyi", "x", age=1)
    js = _file(tmp_path, "lib/c.min.js", "x", age=2)

    assert await _grep(tmp_path, "x", type="py") == f"{py}\n{pyi}"
    assert await _grep(tmp_path, "x", glob="*.py") == py
    assert await _grep(tmp_path, "x", glob="*.{pyi,js}") == f"{pyi}\n{js}"
    assert await _grep(tmp_path, "x", glob="src/**/*.py*") == f"{py}\n{pyi}"
    assert await _grep(tmp_path, "x", glob="/src/*") == py
    assert await _grep(tmp_path, "x", glob="src/") == f"{py}\n{pyi}"
    assert await _grep(tmp_path, "x", glob="!*.min.js") == f"{py}\n{pyi}"
    assert await _grep(tmp_path, "x", glob="*.pyi", type="py") == pyi
    assert await _content(tmp_path, "x", glob="deep/*.pyi", path="src") == f"{pyi}:1:x"
    assert await _grep(tmp_path, "x", glob="*.py", type="js") == f"No match in {tmp_path}."


@requirement("GREP-1")
async def test_an_ignored_file_is_searched_only_when_asked(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    _file(tmp_path, ".git/config", "x")
    ignore = _file(tmp_path, ".gitignore", "*.x\n")
    ignored = _file(tmp_path, "a.x", "x", age=1)

    assert await _grep(tmp_path, "x") == ignore
    assert await _grep(tmp_path, "x", glob="*.x") == f"No match in {tmp_path}."
    assert await _grep(tmp_path, "x", include_ignored=True) == f"{ignore}\n{ignored}"
    assert await _grep(tmp_path, "x", glob="*.x", include_ignored=True) == ignored
    assert await _content(tmp_path, "x", path="a.x") == f"{ignored}:1:x"


@requirement("GREP-1", "PERM-5")
async def test_links_are_not_followed(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    inside = _file(workspace, "a", "x")
    outside = _file(tmp_path, "outside/b", "x")
    (workspace / "out").symlink_to(tmp_path / "outside")
    (workspace / "b").symlink_to(outside)

    assert await _grep(workspace, "x") == inside


@requirement("GREP-1")
async def test_a_pipe_in_the_tree_is_passed_over_and_refused_by_name(tmp_path: Path) -> None:
    path = _file(tmp_path, "a", "x")
    os.mkfifo(tmp_path / "pipe")

    assert await _grep(tmp_path, "x") == path
    assert await _answer(tmp_path, "x", path="pipe") == (
        Status.INVALID,
        f"{tmp_path}/pipe is neither a file nor a directory. Pass one of them as `path`.",
    )


@requirement("GREP-1")
async def test_binary_files_are_passed_over_and_said_to_match_by_name(tmp_path: Path) -> None:
    text = _file(tmp_path, "a", "x")
    binary = _file(tmp_path, "b", b"\0x\nx\n")

    assert await _content(tmp_path, "x") == f"{text}:1:x"
    assert await _content(tmp_path, "x", path="b") == f"{binary}:[This file is binary, and matches.]"


@requirement("GREP-1")
async def test_any_file_name_and_any_line_come_through(tmp_path: Path) -> None:
    names = [b"new\nline:1:x", b'quo"te', b"b\xff\xfe", "ü\u2028".encode(), b"a\\b", b"-e", b" "]
    for name in names:
        _file(tmp_path, os.fsdecode(name), b'x \xff:1:\xe2\x80\xa8 "\\ \x1b[1m\n')
    paths = {os.path.join(os.fsencode(tmp_path), name) for name in names}

    outcomes = [
        await run_call(tmp_path, Grep(concise=False), {"pattern": "^x", "output_mode": mode})
        for mode in ("files_with_matches", "count", "content")
    ]

    assert {os.fsencode(path) for path in outcomes[0].output.paths} == paths
    assert {(os.fsencode(path), count) for path, count in outcomes[1].output.counts} == {(path, 1) for path in paths}
    assert {(os.fsencode(line.path), line.number, line.text) for line in outcomes[2].output.lines} == {
        (path, 1, 'x \ufffd:1:\u2028 "\\ \x1b[1m') for path in paths
    }


@requirement("GREP-1")
async def test_a_name_with_a_line_break_is_written_on_one_line(tmp_path: Path) -> None:
    _file(tmp_path, 'new\nline "x"\x1b\u2028', "x\n")
    written = f'"{tmp_path}/new\\nline \\"x\\"\\u001b\\u2028"'

    assert await _grep(tmp_path, "x") == written
    assert await _grep(tmp_path, "x", output_mode="count") == f"{written}:1\n[1 in all, in 1 file.]"
    assert await _content(tmp_path, "x") == f"{written}:1:x"


@requirement("GREP-3")
@pytest.mark.parametrize("mode", ["files_with_matches", "count", "content"])
async def test_hidden_files_are_in_no_result_and_in_no_total(tmp_path: Path, mode: str) -> None:
    shown = _file(tmp_path, "a", "x\n")
    secret = _file(tmp_path, "secret/b", "x\nx\n")
    search = Search(hidden=lambda: {secret}.__contains__)

    outcome = await run_call(tmp_path, Grep(search, concise=False), {"pattern": "x", "output_mode": mode})

    assert isinstance(outcome.content[0], Text)
    assert (
        outcome.content[0].text
        == {
            "files_with_matches": shown,
            "count": f"{shown}:1\n[1 in all, in 1 file.]",
            "content": f"{shown}:1:x",
        }[mode]
    )


# Patterns


@requirement("GREP-2")
@pytest.mark.parametrize("mode", ["files_with_matches", "count", "content"])
async def test_no_match_is_not_an_error(tmp_path: Path, mode: str) -> None:
    _file(tmp_path, "a", "x")

    assert await _grep(tmp_path, "nowhere", output_mode=mode) == f"No match in {tmp_path}."


@requirement("GREP-2")
async def test_a_bad_pattern_is_refused_in_the_words_of_ripgrep(tmp_path: Path) -> None:
    assert await _answer(tmp_path, "a(b") == (
        Status.FAILED,
        snapshot("""\
rg: regex parse error:
    (?:a(b)
    ^
error: unclosed group
Correct `pattern` or `type`, and search again.\
"""),
    )


@requirement("GREP-2")
@pytest.mark.parametrize("pattern", ["-x", "--files", "--", "-e"])
async def test_a_pattern_that_begins_with_a_dash_is_a_pattern(tmp_path: Path, pattern: str) -> None:
    path = _file(tmp_path, "a", f"{pattern}\n")
    _file(tmp_path, "b", "x\n")

    assert await _grep(tmp_path, pattern) == path
    assert await _content(tmp_path, pattern) == f"{path}:1:{pattern}"


@requirement("GREP-2")
async def test_a_glob_that_begins_with_a_dash_is_a_glob(tmp_path: Path) -> None:
    path = _file(tmp_path, "-a.txt", "x")
    _file(tmp_path, "a.txt", "x")

    assert await _grep(tmp_path, "x", glob="-*.txt") == path


@requirement("GREP-2", "PIPE-2")
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"pattern": "x\0"}, "ripgrep cannot take these arguments: embedded null byte"),
        ({"pattern": "x" * 200_000}, "ripgrep could not be started: Argument list too long"),
        ({"type": "klingon"}, "rg: unrecognized file type: klingon"),
        ({"glob": "{a"}, '`glob` "{a" is not a pattern that a path can match: a `{` is never closed.'),
    ],
)
async def test_what_cannot_be_searched_for_is_refused(tmp_path: Path, more: dict[str, Any], words: str) -> None:
    status, said = await _answer(tmp_path, **{"pattern": "x", **more})

    assert (status, said.startswith(words)) == (Status.FAILED, True), said


@requirement("GREP-2")
async def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert await _answer(tmp_path, "x", path="gone") == (
        Status.INVALID,
        f"{tmp_path}/gone cannot be searched: No such file or directory. Use Glob to find the file.",
    )


# How it ends


@requirement("GREP-1")
async def test_when_time_runs_out_what_was_found_is_given(tmp_path: Path) -> None:
    path = _file(tmp_path, "a.txt", "x")
    tool = Grep(Search(program=hanging_after(tmp_path, rb"./a.txt\0"), seconds=HANGING_SECONDS), concise=False)

    outcome = await run_call(tmp_path, tool, {"pattern": "x"})

    assert outcome.content == (
        Text(f"{path}\n[The search was stopped after 2 s; there may be more. Narrow it to see the rest.]"),
    )


@requirement("GREP-1", "CON-15")
async def test_the_old_name_takes_its_old_parameters_and_gives_lines(tmp_path: Path) -> None:
    _file(tmp_path, "a.py", "x\n")
    _file(tmp_path, "a.txt", "x\n")

    (outcome,) = await run_calls(tmp_path, [ToolCall("1", "grep_search", {"pattern": "x", "include": "*.py"})])

    assert (outcome.status, outcome.content) == (Status.OK, (Text("a.py:1:x"),))


@requirement("CON-5")
def test_a_search_reads_its_path(tmp_path: Path) -> None:
    tool, ctx = Grep(concise=False), bare_context(tmp_path)

    assert tool.effects(GrepInput(pattern="x"), ctx) == Effects.reading(str(tmp_path))
    assert tool.effects(GrepInput(pattern="x", path="/src"), ctx) == Effects.reading("/src")


@requirement("CON-4")
def test_a_search_is_described_in_one_short_line() -> None:
    assert Grep(concise=False).describe(GrepInput(pattern="x\n y", path="/src")) == "Grep x y in /src"
    assert len(Grep(concise=False).describe(GrepInput(pattern="x" * 1_000))) <= 90


@requirement("BUD-2")
def test_its_limit_is_twenty_thousand_characters() -> None:
    assert Grep.result_limit == 20_000

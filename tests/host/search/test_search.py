"""Search on ripgrep: the same answers as rg and git give, and never a process left."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ferrule.host.search import matched_lines
from ferrule.host.search.file_search import Search, SearchFailed
from ferrule.host.search.globs import anywhere, compile_glob
from ferrule.host.search.hits import Query, SearchPlace
from ferrule.host.search.matched_lines import LineCollector, MatchedLine, clip_line
from ferrule.host.search.ripgrep import End, find_ripgrep
from tests.host.search.slow_ripgrep import HANGING_SECONDS, hanging_after, pid_file
from tests.requirement import requirement

RG = find_ripgrep(os.environ) or "rg"
NAMES = st.sampled_from(["a", "b", "a.py", "b.py", "c.txt", ".d", "e f", "build", "x.log", "ab", "é.py"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
TREES = st.lists(PATHS, min_size=1, max_size=12, unique=True)
few = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])


@contextmanager
def _tree(paths: list[str], content: str = "x\n") -> Generator[Path]:
    """A folder with these files; one that would stand where a folder stands is left out."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder))
        for path in paths:
            try:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(content)
            except OSError:
                continue
        yield root


def _rg(root: Path, *arguments: str) -> set[str]:
    done = subprocess.run(
        [RG, "--no-config", "--hidden", "--glob=!.git", *arguments, "./"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    return {str(root / line.removeprefix("./")) for line in done.stdout.splitlines()}


async def _files(root: Path, glob: str, **more: Any) -> set[str]:
    found = await Search().files(SearchPlace(path=str(root), glob=glob, **more), keep=10_000)
    assert len(found.hits) == found.total
    return {hit.path for hit in found.hits}


async def _matching(root: Path, pattern: str, glob: str | None = None) -> set[str]:
    found = await Search().files_with_matches(SearchPlace(path=str(root), glob=glob), Query(pattern=pattern), keep=None)
    return {hit.path for hit in found.hits}


# As rg and git would


PARTS = st.sampled_from(["*", "**", "a", "*.py", "*.{py,txt}", "{a,b*}", "[ab]", "[!a]*", "?.py", ".*", "a*b", "e f"])
GLOBS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)


@requirement("GLOB-1")
@given(TREES.map(lambda paths: [path for path in paths if path.isascii()]), GLOBS)
@few
def test_glob_finds_what_rg_finds_by_the_same_pattern(paths: list[str], glob: str) -> None:
    with _tree(paths) as root:
        # An anchored pattern; rg's `**` at the end means the files below it, as ours does
        assert asyncio.run(_files(root, glob)) == _rg(root, "--files", f"--glob=/{glob}")


@requirement("GREP-1")
@given(TREES.map(lambda paths: [path for path in paths if path.isascii()]), GLOBS)
@few
def test_grep_narrows_as_rg_does_by_the_same_glob(paths: list[str], glob: str) -> None:
    with _tree(paths) as root:
        assert asyncio.run(_matching(root, "x", glob)) == _rg(root, "-l", f"--glob={glob}", "x")


@requirement("GREP-1")
@given(
    st.lists(st.text(st.sampled_from("ab \n\t."), max_size=40), min_size=1, max_size=4),
    st.sampled_from(["a", "b$", "^a", "a.b", r"\bab\b", "(a|b)+", r"\s", "c"]),
    st.integers(0, 2),
)
@few
def test_lines_are_those_that_rg_prints(texts: list[str], pattern: str, context: int) -> None:
    with _tree([]) as root:
        for number, text in enumerate(texts):
            (root / str(number)).write_text(text)
        query = Query(pattern=pattern, before=context, after=context)
        found = asyncio.run(Search().lines(SearchPlace(path=str(root)), query, offset=0, limit=None))
        printed = subprocess.run(
            [RG, "--no-config", "--no-heading", "-n", f"-C{context}", pattern, str(root)],
            capture_output=True,
            text=True,
            check=False,
        ).stdout

    ours = [f"{line.path}{mark}{line.number}{mark}{line.text}" for line in found.lines if (mark := "-:"[line.is_match])]
    assert sorted(ours) == sorted(line for line in printed.split("\n") if line not in ("", "--"))
    assert (found.seen, found.ending.end) == (len(ours), End.WHOLE)


ODD_NAMES = st.sampled_from(
    [b"a", b"a.txt", b"a-b", b"A", b"B", b"b", b"a b", "é".encode(), "z\u2028".encode(), b"\xff", b"\xfe.x", b"-", b"~"]
)
ODD_PATHS = st.lists(ODD_NAMES, min_size=1, max_size=3).map(b"/".join).map(os.fsdecode)


@requirement("GREP-1")
@given(st.lists(ODD_PATHS, min_size=1, max_size=12, unique=True), st.integers(1, 5))
@few
def test_lines_come_in_the_order_of_their_paths_whole_or_in_pages(paths: list[str], limit: int) -> None:
    with _tree(paths, "x1\ny\nx2\n") as root:
        listed = subprocess.run([RG, "-l", "-0", "--sort=path", "x", "./"], cwd=root, capture_output=True, check=True)
        files = [os.path.join(root, os.fsdecode(name[2:])) for name in listed.stdout.split(b"\0")[:-1]]
        expected = [(path, number, text) for path in files for number, text in ((1, "x1"), (3, "x2"))]

        pages = [asyncio.run(_page(root, offset, limit)) for offset in range(0, len(expected), limit)]

        assert [line for page in pages for line in page] == expected
        assert asyncio.run(_page(root, 0, None)) == expected


async def _page(root: Path, offset: int, limit: int | None) -> list[tuple[str, int, str]]:
    found = await Search().lines(SearchPlace(path=str(root)), Query(pattern="x"), offset=offset, limit=limit)
    return [(line.path, line.number, line.text) for line in found.lines]


@requirement("GREP-1")
async def test_the_pages_of_a_search_hold_each_line_once(tmp_path: Path) -> None:
    for number in range(300):
        folder = tmp_path / str(number % 7)
        folder.mkdir(exist_ok=True)
        (folder / str(number)).write_text("x\nx\nx\n")

    pages = [await _page(tmp_path, offset, 100) for offset in range(0, 900, 100)]

    assert [len(page) for page in pages] == [100] * 9
    assert len({line for page in pages for line in page}) == 900


IGNORES = st.lists(
    st.sampled_from(["a", "/a", "a/", "*.py", "!b.py", "**/b", "build/", "a/*", "!a/b", "*.log", "c.*", ".d", "/b/a"]),
    max_size=5,
).map("\n".join)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@requirement("GLOB-1")
@given(TREES, IGNORES, IGNORES)
@few
def test_what_git_ignores_is_left_out_and_nothing_else(paths: list[str], top: str, deeper: str) -> None:
    with _tree(paths) as root:
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        (root / ".gitignore").write_text(f"# at the top\n{top}")
        if (root / "a").is_dir():
            (root / "a/.gitignore").write_text(f"# deeper\n{deeper}")
        everything = asyncio.run(_files(root, "**", include_ignored=True))
        found = asyncio.run(_files(root, "**/*"))
        asked = "\0".join(os.path.relpath(path, root) for path in everything)
        checked = subprocess.run(
            ["git", "check-ignore", "-z", "--stdin"], cwd=root, input=asked, capture_output=True, text=True, check=False
        ).stdout
        ignored = {str(root / path) for path in checked.split("\0") if path}

        assert found == everything - ignored
        assert asyncio.run(_matching(root, "", "**/*")) == found


@requirement("GREP-1")
async def test_a_configuration_of_ripgrep_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text("--invert-match\n--glob=!*.txt\n")
    (tmp_path / "a.txt").write_text("x\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "config"))

    assert await _matching(tmp_path, "^x$") == {str(tmp_path / "a.txt")}


@requirement("GLOB-1")
@pytest.mark.parametrize(
    ("glob", "path", "wanted"),
    [
        ("**/é?.py", "a/éü.py", True),
        ("[é-ü]", "ö", True),
        ("[]a]", "]", True),
        ("[a--]", "-", True),
        ("[!a]", "/", False),
        ("{**/a,b}", "x/y/a", True),
        ("a/**", "a", False),
        ("**", "a/b", True),
        (r"\*", "*", True),
        (r"\*", "a", False),
        ("a,b", "a,b", True),
        ("a\nb*", "a\nb\nc", True),
    ],
)
def test_a_pattern_means_what_it_says(glob: str, path: str, wanted: bool) -> None:
    assert bool(compile_glob(glob).fullmatch(path)) is wanted


@requirement("GREP-1")
@pytest.mark.parametrize(
    ("globs", "found"),
    [
        ("*.md,*.ts", {"a.md", "sub/b.ts"}),
        ("*.md, sub/*.py", {"a.md", "sub/c.py"}),
        ("*.md,*.py,!sub", {"a.md"}),
        ("!*.md,!*.py", {"sub/b.ts", "x,y"}),
        ("x,y", {"x,y"}),
    ],
)
async def test_globs_with_commas_between_them_are_several(tmp_path: Path, globs: str, found: set[str]) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("a.md", "sub/b.ts", "sub/c.py", "x,y"):
        (tmp_path / name).write_text("x\n")

    place = SearchPlace(path=str(tmp_path), glob=globs)
    hits = await Search().files_with_matches(place, Query(pattern="x"), keep=None)

    assert {os.path.relpath(hit.path, tmp_path) for hit in hits.hits} == found


@requirement("GREP-1")
def test_a_glob_never_lets_in_what_is_ignored() -> None:
    arguments = [argument for glob in ("*.py", "**/*", "src/*.py", "/a") for argument in anywhere(glob).arguments]

    assert not [argument for argument in arguments if argument.startswith("--glob=")]


# How it ends


@requirement("GREP-1", "GLOB-1")
async def test_a_cancelled_search_leaves_no_process(tmp_path: Path) -> None:
    program = hanging_after(tmp_path, b"")
    task = asyncio.create_task(Search(program=program).files(SearchPlace(path=str(tmp_path)), keep=1))
    while not pid_file(program).exists():  # noqa: ASYNC110 - made by another process
        await asyncio.sleep(0)
    pid = int(pid_file(program).read_text())
    assert _is_running(pid)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not _is_running(pid)


@requirement("GREP-1", "GLOB-1")
async def test_a_search_out_of_time_leaves_no_process_and_keeps_what_it_found(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    program = hanging_after(tmp_path, rb"./a\0./half")

    found = await Search(program=program, seconds=HANGING_SECONDS).files(SearchPlace(path=str(tmp_path)), keep=9)

    assert ([hit.path for hit in found.hits], found.ending.end) == ([f"{tmp_path}/a"], End.TIME)
    assert not _is_running(int(pid_file(program).read_text()))


@requirement("GREP-1")
async def test_a_search_that_has_enough_leaves_no_process(tmp_path: Path) -> None:
    head = b'{"type":"match","data":{"path":{"text":"./a"},"lines":{"text":"x"},'
    record = head + b'"line_number":1,"absolute_offset":0,"submatches":[]}}'
    (tmp_path / "a").write_text("x")
    program = hanging_after(tmp_path, rb"\n".join([record] * 500))

    found = await Search(program=program).lines(SearchPlace(path=str(tmp_path)), Query(pattern="x"), offset=1, limit=2)

    assert (len(found.lines), found.seen, found.ending.end) == (2, 4, End.ENOUGH)
    assert not _is_running(int(pid_file(program).read_text()))


@requirement("GREP-1")
async def test_when_there_is_no_time_to_search_in_order_what_was_found_is_given(tmp_path: Path) -> None:
    program = tmp_path / "rg"
    head = '{"type":"match","data":{"path":{"text":"./%s"},"lines":{"text":"x"},'
    record = head + '"line_number":1,"absolute_offset":0,"submatches":[]}}\n'
    for name in "abc":
        (tmp_path / name).write_text("x")
    program.write_text(
        f"#!/bin/sh\ncase \"$*\" in *--sort=path*) exec /usr/bin/env sleep 1000;; esac\nprintf '{record * 3}' c a b\n"
    )
    program.chmod(0o700)

    search = Search(program=str(program), seconds=HANGING_SECONDS)
    found = await search.lines(SearchPlace(path=str(tmp_path)), Query(pattern="x"), offset=0, limit=2)

    assert [line.path for line in found.lines] == [f"{tmp_path}/a", f"{tmp_path}/c"]
    assert (found.seen, found.ending.end) == (2, End.TIME)


@requirement("GREP-1")
async def test_a_killed_search_is_said_to_have_failed(tmp_path: Path) -> None:
    program = tmp_path / "rg"
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    program.chmod(0o700)

    with pytest.raises(SearchFailed, match="ripgrep ended with code -9"):
        await Search(program=str(program)).files(SearchPlace(path=str(tmp_path)), keep=1)


@requirement("GREP-1")
async def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    program = tmp_path / "rg"
    program.write_text("#!/bin/sh\nexit 2\n")
    program.chmod(0o700)

    found = await Search(program=str(program)).files(SearchPlace(path=str(tmp_path)), keep=1)

    assert found.ending.notes(1) == ("Some files or folders could not be read and were left out.",)


@requirement("GREP-1")
async def test_a_search_is_told_nothing_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "hunter2")
    program = tmp_path / "rg"
    program.write_text("#!/bin/sh\n/usr/bin/env >&2\nexit 2\n")
    program.chmod(0o700)

    with pytest.raises(SearchFailed) as caught:
        await Search(program=str(program)).files(SearchPlace(path=str(tmp_path)), keep=1)

    assert not re.search("SECRET|RIPGREP|PYTHON", str(caught.value))


@requirement("GLOB-1")
async def test_only_the_newest_are_kept_of_very_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.host.search.file_search.PRUNE_AT", 10)
    for number in range(2_000):
        path = tmp_path / f"{number:04}-{'x' * 50}"
        path.touch()
        os.utime(path, (number, number))

    found = await Search().files(SearchPlace(path=str(tmp_path)), keep=3)

    assert [os.path.basename(hit.path)[:4] for hit in found.hits] == ["1999", "1998", "1997"]
    assert found.total == 2_000


# Records


def _collector() -> LineCollector:
    return LineCollector(folder="/f", offset=0, limit=None, only_matching=False, shown=None)


@requirement("GREP-1")
def test_a_stream_may_be_torn_anywhere(tmp_path: Path) -> None:
    (tmp_path / "ü").write_text("äx\ny\nx\n")
    stream = subprocess.run([RG, "--json", "x", "./"], cwd=tmp_path, capture_output=True, check=True).stdout
    collector = _collector()

    for index in range(len(stream)):
        collector.take(stream[index : index + 1])

    assert collector.lines == [MatchedLine("/f/ü", 1, "äx"), MatchedLine("/f/ü", 3, "x")]


@requirement("GREP-1")
async def test_a_line_beyond_all_measure_is_named_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matched_lines, "MOST_RECORD", 1 << 20)
    (tmp_path / "a").write_text("x" + "y" * (3 << 20) + "\nx\n")

    found = await Search().lines(SearchPlace(path=str(tmp_path)), Query(pattern="x"), offset=0, limit=None)

    assert found.lines == (
        MatchedLine(
            f"{tmp_path}/a", 1, "[This line has more than 1 million characters and is not shown.]", is_exact=False
        ),
        MatchedLine(f"{tmp_path}/a", 2, "x"),
    )


@requirement("GREP-1")
async def test_what_is_kept_is_bounded_whatever_was_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matched_lines, "MOST_TEXT", 100)
    (tmp_path / "a").write_text("x" * 9 + "\n" + "x" * 9 + "\n" * 2 + ("x" * 9 + "\n") * 50)

    found = await Search().lines(SearchPlace(path=str(tmp_path)), Query(pattern="x"), offset=0, limit=None)

    assert (len(found.lines), found.seen, found.ending.end) == (11, 12, End.ENOUGH)


@requirement("GREP-1")
@given(st.text(max_size=2_000), st.integers(0, 2_000))
def test_a_clipped_line_says_exactly_what_it_leaves_out(line: str, start: int) -> None:
    shown = clip_line(line, min(start, len(line)))
    left_out = [int(number.replace(",", "")) for number in re.findall(r"\[([\d,]+) characters\]", shown)]

    if len(line) <= 500:
        assert shown == line
    elif not re.search(r"\[[\d,]+ characters\]", line):
        assert sum(left_out) == len(line) - 500
        assert line[min(start, len(line) - 1)] in shown


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True

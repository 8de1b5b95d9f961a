"""What names a secret is asked about; what passes over one leaves it out and says so. With real sessions."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ferrule.app.build import Settings, open_session
from ferrule.core.calls import ToolCall
from ferrule.core.content import plain_text
from ferrule.host.search.file_search import Search, SearchFailed
from ferrule.host.search.hits import Query, SearchPlace
from ferrule.permissions.modes import Mode
from ferrule.testing import Answering, allow
from tests.permissions.on_disk import decided_in
from tests.permissions.scene import rules_of
from tests.requirement import requirement

KEY = "KEY=xyzzy-31"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    workspace = tmp_path / "workspace"
    (workspace / "certs").mkdir(parents=True)
    for name in (".env", "certs/server.pem", "notes.txt", ".env.example"):
        (workspace / name).write_text(f"{KEY}\n")
    return workspace


async def said(folder: Path, tool: str, *, allowed: tuple[str, ...] = (), asked: bool = False, **call: Any) -> str:
    """What the model is told; with `asked`, whoever is asked says yes."""
    settings = Settings(
        cwd=str(folder), rules=rules_of({"allow": allowed}), mode=Mode.DEFAULT, state_folder=folder.parent / "state"
    )
    more = {"approver": Answering(allow())} if asked else {}
    async with open_session(settings, **more) as session:  # pyright: ignore[reportArgumentType]
        (outcome,) = await session.run([ToolCall("1", tool, call)])
    return plain_text(outcome.content)


@requirement("HELD-5")
@pytest.mark.parametrize("mode", ["content", "files_with_matches", "count"])
async def test_a_search_over_a_folder_leaves_secrets_out_and_says_so(folder: Path, mode: str) -> None:
    text = await said(folder, "Grep", pattern="KEY", output_mode=mode)

    assert "notes.txt" in text
    assert ".env.example" in text
    assert f"{folder}/.env:" not in text
    assert f"{folder}/certs/server.pem" not in text
    assert text.endswith("[left out: .env, certs/server.pem]")


@requirement("HELD-5")
async def test_that_something_is_left_out_does_not_tell_what_is_in_it(folder: Path) -> None:
    call: dict[str, Any] = {"glob": "!*.txt", "output_mode": "content"}
    hit = await said(folder, "Grep", pattern="KEY=x", **call)
    miss = await said(folder, "Grep", pattern="KEY=y", **call)

    assert hit.splitlines()[-1] == miss.splitlines()[-1] == "[left out: .env, certs/server.pem]"


@requirement("HELD-5")
async def test_of_many_secrets_a_few_are_named_and_the_others_counted(folder: Path) -> None:
    for number in range(20):
        (folder / f"{number:02}.key").write_text(KEY)

    text = await said(folder, "Glob", pattern="**/*")

    assert text.endswith("[left out: .env, 00.key, 01.key and 19 more]")


@requirement("HELD-5")
@pytest.mark.parametrize("call", [{"pattern": "*"}, {"pattern": "**"}, {"pattern": ".env"}])
async def test_glob_leaves_secrets_out(folder: Path, call: dict[str, Any]) -> None:
    text = await said(folder, "Glob", **call)

    assert f"{folder}/.env\n" not in text
    assert "left out: .env" in text or call == {"pattern": ".env"}


@requirement("HELD-5")
@pytest.mark.parametrize(
    "call",
    [
        {"glob": ".env"},
        {"glob": ".e*"},
        {"glob": "**/.env"},
        {"glob": "{.env,*.md}"},
        {"glob": "*.pem"},
        {"glob": "certs/*.pem"},
        {"glob": ".EN?"},
        {"path": ".env"},
        {"path": "certs", "glob": "serv*.pem"},
    ],
)
async def test_a_search_that_names_a_secret_is_asked_about_and_then_shows_it(
    folder: Path, call: dict[str, Any]
) -> None:
    refused = await said(folder, "Grep", pattern="KEY", output_mode="content", **call)
    assert KEY not in refused
    assert "may hold secrets" in refused

    if call != {"glob": ".EN?"}:
        shown = await said(folder, "Grep", pattern="KEY", output_mode="content", asked=True, **call)
        assert KEY in shown


@requirement("HELD-5")
@pytest.mark.parametrize("glob", ["*.txt", "*.json", "*.{ts,js}", "**/*", "!*.md", "src/**", "*"])
async def test_an_ordinary_glob_is_not_asked_about(folder: Path, glob: str) -> None:
    assert "may hold secrets" not in await said(folder, "Grep", pattern="KEY", glob=glob)


@requirement("HELD-5")
async def test_what_a_rule_allows_by_name_is_not_left_out(folder: Path) -> None:
    text = await said(folder, "Grep", pattern="KEY", output_mode="content", allowed=("Read(./.env)",))

    assert f".env:1:{KEY}" in text.splitlines()
    assert text.endswith("[left out: certs/server.pem]")


@requirement("HELD-5")
@pytest.mark.parametrize(
    "command",
    [
        "cat .e*",
        "cat .en?",
        "cat .[e]nv",
        "cat ./.e*",
        "cat certs/*.pem",
        "head *.pem",
        "grep KEY .env*",
        "grep -r --include=.env KEY .",
        "grep -r --include='*.pem' KEY",
        "rg -g .env KEY",
        "rg --hidden --glob '.e*' KEY",
        "cat {.env,notes.txt}",
        "for f in .e*; do cat $f; done",
        "cp .e* x",
        "cat < .env",
        "cat id_*",
    ],
)
def test_a_word_that_means_a_secret_is_asked_about(folder: Path, command: str) -> None:
    assert decided_in(folder, command, mode=Mode.ACCEPT_EDITS) == "ask"


@requirement("HELD-5")
@pytest.mark.parametrize(
    "command",
    [
        "cat *",
        "cat *.txt",
        "cat */*",
        "wc -l *.json",
        "grep -r KEY .",
        "grep -rn --include='*.py' KEY .",
        "rg KEY",
        "rg -g '*.ts' KEY",
        "ls .env*",
        "ls -la .env",
        "[ -f .env ]",
        "test -e .env && echo yes",
        "stat .env",
        "cat .env.example",
        "cat .g*ignore",
    ],
)
def test_a_word_that_passes_over_secrets_or_shows_names_alone_is_not(folder: Path, command: str) -> None:
    assert decided_in(folder, command) == "allow"


@contextmanager
def swapping(place: Path, aside: Path, target: Path) -> Generator[None]:
    """Something that puts a link in the place of a folder, and the folder back, over and over."""
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            os.rename(place, aside)
            os.symlink(target, place)
            os.unlink(place)
            os.rename(aside, place)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@requirement("HELD-5")
@pytest.mark.parametrize("deep", [False, True], ids=["the folder itself", "a folder in it"])
async def test_no_search_is_led_out_by_a_folder_that_is_swapped_for_a_link(tmp_path: Path, deep: bool) -> None:
    outside, place = tmp_path / "outside", tmp_path / "workspace" / "d"
    for folder in (outside, place):
        folder.mkdir(parents=True)
    (outside / "a.txt").write_text("needle outside\n")
    (outside / "only.txt").write_text("needle outside\n")
    (place / "a.txt").write_text("needle inside\n")
    searched = place.parent if deep else place
    search, at = Search(), SearchPlace(path=str(searched), judged=str(searched))

    found: list[str] = []
    with swapping(place, tmp_path / "workspace" / "aside", outside):
        for _ in range(60):
            try:
                lines = await search.lines(at, Query(pattern="needle"), offset=0, limit=10)
                files = await search.files(at, keep=10)
            except SearchFailed:
                continue
            found += (line.text for line in lines.lines)
            found += (hit.path for hit in files.hits if "only" in hit.path and not deep)

    assert "needle outside" not in found
    assert not [text for text in found if "only" in text]


@requirement("HELD-5")
async def test_a_folder_that_leads_elsewhere_since_it_was_judged_is_not_searched(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to("other")

    with pytest.raises(SearchFailed, match="leads to"):
        await Search().files(SearchPlace(path=str(tmp_path / "link"), judged=str(tmp_path / "link")), keep=1)


@requirement("HELD-5")
@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
async def test_what_is_found_is_found_in_every_coding(tmp_path: Path, coding: str) -> None:
    (tmp_path / "a.txt").write_text("one\nnäedle here\nthree", encoding=coding)

    found = await Search().lines(SearchPlace(path=str(tmp_path)), Query(pattern="dle here"), offset=0, limit=None)

    assert [line.number for line in found.lines] == [2]
    assert not found.left_out.changed


@requirement("HELD-5")
async def test_a_link_to_a_file_is_searched_under_the_name_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "real.txt").write_text("needle\n")
    (tmp_path / "link.txt").symlink_to("sub/real.txt")

    found = await Search().lines(
        SearchPlace(path=str(tmp_path / "link.txt")), Query(pattern="needle"), offset=0, limit=None
    )

    assert [(line.path, line.text) for line in found.lines] == [(str(tmp_path / "sub" / "real.txt"), "needle")]

"""What two calls are compared by."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.effects import (
    Change,
    ChangesState,
    Effects,
    Opaque,
    ReachesHost,
    ReadsPath,
    ReadsState,
    RunsCommand,
    WritesPath,
)
from ferrule.engine.footprint import Footprint, ground
from ferrule.host.files.local_paths import LocalPaths
from tests.requirement import requirement

from .stage import PlainPaths

paths = st.lists(st.sampled_from(["a", "b", "ab"]), max_size=3).map(lambda parts: "/" + "/".join(parts))
keys = st.sampled_from(["cwd", "todo"])
touches = st.one_of(
    paths.map(ReadsPath),
    st.builds(WritesPath, paths, st.sampled_from(Change)),
    keys.map(ReadsState),
    keys.map(ChangesState),
    st.builds(ReachesHost, st.sampled_from(["x.org", "y.org"]), st.booleans()),
    st.builds(RunsCommand, st.just(("ls",)), accounted=st.booleans()),
    st.just(Opaque()),
)
effects = st.lists(touches, max_size=3).map(lambda drawn: Effects.of(*drawn))
footprints = st.builds(lambda drawn, cwd: Footprint.of(drawn, reads_cwd=cwd), effects, st.booleans())


def of(*touches: object) -> Footprint:
    return Footprint.of(Effects.of(*touches))  # type: ignore[arg-type]


def on_disk(*touches: object) -> Footprint:
    return Footprint.of(ground(Effects.of(*touches), LocalPaths()))  # type: ignore[arg-type]


@requirement("SCHED-1")
@given(footprints, footprints)
def test_conflict_is_mutual(one: Footprint, other: Footprint) -> None:
    assert one.conflicts(other) == other.conflicts(one)


@requirement("SCHED-1")
@given(footprints, footprints)
def test_calls_that_only_read_never_conflict(one: Footprint, other: Footprint) -> None:
    assert not (one.only_reads and other.only_reads and one.conflicts(other))


@requirement("SCHED-6")
@given(footprints)
def test_unknown_effects_conflict_with_all_that_touches_anything(other: Footprint) -> None:
    assert of(Opaque()).conflicts(other) is not other.is_empty


@requirement("SCHED-1")
@given(footprints)
def test_nothing_conflicts_with_a_call_that_touches_nothing(other: Footprint) -> None:
    assert not Footprint.of(Effects.of(), reads_cwd=True).conflicts(other)


@requirement("SCHED-1")
@given(paths, paths)
def test_two_paths_conflict_exactly_if_one_is_the_other_or_contains_it(one: str, other: str) -> None:
    parts, others = Path(one).parts, Path(other).parts
    shared = min(len(parts), len(others))

    assert of(WritesPath(one)).conflicts(of(ReadsPath(other))) is (parts[:shared] == others[:shared])


@requirement("SCHED-5")
@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        ("/a/b", "/a/b", True),
        ("/a", "/a/b/c", True),
        ("/", "/a", True),
        ("/a/b", "/a/bc", False),
        ("/a/b", "/a/b.bak", False),
        ("/a/b", "/a/c", False),
    ],
)
def test_a_folder_conflicts_with_what_is_below_it_and_not_with_its_neighbours(
    one: str, other: str, conflict: bool
) -> None:
    assert of(WritesPath(one)).conflicts(of(ReadsPath(other))) is conflict
    assert of(ReadsPath(one)).conflicts(of(WritesPath(other))) is conflict
    assert of(WritesPath(one)).conflicts(of(WritesPath(other))) is conflict


@requirement("SCHED-1")
@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        (ChangesState("todo"), ChangesState("todo"), True),
        (ChangesState("todo"), ReadsState("todo"), True),
        (ReadsState("todo"), ChangesState("todo"), True),
        (ChangesState("todo"), ReadsState("mode"), False),
        (ReachesHost("x.org"), ReachesHost("x.org", sends=False), True),
        (ReachesHost("x.org"), ReachesHost("y.org"), False),
        (ReachesHost("x.org", sends=False), ReachesHost("x.org", sends=False), False),
        (RunsCommand(("ls",)), ReadsPath("/a"), True),
        (RunsCommand(("ls",), accounted=True), WritesPath("/a"), False),
        (ReachesHost("x.org"), ReadsState("x.org"), False),
    ],
)
def test_state_hosts_and_commands_conflict_by_what_is_written(one: object, other: object, conflict: bool) -> None:
    assert of(one).conflicts(of(other)) is conflict


@requirement("SCHED-3")
def test_a_call_with_relative_paths_depends_on_the_working_directory() -> None:
    reads = Effects.reading("/project/a")

    assert of(ChangesState("cwd")).conflicts(Footprint.of(reads, reads_cwd=True))
    assert not of(ChangesState("cwd")).conflicts(Footprint.of(reads, reads_cwd=False))


@requirement("SCHED-5")
def test_a_link_and_its_target_conflict(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.mkdir()
    link.symlink_to(target)

    through, direct = on_disk(ReadsPath(f"{link}/x")), on_disk(WritesPath(f"{target}/x"))

    assert through.conflicts(direct)
    assert not on_disk(ReadsPath(f"{link}/y")).conflicts(direct)


@requirement("SCHED-5")
def test_who_goes_through_a_link_conflicts_with_who_replaces_it(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.symlink_to(second)
    second.symlink_to(tmp_path)

    through = on_disk(ReadsPath(f"{first}/x"))

    assert through.conflicts(on_disk(WritesPath(str(second))))
    assert through.conflicts(on_disk(WritesPath(str(first))))


@requirement("SCHED-5")
def test_who_goes_through_a_link_conflicts_with_who_removes_the_folder_it_stands_in(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "first").symlink_to(folder / "second")
    (folder / "second").symlink_to(tmp_path / "target")

    through = on_disk(ReadsPath(str(tmp_path / "first" / "x")))

    assert through.conflicts(on_disk(WritesPath(str(folder))))
    assert not through.conflicts(on_disk(WritesPath(str(folder / "other"))))


@requirement("SCHED-5")
def test_a_link_replaced_through_another_link_is_written_where_it_stands(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "link").symlink_to(elsewhere)
    (tmp_path / "way").symlink_to(folder)

    replacing = on_disk(WritesPath(str(tmp_path / "way" / "link")))

    assert replacing.conflicts(on_disk(ReadsPath(str(folder))))


@requirement("SCHED-5")
@requirement("PERM-5")
def test_who_removes_a_link_touches_the_link_and_not_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "way").symlink_to("folder")
    (tmp_path / "folder" / "link").symlink_to("/etc")

    (removed,) = ground(Effects.of(WritesPath(f"{tmp_path}/way/link", Change.UNLINKS)), LocalPaths()).writes

    assert (removed.real, removed.links) == (f"{tmp_path}/folder/link", (f"{tmp_path}/way",))


def test_two_writes_below_one_linked_folder_do_not_conflict(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")

    one, other = (on_disk(WritesPath(str(tmp_path / "link" / name))) for name in ("x", "y"))

    assert not one.conflicts(other)


def test_a_path_that_is_not_absolute_may_be_any_path() -> None:
    grounded = ground(Effects.reading("notes.txt"), PlainPaths())

    assert grounded.unknown


def test_comparing_does_not_look_at_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = on_disk(WritesPath(str(tmp_path / "a"))), on_disk(ReadsPath(str(tmp_path)))
    for question in ("stat", "lstat", "readlink", "listdir"):
        monkeypatch.setattr(os, question, lambda *_, **__: pytest.fail("looked at the disk"))

    assert one.conflicts(other)


@requirement("SCHED-3")
@pytest.mark.parametrize(
    ("first", "then", "moved"),
    [
        (ChangesState("cwd"), ReadsState("cwd"), True),
        (ChangesState("todo"), ReadsState("todo"), False),
        (WritesPath("/l"), ReadsPath("/l/x"), True),
        (WritesPath("/l"), ReadsPath("/l"), True),
        (WritesPath("/l", Change.REPLACES), ReadsPath("/l"), False),
        (WritesPath("/l/x"), ReadsPath("/l"), False),
        (Opaque(), ReadsPath("/l"), True),
        (Opaque(), Opaque(), False),
    ],
)
def test_a_statement_may_go_stale_where_its_paths_can_come_to_lead_elsewhere(
    first: object, then: object, moved: bool
) -> None:
    assert of(first).moves(of(then)) is moved


@requirement("TASK-3")
@given(footprints)
def test_a_change_of_mode_conflicts_with_whatever_touches_anything(other: Footprint) -> None:
    assert of(ChangesState("mode")).conflicts(other) == (not other.is_empty)


@requirement("SCHED-7")
def test_each_agent_has_a_working_directory_of_its_own() -> None:
    moves = Effects.of(ChangesState("cwd"))
    main, one, other = (Footprint.of(moves, agent=agent) for agent in ("main", "main/a", "main/b"))
    leaning = Footprint.of(Effects.reading("/x"), reads_cwd=True, agent="main/a")

    assert [mover.conflicts(leaning) for mover in (main, one, other)] == [False, True, False]
    assert [mover.moves(leaning) for mover in (main, one, other)] == [False, True, False]
    assert not one.conflicts(other)


@requirement("SCHED-1", "SCHED-5")
@pytest.mark.parametrize("change", Change)
def test_every_change_but_that_of_content_may_lead_paths_through_it_elsewhere(change: Change) -> None:
    changed = of(WritesPath("/a/link", change))
    moved = {path: changed.moves(of(ReadsPath(path))) for path in ("/a/link/x", "/a/link", "/a/links", "/a")}

    through = change is not Change.REPLACES
    assert moved == {"/a/link/x": through, "/a/link": through, "/a/links": False, "/a": False}

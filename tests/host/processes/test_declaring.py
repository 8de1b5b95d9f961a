"""The names that a command may change, by a look at a real folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ferrule.bash_analysis.analysis import analyse
from ferrule.engine.footprint import ground
from ferrule.host.files.local_paths import LocalPaths
from ferrule.host.processes.declared_writes import declared_writes, hidden_in_passing
from tests.requirement import requirement


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.txt", "b.txt", "src/x.py", "src/y.py", "src/deep/z.py", ".hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "dir").mkdir()
    (tmp_path / "link").symlink_to("a.txt")
    (tmp_path / "linked").symlink_to("src")
    return tmp_path


def declared(command: str, folder: Path) -> set[str]:
    """From the folder; what ends in `/**` is a tree."""
    effects = ground(analyse(command, cwd=str(folder), home="/nowhere").effects, LocalPaths())
    front = f"{os.path.realpath(folder)}/"
    return {one.path.removeprefix(front) + ("/**" if one.tree else "") for one in declared_writes(effects)}


@requirement("HELD-11")
@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("touch new", {"new"}),
        ("mkdir -p q/w/e", {"q/w/e"}),
        ("echo x > out.txt", {"out.txt"}),
        ("sed -i s/a/b/ a.txt", {"a.txt"}),
        ("sed -i s/a/b/ src/*.py", {"src/x.py", "src/y.py"}),
        ("cp a.txt new", {"new"}),
        ("cp a.txt dir", {"dir/a.txt"}),
        ("cp a.txt b.txt dir/", {"dir/a.txt", "dir/b.txt"}),
        ("cp -t dir a.txt b.txt", {"dir/a.txt", "dir/b.txt"}),
        ("cp src/*.py dir", {"dir/x.py", "dir/y.py"}),
        ("cp a.txt linked", {"src/a.txt"}),
        ("cp -r src dir", {"dir/src/**"}),
        ("cp -r src new", {"new/**"}),
        ("mv a.txt c.txt", {"a.txt", "c.txt"}),
        ("mv a.txt dir", {"a.txt", "dir/a.txt"}),
        ("mv src dir", {"src/**", "dir/src/**"}),
        ("cd src && mv x.py deep", {"src/x.py", "src/deep/x.py"}),
        ("ln -s a.txt l2", {"l2"}),
        ("ln -s ../a.txt dir", {"dir/a.txt"}),
        ("rm a.txt", {"a.txt"}),
        ("rm link", {"link"}),
        ("rm linked/x.py", {"src/x.py"}),
        ("rm -r src", {"src/**"}),
        ("rm -rf dir/*", set[str]()),
        ("chmod -R 644 src", {"src/**"}),
        ("chmod 644 src", {"src"}),
        ("touch link", {"a.txt", "link"}),
        ('for f in src/*.py; do cp "$f" "$f.orig"; done', {"src/**"}),
        ("for f in a.txt b.txt; do mv $f dir; done", {"a.txt", "b.txt", "dir/a.txt", "dir/b.txt"}),
        ("sed -i 's/$/x/' a.txt", {"a.txt"}),
        ("mkdir -p new && cp a.txt new/", {"new", "new/a.txt"}),
        ("mkdir new && mv a.txt b.txt new", {"new", "a.txt", "b.txt", "new/a.txt", "new/b.txt"}),
    ],
)
def test_a_command_declares_the_names_that_it_comes_to_change(folder: Path, command: str, names: set[str]) -> None:
    assert declared(command, folder) == names


@requirement("HELD-11")
def test_what_is_in_a_copied_folder_is_declared_by_name(folder: Path) -> None:
    names = {name.removesuffix("/**") for name in declared("cp -r src/. dir", folder)}

    assert names == {"dir/x.py", "dir/y.py", "dir/deep"}


@requirement("HELD-11")
def test_a_pattern_declares_nothing_behind_a_link_that_leads_out(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "f").write_text("x")
    (folder / "dir" / "out").symlink_to(outside)
    (folder / "dir" / "in").mkdir()
    (folder / "dir" / "in" / "f").write_text("x")

    names = declared("rm -rf dir/*/f", folder)

    assert {name for name in names if name.startswith("dir/")} == {"dir/in/f/**"}


words = st.sampled_from(
    ["a.txt", "b.txt", "src", "src/x.py", "dir", "dir/", "new", "link", "linked", "src/*.py", "src/."]
)


@requirement("HELD-11")
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    program=st.sampled_from(["cp", "cp -r", "mv", "rm", "rm -r", "touch", "mkdir -p", "ln -s", "sed -i p"]),
    given=st.lists(words, min_size=1, max_size=3),
)
def test_every_declared_name_lies_in_something_that_was_judged(folder: Path, program: str, given: list[str]) -> None:
    effects = ground(analyse(f"{program} {' '.join(given)}", cwd=str(folder), home="/nowhere").effects, LocalPaths())
    judged = [path for touch in effects.writes for path in (touch.path, touch.real)]

    for one in declared_writes(effects):
        assert any(one.path == path or one.path.startswith(f"{path}/") for path in judged)


@requirement("HELD-13")
@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("grep -r x .", {".env", "dir/key.pem"}),
        ("cat *", set[str]()),
        ("cat dir/*", {"dir/key.pem"}),
        ("cat src/*", set[str]()),
        ("ls -la", set[str]()),
        ("git status", set[str]()),
        ("cat .e*", {".env"}),
    ],
)
def test_what_a_command_passes_over_is_told_from_what_it_does_not_mean(
    folder: Path, command: str, named: set[str]
) -> None:
    effects = ground(analyse(command, cwd=str(folder), home="/nowhere").effects, LocalPaths())
    root = os.path.realpath(folder)

    found = hidden_in_passing(effects, [f"{root}/.env", f"{root}/dir/key.pem", "/etc/shadow"])

    assert {os.path.relpath(path, root) for path in found} == named

"""A law: whatever a command does, under the supervisor only declared names differ when it has ended."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.host.processes.command import Ran
from tests.host.processes.holding import furnish, need_supervisor, snapshot, supervised
from tests.host.processes.shell import GENEROUS, opened
from tests.requirement import requirement

PLACES = (
    "src/main.py", "src/util.py", "src", "src/deep", "src/deep/core.py", "docs", "docs/guide.md", "notes.txt",
    "alias.py", "folder", "folder/util.py", "away", "far", "far/main.py", "twin.txt", "hollow", "new", "src/new",
    "docs/new/er", ".git", ".git/config", ".envrc", "src/.git", "../outside/canary.txt", "../new",
    "out/bin/../../notes.txt", "$TMPDIR/t", "$PWD",
)  # fmt: skip
VERBS = (
    "echo text > {0}", "echo text >> {0}", "rm -f {0}", "rm -rf {0}", "mkdir {0}", "mkdir -p {0}", "rmdir {0}",
    "mv {0} {1}", "mv -T {0} {1}", "cp {0} {1}", "cp -r {0} {1}", "ln {0} {1}", "ln -s {0} {1}", "ln -sfn {0} {1}",
    "chmod 700 {0}", "touch -d @7 {0}", "touch -h -d @7 {0}", "truncate -s 3 {0}", "sed -i s/o/0/ {0}", "cd {0}",
    "exec 5<{0}; chmod 600 /dev/fd/5", "mkfifo {0}", "install -m 600 {0} {1}", "tee {0} {1} < /dev/null",
    "mv --exchange {0} {1}", "umask 077", "cp -a {0} {1}",
)  # fmt: skip
STEPS = st.lists(
    st.tuples(st.sampled_from(VERBS), st.sampled_from(PLACES), st.sampled_from(PLACES)), min_size=5, max_size=25
)
DECLARED = st.lists(st.sampled_from([place for place in PLACES if place[0] not in ".$"]), min_size=1, max_size=3)


@requirement("HELD-22")
@settings(max_examples=30, deadline=None)
@given(STEPS, DECLARED, st.booleans())
def test_only_declared_names_differ(steps: list[tuple[str, str, str]], declared: list[str], tree: bool) -> None:
    need_supervisor()
    text = "\n".join(verb.format(one, other) for verb, one, other in steps)
    with tempfile.TemporaryDirectory() as folder:
        workspace = furnish(Path(folder, "base"))
        names = {str((workspace / name).parent.resolve() / Path(name).name) for name in declared}
        relative = tuple(
            str(Path(name).relative_to(workspace)) for name in names if Path(name).is_relative_to(workspace)
        )
        before = _everything(workspace)

        ran = asyncio.run(_run(text, workspace, Path(folder), relative, tree=tree))

        after = _everything(workspace)
        changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        allowed = {f"work/{name}" for name in relative}
        kept = {name for name in changed if not _is_allowed(name, allowed, before, tree=tree)}
        assert not kept, (text, ran.changes)


async def _run(text: str, workspace: Path, folder: Path, names: tuple[str, ...], *, tree: bool) -> Ran:
    async with opened(folder) as commands:
        held = supervised(text, workspace, trees=names) if tree else supervised(text, workspace, *names)
        return await commands.run(held, timeout=GENEROUS)


def _everything(workspace: Path) -> dict[str, tuple[object, ...]]:
    return snapshot(workspace.parent, exact=True)


def _is_allowed(name: str, allowed: set[str], before: dict[str, tuple[object, ...]], *, tree: bool) -> bool:
    """A declared name, something below a declared tree, or a folder that was made on the way to one."""
    if name in allowed or (tree and any(name.startswith(f"{one}/") for one in allowed)):
        return not any(part in (".git", ".envrc") for part in name.split("/"))
    return name not in before and any(one.startswith(f"{name}/") for one in allowed)

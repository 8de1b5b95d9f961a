"""Everyday commands that are held to declared names end as they do unheld, and nothing is dropped."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ferrule.host.processes.command_runner import CommandRunner
from tests.host.processes.held import furnish, held, need_layers, seen
from tests.host.processes.shell import GENEROUS, opened
from tests.requirement import requirement

COMMANDS = [  # the command, the names it declared, the trees it declared
    ("true", "", ""),
    ("cat src/x.py | wc -l", "", ""),
    ("grep -rn alpha . > /dev/null", "", ""),
    ("sed -i s/alpha/gamma/ src/x.py", "src/x.py", ""),
    ("sed -i s/alpha/gamma/ src/*.py", "src/x.py src/y.py", ""),
    ("sed -i.bak s/alpha/gamma/ src/x.py", "src/x.py src/x.py.bak", ""),
    ("sed -i s/alpha/gamma/ dirlink/x.py", "src/x.py", ""),
    ("sed -i s/alpha/gamma/ link.py", "link.py", ""),
    ("sed -i --follow-symlinks s/alpha/gamma/ link.py", "src/x.py", ""),
    ("perl -pi -e s/alpha/gamma/ src/x.py", "src/x.py", ""),
    ("echo new > link.py", "src/x.py", ""),
    ("echo more >> notes.txt", "notes.txt", ""),
    ("> notes.txt", "notes.txt", ""),
    ("cp src/x.py src/z.py", "src/z.py", ""),
    ("cp src/x.py src/y.py", "src/y.py", ""),
    ("cp -p run.sh other.sh", "other.sh", ""),
    ("touch -r docs/a.md run.sh; cp -p docs/a.md notes.txt; touch -r docs/a.md run.sh", "notes.txt run.sh", ""),
    ("cp -r src lib", "", "lib"),
    ("cp -a src lib", "", "lib"),
    ("cp -b docs/a.md notes.txt", "notes.txt notes.txt~", ""),
    ("cp docs/a.md src/", "src/a.md", ""),
    ("mv notes.txt NOTES.md", "notes.txt NOTES.md", ""),
    ("mv src/x.py src/y.py", "src/x.py src/y.py", ""),
    ("mv src lib", "", "src lib"),
    ("mv notes.txt docs/", "notes.txt docs/notes.txt", ""),
    ("rm src/y.py", "src/y.py", ""),
    ("rm src/pkg/__init__.py && rmdir src/pkg", "src/pkg/__init__.py src/pkg", ""),
    ("rm -rf build", "", "build"),
    ("rm -rf build && mkdir build && touch build/n", "", "build"),
    ("rm link.py", "link.py", ""),
    ("rm dirlink outdir", "dirlink outdir", ""),
    ("rmdir empty", "empty", ""),
    ("mkdir d", "d", ""),
    ("mkdir -p d/e/f", "d/e/f", ""),
    ("mkdir -p d/e && echo x > d/e/f", "d/e/f", ""),
    ("mkdir -m 700 d", "d", ""),
    ("mkdir d && touch d/a && chmod 500 d", "", "d"),
    ("touch src/new.py", "src/new.py", ""),
    ("touch src/x.py", "src/x.py", ""),
    ("ln -s src/y.py y", "y", ""),
    ("ln -sfn docs dirlink", "dirlink", ""),
    ("ln src/y.py y2", "y2", ""),
    ("chmod +x src/x.py", "src/x.py", ""),
    ("chmod 750 src", "src", ""),
    ("chmod -R go-r docs", "", "docs"),
    ("tee notes.txt < docs/a.md", "notes.txt", ""),
    ("sort -o notes.txt notes.txt", "notes.txt", ""),
    ("truncate -s 5 notes.txt", "notes.txt", ""),
    ("dd if=/dev/zero of=data.json bs=1 count=3 conv=notrunc", "data.json", ""),
    ("install -m 755 docs/a.md src/tool", "src/tool", ""),
    ("split -n 2 docs/a.md part.", "part.aa part.ab", ""),
    ("tar --mtime=@0 --sort=name -cf t.tar src && mkdir o && tar -xf t.tar -C o", "t.tar", "o"),
    ("gzip -n notes.txt", "notes.txt notes.txt.gz", ""),
    ("diff -u -L a -L b src/x.py src/y.py > p.diff; cp src/x.py q && patch q p.diff", "p.diff q", ""),
    ("find src -name '*.py' -exec sed -i s/beta/delta/ {} +", "", "src"),
    ("/usr/bin/python3 -m json.tool data.json > $TMPDIR/n && cat $TMPDIR/n > data.json", "data.json", ""),
    (
        "/usr/bin/python3 -c \"import os; open('src/.x','w').write('new'); os.replace('src/.x','src/x.py')\"",
        "src/x.py",
        "",
    ),
    ("{ sed s/beta/x/ src/x.py > tmp.$$ && mv tmp.$$ src/x.py; }", "src/x.py", ""),
    ("rm -r src/pkg && echo file > src/pkg", "", "src/pkg"),
    ("rm notes.txt && mkdir notes.txt && touch notes.txt/a", "", "notes.txt"),
    ("cd src && mv x.py ../docs && cd .. && rm -r docs/a.md", "src/x.py docs/x.py docs/a.md", ""),
    ("for i in $(seq 150); do echo $i > docs/$i; done", "", "docs"),
    ("sleep 1 & kill $! ; wait; kill -0 $$ && echo x > notes.txt", "notes.txt", ""),
]


@pytest.fixture(params=["disk", "memory"])
def base(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With the layer beside the workspace; or in memory, as it is where the kernel takes none there."""
    need_layers()
    if request.param == "memory":
        (tmp_path / "temporary").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path


@pytest.fixture
async def commands(base: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CommandRunner]:
    async with opened(tmp_path_factory.mktemp("output")) as commands:
        yield commands


@requirement("HELD-20")
async def test_they_end_as_they_do_unheld(
    commands: CommandRunner, base: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    differing: list[object] = []
    for number, (text, names, trees) in enumerate(COMMANDS):
        other, mine = tmp_path_factory.mktemp("plain"), base / str(number)
        (temporary := other / "own").mkdir()
        plain, ws = furnish(other), furnish(mine)
        subprocess.run(["bash", "-c", text], cwd=plain, env={**os.environ, "TMPDIR": str(temporary)}, check=False)  # noqa: ASYNC221
        root = base if (base / "temporary").exists() else None

        ran = await commands.run(held(text, ws, names.split(), trees.split(), root=root), timeout=GENEROUS)

        assert (ran.changes is not None) == bool(names or trees)
        lost = ran.changes is not None and (ran.changes.dropped or ran.changes.failed)
        if seen(ws) != seen(plain) or lost:
            differing.append((text, ran.output.text(), ran.changes))
    assert differing == []

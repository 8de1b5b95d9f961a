"""Everyday commands under the supervisor end as they do unheld, and nothing is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ferrule.host.processes.command_runner import CommandRunner
from tests.host.processes.holding import furnish, need_supervisor, run_unheld, snapshot, supervised
from tests.host.processes.shell import GENEROUS, opened
from tests.requirement import requirement

PY = "/usr/bin/env python3 -I -S -c"
EVERYDAY = [  # a command, the names it declared, and the trees
    ("true", "notes.txt", ""),
    ("cat src/main.py > /dev/null; echo fine >&2", "notes.txt", ""),
    ("echo heard > /dev/stderr; echo heard | tee /dev/fd/2", "notes.txt", ""),
    ("sed -i s/one/uno/ src/main.py", "src/main.py", ""),
    ("sed -i s/one/uno/ src/*.py", "src/main.py src/util.py", ""),
    ("sed -i.orig s/one/uno/ src/main.py", "src/main.py src/main.py.orig", ""),
    ("sed -i s/one/uno/ folder/util.py", "src/util.py", ""),
    ("sed -i s/one/uno/ alias.py", "alias.py", ""),
    ("sed -i --follow-symlinks s/one/uno/ alias.py", "src/main.py", ""),
    ("perl -pi -e s/one/uno/ docs/guide.md", "docs/guide.md", ""),
    ("echo fresh > alias.py", "src/main.py", ""),
    ("echo last >> notes.txt", "notes.txt", ""),
    (": > notes.txt", "notes.txt", ""),
    ("exec 2> errors.log; echo seen > /dev/stderr", "errors.log", ""),
    ("cp src/main.py src/copy.py", "src/copy.py", ""),
    ("cp src/main.py src/util.py", "src/util.py", ""),
    ("cp --preserve=mode,ownership start.sh again.sh", "again.sh", ""),
    ("cp -r src lib", "", "lib"),
    ("cp -a src lib", "", "lib"),
    ("cp --backup docs/guide.md notes.txt", "notes.txt notes.txt~", ""),
    ("cp docs/guide.md src/", "src/guide.md", ""),
    ("mv notes.txt NOTES", "notes.txt NOTES", ""),
    ("mv src/main.py src/util.py", "src/main.py src/util.py", ""),
    ("mv src lib", "", "src lib"),
    ("mv notes.txt docs", "notes.txt docs/notes.txt", ""),
    ("rm src/util.py; rm -f src/never-there", "src/util.py src/never-there", ""),
    ("rm -rf out", "", "out"),
    ("rm -rf out && mkdir out && touch out/.keep", "", "out"),
    ("rm alias.py folder", "alias.py folder", ""),
    ("rmdir hollow", "hollow", ""),
    ("mkdir made", "made", ""),
    ("mkdir -p a/b/c", "a/b/c", ""),
    ("mkdir -p a/b && echo x > a/b/c.txt", "a/b/c.txt", ""),
    ("mkdir -m 700 made", "made", ""),
    ("umask 027; mkdir made; touch made.txt", "made made.txt", ""),
    ("touch src/fresh.py", "src/fresh.py", ""),
    ("touch -d 2001-02-03 src/main.py", "src/main.py", ""),
    ("ln -s src/util.py u", "u", ""),
    ("ln -sfn docs folder", "folder", ""),
    ("ln src/util.py twin.py", "twin.py", ""),
    ("chmod +x src/main.py", "src/main.py", ""),
    ("chmod 750 src", "src", ""),
    ("chmod -R go-rwx docs", "", "docs"),
    ("tee notes.txt < docs/guide.md", "notes.txt", ""),
    ("sort -r -o notes.txt notes.txt", "notes.txt", ""),
    ("truncate -s 7 notes.txt", "notes.txt", ""),
    ("dd if=/dev/zero of=table.json bs=1 count=4 conv=notrunc status=none", "table.json", ""),
    ("install -m 755 docs/guide.md src/tool", "src/tool", ""),
    ("split -n 2 docs/guide.md part-", "part-aa part-ab", ""),
    ("tar --mtime=@0 --sort=name -cf s.tar src && mkdir x && tar -xf s.tar -C x", "s.tar", "x"),
    ("gzip -n notes.txt", "notes.txt notes.txt.gz", ""),
    ("diff -u -L a -L b src/main.py src/util.py > p.diff; cp src/main.py q; patch -s q p.diff", "p.diff q", ""),
    ("find src -name '*.py' -exec sed -i s/two/due/ {} +", "", "src"),
    ("sort notes.txt > $TMPDIR/n && cat $TMPDIR/n > notes.txt", "notes.txt", ""),
    ("f=$(mktemp) && sort -r notes.txt > $f && chmod 644 $f && mv $f notes.txt", "notes.txt", ""),
    (f"{PY} \"import os; open('src/.m', 'w').write('new'); os.replace('src/.m', 'src/main.py')\"", "src/main.py", ""),
    (f"{PY} \"f = open('notes.txt', 'r+'); f.seek(3); f.truncate(); f.close()\"", "notes.txt", ""),
    ("cd docs && { sed s/two/x/ guide.md > tmp.$$ && mv tmp.$$ guide.md; }", "docs/guide.md", ""),
    ("rm -r src/deep && echo file > src/deep", "", "src/deep"),
    ("rm notes.txt && mkdir notes.txt && touch notes.txt/a", "", "notes.txt"),
    ("cd src && mv main.py ../docs && rm ../docs/guide.md", "src/main.py docs/main.py docs/guide.md", ""),
    ("(echo late >> notes.txt) & wait; echo later >> notes.txt", "notes.txt", ""),
    ("mkfifo $TMPDIR/p && { echo through > $TMPDIR/p & cat $TMPDIR/p > notes.txt; }", "notes.txt", ""),
]


@pytest.fixture
async def commands(tmp_path: Path) -> AsyncIterator[CommandRunner]:
    need_supervisor()
    async with opened(tmp_path) as commands:
        yield commands


@requirement("HELD-22")
async def test_everyday_commands_end_as_they_do_unheld(commands: CommandRunner, tmp_path: Path) -> None:
    wrong: list[object] = []
    for number, (text, names, trees) in enumerate(EVERYDAY):
        held, free = furnish(tmp_path / f"held{number}"), furnish(tmp_path / f"free{number}")
        (tmp_path / f"own{number}").mkdir()
        run_unheld(text, free, TMPDIR=str(tmp_path / f"own{number}"))

        ran = await commands.run(supervised(text, held, *names.split(), trees=(*trees.split(),)), timeout=GENEROUS)

        same = _without_times(held) == _without_times(free)
        if not same or ran.changes is None or ran.changes.refused or ran.changes.failed:
            wrong.append((text, same, ran.output.text(), ran.changes))
    assert not wrong


def _without_times(workspace: Path) -> dict[str, tuple[object, ...]]:
    """What `tar` wrote is compared by what was unpacked: the archive holds times of folders."""
    return {name: seen for name, seen in snapshot(workspace).items() if not name.endswith(".tar")}

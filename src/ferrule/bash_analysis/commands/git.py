"""git: which subcommands are read-only, and with which options.

They are read-only provided that whoever runs them keeps the repository's own
configuration from running programs.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from ..account import Account
from ..git_showing import Showing, changing_doubt, showing
from ..shell_words import Word
from ..table import Arguments, arguments, usage

_GLOBAL = (
    "-P -C:base --no-pager --no-optional-locks --no-replace-objects --literal-pathspecs --no-lazy-fetch |"
    " text | leading"
)

_DIFF = (
    "-pusRabwWz -U? -l: -S: -G: -O:read -B? -M? -C? -D -X? --patch --no-patch --unified? --raw --patch-with-raw"
    " --indent-heuristic --no-indent-heuristic --minimal --patience --histogram --anchored= --diff-algorithm="
    " --stat? --stat-width= --stat-count= --stat-graph-width= --stat-name-width= --compact-summary --numstat"
    " --shortstat --dirstat? --cumulative --summary --patch-with-stat --name-only --name-status --submodule?"
    " --color? --no-color --color-moved? --no-color-moved --color-moved-ws= --word-diff? --word-diff-regex="
    " --color-words? --no-renames --rename-empty --no-rename-empty --check --ws-error-highlight= --full-index"
    " --binary --abbrev? --no-abbrev --break-rewrites? --find-renames? --find-copies? --find-copies-harder"
    " --irreversible-delete --diff-filter= --find-object= --pickaxe-all --pickaxe-regex --relative? --no-relative"
    " --text --ignore-cr-at-eol --ignore-space-at-eol --ignore-space-change --ignore-all-space --ignore-blank-lines"
    " --ignore-matching-lines= --inter-hunk-context= --function-context --exit-code --quiet --no-ext-diff"
    " --no-textconv --ignore-submodules? --src-prefix= --dst-prefix= --no-prefix --default-prefix --line-prefix="
    " --ita-invisible-in-index --output=write --output-indicator-new= --output-indicator-old="
    " --output-indicator-context="
)
_LOG = (
    f"{_DIFF} -ciEFPgqmtr -n: -L: --follow --no-decorate --decorate? --decorate-refs= --decorate-refs-exclude= --source"
    " --mailmap --use-mailmap --log-size --max-count= --skip= --since= --after= --until= --before= --since-as-filter="
    " --author= --committer= --grep= --all-match --invert-grep --regexp-ignore-case --basic-regexp --extended-regexp"
    " --fixed-strings --perl-regexp --remove-empty --merges --no-merges --min-parents= --max-parents= --no-min-parents"
    " --no-max-parents --first-parent --exclude-first-parent-only --not --all --branches? --tags? --remotes? --glob="
    " --exclude= --exclude-hidden= --reflog --walk-reflogs --ignore-missing --stdin --cherry-mark --cherry-pick"
    " --left-only --right-only --cherry --merge --boundary --simplify-by-decoration --show-pulls --full-history --dense"
    " --sparse --simplify-merges --ancestry-path? --date-order --author-date-order --topo-order --reverse --pretty?"
    " --format= --abbrev-commit --no-abbrev-commit --oneline --encoding= --expand-tabs? --no-expand-tabs --notes?"
    " --no-notes --relative-date --date= --parents --children --left-right --graph --no-graph --show-linear-break?"
    " --no-walk? --do-walk --diff-merges= --no-diff-merges --cc --dd --remerge-diff --combined-all-paths --root"
    " --clear-decorations --full-diff --count | text | digits"
)
_SHOW_REFS = "--sort= --format= --points-at= --merged? --no-merged? --contains? --no-contains? --color? --ignore-case"

READING = {
    "log": _LOG,
    "show": _LOG,
    "whatchanged": _LOG,
    "reflog": _LOG,
    "stash list": _LOG,
    "stash show": f"{_DIFF} --include-untracked --only-untracked | text",
    "rev-list": f"{_LOG.partition('|')[0]} --objects --objects-edge --unpacked --bisect --count --timestamp"
    " --header --disk-usage? --use-bitmap-index --no-commit-header --in-commit-order | text | digits",
    "shortlog": f"{_LOG.partition('|')[0]} -sne -w? --numbered --summary --email --group= | text | digits",
    "diff": f"{_DIFF} --cached --staged --merge-base --no-index --base --ours --theirs | text | digits",
    "diff-tree": f"{_LOG.partition('|')[0]} --no-commit-id --always | text",
    "diff-index": f"{_DIFF} -m --cached --merge-base | text",
    "diff-files": f"{_DIFF} -q --base --ours --theirs | text",
    "range-diff": f"{_DIFF} --no-dual-color --creation-factor= --left-only --right-only | text",
    "status": "-sbvz -u? -M? --short --branch --show-stash --porcelain? --long --verbose --untracked-files?"
    " --ignore-submodules? --ignored? --column? --no-column --ahead-behind --no-ahead-behind --renames --no-renames"
    " --find-renames? | text",
    "blame": "-lteswcbf -L: -M? -C? -S:read --root --show-stats --reverse --first-parent --porcelain --line-porcelain"
    " --incremental --encoding= --contents=read --date= --show-name --show-number --show-email --color-lines"
    " --color-by-age --ignore-rev= --ignore-revs-file=read --abbrev? --since= | text",
    "annotate": "-lt -L: | text",
    "branch": f"-arvilq --all --remotes --verbose --list --show-current --abbrev? --no-abbrev --column? --no-column"
    f" --quiet {_SHOW_REFS} | listing | ",
    "tag": f"-li -n? --list --column? --no-column {_SHOW_REFS} | listing | ",
    "remote": "-v --verbose | none",
    "remote get-url": "--push --all | remote",
    "for-each-ref": f"-sp --shell --perl --python --tcl --count= --exclude= --stdin {_SHOW_REFS} | text",
    "show-ref": "-dsq --head --heads --branches --tags --dereference --hash? --verify --abbrev? --quiet --exists |"
    " text",
    "ls-files": "-cdmoiskutvfz -x: -X:read --cached --deleted --modified --others --ignored --stage --unmerged --killed"
    " --directory --no-empty-directory --eol --deduplicate --full-name --error-unmatch --with-tree= --abbrev? --debug"
    " --format= --exclude= --exclude-from=read --exclude-per-directory= --exclude-standard --recurse-submodules"
    " --sparse | text",
    "ls-tree": "-drtlz --long --name-only --name-status --object-only --abbrev? --full-name --full-tree --format= |"
    " text",
    "cat-file": "-etps --batch? --batch-check? --batch-all-objects --buffer --follow-symlinks --allow-unknown-type"
    " --unordered --path= | text",
    "rev-parse": "-q --verify --quiet --short? --abbrev-ref? --symbolic --symbolic-full-name --all --branches? --tags?"
    " --remotes? --show-toplevel --show-prefix --show-cdup --git-dir --git-common-dir --absolute-git-dir --git-path="
    " --is-inside-work-tree --is-inside-git-dir --is-bare-repository --is-shallow-repository"
    " --show-superproject-working-tree --show-object-format? --show-ref-format --revs-only --no-revs --flags"
    " --no-flags --default= --prefix= --sq --since= --until= --path-format= --shared-index-path --local-env-vars"
    " --glob= --exclude= --disambiguate= | text",
    "describe": "--all --tags --contains --abbrev? --candidates= --exact-match --debug --long --match= --exclude="
    " --always --first-parent --dirty? --broken? | text",
    "name-rev": "--tags --refs= --exclude= --all --name-only --no-undefined --always --annotate-stdin | text",
    "merge-base": "-a --all --octopus --is-ancestor --independent --fork-point | text",
    "cherry": "-v --abbrev? | text",
    "show-branch": "-ar --all --remotes --current --topo-order --date-order --sparse --more? --list --independent"
    " --merge-base --no-name --sha1-name --topics --color? --no-color --reflog? | text",
    "check-ignore": "-qvzn --quiet --verbose --stdin --non-matching --no-index | text",
    "check-attr": "-az --all --cached --stdin --source= | text",
    "check-mailmap": "--stdin | text",
    "check-ref-format": "--branch --allow-onelevel --refspec-pattern --normalize | text",
    "count-objects": "-vH --verbose --human-readable | none",
    "grep": "-aIiwvhHEGPFnlLzcqopW -e: -f:read -m: -A: -B: -C: --cached --untracked --no-index --recurse-submodules"
    " --no-exclude-standard --exclude-standard --text --ignore-case --word-regexp --invert-match --full-name"
    " --extended-regexp --basic-regexp --perl-regexp --fixed-strings --line-number --column --files-with-matches"
    " --name-only --files-without-match --null --count --color? --no-color --break --heading --show-function"
    " --context= --after-context= --before-context= --function-context --max-count= --max-depth= --threads= --and --or"
    " --not --all-match --quiet --only-matching --no-textconv --open-files-in-pager?shell | text | digits",
    "symbolic-ref": "-q --quiet --short --recurse --no-recurse | name1 none",
    "config get": "--all --show-names --regexp --default= --type= --global --local --system --worktree | text",
    "config list": "--global --local --system --worktree --show-origin --show-scope --name-only --null | none",
    "config": "-lz --get --get-all --get-regexp --get-urlmatch --list --global --local --system --worktree"
    " --show-origin --show-scope --name-only --null --type= --bool --int --bool-or-int --path --includes"
    " --no-includes --default= | getting",
    "worktree list": "-vz --porcelain --verbose --expire= | none",
    "submodule status": "--cached --recursive --quiet | text",
    "var": "| =GIT_AUTHOR_IDENT,GIT_COMMITTER_IDENT,GIT_DEFAULT_BRANCH,GIT_EDITOR,GIT_PAGER,GIT_SHELL_PATH",
    "version": "--build-options | none",
    "verify-pack": "-vs --verbose --stat-only | reads",
    "sparse-checkout list": "| none",
    "notes list": "| text",
    "notes show": "| text",
    "bisect log": "| none",
    "rerere status": "| none",
    "rerere diff": "| none",
}
CHANGING = {
    "add": "-nvfAuN --dry-run --verbose --force --all --no-all --update --intent-to-add --renormalize --refresh"
    " --ignore-errors --ignore-missing --sparse --chmod= --pathspec-from-file=read --pathspec-file-nul | text",
    "commit": "-aqsnzio -m: -F:read -C: -u? --all --quiet --signoff --no-signoff --no-verify --verify --message="
    " --file=read --reuse-message= --amend --no-edit --allow-empty --allow-empty-message --fixup= --squash="
    " --reset-author --author= --date= --cleanup= --no-post-rewrite --include --only --short --branch --porcelain"
    " --long --dry-run --status --no-status --trailer= --untracked-files? --no-gpg-sign"
    " --pathspec-from-file=read | text",
    "rm": "-rfnq --cached --force --dry-run --quiet --ignore-unmatch --sparse | text",
    "reset": "-qN --mixed --soft --hard --merge --keep --quiet --no-quiet --intent-to-add --refresh --no-refresh |"
    " text",
    "restore": "-WSqm -s: --source= --worktree --staged --quiet --progress --no-progress --ours --theirs --merge"
    " --ignore-unmerged --overlay --no-overlay | text",
    "checkout": "-qfldm -t? -b: -B: --quiet --force --ours --theirs --track? --no-track --detach --orphan= --merge"
    " --guess --no-guess --progress --no-progress --overlay --no-overlay | text",
    "switch": "-qfdm -t? -c: -C: --create= --force-create= --detach --guess --no-guess --force --discard-changes"
    " --quiet --merge --orphan= --track? --no-track --progress --no-progress | text",
    "branch": "-dDmMcCfq -t? -u: --delete --move --copy --force --quiet --track? --no-track --set-upstream-to="
    " --unset-upstream | text",
    "tag": "-adf -m: -F:read --annotate --delete --force --no-sign --message= --file=read | text",
    "stash": "-kuaqS -m: --keep-index --no-keep-index --include-untracked --all --quiet --staged --message= | none",
    "stash push": "-kuaqS -m: --keep-index --no-keep-index --include-untracked --all --quiet --staged --message="
    " | text",
    "stash pop": "-q --index --quiet | text",
    "stash apply": "-q --index --quiet | text",
    "stash drop": "-q --quiet | text",
    "merge": "-nq -m: --no-ff --ff --ff-only --squash --no-squash --commit --no-commit --abort --continue --quit"
    " --quiet --no-edit --stat --no-stat --signoff --allow-unrelated-histories | text",
    "rebase": "-qn --abort --continue --skip --quit --quiet --onto= --root --autostash --no-autostash --no-stat | text",
    "cherry-pick": "-nxs -m: --no-commit --no-edit --abort --continue --skip --quit --signoff --allow-empty --ff |"
    " text",
    "revert": "-ns -m: --no-commit --no-edit --abort --continue --skip --quit --signoff | text",
}
"""They change the repository or the checkout, and with these options print no file contents."""
_REMOTE_WORDS = frozenset(
    {"add", "rename", "remove", "rm", "set-head", "set-branches", "set-url", "show", "prune", "update"}
)
_LISTING = ("-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at")
_REVISION = re.compile(r"(HEAD|@|[0-9a-f]{7,64})([~^][0-9]*|@\{[^}]*\})*")
"""Names that are revisions even if a file has the same name."""
_MESSAGE = re.compile(r"-[aqsn]*m|--message")
_MAGIC = re.compile(r":\(([^)]*)\)")
_STAGE = re.compile(r":([0-3]:)?")
_NAME = re.compile(r"[A-Za-z0-9_./-]+")
_GETTING = ("--get", "--get-all", "--get-regexp", "--get-urlmatch", "-l", "--list")


def read(words: list[Word], account: Account) -> None:
    given = arguments(words, usage(_GLOBAL))
    if any(word.text == "--" for word in words[: len(words) - len(given.operands)]):
        account.doubt("`--` before git's subcommand")
    if given.doubt or not given.operands:
        account.doubt(given.doubt or "git without a subcommand")
        _risks([word for word in words if word.text], account)
        return
    for option in given.options:
        if option.name == "-C" and option.value is not None:
            account.reads(option.value)
            account.state = account.state.move_to(option.value)
    account.reads_here()
    name, entry, rest = _subcommand(list(given.operands))
    _risks(list(given.operands), account)
    if _changes(given.operands, account):
        return
    if entry is None:
        account.doubt(f"git {name} is not known to be read-only")
        return
    shows = showing([word.shown for word in given.operands]) is not Showing.NAMES
    _looks(name, entry, arguments(rest, usage(entry)), account, shows=shows)


def _changes(words: Sequence[Word], account: Account) -> bool:
    """Whether it is a command with known options that changes something."""
    name, entry, rest = _find_entry(words, CHANGING)
    if entry is None:
        return False
    look = READING.get(name)
    if look is not None:
        looking = arguments(rest, usage(look))
        listing = usage(look).operands[:1] == ("listing",)
        if not looking.doubt and not (listing and looking.operands and not looking.has(*_LISTING)):
            return False
    given = arguments(_with_messages(rest), usage(entry))
    if given.doubt or (usage(entry).operands[:1] == ("none",) and given.operands):
        return False
    for option in given.options:
        if option.role == "read" and option.value is not None:
            account.reads(option.value)
    account.doubt(changing_doubt(name))
    return True


def _with_messages(words: Sequence[Word]) -> list[Word]:
    """The words, with a computed commit message treated as known: it is the value of the option before it."""
    told = [words[0]] if words else []
    for before, word in itertools.pairwise(words):
        is_message = word.text is None and not word.many and _MESSAGE.fullmatch(before.text or "")
        told.append(Word.of_text("message") if is_message else word)
    return told


def _find_entry(words: Sequence[Word], table: Mapping[str, str]) -> tuple[str, str | None, list[Word]]:
    """The name of one or two words in the table, its entry, and the words after it."""
    first = words[0].text or ""
    second = (words[1].text or "") if len(words) > 1 else ""
    if f"{first} {second}" in table:
        return f"{first} {second}", table[f"{first} {second}"], list(words[2:])
    return first, table.get(first), list(words[1:])


def _subcommand(words: list[Word]) -> tuple[str, str | None, list[Word]]:
    first = words[0].text
    second = words[1].text if len(words) > 1 else None
    if first is None:
        return words[0].shown, None, []
    if first == "reflog" and second in ("expire", "delete", "exists", "drop", "write"):
        return f"{first} {second}", None, []
    if first == "reflog" and second == "show":
        return "reflog show", READING["reflog"], words[2:]
    return _find_entry(words, READING)


def _looks(name: str, entry: str, given: Arguments, account: Account, *, shows: bool) -> None:
    if given.doubt:
        account.doubt(given.doubt)
    for option in given.options:
        if option.role == "write" and option.value is not None:
            account.writes(option.value)
        elif option.role == "read" and option.value is not None:
            account.reads(option.value)
        elif option.role == "shell":
            account.doubt(f"{option.name} runs a program")
    roles = usage(entry).operands
    _operands(roles, given, account)
    operands = given.operands
    if name == "grep" and not given.has("-e", "-f"):
        operands = operands[1:]
    for operand in operands:
        # Outside a repository, and for paths outside it, git compares any two files.
        if given.has("--no-index") or (operand.text or operand.prefix).startswith(("/", "..", "~")):
            account.reads(operand)
        elif shows:
            _reads_named(operand, account)


def _reads_named(operand: Word, account: Account) -> None:
    """A path, or its content in some revision; a revision alone is treated as a path that is unlikely to exist."""
    text = operand.text
    if text is None:
        account.reads(operand)
        return
    if _REVISION.fullmatch(text) or text.startswith((":!", ":^")):
        return
    magic = _MAGIC.match(text)
    if magic is not None:
        if "exclude" in magic[1].split(","):
            return
        text = text[magic.end() :]
    elif ":" in text:
        text = _STAGE.sub("", text) if text.startswith(":") else text.partition(":")[2]
        text = text.lstrip("/")
    account.reads(Word.of_text(text or "."))


def _operands(roles: tuple[str, ...], given: Arguments, account: Account) -> None:
    operands = given.operands
    role = roles[0] if roles else "none"
    if role == "none" and operands:
        account.doubt(f"{operands[0].shown} is not expected")
    elif role == "listing" and operands and not given.has(*_LISTING):
        account.doubt(f"{operands[0].shown} would be created")
    elif role == "remote" and (len(operands) != 1 or operands[0].text is None or operands[0].text in _REMOTE_WORDS):
        account.doubt("the remote is not known")
    elif role == "name1" and (len(operands) != 1 or operands[0].text is None):
        account.doubt("a reference may be set")
    elif role == "getting":
        named = len(operands) == 1 and _NAME.fullmatch(operands[0].text or "") is not None
        if not given.has(*_GETTING) and not named:
            account.doubt("configuration may be set")
    elif role == "reads":
        for operand in operands:
            account.reads(operand)
    elif role.startswith("=") and any(operand.text not in role[1:].split(",") for operand in operands):
        account.doubt("what it asks for is not known")


def _risks(words: list[Word], account: Account) -> None:
    texts = [word.text or "" for word in words]
    name = next((text for text in texts if not text.startswith("-")), "")
    given = set(texts)
    if name == "push":
        forced = given & {"-f", "--force", "--force-with-lease", "--mirror", "--delete", "-d"} or any(
            text.startswith(("+", ":", "--force")) for text in texts
        )
        if forced:
            account.risk("force-push", "high", "It overwrites or deletes history on a remote.")
        else:
            account.risk("push", "medium", "It sends commits to a remote.")
    elif name in ("filter-branch", "filter-repo", "replace"):
        account.risk("history", "high", "It rewrites the history of the repository.")
    elif name == "reset" and "--hard" in given:
        account.risk("discards", "high", "It discards changes that are not committed.")
    elif name == "clean" and any(text.startswith("-") and "f" in text for text in texts):
        account.risk("discards", "high", "It deletes files that are not tracked.")
    elif name in ("rebase", "commit") and (name == "rebase" or "--amend" in given):
        account.risk("history", "medium", "It rewrites commits.")
    elif name == "branch" and given & {"-D", "--delete", "-d"}:
        account.risk("discards", "medium", "It deletes a branch.")
    elif name == "stash" and given & {"drop", "clear"}:
        account.risk("discards", "medium", "It deletes stashed changes.")
    elif name in ("checkout", "restore") and given & {".", "--force", "-f"}:
        account.risk("discards", "medium", "It discards changes that are not committed.")
    elif name in ("gc", "prune", "reflog") and any("expire" in text or "prune" in text for text in texts):
        account.risk("history", "high", "It deletes what could still be recovered.")
    elif name == "config":
        account.risk("configuration", "low", "It may change git's configuration.") if len(texts) > 2 else None

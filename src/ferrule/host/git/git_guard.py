"""A `git` to be found first on the PATH of a command, that leaves out what must not be shown.

It runs the real git with the words it was given, followed by pathspecs
that exclude the paths in question. Pathspecs hold for what is found by walking
from a commit, so a word that names a tree or the contents of one file is
looked at first. It is for commands whose words are understood: whoever calls
the real git by its path passes by, and for those the objects are hidden.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final

EMPTY_TREES: Final = (
    "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
)
_SCRIPT: Final = r"""#!/bin/sh
# Leaves out what a rule denies of what git keeps.
real=@REAL@
blobs=${0%/*}/blobs
complete=@COMPLETE@
unset GIT_LITERAL_PATHSPECS GIT_GLOB_PATHSPECS GIT_NOGLOB_PATHSPECS GIT_ICASE_PATHSPECS
unset GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
unset GIT_NAMESPACE GIT_REPLACE_REF_BASE GIT_EXEC_PATH
export GIT_NO_REPLACE_OBJECTS=1

flags=
while [ $# -gt 0 ]; do
  case $1 in
    -C)
      case $2 in "") ;; /*) cd -P -- "$2" || exit 128 ;; *) cd -P -- "./$2" || exit 128 ;; esac
      shift 2 || exit 128 ;;
    -*) flags="$flags $1"; shift ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || exec "$real" $flags
command=$1
shift

refuse() {
  printf 'left out: %s\n' "$1" >&2
  printf 'A rule denies reading what git keeps of it, or it could not be identified. ' >&2
  printf 'Name other paths, as in REVISION:PATH.\n' >&2
  exit 128
}

# Only what is reached from a commit has the paths that rules are about.
inspect() {
  id=$("$real" rev-parse -q --verify "$1" 2>/dev/null) || return 1
  case $("$real" cat-file -t "$id^{}" 2>/dev/null) in
    commit) return 0 ;;
    tree)
      case $id in @EMPTY@) return 0 ;; esac
      case $command in show|cat-file|ls-tree) return 0 ;; esac
      refuse "$1" ;;
    blob) ;;
    *) refuse "$1" ;;
  esac
  case $1 in
    :*) [ "$complete" = yes ] || refuse "$1" ;;
    *:*)
      [ "$("$real" cat-file -t "${1%%:*}^{}" 2>/dev/null)" = commit ] || refuse "$1"
      [ "$complete" = yes ] || [ -z "$("$real" rev-parse --show-prefix)" ] || refuse "$1" ;;
    *) refuse "$1" ;;
  esac
  ! grep -qxF -e "$("$real" rev-parse -q --verify "$id^{}")" "$blobs" || refuse "$1"
}

# A log that shows no contents is left as it is: only with options of which that is known.
shows_no_contents() {
  for word do
    case $word in
      --) return 0 ;;
      -[0-9]*|-n|-n[0-9]*|--max-count=*|--oneline|--format=*|--pretty*|--graph|--all|--branches*|--tags*) ;;
      --decorate*|--no-decorate|--stat*|--shortstat|--numstat|--name-only|--name-status|--abbrev-commit) ;;
      --since=*|--until=*|--after=*|--before=*|--author=*|--grep=*|--date=*) ;;
      --merges|--no-merges|--first-parent|--reverse|--topo-order|--date-order) ;;
      -*) return 1 ;;
    esac
  done
}

inspect_all() {
  only_revisions=yes
  for word do
    case $word in
      --) only_revisions=no; return ;;
      --no-index) no_index=yes ;;
      -*) continue ;;
      :\(*|:!*|:^*) only_revisions=no; continue ;;
    esac
    word=${word#^}
    inspect "$word" || inspect "${word%%^[@!-]*}" && continue
    case $word in
      *..*)
        right=${word##*..}
        inspect "${word%%..*}" || [ -z "${word%%..*}" ] || only_revisions=no
        inspect "${right#.}" || [ -z "${right#.}" ] || only_revisions=no ;;
      *) only_revisions=no ;;
    esac
  done
}

case $command in
  log|reflog|shortlog) ! shows_no_contents "$@" || exec "$real" $flags "$command" "$@" ;;
esac
no_index=no
sparse=
case $command in
  show|cat-file|diff|diff-tree|diff-index|diff-files|range-diff|grep|log|whatchanged|shortlog|reflog|blame|annotate)
    inspect_all "$@" ;;
  status) ;;
  *) exec "$real" $flags -c commit.verbose=false "$command" "$@" ;;
esac
case $command in
  cat-file|blame|annotate) exec "$real" $flags "$command" "$@" ;;
  # Every commit is still listed, as without a path.
  log|show|whatchanged) [ "$only_revisions" = no ] || sparse="--full-history --sparse" ;;
esac
[ "$no_index" = no ] || exec "$real" $flags "$command" "$@"
set -- "$@" @EXCLUDED@
exec "$real" $flags -c diff.submodule=short -c log.follow=false "$command" $sparse "$@"
"""


def write_guard(place: Path, *, real: str, excluded: Iterable[str], blobs: Collection[str], complete: bool) -> str:
    """Make a guard below `place`; its folder. `complete` says whether `blobs` are all ids that must not be shown."""
    script = _SCRIPT
    for name, value in {
        "@REAL@": shlex.quote(real),
        "@COMPLETE@": "yes" if complete else "no",
        "@EMPTY@": "|".join(EMPTY_TREES),
        "@EXCLUDED@": " ".join(map(shlex.quote, excluded)),
    }.items():
        script = script.replace(name, value)
    ids = "".join(f"{blob}\n" for blob in sorted(blobs))
    folder = place / f"git-{sha256(os.fsencode(script + ids)).hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    _put(folder / "blobs", ids.encode(), 0o444)
    _put(folder / "git", os.fsencode(script), 0o555)
    return str(folder)


def _put(path: Path, data: bytes, mode: int) -> None:
    """Whoever may write there could have changed it, so what is there is looked at each time."""
    if path.is_file() and not path.is_symlink() and path.read_bytes() == data:
        return
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    new.write_bytes(data)
    new.chmod(mode)
    new.replace(path)

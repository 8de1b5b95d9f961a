"""cp, mv and ln: where they put their operands, and under which names."""

from __future__ import annotations

import posixpath

from ...core.effects import Change
from ..account import EVERYTHING, Account, Put
from ..shell_words import Word
from ..table import Arguments

ROLES = frozenset({"copies", "moves", "links"})


def transfer(role: str, operands: list[Word], given: Arguments, account: Account) -> None:
    """The last operand is the target, unless an option names it. A target may be a folder, with names put into it.

    The target of a link is considered read, because it can be read under the link's name from then on.
    """
    folders = [option.value for option in given.options if option.name in ("-t", "--target-directory")]
    into = bool(folders)
    sources, target = (operands, None) if into or len(operands) < 2 else (operands[:-1], operands[-1])
    for source in sources:
        _take(role, source, given, account)
    if role == "links" and given.has("-s", "--symbolic") and (into or "/" in (target.text or "/" if target else "")):
        account.doubt("the target of a link from another folder is not known")
    if target is None and not into:
        if role != "links":
            account.doubt("the target is missing")
            return
        target = Word.of_text(".")
    for place in (target, *folders):
        if place is not None:
            _put(role, sources, place, given, account)


def _take(role: str, source: Word, given: Arguments, account: Account) -> None:
    if role == "moves":
        account.writes(source, Change.UNLINKS)
        return
    account.reads(source)
    if role == "copies" and _is_recursive(given) and given.has("-L", "--dereference"):
        account.reads_through(source)


def _put(role: str, sources: list[Word], target: Word, given: Arguments, account: Account) -> None:
    suffixes = _suffixes(given, account)
    if target.text is None:
        account.writes(target)
        if target.glob:  # of several names the last is the folder that the others are put into
            account.writes(Word(None, target.prefix, pattern=True, source=target.source, glob=f"{target.glob}/*"))
        return
    with_folders = role == "copies" and _is_recursive(given)
    for source in sources:
        put = _put_of(source, given, account, with_folders=with_folders)
        account.writes(target, Change.REPLACES, put)
        for suffix in suffixes:
            inside = tuple((f"{name}{suffix}", Put()) for name, _ in put.if_folder)
            account.writes(Word.of_text(target.text.rstrip("/") + suffix))
            account.writes(target, Change.REPLACES, Put(put.names and f"{put.names}{suffix}", "", inside))
    if not sources:
        account.writes(target)


def _put_of(source: Word, given: Arguments, account: Account, *, with_folders: bool) -> Put:
    if source.text is None:
        name = source.glob.rpartition("/")[2]
        return Put(EVERYTHING if with_folders or not name else f"./{name}")
    like = account.places(source)[0] if with_folders else ""
    everything = EVERYTHING if with_folders else ""
    name = posixpath.basename(source.text.rstrip("/"))
    if name in ("", ".", ".."):  # all that is in it, and not the folder itself
        return Put(everything, like)
    if given.has("-T", "--no-target-directory"):
        return Put(everything, like)
    whole = source.text.strip("/") if given.has("--parents") else name
    return Put("", like, tuple((one, Put(everything, like)) for one in dict.fromkeys((name, whole))))


def _is_recursive(given: Arguments) -> bool:
    return given.has("-r", "-R", "-a", "--recursive", "--archive")


def _suffixes(given: Arguments, account: Account) -> tuple[str, ...]:
    """The suffix for the names of files that are backed up."""
    if not given.has("-b", "--backup", "-S", "--suffix"):
        return ()
    values = [option.value for option in given.options if option.name in ("-S", "--suffix")]
    texts = [value.text if value else None for value in values]
    if any(text is None or "/" in text for text in texts):
        account.doubt("where its backups go is not known")
    return ("~", ".~1~", *(text for text in texts if text))

"""Programs that show files a page at a time."""

from __future__ import annotations

from ..account import Account
from ..shell_words import Word

NAMES = frozenset({"less", "more", "most", "zless", "zmore", "bat", "batcat"})


def read(words: list[Word], account: Account) -> None:
    """They read their operands, and run what their keys, options and variables specify."""
    account.doubt("a pager runs other programs")
    for word in words:
        if not word.may_be_option:
            account.reads(word)

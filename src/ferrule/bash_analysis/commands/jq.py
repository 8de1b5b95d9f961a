"""jq and yq: filters that cannot write, except those that reach beyond their input."""

from __future__ import annotations

import re

from ..account import Account
from ..shell_words import Word

_FLAGS = frozenset("acCMnrRsSej")
_LONG_FLAGS = frozenset(
    {"--ascii-output", "--compact-output", "--color-output", "--monochrome-output", "--null-input", "--raw-output"}
    | {"--raw-input", "--slurp", "--sort-keys", "--exit-status", "--join-output", "--tab", "--seq", "--stream"}
    | {"--unbuffered", "--version", "--help", "--raw-output0"}
)
_YQ_FLAGS = frozenset("rejCMNP")
_BEYOND = re.compile(
    r"(?<![.\w\"])(env|import|include|modulemeta|input_filename|get_search_list|load\w*|strenv|envsubst|eval|system|error_file"
    r"|halt_error|debug|stderr|splits?_doc|fileIndex|filename)\b|\$ENV|\$__"
)


def read(words: list[Word], account: Account) -> None:
    rest = list(words)
    filters: list[Word] = []
    only_text = False
    while rest:
        word = rest.pop(0)
        if not word.may_be_option:
            if not filters:
                filters.append(word)
            elif not only_text:
                account.reads(word)
            continue
        text = word.text
        if text is None:
            account.doubt(f"{word.shown} may be an option")
        elif text in ("--arg", "--argjson"):
            _take(rest, 2, text, account)
        elif text in ("--slurpfile", "--rawfile"):
            values = _take(rest, 2, text, account)
            account.reads(values[-1]) if values else None
        elif text == "--indent":
            _take(rest, 1, text, account)
        elif text in ("--args", "--jsonargs"):
            only_text = True  # what precedes it is still files
        elif text == "--":
            filters, rest = _only_operands(filters, rest, account), []
        elif text not in _LONG_FLAGS and not (not text.startswith("--") and set(text[1:]) <= _FLAGS):
            account.doubt(f"the option {text} is not known")
    _filter(filters, account)


def _only_operands(filters: list[Word], rest: list[Word], account: Account) -> list[Word]:
    """The filter, if a filter and files follow, or only files. Versions differ on `--args` before it."""
    for file in rest if filters else rest[1:]:
        account.reads(file)
    return filters or rest[:1]


def read_yq(words: list[Word], account: Account) -> None:
    operands: list[Word] = []
    for word in words:
        text = word.text
        if not word.may_be_option:
            operands.append(word)
        elif text is None or text.startswith("--") or not set(text[1:]) <= _YQ_FLAGS:
            account.doubt(f"{word.shown} is not known")
    if operands and operands[0].text in ("eval", "e", "eval-all", "ea"):
        operands.pop(0)
    _filter(operands[:1], account)
    for operand in operands:  # the first may be a file as well, and is one where there is such a file
        account.reads(operand)


def _filter(given: list[Word], account: Account) -> None:
    for word in given:
        if word.text is None:
            account.doubt("the filter is not known")
        elif _BEYOND.search(word.text):
            account.doubt("the filter reaches beyond its input")


def _take(rest: list[Word], count: int, name: str, account: Account) -> list[Word]:
    if len(rest) < count or any(word.many for word in rest[:count]):
        account.doubt(f"{name} needs {count} values")
        return []
    taken = rest[:count]
    del rest[:count]
    return taken

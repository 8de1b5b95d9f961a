"""Programs that reach other machines, and archives."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from ..account import Account
from ..shell_words import Word
from ..table import arguments, usage

_CURL = (
    "-sSfLkIivgGNqO46#J -o:write -H: -A: -e: -m: -X: -d: -u: -b: -c:write -x: -r: -w: -F: -T:read -D:write --silent"
    " --show-error --fail --location --insecure --head --include --verbose --get --no-buffer --header="
    " --user-agent= --referer= --max-time= --connect-timeout= --request= --data= --data-raw= --data-binary="
    " --data-urlencode= --json= --user= --cookie= --output=write --remote-name --compressed --retry= --range="
    " --write-out= --http1.1 --http2 --ipv4 --ipv6 --url= --form= --upload-file=read --dump-header=write"
    " --proxy= --fail-with-body --no-progress-meter --progress-bar | text"
)
_WGET = (
    "-qcNSv -O:write -P:write -T: -t: -U: -o:write --quiet --output-document=write --directory-prefix=write"
    " --spider --timeout= --tries= --header= --user-agent= | text"
)
_SENDING = frozenset(
    {"-d", "--data", "--json", "--data-binary", "--data-urlencode", "-F", "--form", "-H", "--header", "-b", "--cookie"}
)
_FORMS = frozenset({"-F", "--form"})
_COOKIES = frozenset({"-b", "--cookie"})
_PROXY = frozenset({"-x", "--proxy"})
_PRINTING = frozenset({"-w", "--write-out"})
_HOST = re.compile(r"[A-Za-z0-9._-]+")
_TAR_LIST = re.compile(r"-[tv]*t[tv]*f|(?=[vf]*t)(?=[tv]*f[tv]*$)[tvf]+")
"""With a leading `-`, what follows the `f` is the archive's name; without, the next word is."""


def read_curl(words: list[Word], account: Account) -> None:
    _fetch(words, _CURL, account)
    if any(word.text in ("-O", "--remote-name") for word in words):
        account.writes(Word.of_text("."))


def read_wget(words: list[Word], account: Account) -> None:
    _fetch(words, _WGET, account)
    account.writes(Word.of_text("."))


def _fetch(words: list[Word], entry: str, account: Account) -> None:
    given = arguments(words, usage(entry))
    if given.doubt:
        account.doubt(given.doubt)
    for option in given.options:
        if option.role == "write" and option.value is not None:
            account.writes(option.value)
        elif option.role == "read" and option.value is not None:
            account.reads(option.value)
        elif option.value is not None and (option.value.text or "").startswith("@"):
            account.reads(Word.of_text((option.value.text or "")[1:]))
        elif option.name in _SENDING and (option.value is None or _may_name_a_file(option.name, option.value)):
            account.doubt(f"{option.name} may send a file")
        elif option.name in _PROXY and option.value is not None:
            _reach(option.value, account)
        elif option.name in _PRINTING and (option.value is None or "%output" in (option.value.text or "%output")):
            account.doubt(f"{option.name} may write a file")
    urls = [option.value for option in given.options if option.name == "--url" and option.value is not None]
    for operand in (*given.operands, *urls):
        _reach(operand, account)
    if not given.operands and not urls:
        account.doubt("its destination is not known")


def _may_name_a_file(option: str, value: Word) -> bool:
    text = value.text
    if text is None or "@" in text or (option in _FORMS and "<" in text):
        return True
    return option in _COOKIES and "=" not in text


def _reach(operand: Word, account: Account) -> None:
    text = operand.text
    if text is None:
        account.doubt(f"the destination of {operand.shown} is not known")
        return
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host = parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        host = None
    if host is None or not _HOST.fullmatch(host):
        account.doubt(f"the destination of {text} is not known")
    account.reaches(host or text)


def read_tar(words: list[Word], account: Account) -> None:
    """Listing an archive only reads, unless a separate program decompresses it."""
    first = words[0].text if words else None
    rest = words[1:]
    if first is None or not _TAR_LIST.fullmatch(first) or any(word.may_be_option for word in rest):
        account.doubt("tar may write, or run a program")
        return
    if not rest or "f" not in first:
        account.doubt("tar is given no archive")
        return
    if ":" in (rest[0].text or ":"):
        account.doubt("the archive may be on another machine")
    account.reads(rest[0])


def read_unzip(words: list[Word], account: Account) -> None:
    if (
        not words
        or words[0].text not in ("-l", "-v", "-Z", "-t", "-Z1")
        or any(word.may_be_option for word in words[1:])
    ):
        account.doubt("it may write files")
        return
    for word in words[1:2]:
        account.reads(word)

"""Programs that run another program."""

from __future__ import annotations

import re

from ..account import Account
from ..shell_state import is_quiet
from ..shell_words import Word
from ..table import arguments, usage

_TRANSPARENT = {
    "timeout": ("-v -s: -k: --preserve-status --foreground --verbose --signal= --kill-after= | text | leading", 1),
    "nice": ("-n: --adjustment= | text | leading digits", 0),
    "nohup": ("| text | leading", 0),
    "stdbuf": ("-i: -o: -e: --input= --output= --error= | text | leading", 0),
    "time": ("-pv | text | leading", 0),
    "builtin": ("| text | leading", 0),
}
_DURATION = re.compile(r"[0-9]+(\.[0-9]+)?[smhd]?")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_XARGS = (
    "-0rtx -n: -P: -L: -d: -E: -s: -I: -a:read --null --no-run-if-empty --verbose --exit --max-args= --max-procs="
    " --max-lines? --delimiter= --max-chars= --replace? --arg-file=read | text | leading"
)
_ENV = "-0 --null | text | leading"
_SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "ash"})
_SHELL = "-abcefhiklmnprstuvxBCEHPT -o: -O: --login --norc --noprofile --posix | text | leading"
_PRIVILEGED = frozenset({"sudo", "doas", "su", "runuser", "pkexec", "setpriv", "chroot", "nsenter", "unshare"})
_RUNNING = frozenset(
    {
        "watch",
        "flock",
        "setsid",
        "ionice",
        "chronic",
        "strace",
        "ltrace",
        "busybox",
        "toybox",
        "proot",
        "fakeroot",
        "script",
        "parallel",
        "exec",
        "ssh",
    }
    | {"caffeinate", "taskset", "chrt", "prlimit", "cgexec", "systemd-run", "xvfb-run", "noglob", "nocorrect", "-"}
    | {"direnv", "devbox", "mise", "docker", "podman", "npx", "coproc"}
)

_WARY = _SHELLS | {
    "rm",
    "rmdir",
    "shred",
    "dd",
    "mv",
    "chmod",
    "chown",
    "find",
    "tee",
    "git",
    "curl",
    "wget",
    "env",
    "eval",
}

NAMES = frozenset(_TRANSPARENT) | {"xargs", "env", "command", "eval", "trap"} | _SHELLS | _PRIVILEGED | _RUNNING


def read(name: str, words: list[Word], account: Account) -> None:
    if name in _TRANSPARENT:
        _transparent(name, words, account)
    elif name == "env":
        _env(words, account)
    elif name == "xargs":
        _xargs(words, account)
    elif name == "command":
        _command(words, account)
    elif name == "eval":
        _eval(words, account)
    elif name == "trap":
        _trap(words, account)
    elif name in _SHELLS:
        _shell(name, words, account)
    else:
        if name in _PRIVILEGED:
            account.risk("privilege", "high", f"{name} runs a command with other rights.")
        account.doubt(f"what {name} does to the command it runs is not known")
        _look_inside(words, account)


def _transparent(name: str, words: list[Word], account: Account) -> None:
    entry, before = _TRANSPARENT[name]
    given = arguments(words, usage(entry))
    command = list(given.operands)
    if given.doubt:
        account.doubt(given.doubt)
        _look_inside(words, account)
        return
    if before and (not command or not _DURATION.fullmatch(command.pop(0).text or "")):
        account.doubt(f"{name} has no duration")
        _look_inside(words, account)
        return
    account.runs(command)


def _look_inside(words: list[Word], account: Account) -> None:
    """Analyses a command with an uncertain start: from a risky program on, otherwise from the first non-option word."""
    for index, word in enumerate(words):
        if word.text in _WARY:
            account.runs(words[index:])
            return
    for index, word in enumerate(words):
        if not word.may_be_option and word.text and not _ASSIGNMENT.fullmatch(word.text):
            account.runs(words[index:])
            return


def _env(words: list[Word], account: Account) -> None:
    given = arguments(words, usage(_ENV))
    if given.doubt:
        account.doubt(given.doubt)
        _look_inside(words, account)
        return
    rest = list(given.operands)
    while rest and (found := _ASSIGNMENT.fullmatch(rest[0].text or "")):
        if not is_quiet(found[1], Word.of_text(found[2])):
            account.doubt(f"{found[1]} may change what the command does")
        rest.pop(0)
    if rest:
        account.runs(rest)


def _xargs(words: list[Word], account: Account) -> None:
    given = arguments(words, usage(_XARGS))
    if given.doubt:
        account.doubt(given.doubt)
        _look_inside(words, account)
        return
    for option in given.options:
        if option.role == "read" and option.value is not None:
            account.reads(option.value)
    command = list(given.operands) or [Word.of_text("echo")]
    marks = [option.value for option in given.options if option.name in ("-I", "--replace")]
    mark = marks[0].text if marks and marks[0] is not None else None
    if marks and not mark:
        account.doubt("what xargs replaces is not known")
    if mark:
        command = [_replace_mark(word, mark) for word in command]
    else:
        command.append(Word(None, many=True, source="…"))
    account.runs(command)


def _replace_mark(word: Word, mark: str) -> Word:
    if word.text is None or mark not in word.text:
        return word
    return Word(None, prefix=word.text.partition(mark)[0], source=word.text)


def _command(words: list[Word], account: Account) -> None:
    if words and words[0].text in ("-v", "-V"):
        if any(word.text is None and word.many for word in words[1:]):
            account.doubt("an option of `command` may be hidden")
        return
    if words and words[0].may_be_option and words[0].text != "--":
        account.doubt(f"{words[0].shown} is not known")
        _look_inside(words, account)
        return
    account.runs(words[1:] if words and words[0].text == "--" else words)


def _eval(words: list[Word], account: Account) -> None:
    texts = [word.text for word in words]
    known = [text for text in texts if text is not None]
    account.doubt("`eval` runs a text")
    if len(known) == len(texts):
        account.script(" ".join(known))
    else:
        account.risk("eval", "high", "It runs a text that is not known before.")


def _shell(name: str, words: list[Word], account: Account) -> None:
    """A shell is never known to be read-only, because it has settings of its own; but its command is analysed."""
    account.doubt(f"{name} is a shell with settings of its own")
    given = arguments(words, usage(_SHELL))
    if given.doubt or not given.has("-c") or not given.operands:
        return
    text = given.operands[0].text
    if text is None:
        account.risk("eval", "high", f"{name} runs a text that is not known before.")
    else:
        account.script(text)


def _trap(words: list[Word], account: Account) -> None:
    account.doubt("`trap` runs a text later")
    if words and words[0].text is not None and not words[0].may_be_option:
        account.script(words[0].text)

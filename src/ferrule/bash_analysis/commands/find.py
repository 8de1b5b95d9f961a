"""find's expressions: tests, which only read, and actions."""

from __future__ import annotations

from ...core.effects import Change
from ..account import Account
from ..shell_words import Word
from ..word_paths import is_critical

_FLAGS = frozenset(
    {
        "-daystart",
        "-depth",
        "-d",
        "-follow",
        "-mount",
        "-noleaf",
        "-xdev",
        "-empty",
        "-executable",
        "-false",
        "-nogroup",
    }
    | {"-nouser", "-readable", "-true", "-writable", "-print", "-print0", "-ls", "-prune", "-quit", "-a", "-and", "-o"}
    | {"-or", "-not", "!", "(", ")", ",", "-ignore_readdir_race", "-noignore_readdir_race", "-nowarn", "-warn"}
)
_ONE_VALUE = frozenset(
    {"-maxdepth", "-mindepth", "-amin", "-atime", "-cmin", "-ctime", "-fstype", "-gid", "-group", "-ilname", "-iname"}
    | {"-inum", "-ipath", "-iregex", "-iwholename", "-links", "-lname", "-mmin", "-mtime", "-name", "-path", "-perm"}
    | {"-regex", "-regextype", "-size", "-type", "-uid", "-used", "-user", "-wholename", "-xtype", "-printf"}
)
_READS_ONE = frozenset({"-anewer", "-cnewer", "-newer", "-samefile"})
_WRITES_ONE = frozenset({"-fprint", "-fprint0", "-fls"})
_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_LEADING = frozenset({"-H", "-L", "-P"})


def read(words: list[Word], account: Account) -> None:
    rest = list(words)
    while rest and rest[0].text in _LEADING:
        rest.pop(0)
    places: list[Word] = []
    while rest and not _begins_expression(rest[0]):
        places.append(rest.pop(0))
    for place in places:
        account.reads(place)
    if not places:
        account.reads_here()
    while rest:
        _primary(rest, places, account)


def _begins_expression(word: Word) -> bool:
    if word.text is None:
        return word.may_be_option or word.prefix[:1] in ("(", "!")
    return word.text.startswith("-") or word.text in ("(", ")", "!", ",")


def _primary(rest: list[Word], places: list[Word], account: Account) -> None:
    word = rest.pop(0)
    name = word.text
    if name is None:
        account.doubt(f"{word.shown} may be an action")
    elif name in _FLAGS:
        return
    elif name in _ONE_VALUE or name in _READS_ONE or name.startswith("-newer"):
        value = _value(name, rest, account)
        if value is not None and name in _READS_ONE:
            account.reads(value)
    elif name == "-delete":
        for place in places or [Word.of_text(".")]:
            account.writes(place, Change.DELETES)
            _deletion(place, account)
    elif name in _WRITES_ONE:
        value = _value(name, rest, account)
        if value is not None:
            account.writes(value)
    elif name in _RUNS:
        _run(name, rest, places, account)
    else:
        account.doubt(f"{name} is not known")


def _deletion(place: Word, account: Account) -> None:
    critical = any(is_critical(path, home=account.state.home, workspace="") for path in account.places(place))
    message = f"find deletes what it finds below {place.shown}."
    if critical:
        account.risk("critical-removal", "critical", message)
    else:
        account.risk("removal", "high", message)


def _value(name: str, rest: list[Word], account: Account) -> Word | None:
    if not rest:
        account.doubt(f"{name} needs a value")
        return None
    value = rest.pop(0)
    if value.many or (value.text or "").startswith(("-exec", "-ok", "-delete", "-fprint", "-fls")):
        account.doubt(f"the value of {name} is not certain")
    return value


def _run(name: str, rest: list[Word], places: list[Word], account: Account) -> None:
    command: list[Word] = []
    while rest:
        word = rest.pop(0)
        if word.text == ";" or (word.text == "+" and command and command[-1].text is None):
            break
        if word.text is not None and "{}" in word.text:
            command.append(_name_of_found(word.text, places))
        else:
            command.append(word)
    else:
        account.doubt(f"{name} has no end")
    account.doubt(f"{name} runs a command on whatever is found")
    account.runs(command)


def _name_of_found(text: str, places: list[Word]) -> Word:
    """The placeholder for a name that find found: below its start path, if there is one."""
    if text == "{}" and len(places) == 1 and places[0].text is not None:
        place = places[0].text
        return Word(None, prefix=f"{place.rstrip('/')}/", pattern=True, source=f"{place.rstrip('/')}/…")
    if text == "{}" and not places:
        return Word(None, prefix="./", pattern=True, source="{}")
    return Word(None, source=text)

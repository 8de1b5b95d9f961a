"""Brace expansion, bounded: `{a,b}` and `{1..3}`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from .tokens import PartKind, WordPart

MAX_WORDS = 64
MAX_BRACES = 8
MAX_LENGTH = 200

_RANGE = re.compile(r"(-?[0-9]{1,4})\.\.(-?[0-9]{1,4})|([a-zA-Z])\.\.([a-zA-Z])")

_Atoms: TypeAlias = tuple[WordPart, ...]


class TooManyWords(Exception):
    """Too many words, or an unknown form."""


def has_braces(parts: Sequence[WordPart]) -> bool:
    return any(part.kind is PartKind.TEXT and not part.quoted and "{" in part.text for part in parts)


def expand_braces(parts: Sequence[WordPart]) -> list[_Atoms]:
    """The words that one word with braces expands to, each as its parts."""
    atoms = _atoms(parts)
    if len(atoms) > MAX_LENGTH or sum(_is(atom, "{") for atom in atoms) > MAX_BRACES:
        raise TooManyWords
    done: list[_Atoms] = []
    pending: list[tuple[_Atoms, int]] = [(atoms, 0)]
    while pending:
        atoms, start = pending.pop()
        opening = next((at for at in range(start, len(atoms)) if _is(atoms[at], "{")), None)
        if opening is None:
            done.append(_join(atoms))
        else:
            alternatives, closing = _alternatives(atoms, opening)
            if alternatives is None:
                pending.append((atoms, opening + 1))
            else:
                before, after = atoms[:opening], atoms[closing + 1 :]
                pending.extend(((*before, *inner, *after), opening) for inner in reversed(alternatives))
        if len(done) + len(pending) > MAX_WORDS:
            raise TooManyWords
    return done


def _alternatives(atoms: _Atoms, opening: int) -> tuple[list[_Atoms] | None, int]:
    """The parts between the braces' commas, and where the braces close; `None` for braces that are only text."""
    depth = 0
    cuts = [opening]
    for at in range(opening, len(atoms)):
        if _is(atoms[at], "{"):
            depth += 1
        elif _is(atoms[at], "}"):
            depth -= 1
            if depth == 0:
                cuts.append(at)
                break
        elif _is(atoms[at], ",") and depth == 1:
            cuts.append(at)
    else:
        return None, 0
    inner = [atoms[left + 1 : right] for left, right in pairwise(cuts)]
    if len(inner) > 1:
        return inner, cuts[-1]
    return _range(inner[0]), cuts[-1]


def _range(atoms: _Atoms) -> list[_Atoms] | None:
    text = "".join(atom.text for atom in atoms if atom.kind is PartKind.TEXT and not atom.quoted)
    if ".." not in text:
        return None
    found = _RANGE.fullmatch(text)
    if found is None or len(text) != len(atoms) or (found[1] and _is_padded(found[1], found[2])):
        raise TooManyWords
    first, last = (int(found[1]), int(found[2])) if found[1] else (ord(found[3]), ord(found[4]))
    if abs(first - last) >= MAX_WORDS or (found[3] and found[3].isupper() != found[4].isupper()):
        raise TooManyWords
    step = 1 if first <= last else -1
    values = range(first, last + step, step)
    return [(WordPart(PartKind.TEXT, str(value) if found[1] else chr(value), False),) for value in values]


def _is_padded(*numbers: str) -> bool:
    return any(len(number.lstrip("-")) > 1 and number.lstrip("-")[0] == "0" for number in numbers)


def _atoms(parts: Sequence[WordPart]) -> _Atoms:
    """The parts with each character of unquoted text by itself."""
    atoms: list[WordPart] = []
    for part in parts:
        if part.kind is PartKind.TEXT and not part.quoted:
            atoms.extend(WordPart(PartKind.TEXT, character, False) for character in part.text)
        else:
            atoms.append(part)
    return tuple(atoms)


def _join(atoms: _Atoms) -> _Atoms:
    joined: list[WordPart] = []
    for atom in atoms:
        last = joined[-1] if joined else None
        if last and last.kind is atom.kind is PartKind.TEXT and not last.quoted and not atom.quoted:
            joined[-1] = WordPart(PartKind.TEXT, last.text + atom.text, False)
        else:
            joined.append(atom)
    return tuple(joined)


def _is(atom: WordPart, character: str) -> bool:
    return atom.kind is PartKind.TEXT and not atom.quoted and atom.text == character

"""What a person would have read on a terminal, from the characters that were sent to one."""

from __future__ import annotations

import codecs
import re

ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and movements
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # titles, links and other strings; none hides the next line
    r"|\x1b[ -/]*[0-~]?"  # the short ones, and what was cut off
)
UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\n]*|[ -/]*)$")
CONTROLS = re.compile(r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]+")
LONGEST_HELD_BACK = 4_096


def clean_output(text: str) -> str:
    r"""Without escapes; of a line that was overwritten, its last state.

    >>> clean_output("\x1b[31mred\x1b[0m\r\n10%\r100%\n")
    'red\n100%\n'
    """
    text = ESCAPES.sub("", text).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(map(_last_overwrite, text.split("\n")))
    if "\x08" in text:
        text = _apply_backspaces(text)
    return CONTROLS.sub("\ufffd", text)


def _last_overwrite(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part), "")


def _apply_backspaces(text: str) -> str:
    kept: list[str] = []
    for character in text:
        if character != "\x08":
            kept.append(character)
        elif kept and kept[-1] != "\n":
            kept.pop()
    return "".join(kept)


class TerminalStream:
    """The same for output that arrives in pieces, cut anywhere."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, content: bytes) -> str:
        text = self._held + self._decoder.decode(content)
        cut = UNFINISHED.search(text[-LONGEST_HELD_BACK:])
        start = len(text) if cut is None else max(0, len(text) - LONGEST_HELD_BACK) + cut.start()
        if text[:start].endswith("\r"):
            start -= 1  # half of a line's end, perhaps
        self._held = text[start:]
        return clean_output(text[:start])

    def rest(self) -> str:
        held, self._held = self._held, ""
        return clean_output(held + self._decoder.decode(b"", final=True))

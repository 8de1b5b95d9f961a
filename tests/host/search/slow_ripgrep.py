"""A program that answers as ripgrep would, and then does not end."""

from __future__ import annotations

from pathlib import Path

HANGING_SECONDS = 2.0
"""For a search that cannot end by itself, so nothing is measured by it."""


def hanging_after(folder: Path, output: bytes) -> str:
    """Its process id is in `pid`; `output` is written as printf escapes."""
    tools = folder.parent / f"{folder.name}-programs"
    tools.mkdir(exist_ok=True)
    program = tools / "rg"
    program.write_bytes(
        b'#!/bin/sh\necho $$ > "%s.tmp"\nmv "%s.tmp" "%s"\nprintf %s\nexec /usr/bin/env sleep 1000\n'
        % (*[bytes(tools / "pid")] * 3, b"'" + output.replace(b"%", b"%%") + b"'")
    )
    program.chmod(0o700)
    return str(program)


def pid_file(program: str) -> Path:
    return Path(program).with_name("pid")

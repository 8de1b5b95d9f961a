"""`ferrule -p` with a scripted model, as a real process."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import fastjsonschema  # pyright: ignore[reportMissingTypeStubs]

from tests.cli.running import ferrule

SCHEMA = Path(__file__).parents[2] / "docs" / "headless.schema.json"


def call(name: str, id: str | None = None, **input: Any) -> dict[str, Any]:
    return {"name": name, "input": input, **({"id": id} if id else {})}


def script(folder: Path, *turns: Mapping[str, Any]) -> str:
    """The name of a model that says this."""
    path = folder / "script.json"
    path.write_text(json.dumps({"turns": list(turns)}))
    return f"scripted:{path}"


def ask(
    folder: Path, turns: Sequence[Mapping[str, Any]], *flags: str, stdin: bytes | str = b""
) -> subprocess.CompletedProcess[bytes]:
    return ferrule(folder, "-p", *flags, "--model", script(folder, *turns), stdin=stdin)


def lines_of(done: subprocess.CompletedProcess[bytes]) -> list[dict[str, Any]]:
    """Every line of stdout, each of which must fit the schema."""
    lines = [json.loads(line) for line in done.stdout.decode().splitlines()]
    for line in lines:
        fits(line)
    return lines


def fits(line: Mapping[str, Any]) -> None:
    _validator()(line)


def kinds(lines: list[dict[str, Any]]) -> list[str]:
    """
    >>> kinds([{"type": "system", "subtype": "init"}, {"type": "user"}])
    ['system/init', 'user']
    """
    return ["/".join(filter(None, (line["type"], line.get("subtype")))) for line in lines]


@cache
def _validator() -> Any:
    return fastjsonschema.compile(json.loads(SCHEMA.read_text()))  # pyright: ignore[reportUnknownMemberType]

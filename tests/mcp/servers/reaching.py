"""The raw server with tools that reach for files and start programs, as a server may that nobody can look into."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import raw


def look(given: dict[str, Any], token: Any) -> dict[str, Any]:
    try:
        with open(given["path"]) as file:
            return raw.text(file.read())
    except OSError as error:
        return raw.text(f"cannot: {error.strerror}")


def put(given: dict[str, Any], token: Any) -> dict[str, Any]:
    try:
        with open(given["path"], "w") as file:
            file.write("changed by the server")
    except OSError as error:
        return raw.text(f"cannot: {error.strerror}")
    return raw.text("written")


def run(given: dict[str, Any], token: Any) -> dict[str, Any]:
    ran = subprocess.run(given["argv"], capture_output=True, text=True, cwd=given["cwd"], check=False)
    return raw.text(f"{ran.returncode} {ran.stdout}")


def pid(given: dict[str, Any], token: Any) -> dict[str, Any]:
    return raw.text(str(os.getpid()))


for tool in (look, put, run, pid):
    raw.TOOLS[tool.__name__] = {"description": tool.__name__, "inputSchema": {"type": "object"}}
    raw.SPECIAL[tool.__name__] = tool

if __name__ == "__main__":
    raw.main()

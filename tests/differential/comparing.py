"""Runs a case with one program and says what can be seen of it from outside."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferrule.testing import ModelServer

from ..clients.environment import MODEL, QUIET
from .cases import Case

HANG = 90
OFTEN = ("assistant", "user", "result", "system/init")
"""The kinds of lines whose fields are compared."""


@dataclass(frozen=True)
class Seen:
    """What one program did, by facets: two programs are compared facet by facet."""

    facets: Mapping[str, Any]

    def differences(self, other: Seen) -> dict[str, tuple[Any, Any]]:
        """Of what both have; that one printed lines and the other did not is a facet too."""
        names = sorted(self.facets.keys() & other.facets.keys())
        both = {name: (self.facets[name], other.facets[name]) for name in names}
        return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


async def run_case(case: Case, program: str, folder: Path) -> Seen:
    project, home = folder / "project", folder / "home"
    for path in (project, home):
        path.mkdir(parents=True)
    for name, text in case.files.items():
        path = home / name[2:] if name.startswith("~/") else project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("HERE", str(project)))
    turns = json.loads(json.dumps(list(case.turns)).replace("HERE", str(project)))
    async with ModelServer.playing({"turns": turns}) as server, asyncio.timeout(HANG):
        variables = {
            **QUIET,
            "PATH": os.environ["PATH"],
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "sk-ant-of-a-test",
            "ANTHROPIC_MODEL": MODEL,
            "HOME": str(home),
            "XDG_STATE_HOME": str(folder / "state"),
        }
        process = await asyncio.create_subprocess_exec(
            *(program, *case.arguments),
            cwd=project,
            env=variables,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            printed, _ = await process.communicate(case.stdin.encode())
        finally:
            if process.returncode is None:
                process.kill()
        bodies = [one.body for one in server.requests if one.path.partition("?")[0].endswith("/messages")]
    before = {project / name for name in case.files if not name.startswith("~/")}
    return Seen(
        {
            "exit code": process.returncode,
            "requests": [body["model"] for body in bodies],
            "marks in the first request": sorted(set(re.findall("MARK[0-9]", json.dumps(bodies[:1])))),
            "outcomes of calls": [text.partition(": ")[0] == "error" for text in _results(bodies[-1:], project)],
            "words about calls": _results(bodies[-1:], project),
            "files": {
                str(path.relative_to(project)): path.read_text()
                for path in sorted(project.rglob("*"))
                if path.is_file() and (path not in before or path.name == "a.txt")
            },
            **_output(printed.decode()),
        }
    )


def _output(text: str) -> dict[str, Any]:
    lines = _lines(text)
    if lines is None:
        return {"text": text, "lines": []}
    kinds = ["/".join(filter(None, (line["type"], line.get("subtype")))) for line in lines]
    said: dict[str, Any] = {"lines": [kind for kind in kinds if kind.startswith(OFTEN)]}
    said["other lines"] = sorted({kind for kind in kinds if not kind.startswith((*OFTEN, "stream_event"))})
    events = [line["event"]["type"] for line in lines if line["type"] == "stream_event"]
    said["events of the stream"] = [event for event in events if event != "ping"]
    for kind in OFTEN:
        own = [line for line, its in zip(lines, kinds, strict=True) if its.startswith(kind)]
        if own:
            said[f"fields of {kind}"] = sorted({key for line in own for key in line})
    results = [line for line, kind in zip(lines, kinds, strict=True) if kind.startswith("result")]
    for key in ("subtype", "is_error", "result", "num_turns", "structured_output", "stop_reason"):
        said[f"result's {key}"] = [line.get(key) for line in results]
    said["denials"] = [[one["tool_name"] for one in line.get("permission_denials", ())] for line in results]
    return said


def _lines(text: str) -> list[dict[str, Any]] | None:
    try:
        lines = [json.loads(line) for line in text.splitlines()]
    except ValueError:
        return None
    return lines if lines and all(isinstance(line, dict) and "type" in line for line in lines) else None


def _results(bodies: list[dict[str, Any]], project: Path) -> list[str]:
    """What the model was told of each call, with its project's path left out."""
    found: list[str] = []
    for body in bodies:
        for message in body["messages"]:
            if isinstance(message["content"], list):
                for block in message["content"]:
                    if block["type"] == "tool_result":
                        content = block["content"]
                        text = content if isinstance(content, str) else "".join(p.get("text", "") for p in content)
                        mark = "error: " if block.get("is_error") else ""
                        found.append(mark + text.replace(str(project), "HERE"))
    return found

"""`ferrule explain`: what a call would do, and why."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any, cast

from ...app.explaining import CannotExplain, explain
from ...core.calls import ToolCall
from ...core.content import encodable
from ..exits import CLOSED_PIPE, FAILED, OK, Usage
from ..signals import Interruptible
from ..stdio import InputLines, Output


def run(chosen: argparse.Namespace) -> int:
    if chosen.jsonl and (chosen.tool or chosen.json):
        raise Usage("--jsonl reads the calls from stdin; leave TOOL, JSON and --json out.")
    if not chosen.jsonl and not chosen.tool:
        raise Usage("name a TOOL and give its input as JSON, or use --jsonl. `ferrule tools` lists the tools.")
    cwd = os.path.abspath(chosen.cwd or os.getcwd())
    try:
        return asyncio.run(_many(cwd)) if chosen.jsonl else _one(chosen, cwd)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return CLOSED_PIPE


def _one(chosen: argparse.Namespace, cwd: str) -> int:
    call = ToolCall.from_text("explain", chosen.tool, chosen.input or "{}")
    if call.malformed is not None:
        raise Usage("JSON must be one JSON object, the input of the tool.")
    try:
        explanation = explain(call.name, call.arguments, cwd=cwd, home=os.path.expanduser("~"))
    except CannotExplain as refusal:
        print(encodable(str(refusal)), file=sys.stderr)
        return FAILED
    text = json.dumps(explanation.as_data(), indent=2) if chosen.json else "\n".join(explanation.lines)
    print(encodable(text))
    sys.stdout.flush()
    return OK


async def _many(cwd: str) -> int:
    incoming, out = InputLines(), Output()
    number = 0
    with Interruptible() as signals:
        try:
            while (line := await incoming.next()) is not None:
                number += 1
                if line.strip():
                    await out.write(json.dumps(_answered(line, number, cwd)).encode() + b"\n")
        except asyncio.CancelledError:
            if signals.exit_code is None:
                raise
    return OK if signals.exit_code is None else signals.exit_code


def _answered(line: bytes, number: int, cwd: str) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {"id": number, "error": f"The line is not JSON: {error or type(error).__name__}."}
    if not isinstance(request, dict):
        return {"id": number, "error": 'A call must be a JSON object: {"id", "tool", "input"}.'}
    asked = cast(Mapping[str, Any], request)
    id = asked.get("id", number)
    fault = _fault(asked)
    if fault:
        return {"id": id, "error": fault}
    try:
        found = explain(
            asked["tool"],
            asked.get("input") or {},
            cwd=asked.get("cwd") or cwd,
            home=asked.get("home") or os.path.expanduser("~"),
        )
    except CannotExplain as refusal:
        return {"id": id, "error": str(refusal)}
    return {"id": id, **found.as_data()}


def _fault(asked: Mapping[str, Any]) -> str:
    """What is wrong with the form of a request; empty if nothing is."""
    if not isinstance(asked.get("tool"), str):
        return "`tool` must be the name of a tool."
    if not isinstance(asked.get("input", {}), dict | None):
        return "`input` must be a JSON object."
    for key in ("cwd", "home"):
        given = asked.get(key)
        if given is not None and not (isinstance(given, str) and given.startswith("/")):
            return f"`{key}` must be an absolute path."
    return ""

"""`ferrule explain`: what a call would do, whether it may, and why."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

from ...app.explain_stand_ins import KINDS, CallScene, described, open_scene, tell_scene
from ...app.explaining import Answers, CannotExplain, explain
from ...core.calls import ToolCall
from ...core.content import encodable
from ...permissions.modes import Mode
from ..exits import FAILED, OK, UsageError
from ..jsonl import BadLine, content_of, id_of
from ..session_flags import settings_from
from ..signals import Interruptible
from ..stdio import InputLines, StdoutWriter

if TYPE_CHECKING:
    from ...app.build import Settings

log = logging.getLogger(__name__)

_PATHS: Final = ("cwd", "home", "project_root")
_TOLD: Final = ("project_root", "symlinks", "sandbox")
"""Keys that make the context of a line hypothetical, such as rules, or a folder that does not exist."""
MOST_FOLDERS: Final = 8


def run(chosen: argparse.Namespace) -> int:
    if chosen.lint:
        return _lint(chosen)
    if chosen.jsonl and (chosen.tool or chosen.json):
        raise UsageError("--jsonl reads the calls from stdin; leave TOOL, JSON and --json out.")
    if not chosen.jsonl and not chosen.tool:
        raise UsageError("name a TOOL and give its input as JSON, or use --jsonl. `ferrule tools` lists the tools.")
    return asyncio.run(_many(chosen) if chosen.jsonl else _one(chosen))


async def _one(chosen: argparse.Namespace) -> int:
    call = ToolCall.from_text("explain", chosen.tool, chosen.input or "{}")
    if call.malformed is not None:
        raise UsageError("JSON must be one JSON object, the input of the tool.")
    scene = open_scene(settings_from(chosen))
    try:
        explanation = await explain(call.name, call.arguments, scene)
    except CannotExplain as refusal:
        print(encodable(str(refusal)), file=sys.stderr)
        return FAILED
    finally:
        await scene.close()
    text = json.dumps(explanation.as_data(), indent=2) if chosen.json else "\n".join(explanation.lines)
    print(encodable(text))
    return OK


def _lint(chosen: argparse.Namespace) -> int:
    """Reports problems with the rules. The exit code is 0 if there are none."""
    from ...app.session_settings import SessionPolicy
    from ...permissions.lint import lint
    from ...tools import builtin_tools

    if chosen.tool or chosen.jsonl or chosen.json:
        raise UsageError("--lint looks at the rules; leave TOOL, JSON, --json and --jsonl out.")
    settings = settings_from(chosen)
    rules, policy = settings.rules, settings.reload() if settings.reload else None
    ignored = policy.ignored_rules if isinstance(policy, SessionPolicy) else ()
    remarks = (*ignored, *lint(rules, [tool.name for tool in builtin_tools()]))
    for remark in remarks:
        print(encodable(str(remark)))
    if not remarks:
        print(f"No problems found in the rules. Checked: {len(rules)}." if rules else "No rules are set.")
    return FAILED if remarks else OK


async def _many(chosen: argparse.Namespace) -> int:
    incoming, out = InputLines(), StdoutWriter()
    answering = LineExplainer(chosen)
    number = 0
    with Interruptible() as signals:
        try:
            while (line := await incoming.next()) is not None:
                number += 1
                if line.strip():
                    await out.write(json.dumps(await answering.to(line, number)).encode() + b"\n")
        except asyncio.CancelledError:
            if signals.exit_code is None:
                raise
        finally:
            await answering.close()
    return OK if signals.exit_code is None else signals.exit_code


class LineExplainer:
    """Line by line. The settings of a folder are read once, and its sandbox is tried once."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self._chosen = chosen
        self._settings = lru_cache(maxsize=MOST_FOLDERS)(self._read)
        self._open: dict[tuple[str, str], CallScene] = {}

    async def close(self) -> None:
        while self._open:
            await self._open.popitem()[1].close()

    async def to(self, line: bytes, number: int) -> dict[str, Any]:
        """Always gives an answer, so that a bad line does not stop those after it."""
        try:
            return await self._answer(line, number)
        except Exception as error:  # nothing should get here; if it does, it costs this line alone
            log.exception("line %d cannot be explained", number)
            return {"id": number, "error": f"This call cannot be explained: {type(error).__name__}. That is a bug."}

    async def _answer(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            request = content_of(line, number)
        except BadLine as error:
            return {"id": number, "error": str(error)}
        if not isinstance(request, dict):
            return {"id": number, "error": 'A call must be a JSON object: {"id", "tool", "input"}.'}
        asked = cast(Mapping[str, Any], request)
        given = id_of(asked)
        id = number if given is None else given
        fault = _fault(asked)
        if fault:
            return {"id": id, "error": fault}
        try:
            found = await explain(
                asked["tool"],
                asked.get("input") or {},
                await self._scene(asked),
                server=cast(Mapping[str, Any], asked.get("mcp") or {}).get("server"),
                hook=asked.get("hook"),
                answers=_answers(asked),
            )
        except (CannotExplain, UsageError) as refusal:
            return {"id": id, "error": str(refusal)}
        return {"id": id, **found.as_data()}

    async def _scene(self, asked: Mapping[str, Any]) -> CallScene:
        own_home = os.path.expanduser("~")
        cwd = asked.get("cwd") or os.path.abspath(self._chosen.cwd or os.getcwd())
        home, mode = asked.get("home") or own_home, asked.get("mode")
        told: dict[str, Any] = {
            "cwd": cwd,
            "home": home,
            "project_root": asked.get("project_root"),
            "symlinks": asked.get("symlinks"),
            "sandbox": asked.get("sandbox") is True,
        }
        if asked.get("rules") is not None:
            return described(rules=asked["rules"], mode=mode or Mode.DEFAULT, **told)
        is_told = home != own_home or any(asked.get(key) is not None for key in _TOLD)
        if not is_told and os.path.isdir(cwd):
            return await self._opened(cwd, mode or "")
        settings = self._settings(cwd)
        return tell_scene(replace(settings, mode=Mode(mode)) if mode else settings, **told)

    async def _opened(self, cwd: str, mode: str) -> CallScene:
        """Each holds a process that starts commands, so only a few are kept."""
        scene = self._open.get((cwd, mode))
        if scene is None:
            if len(self._open) >= MOST_FOLDERS:
                await self._open.pop(next(iter(self._open))).close()
            scene = self._open[cwd, mode] = open_scene(self._settings(cwd), mode=mode)
        return scene

    def _read(self, cwd: str) -> Settings:
        """A folder that does not exist has no settings: only those of the user and the command line apply."""
        return settings_from(argparse.Namespace(**{**vars(self._chosen), "cwd": cwd if os.path.isdir(cwd) else None}))


def _answers(asked: Mapping[str, Any]) -> Answers:
    resolve, redirect = asked.get("resolve"), asked.get("redirect_to") or ()
    sequence = (one if isinstance(one, str) else tuple(one) for one in asked.get("resolve_sequence") or ())
    return Answers(
        resolve=(resolve,) if isinstance(resolve, str) else None if resolve is None else tuple(resolve),
        resolve_sequence=tuple(sequence),
        redirect_to=(redirect,) if isinstance(redirect, str) else tuple(redirect),
    )


def _fault(asked: Mapping[str, Any]) -> str:
    """What is wrong with the form of a request; empty if it is valid."""
    if not isinstance(asked.get("tool"), str):
        return "`tool` must be the name of a tool."
    for key in ("input", "rules", "symlinks", "mcp", "hook"):
        if not isinstance(asked.get(key, {}), dict | None):
            return f"`{key}` must be a JSON object."
    server = cast(Mapping[str, Any], asked.get("mcp") or {}).get("server")
    if not isinstance(server, str | None):
        return "`mcp.server` must be the name of a server."
    for key in _PATHS:
        given = asked.get(key)
        if given is not None and not (isinstance(given, str) and given.startswith("/")):
            return f"`{key}` must be an absolute path."
    if not isinstance(asked.get("sandbox"), bool | None):
        return "`sandbox` must be true or false."
    if asked.get("mode") is not None and asked["mode"] not in (*Mode, "manual"):
        return f"`mode` must be one of {', '.join(Mode)}."
    return (
        _fault_of_rules(asked.get("rules") or {})
        or _fault_of_links(asked.get("symlinks") or {})
        or _fault_of_answers(asked)
    )


def _fault_of_rules(rules: Mapping[str, Any]) -> str:
    for kind, texts in rules.items():
        if kind not in KINDS:
            return f"`rules.{kind}` is not one of {', '.join(KINDS)}."
        if not isinstance(texts, list | None) or not all(
            isinstance(text, str) for text in cast(list[Any], texts or [])
        ):
            return f"`rules.{kind}` must be a list of rules."
    return ""


def _fault_of_answers(asked: Mapping[str, Any]) -> str:
    for key in ("resolve", "resolve_sequence", "redirect_to"):
        given = asked.get(key)
        depth = 2 if key == "resolve_sequence" else 1
        if given is not None and not _is_texts(given, depth):
            return f"`{key}` must be a text or a list of texts."
    return ""


def _is_texts(given: Any, depth: int) -> bool:
    if isinstance(given, list) and depth:
        return all(_is_texts(one, depth - 1) for one in cast(list[Any], given))
    return isinstance(given, str)


def _fault_of_links(links: Mapping[str, Any]) -> str:
    if not all(isinstance(target, str) and link.startswith("/") for link, target in links.items()):
        return "`symlinks` must have an absolute path for each link, and its target."
    return ""

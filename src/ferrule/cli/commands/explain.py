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
from typing import TYPE_CHECKING, Any, Final, cast

from ...app.explaining import KINDS, Answers, CannotExplain, Scene, described, explain, said_by_hook
from ...app.pretended import PathsAsWritten
from ...core.calls import ToolCall
from ...core.content import encodable
from ...permissions.modes import Mode
from ..exits import FAILED, OK, Usage
from ..jsonl import NotJson, content_of, id_of
from ..options import settings_from
from ..signals import Interruptible
from ..stdio import InputLines, Output

if TYPE_CHECKING:
    from ...app.build import Settings

log = logging.getLogger(__name__)

_PATHS: Final = ("cwd", "home", "project_root")


def run(chosen: argparse.Namespace) -> int:
    if chosen.lint:
        return _lint(chosen)
    if chosen.jsonl and (chosen.tool or chosen.json):
        raise Usage("--jsonl reads the calls from stdin; leave TOOL, JSON and --json out.")
    if not chosen.jsonl and not chosen.tool:
        raise Usage("name a TOOL and give its input as JSON, or use --jsonl. `ferrule tools` lists the tools.")
    return asyncio.run(_many(chosen)) if chosen.jsonl else _one(chosen)


def _one(chosen: argparse.Namespace) -> int:
    from ...host.paths import LocalPaths

    call = ToolCall.from_text("explain", chosen.tool, chosen.input or "{}")
    if call.malformed is not None:
        raise Usage("JSON must be one JSON object, the input of the tool.")
    scene = replace(_settled(settings_from(chosen), os.path.expanduser("~")), paths=LocalPaths())
    try:
        explanation = explain(call.name, call.arguments, scene)
    except CannotExplain as refusal:
        print(encodable(str(refusal)), file=sys.stderr)
        return FAILED
    text = json.dumps(explanation.as_data(), indent=2) if chosen.json else "\n".join(explanation.lines)
    print(encodable(text))
    return OK


def _lint(chosen: argparse.Namespace) -> int:
    """What a person should know of their rules. Nothing to say is exit code 0."""
    from ...permissions.lint import lint
    from ...tools import builtin_tools

    if chosen.tool or chosen.jsonl or chosen.json:
        raise Usage("--lint looks at the rules; leave TOOL, JSON, --json and --jsonl out.")
    rules = settings_from(chosen).rules
    remarks = lint(rules, [tool.name for tool in builtin_tools()])
    for remark in remarks:
        print(encodable(str(remark)))
    if not remarks:
        print(f"Nothing is wrong with the rules. Looked at: {len(rules)}." if rules else "There are no rules.")
    return FAILED if remarks else OK


def _settled(settings: Settings, home: str) -> Scene:
    """Under the settings of the folder. Paths are taken as written."""
    policy = settings.reload() if settings.reload else None
    return Scene(
        cwd=settings.cwd,
        home=home,
        workspace=settings.cwd,
        paths=PathsAsWritten(home),
        rules=settings.rules,
        mode=settings.mode,
        directories=settings.added_directories,
        domains=settings.pre_approval,
        lost=policy.lost if policy else None,
        hooks=settings.hooks,
    )


async def _many(chosen: argparse.Namespace) -> int:
    incoming, out = InputLines(), Output()
    answering = Answering(chosen)
    number = 0
    with Interruptible() as signals:
        try:
            while (line := await incoming.next()) is not None:
                number += 1
                if line.strip():
                    await out.write(json.dumps(answering.to(line, number)).encode() + b"\n")
        except asyncio.CancelledError:
            if signals.exit_code is None:
                raise
    return OK if signals.exit_code is None else signals.exit_code


class Answering:
    """Line by line. The settings of a folder are read once."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self._chosen = chosen
        self._scenes: dict[tuple[str, str], Scene] = {}

    def to(self, line: bytes, number: int) -> dict[str, Any]:
        """The answer, whatever the line is: those that follow have a right to theirs."""
        try:
            return self._answer(line, number)
        except Exception as error:  # nothing should get here; if it does, it costs this line alone
            log.exception("line %d cannot be explained", number)
            return {"id": number, "error": f"This call cannot be explained: {type(error).__name__}. That is a bug."}

    def _answer(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            request = content_of(line, number)
        except NotJson as error:
            return {"id": number, "error": str(error)}
        if not isinstance(request, dict):
            return {"id": number, "error": 'A call must be a JSON object: {"id", "tool", "input"}.'}
        asked = cast(Mapping[str, Any], request)
        given = id_of(asked)
        id = number if given is None else given
        fault = _fault(asked)
        if fault:
            return {"id": id, "error": fault}
        hook = said_by_hook(cast(Mapping[str, Any], asked.get("hook") or {}))
        try:
            found = explain(
                asked["tool"],
                (asked.get("input") or {}) if hook.changed_input is None else hook.changed_input,
                self._scene(asked),
                server=cast(Mapping[str, Any], asked.get("mcp") or {}).get("server"),
                others=(hook.opinion,),
                answers=_answers(asked),
            )
        except (CannotExplain, Usage) as refusal:
            return {"id": id, "error": str(refusal)}
        return {"id": id, **found.as_data()}

    def _scene(self, asked: Mapping[str, Any]) -> Scene:
        cwd = asked.get("cwd") or os.path.abspath(self._chosen.cwd or os.getcwd())
        home = asked.get("home") or os.path.expanduser("~")
        if asked.get("rules") is not None:
            return described(
                cwd=cwd,
                home=home,
                project_root=asked.get("project_root"),
                rules=asked["rules"],
                mode=asked.get("mode") or Mode.DEFAULT,
                symlinks=asked.get("symlinks"),
            )
        scene = self._scenes.get((cwd, home)) or self._read(cwd, home)
        mode = asked.get("mode")
        links = asked.get("symlinks")
        if mode is None and not links and asked.get("project_root") is None:
            return scene
        return replace(
            scene,
            workspace=asked.get("project_root") or scene.workspace,
            mode=Mode(mode) if mode else scene.mode,
            paths=PathsAsWritten(home, links or {}),
        )

    def _read(self, cwd: str, home: str) -> Scene:
        """A folder that is not there has no settings, and only those of the user and the command line count."""
        chosen = argparse.Namespace(**{**vars(self._chosen), "cwd": cwd if os.path.isdir(cwd) else None})
        scene = replace(_settled(settings_from(chosen), home), cwd=cwd, workspace=cwd)
        self._scenes[cwd, home] = scene
        return scene


def _answers(asked: Mapping[str, Any]) -> Answers:
    resolve, redirect = asked.get("resolve"), asked.get("redirect_to") or ()
    sequence = (one if isinstance(one, str) else tuple(one) for one in asked.get("resolve_sequence") or ())
    return Answers(
        resolve=(resolve,) if isinstance(resolve, str) else None if resolve is None else tuple(resolve),
        resolve_sequence=tuple(sequence),
        redirect_to=(redirect,) if isinstance(redirect, str) else tuple(redirect),
    )


def _fault(asked: Mapping[str, Any]) -> str:
    """What is wrong with the form of a request; empty if nothing is."""
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
            return f"`rules.{kind}` is none of {', '.join(KINDS)}."
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

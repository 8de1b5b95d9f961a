"""What the model reads, in one file: a change of wording is seen, and the first request stays small.

`FERRULE_GOLDEN=write` writes the file anew; look at the difference before you commit it.
"""

from __future__ import annotations

import os
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ferrule.app.build import open_session
from ferrule.app.session_opening import open_conversation
from ferrule.app.session_settings import Settings
from ferrule.core.calls import ToolCall
from ferrule.core.content import plain_text
from ferrule.core.verdicts import Behavior
from ferrule.engine.session import Session
from ferrule.instructions.prompt import Situation, builtin_prompt, describe_situation, environment
from ferrule.permissions.modes import Mode
from ferrule.permissions.rules import parse_rule
from ferrule.providers.anthropic_wire import AnthropicBodies
from ferrule.providers.scripted import says
from ferrule.testing import RecordingModel
from ferrule.tools import builtin_tools
from tests.requirement import requirement

GOLDEN = Path(__file__).parent / "golden" / "model_texts.txt"
FIRST_REQUEST = 25_000
"""Bytes of the first request of a headless run, without instructions of a project."""

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Read", {"file_path": "a.py"}),
    ("Read", {"file_path": "b.py"}),
    ("Read", {"file_path": "b.pi"}),
    ("Read", {"file_path": "."}),
    ("Read", {"path": "a.py"}),
    ("Glob", {"pattern": "*.py"}),
    ("Glob", {"pattern": "*.rs"}),
    ("Glob", {"pattern": "/etc/*"}),
    ("Grep", {"pattern": "return"}),
    ("Grep", {"pattern": "return", "output_mode": "content"}),
    ("Grep", {"pattern": "return", "output_mode": "content", "path": "a.py"}),
    ("Grep", {"pattern": "return", "output_mode": "count"}),
    ("Grep", {"pattern": "nowhere"}),
    ("Grep", {"pattern": "("}),
    ("Grep", {"query": "return"}),
    ("Grep", {"pattern": ""}),
    ("Edit", {"file_path": "a.py", "old_string": "return 1", "new_string": "return 2"}),
    ("Edit", {"file_path": "a.py", "old_string": "return  2", "new_string": "return 3"}),
    ("Edit", {"file_path": "a.py", "old_string": "e", "new_string": "x"}),
    ("Edit", {"file_path": "c.txt", "old_string": "one", "new_string": "x"}),
    ("Write", {"file_path": "new.txt", "content": "one\ntwo\n"}),
    ("Write", {"file_path": "new.txt", "content": "one\n"}),
    ("Write", {"file_path": "c.txt", "content": "x"}),
    ("Bash", {"command": "echo hello"}),
    ("Bash", {"command": "true"}),
    ("Bash", {"command": "echo out; exit 3"}),
    ("Bash", {"command": "sleep 5", "timeout": 5}),
    ("Bash", {"cmd": "ls"}),
    ("Bash", {"command": "mkdir -p sub && cd sub"}),
    ("Read", {"file_path": "a.py"}),
    ("ToolSearch", {"query": "select:WebFetch,Nope"}),
    ("ToolSearch", {"query": "xylophone"}),
    ("Reed", {"file_path": "a.py"}),
    ("Quux", {}),
    ("TaskOutput", {"task_id": "none"}),
    ("KillShell", {"shell_id": "none"}),
)
REFUSED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Write", {"file_path": "new.txt", "content": "x"}),
    ("Read", {"file_path": "/opt/elsewhere.txt"}),
    ("Bash", {"command": "PYTHONPATH=src python -m pytest -q"}),
    ("Bash", {"command": "npm install"}),
    ("Bash", {"command": "rm -rf /"}),
    ("WebFetch", {"url": "http://localhost:8000/", "prompt": "x"}),
    ("WebFetch", {"url": "https://example.com/", "prompt": "x"}),
)


DENIED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Read", {"file_path": "secret.txt"}),
    ("Bash", {"command": "npm install"}),
)


def _settings(folder: Path, name: str, **more: Any) -> Settings:
    project = folder / name
    project.mkdir()
    (project / "a.py").write_text("def f():\n    return 1\n")
    (project / "b.py").write_text("x = 1\n")
    (project / "c.txt").write_text("one\n")
    (project / "secret.txt").write_text("one\n")
    for age, file in enumerate(sorted(project.iterdir())):
        os.utime(file, (1_000_000 - age, 1_000_000 - age))
    return Settings(cwd=str(project), state_folder=folder / f"{name}-state", **more)


async def _texts(session: Session, calls: tuple[tuple[str, dict[str, Any]], ...]) -> list[str]:
    texts = list[str]()
    for number, (name, arguments) in enumerate(calls):
        (outcome,) = await session.run([ToolCall(str(number), name, arguments)])
        texts.append(f"## {name} {arguments}\n\n({outcome.status})\n{plain_text(outcome.content)}")
    return texts


async def _everything(folder: Path) -> str:
    free = _settings(folder, "free", mode=Mode.BYPASS)
    bound = _settings(folder, "bound")
    denied = _settings(folder, "denied", rules=(parse_rule("Read(secret.txt)", Behavior.DENY, "--deny"),))
    async with open_session(free) as session:
        results = await _texts(session, CALLS)
    async with open_session(bound) as session:
        refusals = await _texts(session, REFUSED)
    async with open_session(denied) as session:
        refusals += await _texts(session, DENIED)
    situations = [
        describe_situation(Situation(mode=mode, answers=answers, allowed=("Bash(ls:*)",), denied=("Read(x)",)))
        for mode, answers in (("default", False), ("acceptEdits", True))
    ]
    where = re.sub("Platform: .*", "Platform: …", environment("/project", (), date(2026, 1, 2)))
    guides = [f"# {tool.name}\n\n{tool.spec.description}" for tool in builtin_tools()]
    parts = [builtin_prompt(), where, *situations, *guides, "# Results", *results, "# Refusals", *refusals]
    text = "\n\n".join(part.strip() for part in parts)
    return re.sub(f"{re.escape(str(folder))}/(free|bound|denied)", "/project", text) + "\n"


@requirement("LOOP-4", "CON-4")
async def test_the_texts_are_those_that_were_reviewed(tmp_path: Path) -> None:
    texts = await _everything(tmp_path)
    if os.environ.get("FERRULE_GOLDEN") == "write":
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(texts, encoding="utf-8")

    assert texts == GOLDEN.read_text(encoding="utf-8"), "run with FERRULE_GOLDEN=write and review the difference"


@requirement("LOOP-4")
async def test_the_first_request_is_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = _settings(tmp_path, "project")
    model = RecordingModel(says("done"))

    async with open_conversation(settings).session as session, session.ask("Fix the bug.", model) as events:
        async for _ in events:
            pass

    ((request, _),) = model.requests
    size = len(AnthropicBodies("claude-sonnet-4-5", most_output=32_000, thinking="budget").body(request))
    print(f"first request: {size:,} bytes")
    assert size <= FIRST_REQUEST

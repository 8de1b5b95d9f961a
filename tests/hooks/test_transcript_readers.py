"""Hooks that read the transcript, in the ways that such scripts are written."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ferrule.core.ids import new_uuid
from tests.agents.test_agent_files import put
from tests.cli.prompting import ask, call, lines_of
from tests.requirement import requirement

LAST_MESSAGE = """
import json, sys
event = json.load(sys.stdin)
said, asked = "", []
with open(event["transcript_path"], encoding="utf-8") as file:
    for line in file:
        entry = json.loads(line)
        if entry.get("isSidechain") or entry.get("isMeta"):
            continue
        if entry["type"] == "assistant":
            said = "".join(block["text"] for block in entry["message"]["content"] if block["type"] == "text")
        elif entry["type"] == "user" and isinstance(entry["message"]["content"], str):
            asked.append(entry["message"]["content"])
        assert entry["sessionId"] == event["session_id"]
with open("seen.json", "w") as file:
    json.dump({"said": said, "asked": asked, "cwd": entry["cwd"], "session": event["session_id"]}, file)
"""

LAST_LINE = """
import json, sys
path = json.load(sys.stdin)["transcript_path"]
last = json.loads(open(path).readlines()[-1])
open("last.txt", "w").write(last["message"]["content"][0]["text"])
"""


@requirement("HOOK-2", "LOOP-2")
def test_a_stop_hook_finds_the_last_answer_in_the_transcript(tmp_path: Path) -> None:
    hooks = []
    for name, text in (("message.py", LAST_MESSAGE), ("line.py", LAST_LINE)):
        put(tmp_path / name, text)
        hooks.append({"type": "command", "command": f"{sys.executable} {tmp_path / name}"})
    put(tmp_path / "home/.claude/settings.json", json.dumps({"hooks": {"Stop": [{"hooks": hooks}]}}))

    done = ask(
        tmp_path,
        [{"text": "Looking.", "calls": [call("Glob", pattern="*")]}, {"text": "All done."}],
        *("Have a look", "--output-format", "stream-json"),
    )

    seen = json.loads((tmp_path / "seen.json").read_text())
    assert seen == {
        "said": "All done.",
        "asked": ["Have a look"],
        "cwd": str(tmp_path),
        "session": lines_of(done)[-1]["session_id"],
    }
    assert (tmp_path / "last.txt").read_text() == "All done."
    assert [len(part) for part in seen["session"].split("-")] == [len(part) for part in new_uuid().split("-")]

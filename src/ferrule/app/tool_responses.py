"""The outputs of the built-in tools, in the shapes that hooks and readers of stream-json know, and back again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from ..core.calls import ToolOutcome
from ..core.content import Text
from ..core.ports import Amendment
from ..host.documents.contents import FileUnchanged, ImageRead, NotebookRead, PartsRead, PdfRead, ReadOutput, TextRead
from ..output.run_answer import usage_object
from ..tools.agent import AgentOutput
from ..tools.bash import CommandRan
from ..tools.edit import FileEdited
from ..tools.glob import Found
from ..tools.grep import MatchCounts, MatchingFiles, MatchingLines, render_matches
from ..tools.write import FileWritten

_NOTHING: Final[Mapping[str, Any]] = {}
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def shape(outcome: ToolOutcome) -> Mapping[str, Any] | None:
    """The output of a successful call; `None` for a tool without a common shape."""
    match outcome.output:
        case CommandRan() as ran:
            return {
                "stdout": ran.output,
                "stderr": "",
                "interrupted": False,
                "isImage": False,
                **({"backgroundTaskId": ran.task} if ran.task else {}),
            }
        case FileEdited() as edited:
            return {
                "filePath": edited.path,
                "oldString": edited.old_string,
                "newString": edited.new_string,
                "originalFile": edited.before,
                "structuredPatch": list(_hunks(edited.patch)),
                "userModified": False,
                "replaceAll": edited.replace_all,
            }
        case FileWritten() as written:
            return {
                "type": "create" if written.created else "update",
                "filePath": written.path,
                "content": written.text,
                "structuredPatch": list(_hunks(written.patch)),
                "originalFile": written.before,
            }
        case TextRead() | ImageRead() | NotebookRead() | PdfRead() | PartsRead() | FileUnchanged() as read:
            return {"type": read.kind, "file": _file(read)}
        case Found() | MatchingFiles() | MatchCounts() | MatchingLines() as found:
            return _describe_found(found, outcome)
        case AgentOutput() as agent:
            return {
                "status": agent.status,
                "agentId": agent.agent_id,
                "content": [{"type": "text", "text": agent.content}],
                "totalTokens": agent.total_tokens,
                "totalDurationMs": agent.total_duration_ms,
                "totalToolUseCount": agent.total_tool_use_count,
                "usage": usage_object(agent.usage),
            }
        case _:
            return None


def amend_output(outcome: ToolOutcome, given: object) -> Amendment | None:
    """A hook's replacement for an output; `None` if it does not have the tool's shape."""
    output = outcome.output
    fields = cast(Mapping[str, Any], given) if isinstance(given, Mapping) else _NOTHING
    match output:
        case CommandRan():
            texts = [fields.get("stdout"), fields.get("stderr", "")]
            return Amendment(output=replace(output, output="\n".join(filter(None, texts)))) if _all(texts) else None
        case TextRead():
            file = fields.get("file")
            content = cast(Mapping[str, Any], file).get("content") if isinstance(file, Mapping) else None
            if not isinstance(content, str):
                return None
            return Amendment(output=replace(output, content=content, lines=len(content.split("\n"))))
        case Found() | MatchingFiles():
            names = fields.get("filenames")
            if not isinstance(names, list) or not _all(cast(list[Any], names)):
                return None
            return Amendment(output=replace(output, paths=tuple(cast(list[str], names))))
        case MatchCounts() | MatchingLines():
            content = fields.get("content")
            return Amendment(output=replace(output, replaced_by=content)) if isinstance(content, str) else None
        case AgentOutput():
            texts = _texts(fields.get("content"))
            return None if texts is None else Amendment(output=replace(output, content=texts))
        case FileEdited() | FileWritten() | ImageRead() | NotebookRead() | PdfRead() | PartsRead() | FileUnchanged():
            return None
        case _:
            return Amendment(content=(Text(given),)) if isinstance(given, str) else None


def _describe_found(found: Found | MatchingFiles | MatchCounts | MatchingLines, outcome: ToolOutcome) -> dict[str, Any]:
    match found:
        case Found():
            return {
                "filenames": list(found.paths),
                "numFiles": len(found.paths),
                "truncated": found.total > len(found.paths),
                "durationMs": _milliseconds(outcome),
                "totalMatches": found.total,
            }
        case MatchingFiles():
            return {"mode": "files_with_matches", "numFiles": found.total, "filenames": list(found.paths)}
        case MatchCounts():
            return {
                "mode": "count",
                "numFiles": found.total,
                "filenames": [path for path, _ in found.counts],
                "numMatches": found.matches,
                "content": render_matches(replace(found, folder="")),
            }
        case MatchingLines():
            names = list(dict.fromkeys(line.path for line in found.lines))
            return {
                "mode": "content",
                "numFiles": len(names),
                "filenames": names,
                "content": render_matches(replace(found, folder="")),
                "numLines": len(found.lines),
            }


def _file(read: ReadOutput) -> dict[str, Any]:
    file: dict[str, Any] = {"filePath": read.path}
    match read:
        case TextRead():
            file |= {"content": read.content, "numLines": read.lines, "startLine": read.start, "totalLines": read.total}
        case ImageRead():
            file |= {"base64": read.data, "type": read.media_type, "originalSize": read.original_size}
        case NotebookRead():
            file["cells"] = [{"id": cell.id, "type": cell.type, "source": cell.source} for cell in read.cells]
        case PdfRead():
            file |= {"base64": read.data, "originalSize": read.original_size}
        case PartsRead():
            file |= {"originalSize": read.original_size, "count": read.count, "outputDir": read.folder}
        case FileUnchanged():
            pass
    return file


def _hunks(patch: str) -> Iterator[dict[str, Any]]:
    """
    >>> [hunk["newStart"] for hunk in _hunks("--- a\\n+++ b\\n@@ -1 +2,2 @@\\n-x\\n+y\\n+z\\n")]
    [2]
    """
    hunk: dict[str, Any] | None = None
    for line in patch.splitlines():
        head = _HUNK.match(line)
        if head:
            if hunk:
                yield hunk
            old, old_lines, new, new_lines = (int(number or 1) for number in head.groups())
            hunk = {"oldStart": old, "oldLines": old_lines, "newStart": new, "newLines": new_lines, "lines": []}
        elif hunk:
            hunk["lines"].append(line)
    if hunk:
        yield hunk


def _texts(content: object) -> str | None:
    """The text of text blocks; `None` for anything else."""
    if not isinstance(content, list):
        return None
    texts: list[str] = []
    for block in cast(list[object], content):
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case _:
                return None
    return "\n\n".join(texts)


def _all(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _milliseconds(outcome: ToolOutcome) -> int:
    stages = outcome.record.stages if outcome.record else []
    return round(1000 * sum(seconds for name, seconds in stages if name == "call"))

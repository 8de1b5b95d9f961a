"""A server's tool as one of ours: its name, schema and description from the server, the rest from the contract."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from ..core.content import Block, Line, Text, View, plain_text
from ..core.context import ToolContext
from ..core.effects import Effects, ReachesHost, ReadsState
from ..core.text_arguments import read_by_schema
from ..core.threads import in_a_thread
from ..core.tool import Exposure, Result, Tool, ToolError
from .foreign_schemas import flatten_schema
from .lazy_imports import load_checking
from .listing import ToolInfo
from .results import SavedFiles, ServerAnswer, answer_of
from .server_connection import ServerConnection
from .server_context import ServerTrouble

if TYPE_CHECKING:
    from .argument_checks import Checker

LONGEST_DESCRIPTION: Final = 2048
CHARACTERS_PER_TOKEN: Final = 4
DEFAULT_TOKENS: Final = 25_000
MOST_CHARACTERS: Final = 500_000
"""What a tool may ask for in its own description."""
TELLS_EVERY: Final = 0.1
"""Seconds between two reports of progress."""
_SIZE_KEY: Final = "anthropic/maxResultSizeChars"
_LOAD_KEY: Final = "anthropic/alwaysLoad"


class McpTool(Tool[Mapping[str, Any], ServerAnswer]):
    def __init__(
        self,
        info: ToolInfo,
        connection: ServerConnection,
        *,
        name: str,
        files: SavedFiles,
        tokens: int = DEFAULT_TOKENS,
        deferred: bool = False,
    ) -> None:
        self.info = info
        self.server = connection.config.name
        self.part = connection.config.part
        self.name = name
        self.title = f"{self.server}: {info.title or info.name}"
        self.description = _description(info, self.server)
        self.exposure = Exposure.DEFERRED if deferred and not _is_always_loaded(info, connection) else Exposure.DIRECT
        self.result_limit = _result_limit(info, tokens)
        self._connection = connection
        self._files = files
        self._checker: Checker | None = None

    def input_schema(self) -> Mapping[str, Any]:
        return flatten_schema(self.info.schema)

    @cached_property
    def cost(self) -> int:
        """Its length in a request, in characters."""
        spec = self.spec
        return len(spec.name) + len(spec.description) + len(spec.schema_json())

    def parse(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return read_by_schema(arguments, self.info.schema)

    async def validate(self, input: Mapping[str, Any], ctx: ToolContext) -> None:
        """Against the schema as the server gave it."""
        if self._checker is None:
            self._checker = (await load_checking()).Checker(self.info.schema)
        problems = self._checker.problems(input)
        if problems:
            listed = "\n".join(f"- {problem}" for problem in problems)
            takes = self.spec.schema_json()
            raise ToolError(f"{self.name} cannot take these arguments:\n{listed}\nIts schema: {takes}")

    def effects(self, input: Mapping[str, Any], ctx: ToolContext) -> Effects:
        """Unknown, unless a person trusts what the server says, or has allowed parallel calls."""
        config = self._connection.config
        if config.trusted and self.info.read_only:
            return Effects.of(ReadsState(f"mcp:{self.server}"))
        if config.concurrent:
            # A place of its own for each call: it changes something out there, and stands in nobody's way.
            return Effects.of(ReachesHost(f"mcp:{self.server}:{ctx.call_id}"))
        return Effects()

    async def call(self, input: Mapping[str, Any], ctx: ToolContext) -> Result[ServerAnswer]:
        try:
            result = await self._connection.call(self.info.name, input, _Progress(ctx))
        except ServerTrouble as trouble:
            raise ToolError(str(trouble)) from None
        answer = await in_a_thread(answer_of, result, self._files)
        if answer.is_error:
            raise ToolError(plain_text(answer.blocks))
        return Result(answer, meta=answer.meta)

    def to_model(self, output: ServerAnswer) -> tuple[Block, ...]:
        return output.blocks

    def describe(self, input: Mapping[str, Any]) -> str:
        given = " ".join(json.dumps(dict(input), ensure_ascii=False).split()) if input else ""
        return f"{self.title} {given if len(given) <= 80 else f'{given[:79]}…'}".rstrip()

    def show_result(self, input: Mapping[str, Any], output: ServerAnswer) -> View:
        first = next((block.text.strip() for block in output.blocks if isinstance(block, Text)), "")
        return Line(first.splitlines()[0][:200] if first else "done")


class _Progress:
    """Reports, but not more often than a person can read."""

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx
        self._told = 0.0

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        now = time.monotonic()
        if now - self._told >= TELLS_EVERY:
            self._told = now
            self._ctx.report(Line(_progress(progress, total, message)))


def _description(info: ToolInfo, server: str) -> str:
    """Cut where it is too long: otherwise a few servers would fill the window with their manuals."""
    words = info.description.strip()
    if len(words) > LONGEST_DESCRIPTION:
        words = f"{words[: LONGEST_DESCRIPTION - 1]}…"
    return words or f"The tool `{info.name}` of the server `{server}`, which does not describe it."


def _result_limit(info: ToolInfo, tokens: int) -> int:
    wanted = (info.meta or {}).get(_SIZE_KEY)
    if isinstance(wanted, int) and not isinstance(wanted, bool) and wanted > 0:
        return min(wanted, MOST_CHARACTERS)
    return tokens * CHARACTERS_PER_TOKEN


def _is_always_loaded(info: ToolInfo, connection: ServerConnection) -> bool:
    return connection.config.always_load or (info.meta or {}).get(_LOAD_KEY) is True


def _progress(progress: float, total: float | None, message: str | None) -> str:
    """
    >>> _progress(3, 10, "reading"), _progress(0.5, None, None)
    ('3 of 10: reading', '0.5')
    """
    number = f"{progress:g} of {total:g}" if total is not None else f"{progress:g}"
    return f"{number}: {message}" if message else number

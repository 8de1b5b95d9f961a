"""What a server offers, as plain data, and a cache of it on disk.

With the cache, the tools of a server are known before it is up. What it says
once it is up replaces them.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from ..core.values import named_value, plain_value
from ..host.storage.session_folder import make_private
from .config import InProcess, Relayed, ServerConfig, endpoint

log = logging.getLogger(__name__)

VERSION: Final = 1
LARGEST: Final = 8 << 20
"""Bytes of one cached list."""
IN_VAIN: Final = ".in-vain"


@named_value
class ToolInfo:
    """A tool as its server describes it."""

    name: str
    title: str = ""
    description: str = ""
    schema: Mapping[str, Any]
    read_only: bool = False
    meta: Mapping[str, Any] | None = None


@named_value
class PromptInfo:
    name: str
    title: str = ""
    description: str = ""
    arguments: tuple[tuple[str, bool], ...] = ()
    """Their names, and whether each is required."""


@plain_value
class ServerListing:
    tools: tuple[ToolInfo, ...] = ()
    prompts: tuple[PromptInfo, ...] = ()


@named_value
class ResourceInfo:
    uri: str
    name: str
    description: str = ""
    media_type: str = ""
    size: int | None = None
    is_template: bool = False


class ListingCache:
    """One file for each server, by what it is and not by what it is called. Files are for their owner only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, server: ServerConfig) -> ServerListing | None:
        """`None` if nothing is cached, or the cache cannot be used."""
        path = self._path(server)
        try:
            if path is None or path.stat().st_size > LARGEST:
                return None
            return _read(json.loads(path.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def save(self, server: ServerConfig, listing: ServerListing) -> None:
        """Never fails: it is only a cache."""
        path = self._path(server)
        if path is None:
            return
        data = json.dumps(_as_json(listing), separators=(",", ":")).encode()
        if len(data) > LARGEST:
            return
        draft = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
        try:
            make_private(self._folder)
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.replace(draft, path)
            path.with_suffix(IN_VAIN).unlink(missing_ok=True)
        except OSError as error:
            log.warning("the tools of %s could not be kept for the next start: %s", server.name, error)
            with suppress(OSError):
                draft.unlink()

    def was_awaited_in_vain(self, server: ServerConfig) -> bool:
        """Whether a wait for its list was in vain, and the list has not arrived since."""
        path = self._path(server)
        return path is not None and path.with_suffix(IN_VAIN).exists()

    def note_in_vain(self, server: ServerConfig) -> None:
        path = self._path(server)
        if path is not None:
            with suppress(OSError):  # the next start waits again
                make_private(self._folder)
                path.with_suffix(IN_VAIN).touch(mode=0o600)

    def _path(self, server: ServerConfig) -> Path | None:
        if isinstance(server.transport, InProcess | Relayed):
            return None
        key = sha256("\0".join(endpoint(server.transport)).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self._folder / f"{key}.json"


def _as_json(listing: ServerListing) -> dict[str, Any]:
    return {
        "version": VERSION,
        "tools": [
            [tool.name, tool.title, tool.description, tool.schema, tool.read_only, tool.meta] for tool in listing.tools
        ],
        "prompts": [[one.name, one.title, one.description, one.arguments] for one in listing.prompts],
    }


def _read(content: Any) -> ServerListing:
    """Raises one of the errors of a wrong shape."""
    if content["version"] != VERSION:
        raise ValueError("of another version")
    tools = tuple(
        ToolInfo(
            name=str(name),
            title=str(title),
            description=str(description),
            schema=dict(schema),
            read_only=read_only is True,
            meta=None if meta is None else dict(meta),
        )
        for name, title, description, schema, read_only, meta in content["tools"]
    )
    prompts = tuple(
        PromptInfo(
            name=str(name),
            title=str(title),
            description=str(description),
            arguments=tuple((str(argument), required is True) for argument, required in arguments),
        )
        for name, title, description, arguments in content["prompts"]
    )
    return ServerListing(tools, prompts)

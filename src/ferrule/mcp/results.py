"""A server's answer as blocks: text as text, pictures as pictures, the rest as files with their paths."""

from __future__ import annotations

import json
import mimetypes
import os
import re
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final, cast

from ..core.content import Block, Image, Text
from ..core.values import plain_value
from ..host.documents.images import BadImage, fit_picture
from ..host.storage.session_folder import make_private

LONGEST_ENCODED: Final = 1_000
"""Characters of a text that could be data in base64; longer ones are useless to a model."""
_ENCODED: Final = re.compile(r"[A-Za-z0-9+/=_-]+")


@plain_value
class ServerAnswer:
    blocks: tuple[Block, ...]
    is_error: bool = False
    meta: Mapping[str, Any] | None = None


class SavedFiles:
    """Where a session keeps data that a model cannot read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count(1)

    def save(self, data: bytes, media_type: str) -> str:
        """The path. Raises `OSError`."""
        make_private(self._folder)
        path = self._folder / f"{os.getpid()}-{next(self._numbers)}{_ending(media_type)}"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)
        return str(path)


def _ending(media_type: str) -> str:
    """
    >>> _ending("image/png; a=b"), _ending("audio/wav"), _ending("x/../y")
    ('.png', '.wav', '.bin')
    """
    plain = media_type.partition(";")[0].strip().lower()
    subtype = plain.partition("/")[2]
    spare = f".{subtype}" if re.fullmatch("[a-z0-9]{1,8}", subtype) else ".bin"
    return mimetypes.guess_extension(plain) or spare


def answer_of(result: Mapping[str, Any], files: SavedFiles) -> ServerAnswer:
    """Of a call. Takes long for large pictures, so it runs in a thread."""
    blocks = tuple(_blocks(cast(list[Mapping[str, Any]], result.get("content") or []), files))
    if not any(isinstance(block, Text) for block in blocks) and _says_more(result):
        structured = json.dumps(_readable(result["structuredContent"]), ensure_ascii=False)
        blocks = (Text(structured), *blocks)
    return ServerAnswer(blocks or (Text("(no output)"),), result.get("isError") is True, result.get("_meta"))


def _says_more(result: Mapping[str, Any]) -> bool:
    """Whether the structured content differs from the parts."""
    parts = result.get("content")
    return "structuredContent" in result and result["structuredContent"] not in (parts, {"content": parts})


def contents_of(result: Mapping[str, Any], files: SavedFiles) -> tuple[Block, ...]:
    """Of a resource."""
    parts = cast(list[Mapping[str, Any]], result.get("contents") or [])
    return tuple(_resource(part, files) for part in parts) or (Text("(empty)"),)


def prompt_of(result: Mapping[str, Any], files: SavedFiles) -> tuple[Block, ...]:
    """The messages of a prompt, one after the other."""
    messages = cast(list[Mapping[str, Any]], result.get("messages") or [])
    return tuple(block for message in messages for block in _blocks([message["content"]], files))


def _blocks(content: Iterable[Mapping[str, Any]], files: SavedFiles) -> Iterator[Block]:
    for part in content:
        match part.get("type"):
            case "text":
                yield Text(str(part.get("text", "")))
            case "image" | "audio":
                yield _data(str(part.get("data", "")), str(part.get("mimeType", "")), files)
            case "resource":
                yield _resource(cast(Mapping[str, Any], part.get("resource") or {}), files)
            case "resource_link":
                yield Text(_describe_link(part))
            case kind:
                yield Text(f"[a part of the kind `{kind}`, which cannot be shown]")


def _resource(part: Mapping[str, Any], files: SavedFiles) -> Block:
    where, media_type = part.get("uri", "a resource"), str(part.get("mimeType", ""))
    if "blob" not in part:
        return Text(f"[{where}]\n{part.get('text', '')}")
    block = _data(str(part["blob"]), media_type, files)
    return Text(f"[{where}]\n{block.text}") if isinstance(block, Text) and _is_text(media_type) else block


def _describe_link(part: Mapping[str, Any]) -> str:
    about = [str(part[key]) for key in ("title", "name", "description", "mimeType") if part.get(key)]
    return f"[{'; '.join(dict.fromkeys(about))}: {part.get('uri', '')}]" if about else f"[{part.get('uri', '')}]"


def _data(encoded: str, media_type: str, files: SavedFiles) -> Block:
    """As a picture if it is one, otherwise as a file."""
    try:
        data = b64decode(encoded, validate=False)
    except (BadBase64, ValueError):
        return Text(f"[{media_type or 'data'} that is not valid base64]")
    if _is_text(media_type):
        try:
            return Text(data.decode("utf-8"))
        except UnicodeDecodeError:
            pass  # in an encoding that nobody names: saved like anything else
    if media_type.startswith("image/"):
        try:
            picture = fit_picture(data)
            return Image(picture.media_type, picture.base64)
        except BadImage:
            pass  # of a kind that models do not take: saved like anything else
    try:
        path = files.save(data, media_type)
    except OSError as error:
        return Text(f"[{media_type or 'data'}, {len(data):,} bytes, which could not be saved: {error.strerror}]")
    return Text(f"[{media_type or 'data'}, {len(data):,} bytes, saved to {path}]")


def _is_text(media_type: str) -> bool:
    return media_type.startswith("text/")


def _readable(value: Any) -> Any:
    """Without data in base64, which would be the picture a second time.

    >>> _readable({"a": "x" * 5000, "b": "plain"})
    {'a': '[5,000 characters of data]', 'b': 'plain'}
    """
    match value:
        case str() if len(value) > LONGEST_ENCODED and _ENCODED.fullmatch(value):
            return f"[{len(value):,} characters of data]"
        case dict():
            return {key: _readable(inner) for key, inner in cast(dict[str, Any], value).items()}
        case list():
            return [_readable(inner) for inner in cast(list[Any], value)]
        case _:
            return value

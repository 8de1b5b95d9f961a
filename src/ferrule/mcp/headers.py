"""Headers that a command prints, for servers whose keys change."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from typing import Any, Final, cast

from ..host.processes.child_environment import child_environment
from .config import Remote

SECONDS: Final = 10.0


class BadHeaders(Exception):
    """The command gave none. The message says why."""


async def further_headers(remote: Remote) -> dict[str, str]:
    """Raises `BadHeaders`."""
    if remote.headers_helper is None:
        return {}
    process = await asyncio.create_subprocess_shell(
        remote.headers_helper,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=child_environment(os.environ),
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(SECONDS):
            printed, _ = await process.communicate()
    except TimeoutError:
        raise BadHeaders(f"`headersHelper` took longer than {SECONDS:g} seconds") from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
    if process.returncode:
        raise BadHeaders(f"`headersHelper` ended with exit code {process.returncode}")
    return _parse(printed)


def _parse(printed: bytes) -> dict[str, str]:
    try:
        found: Any = json.loads(printed)
    except ValueError:
        found = None
    headers = cast(dict[str, Any], found) if isinstance(found, dict) else None
    if headers is None or not all(isinstance(value, str) for value in headers.values()):
        raise BadHeaders("`headersHelper` did not print a JSON object of texts")
    return headers

"""HTML as Markdown, within limits that no page can break."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from ...core.values import plain_value
from ..processes.worker_process import RanAway, WorkLimits, in_own_process

PROCESS: Final = f"{__package__}.html_process"
MOST: Final = 2_000_000
"""Characters of a page that are looked at; more takes longer than anybody waits, for text that no model reads."""
LIMITS: Final = WorkLimits(seconds=12.0, memory=3 << 29, answer=32 << 20)


@plain_value
class PageReading:
    """What a page says."""

    title: str
    markdown: str
    note: str = ""
    """Why it is not what it should be, where it is not."""


def read_html(
    html: str, url: str, *, limits: WorkLimits = LIMITS, interrupted: Callable[[], bool] = bool
) -> PageReading:
    """The page as Markdown, links absolute; as it stands where that cannot be had. Takes a thread of its own.

    Raises `InterruptedError` once somebody wants it to end.
    """
    data = html[:MOST].encode("utf-8", "replace")
    try:
        told = json.loads(in_own_process(PROCESS, json.dumps({"url": url}), data, limits, interrupted))
    except RanAway as reason:
        return PageReading(
            "", html, f"The page is shown as HTML: turning it into Markdown was given up, since {reason}."
        )
    cut = f"Only the first {MOST:,} of {len(html):,} characters of the page's HTML were read."
    return PageReading(told["title"], told["markdown"], cut if len(html) > MOST else "")

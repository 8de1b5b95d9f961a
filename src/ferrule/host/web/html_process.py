"""What runs in the process that turns a page into Markdown; its other end is `host/web/web_pages.py`.

A page can be made so that parsing it takes for ever or all memory, and nothing can stop a thread in that.
"""

# markdownify's stubs leave out what is used here, and the tree that it walks has no types of ours.
# pyright: reportAttributeAccessIssue=false
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportMissingParameterType=false

from __future__ import annotations

import json
import re
import sys
from typing import Any, Final
from urllib.parse import urljoin

from markdownify import ATX, MarkdownConverter

from ..processes.worker_process import limit_this_process

DROPPED: Final = frozenset(
    {
        "script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "embed", "head", "title",
        "button", "input", "select", "textarea", "dialog", "source", "track", "param",
    }
)  # fmt: skip
DEEPEST: Final = 60
"""Levels of nested elements that are converted; anything deeper is taken as text."""
HIDDEN: Final = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
LANGUAGE: Final = re.compile(r"(?:language|lang|highlight-source|highlight)-([A-Za-z0-9+#_.-]+)")
SHOWN_LINKS: Final = ("http:", "https:", "mailto:", "ftp:")


def main() -> None:
    asked = json.loads(limit_this_process())
    page = MarkdownPage(asked["url"])
    text = page.convert(sys.stdin.buffer.read().decode("utf-8"))
    told = {"title": page.title, "markdown": re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+\n", "\n", text)).strip()}
    sys.stdout.write(json.dumps(told))


class MarkdownPage(MarkdownConverter):
    """A page as Markdown: what a reader sees, with absolute links."""

    def __init__(self, url: str) -> None:
        super().__init__(heading_style=ATX, bullets="-", table_infer_header=True, escape_underscores=False)
        self.options.update(escape_asterisks=False, code_language_callback=_language)
        self.title = ""
        self._base = url
        self._depth = 0

    def convert_soup(self, soup: Any) -> str:
        if soup.title is not None:
            self.title = " ".join(soup.title.get_text().split())
        base = soup.find("base", href=True)
        if base is not None:
            self._base = _join(self._base, str(base["href"]))
        return super().convert_soup(soup)

    def process_tag(self, node: Any, parent_tags: Any = None) -> str:
        if node.name in DROPPED or _is_hidden(node):
            return ""
        if self._depth >= DEEPEST:
            return node.get_text(" ", strip=True)
        self._depth += 1
        try:
            return super().process_tag(node, parent_tags)
        finally:
            self._depth -= 1

    def convert_a(self, el: Any, text: str, parent_tags: Any) -> str:
        address = _join(self._base, el.get("href") or "")
        if not el.get("href") or not address.startswith(SHOWN_LINKS):
            return text
        el["href"] = address
        if "title" in el.attrs:
            del el["title"]
        return super().convert_a(el, text, parent_tags)

    def convert_td(self, el: Any, text: str, parent_tags: Any) -> str:
        return super().convert_td(el, text.replace("|", r"\|"), parent_tags)

    def convert_th(self, el: Any, text: str, parent_tags: Any) -> str:
        return super().convert_th(el, text.replace("|", r"\|"), parent_tags)

    def convert_img(self, el: Any, text: str, parent_tags: Any) -> str:
        alt = " ".join((el.get("alt") or "").split())
        address = _join(self._base, el.get("src") or "")
        if not alt or not address.startswith(SHOWN_LINKS):
            return alt
        return f"![{alt}]({address})"


def _is_hidden(node: Any) -> bool:
    attributes = node.attrs or {}
    return (
        "hidden" in attributes
        or str(attributes.get("aria-hidden", "")).lower() == "true"
        or HIDDEN.search(str(attributes.get("style", ""))) is not None
    )


def _language(node: Any) -> str:
    inner = node.find("code")
    for element in (node, inner, node.parent):
        names = " ".join(element.get("class") or ()) if element is not None else ""
        found = LANGUAGE.search(names)
        if found:
            return found[1]
    return ""


def _join(base: str, address: str) -> str:
    try:
        return urljoin(base, address.strip()).replace(" ", "%20").replace("(", "%28").replace(")", "%29")
    except ValueError:
        return ""

"""What a URL holds, in a form that a model can read: Markdown, text, a picture, or a file that was saved."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import field, replace
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from ...core.threads import in_a_thread
from ...core.values import named_value
from ..documents.images import BadImage, FittedPicture, fit_picture, image_type
from ..documents.pdfs import MOST_UNASKED, BadPages, BadPdf, PageRange, Pdf, TooManyPages, is_pdf, read_pdf
from ..files.text_files import NotText
from ..storage.session_folder import make_private
from .cache import Recent
from .decoding import decode_page
from .fetching import Body, Fetcher, FetchFailed, Moved
from .html import read_html
from .url_guard import Refused, admit_url, shorten_url

HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
LOOKS_LIKE_HTML: Final = re.compile(
    rb"\s*(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
BINARY: Final = re.compile(
    r"(audio|video|font)/.*|image/(?!svg).*|application/(zip|gzip|x-tar|x-7z.*|x-xz|x-bzip2|wasm"
    r"|vnd\.openxmlformats.*|vnd\.ms-.*|msword|java-archive|x-executable|epub.*)"
)


@named_value
class WebPage:
    url: str
    status: int
    media_type: str
    size: int
    """Bytes that came."""
    title: str = ""
    text: str = ""
    picture: FittedPicture | None = None
    saved_to: str | None = None
    """Where the bytes lie, if they are nothing to read."""
    notes: tuple[str, ...] = ()
    """What is missing or odd."""
    is_cached: bool = False

    @property
    def weight(self) -> int:
        return 1_000 + len(self.text) + (len(self.picture.data) if self.picture else 0)


@named_value
class WebPages:
    """The web of one session: pages as they are read, each fetched once in a while."""

    fetcher: Fetcher = field(default_factory=Fetcher)
    folder: Path | None = None
    """Where files go that are nothing to read; without one they are refused."""
    recent: Recent[WebPage] = field(default_factory=Recent[WebPage])

    def host_of(self, url: str) -> str:
        """The host that a fetch of the URL asks. Raises `Refused`."""
        return admit_url(url, self.fetcher.local_hosts).host

    async def page(self, url: str, *, interrupted: Callable[[], bool] = bool) -> WebPage | Moved:
        """Raises `FetchFailed`."""
        try:
            key = str(admit_url(url, self.fetcher.local_hosts))
        except Refused as error:
            raise FetchFailed(f"{shorten_url(url)} {error}.") from None
        kept = self.recent.get(key)
        if kept is not None:
            return replace(kept, is_cached=True)
        body = await self.fetcher.fetch(url)
        if isinstance(body, Moved):
            return body
        page = await in_a_thread(self._read, body, interrupted)
        if not body.missing:
            self.recent.put(key, page, page.weight)
        return page

    def _read(self, body: Body, interrupted: Callable[[], bool]) -> WebPage:
        media_type = body.content_type.partition(";")[0].strip().lower()
        page = WebPage(
            url=body.url,
            status=body.status,
            media_type=media_type,
            size=len(body.data),
            notes=(f"Only the first {len(body.data):,} bytes were fetched: {body.missing}.",) if body.missing else (),
        )
        if image_type(body.data[:32]):
            return self._picture(page, body)
        if is_pdf(body.data[:1024], named_so=media_type == "application/pdf"):
            return self._pdf(page, body, interrupted)
        if not BINARY.fullmatch(media_type):
            try:
                return _text(page, body, interrupted)
            except NotText:
                pass
        return self._save(page, body, "It is no text that can be shown.")

    def _picture(self, page: WebPage, body: Body) -> WebPage:
        try:
            picture = fit_picture(body.data)
        except BadImage as error:
            return self._save(page, body, f"It cannot be shown: {error}.")
        return replace(page, picture=picture, media_type=picture.media_type)

    def _pdf(self, page: WebPage, body: Body, interrupted: Callable[[], bool]) -> WebPage:
        try:
            pdf, note = _pages_of(body.data, interrupted)
        except (BadPdf, BadPages) as error:
            return self._save(page, body, f"It cannot be shown: {error}.")
        text = "\n\n".join(f"[Page {sheet.number}]\n{sheet.text.strip()}" for sheet in pdf.sheets)
        pictured = sum(not sheet.text.strip() for sheet in pdf.sheets)
        notes = [note] if note else []
        if pictured:
            notes.append(f"{pictured} of these pages hold pictures and no text.")
        page = replace(page, text=text, notes=(*page.notes, *notes))
        return self._save(page, body, "") if notes else page

    def _save(self, page: WebPage, body: Body, why: str) -> WebPage:
        notes = (*page.notes, why) if why else page.notes
        if self.folder is None:
            if not page.text:
                kind = page.media_type or "no type that was named"
                raise FetchFailed(f"{body.url} holds {len(body.data):,} bytes ({kind}). {why}")
            return page
        try:
            path = _write(self.folder, _file_name(body), body.data)
        except OSError as error:
            raise FetchFailed(f"{body.url} could not be saved in {self.folder}: {error.strerror}.") from None
        return replace(page, saved_to=str(path), notes=notes)


def _text(page: WebPage, body: Body, interrupted: Callable[[], bool]) -> WebPage:
    text = decode_page(body.data, body.content_type, is_cut=bool(body.missing))
    if page.media_type in HTML or (page.media_type in ("", "text/plain") and LOOKS_LIKE_HTML.match(body.data)):
        reading = read_html(text, body.url, interrupted=interrupted)
        notes = (*page.notes, reading.note) if reading.note else page.notes
        return replace(page, title=reading.title, text=reading.markdown, notes=notes)
    return replace(page, text=text)


def _pages_of(data: bytes, interrupted: Callable[[], bool]) -> tuple[Pdf, str]:
    """All of them, or the first and how many there are."""
    try:
        return read_pdf(data, None, interrupted=interrupted), ""
    except TooManyPages as many:
        pdf = read_pdf(data, PageRange(1, MOST_UNASKED), interrupted=interrupted)
        return pdf, f"These are the first {MOST_UNASKED} of {many.total} pages."


def _write(folder: Path, name: str, data: bytes) -> Path:
    make_private(folder)
    path = folder / name
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    return path


def _file_name(body: Body) -> str:
    """The URL's last part as far as it is safe, with its ending, and a mark that tells it from others of that name."""
    last = unquote(urlsplit(body.url).path).rpartition("/")[2]
    stem, ending = os.path.splitext(re.sub(r"[^A-Za-z0-9_.-]+", "-", last).strip("-."))
    ending = ending if re.fullmatch(r"\.[A-Za-z0-9]{1,8}", ending) else ""
    return f"{stem[:60] or 'file'}-{sha256(body.url.encode() + body.data).hexdigest()[:10]}{ending}"

"""What a URL holds, in a form that a model can read: Markdown, text, a picture, or a file that was saved."""

from __future__ import annotations

import json
import os
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import field, replace
from hashlib import sha256
from pathlib import Path
from typing import Final, Generic, TypeVar
from urllib.parse import unquote, urlsplit

from ...core.threads import in_a_thread
from ...core.values import named_value, plain_value
from ..documents.file_kinds import image_type, is_pdf
from ..documents.images import BadImage, FittedPicture, fit_picture
from ..documents.pdfs import MOST_UNASKED, BadPages, BadPdf, PageRange, Pdf, TooManyPages, read_pdf
from ..files.text_files import NotText
from ..processes.worker_process import RanAway, WorkLimits, in_own_process
from ..storage.session_folder import make_private
from .decoding import decode_page
from .fetching import Body, Fetcher, FetchFailed, Moved
from .url_guard import Refused, admit_url, shorten_url

SECONDS: Final = 15 * 60.0
MOST_ENTRIES: Final = 100
MOST_WEIGHT: Final = 32 << 20
"""Characters and bytes of all entries together."""

T = TypeVar("T")


class Recent(Generic[T]):
    """Values by key, for a while, and never more than fit; the oldest give way."""

    def __init__(
        self,
        *,
        seconds: float = SECONDS,
        most_entries: int = MOST_ENTRIES,
        most_weight: int = MOST_WEIGHT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._most_entries = most_entries
        self._most_weight = most_weight
        self._clock = clock
        self._entries: OrderedDict[str, tuple[float, int, T]] = OrderedDict()
        self._weight = 0

    def get(self, key: str) -> T | None:
        self._forget_old()
        entry = self._entries.get(key)
        return entry[2] if entry is not None else None

    def put(self, key: str, value: T, weight: int) -> None:
        self._drop(key)
        if weight > self._most_weight:
            return
        self._entries[key] = (self._clock(), weight, value)
        self._weight += weight
        while len(self._entries) > self._most_entries or self._weight > self._most_weight:
            self._drop(next(iter(self._entries)))

    def _forget_old(self) -> None:
        """Entries are in the order in which they came, so the oldest are first."""
        oldest = self._clock() - self._seconds
        while self._entries and next(iter(self._entries.values()))[0] <= oldest:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._weight -= entry[1]


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
    """Why the page is incomplete or not Markdown, if so."""


def read_html(
    html: str, url: str, *, limits: WorkLimits = LIMITS, interrupted: Callable[[], bool] = bool
) -> PageReading:
    """The page as Markdown, links absolute; as HTML where that fails. Takes a thread of its own.

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
    """Where the bytes are saved, if they cannot be read as text."""
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
    """Where files are saved that cannot be read as text; without a folder they are refused."""
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
        return self._save(page, body, "It cannot be shown as text.")

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

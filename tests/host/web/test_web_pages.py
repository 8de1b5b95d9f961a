"""Pages as a model reads them: Markdown, text of any charset, pictures, documents, files; and the cache."""

from __future__ import annotations

import gzip
import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from ferrule.host.files.text_files import NotText
from ferrule.host.processes.worker_process import WorkLimits
from ferrule.host.web.decoding import decode_page
from ferrule.host.web.fetching import Fetcher, FetchFailed
from ferrule.host.web.web_pages import MOST, Recent, WebPage, WebPages, read_html
from tests.host.documents.making import pdf, png
from tests.host.http.http_serving import serving, whole
from tests.requirement import requirement

PAGE = """<!doctype html><html><head><title>A  title</title><base href="/docs/"><style>p{}</style></head><body>
<script>steal()</script><noscript>no</noscript><template>t</template>
<h1>Head</h1><p>Some <b>bold</b> <a href="a.html" title="t">link</a>, <code>a_b*c</code>, snake_case.</p>
<p hidden>hidden</p><p style="display: none">hidden</p><p aria-hidden="true">hidden</p>
<pre><code class="language-python">def f():
    return 1
</code></pre>
<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2|3</td></tr></table>
<ul><li>one<ul><li>two</li></ul></li><li>three</li></ul>
<p><img src="/a.png" alt="picture"> <a href="javascript:x()">script</a> <a href="#here">here</a></p></body></html>"""


FETCHER = Fetcher(local_hosts=lambda host: host == "127.0.0.1", environ={})


async def page_of(body: bytes, content_type: str, *, folder: Path | None = None, target: str = "/") -> WebPage:
    async with serving(whole(body, f"Content-Type: {content_type}")) as served:
        page = await WebPages(fetcher=FETCHER, folder=folder).page(str(served.url(target)))
    assert isinstance(page, WebPage)
    return page


@requirement("WEB-1")
def test_html_becomes_markdown_of_what_a_reader_sees() -> None:
    reading = read_html(PAGE, "https://example.com/x/y")

    assert reading.title == "A title"
    assert reading.markdown == (
        "# Head\n\n"
        "Some **bold** [link](https://example.com/docs/a.html), `a_b*c`, snake_case.\n\n"
        "```python\ndef f():\n    return 1\n```\n\n"
        "| A | B |\n| --- | --- |\n| 1 | 2\\|3 |\n\n"
        "- one\n  - two\n- three\n\n"
        "![picture](https://example.com/a.png) script [here](https://example.com/docs/#here)"
    )


@pytest.mark.parametrize(
    "html",
    ["<div>" * 6_000 + "deep", "<blockquote>" * 2_000 + "deep" + "</blockquote>" * 2_000, "<b><i>" * 2_000 + "deep"],
    ids=["open", "closed", "inline"],
)
def test_deep_nesting_is_read_to_the_bottom(html: str) -> None:
    reading = read_html(html, "https://example.com/")

    assert "deep" in reading.markdown
    assert reading.note == ""


def test_a_page_that_cannot_be_parsed_in_time_is_shown_as_it_is() -> None:
    html = "<p>text" + "<!--" * 500_000

    reading = read_html(html, "https://example.com/", limits=WorkLimits(0.5, 1 << 30, 1 << 20))

    assert reading.markdown == html
    assert "longer than 0.5 seconds" in reading.note


def test_of_a_huge_page_the_beginning_is_read_and_that_is_said() -> None:
    reading = read_html("<p>beginning</p><!--" + "x" * MOST + "--><p>end</p>", "https://example.com/")

    assert reading.markdown.startswith("beginning")
    assert f"Only the first {MOST:,}" in reading.note


def test_nobody_waits_for_a_page_that_nobody_wants_any_more() -> None:
    with pytest.raises(InterruptedError):
        read_html("<p>text", "https://example.com/", interrupted=lambda: True)


@pytest.mark.parametrize(
    ("data", "content_type", "text"),
    [
        ("größe".encode(), "text/html", "größe"),
        ("größe".encode("latin-1"), "text/plain; charset=iso-8859-1", "größe"),
        ("größe".encode("latin-1"), "text/plain; charset=utf-8", "größe"),  # the header is wrong
        ("größe".encode(), 'text/plain; charset="UTF-8"', "größe"),
        (b"\xef\xbb\xbfmark", "text/plain; charset=latin-1", "mark"),
        ("größe".encode("utf-16"), "text/plain", "größe"),
        ("日本語テキスト".encode("shift_jis"), "text/html; charset=Shift_JIS", "日本語テキスト"),
        (b"<meta charset='gb2312'>" + "中文".encode("gbk"), "text/html", "<meta charset='gb2312'>中文"),
        (b"<p>plain", "text/html; charset=rot13", "<p>plain"),
        (b"<p>plain", "text/html; charset=nonsense-9", "<p>plain"),
        (
            b"a\xffb " + "größe größe größe größe".encode(),
            "text/html; charset=utf-8",
            "a\ufffdb größe größe größe größe",
        ),
    ],
)
def test_a_charset_is_believed_where_it_fits(data: bytes, content_type: str, text: str) -> None:
    assert decode_page(data, content_type) == text


def test_a_character_that_the_cut_split_is_left_out() -> None:
    assert decode_page("aü".encode()[:-1], "text/plain; charset=utf-8", is_cut=True) == "a"


def test_bytes_are_no_text() -> None:
    with pytest.raises(NotText):
        decode_page(bytes(range(256)) * 4, "text/html")


@requirement("WEB-1")
async def test_a_page_comes_as_markdown_with_its_title() -> None:
    page = await page_of(b"<title>T</title><h1>Hi</h1><a href='/x'>x</a>", "text/html; charset=utf-8")

    assert (page.title, page.status, page.notes) == ("T", 200, ())
    assert page.text.startswith("# Hi\n\n[x](http://127.0.0.1:")


@pytest.mark.parametrize("content_type", ["application/json", "application/ld+json", "text/plain", "text/markdown"])
async def test_text_and_json_come_as_they_are(content_type: str) -> None:
    text = json.dumps({"a": "<b>ü</b>"}, ensure_ascii=False)

    assert (await page_of(text.encode(), content_type)).text == text


async def test_html_without_a_type_is_told_by_its_beginning() -> None:
    assert (await page_of(b"<!DOCTYPE html><title>T</title><p>hi", "text/plain")).text == "hi"


async def test_a_picture_comes_as_a_picture_whatever_its_type_says() -> None:
    page = await page_of(png(4, 3), "application/octet-stream")

    assert page.picture is not None
    assert (page.picture.media_type, page.picture.width) == ("image/png", 4)


async def test_a_pdf_comes_as_the_text_of_its_pages() -> None:
    page = await page_of(pdf(["first page", "second page"]), "application/pdf")

    assert page.text == "[Page 1]\nfirst page\n\n[Page 2]\nsecond page"


async def test_a_file_that_is_nothing_to_read_is_saved_for_this_user_alone(tmp_path: Path) -> None:
    data = gzip.compress(bytes(range(256)))
    page = await page_of(data, "application/gzip", folder=tmp_path / "web", target="/a/..%2f..%2fevil%20name.tar.gz")

    assert page.saved_to is not None
    path = Path(page.saved_to)
    assert (path.parent, path.suffix, path.read_bytes()) == (tmp_path / "web", ".gz", data)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


async def test_a_file_that_cannot_be_saved_is_refused_in_words() -> None:
    with pytest.raises(FetchFailed, match=r"holds 512 bytes \(application/octet-stream\)"):
        await page_of(bytes(range(256)) * 2, "application/octet-stream")


@requirement("WEB-1")
async def test_a_page_is_fetched_once_in_a_while() -> None:
    now = [0.0]
    web = WebPages(fetcher=FETCHER, recent=Recent[WebPage](clock=lambda: now[0]))
    async with serving(whole(b"text", "Content-Type: text/plain")) as served:
        first = await web.page(str(served.url("/a")))
        again = await web.page(str(served.url("/a#part")))
        await web.page(str(served.url("/b")))
        now[0] = 15 * 60.0
        later = await web.page(str(served.url("/a")))

    assert [asked.line.split()[1] for asked in served.asked] == ["/a", "/b", "/a"]
    assert isinstance(first, WebPage)
    assert isinstance(again, WebPage)
    assert isinstance(later, WebPage)
    assert (first.is_cached, again.is_cached, later.is_cached) == (False, True, False)


async def test_failures_are_not_kept() -> None:
    web = WebPages(fetcher=FETCHER)
    async with serving(whole(b"", status="500 Oops")) as served:
        for _ in range(2):
            with pytest.raises(FetchFailed):
                await web.page(str(served.url()))

        assert len(served.asked) == 2


async def test_a_page_whose_end_is_missing_is_not_kept() -> None:
    web = WebPages(fetcher=replace(FETCHER, seconds=0.5))
    async with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf") as served:
        for _ in range(2):
            page = await web.page(str(served.url()))
            assert isinstance(page, WebPage)
            assert page.text == "half"
            assert "its end did not come within 0.5 seconds" in page.notes[0]

        assert len(served.asked) == 2


def test_the_cache_is_bounded_by_number_and_weight() -> None:
    recent = Recent[str](most_entries=3, most_weight=100)
    for name in "abcd":
        recent.put(name, name, 10)

    assert [recent.get(name) for name in "abcd"] == [None, "b", "c", "d"]

    recent.put("large", "large", 85)
    assert [recent.get(name) for name in ("c", "d", "large")] == [None, "d", "large"]

    recent.put("too large", "x", 101)
    assert recent.get("too large") is None
    assert recent.get("large") == "large"

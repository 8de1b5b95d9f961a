"""Read: what is not there, and what is refused by what it is."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from ferrule.core.calls import Status
from tests.requirement import requirement
from tests.tools.reading import read_file, read_refused

READABLE = "Text, pictures (PNG, JPEG, GIF, WebP), PDF documents and notebooks can be read."
STREAMS = ("/dev/zero", "/dev/random", "/dev/stdin", "/proc/self/fd/0", "/proc/self/mem", "/proc/kmsg")


@requirement("READ-9")
async def test_an_empty_file_says_that_it_is_empty(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()

    assert await read_file(tmp_path, "a.txt", offset=7) == f"{tmp_path}/a.txt is empty."


@requirement("READ-9")
async def test_a_file_of_one_newline_has_one_empty_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n")

    assert await read_file(tmp_path, "a.txt") == "1\t"


@requirement("READ-9")
async def test_a_missing_file_names_the_nearest_ones(tmp_path: Path) -> None:
    for name in ("settings.py", "setup.py", "zebra"):
        (tmp_path / name).touch()

    assert await read_refused(tmp_path, "setings.py") == (
        Status.FAILED,
        f"{tmp_path}/setings.py does not exist. In that folder there is settings.py, setup.py.",
    )
    assert await read_refused(tmp_path, "qqq") == (
        Status.FAILED,
        f"{tmp_path}/qqq does not exist. Use Glob to find the file.",
    )
    assert await read_refused(tmp_path, "no/such/a.txt") == (
        Status.FAILED,
        f"{tmp_path}/no/such/a.txt does not exist, and neither does {tmp_path}/no/such. Use Glob to find the file.",
    )


@requirement("READ-9")
async def test_a_path_through_a_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()

    assert await read_refused(tmp_path, "a.txt/b") == (
        Status.FAILED,
        f"{tmp_path}/a.txt/b cannot be read: a part of this path is a file, not a directory. "
        "Use Glob to find the file.",
    )


@requirement("READ-9")
async def test_a_link_that_leads_nowhere_is_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("gone")
    (tmp_path / "loop").symlink_to("loop")

    assert (await read_refused(tmp_path, "link"))[1].startswith(f"{tmp_path}/link does not exist.")
    assert (await read_refused(tmp_path, "loop"))[1] == (
        f"{tmp_path}/loop cannot be read: it is a link that leads back to itself. Use Glob to find the file."
    )


@requirement("READ-8")
async def test_a_directory_is_refused_with_the_tool_to_use(tmp_path: Path) -> None:
    assert await read_refused(tmp_path, tmp_path) == (
        Status.FAILED,
        f"{tmp_path} cannot be read: it is a directory. Use Glob to list what is in it.",
    )


@requirement("READ-8")
async def test_a_pipe_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert await read_refused(tmp_path, "pipe") == (
        Status.FAILED,
        f"{tmp_path}/pipe cannot be read: it is a named pipe. {READABLE}",
    )


@requirement("READ-8")
@pytest.mark.parametrize(
    "path", ["/dev/zero", "/dev/random", "/dev/stdin", "/proc/self/fd/0", "/proc/self/mem", "/proc/kmsg"]
)
async def test_a_stream_of_the_system_is_refused_at_once(tmp_path: Path, path: str) -> None:
    status, words = await read_refused(tmp_path, path)

    assert status is Status.FAILED
    assert words.startswith(f"{path} cannot be read: ")


@requirement("READ-8")
async def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s")

        assert await read_refused(tmp_path, "s") == (
            Status.FAILED,
            f"{tmp_path}/s cannot be read: it is a socket. {READABLE}",
        )


@requirement("READ-8")
async def test_a_pipe_among_the_descriptors_of_a_process_is_refused(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    try:
        status, words = await read_refused(tmp_path, f"/proc/self/fd/{reading}")
    finally:
        os.close(reading)
        os.close(writing)

    assert (status, words) == (
        Status.FAILED,
        f"/proc/self/fd/{reading} cannot be read: it is a named pipe. {READABLE}",
    )


@requirement("READ-8")
async def test_a_file_that_the_kernel_makes_up_is_read(tmp_path: Path) -> None:
    assert "Name:" in await read_file(tmp_path, "/proc/self/status")


@requirement("READ-8")
@pytest.mark.parametrize("data", [b"\x7fELF\x02\x01\x01\0\0\0", b"MZ\0\0" * 100_000, b"\x01\xff\x03" * 60_000])
async def test_what_is_binary_by_content_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.txt").write_bytes(data)

    assert await read_refused(tmp_path, "a.txt") == (
        Status.FAILED,
        f"{tmp_path}/a.txt cannot be read: it is binary. {READABLE}",
    )


@requirement("READ-8")
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("a.zip", "an archive (.zip)"),
        ("a.tar.GZ", "an archive (.gz)"),
        ("a.mp4", "sound or video (.mp4)"),
        ("a.docx", "an office document (.docx)"),
        ("a.bmp", "a picture in a format that models do not take (.bmp)"),
    ],
)
async def test_what_is_binary_by_its_name_is_refused(tmp_path: Path, name: str, what: str) -> None:
    (tmp_path / name).write_text("whatever this is")

    assert await read_refused(tmp_path, name) == (
        Status.FAILED,
        f"{tmp_path}/{name} cannot be read: it is {what}. {READABLE}",
    )


@requirement("READ-8")
@pytest.mark.parametrize(
    ("name", "text"),
    [("cube.obj", "v 0 0 0"), ("libc.so", "GROUP ( libc.so.6 )"), ("a.py", "GIF89a = 5"), ("a.tex", "%PDF-output off")],
)
async def test_text_is_read_whatever_its_name_or_first_word(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(f"{text}\n")

    assert await read_file(tmp_path, name) == f"1\t{text}"


@requirement("READ-8")
@pytest.mark.parametrize("filling", [1, 2_000])
async def test_a_stray_byte_is_told_with_its_place_and_how_to_see_it(tmp_path: Path, filling: int) -> None:
    before = "één, två, trzý\n".encode() * filling + b"caf"
    (tmp_path / "a.txt").write_bytes(before + b"\xe9\n" + "å\n".encode() * 9)
    line, byte = filling + 1, len(before)

    assert await read_refused(tmp_path, "a.txt") == (
        Status.FAILED,
        f"{tmp_path}/a.txt cannot be read: it is UTF-8 but for stray bytes, the first in line {line:,} "
        f"(byte {byte:,} is 0xe9). A command can show it, such as cat -v; once those bytes are gone it can be read.",
    )


@requirement("READ-9")
async def test_a_line_beyond_the_only_one_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")

    assert (await read_refused(tmp_path, "a.txt", offset=2))[1] == (
        f"{tmp_path}/a.txt cannot be read: it has 1 line; it cannot be read from line 2."
    )

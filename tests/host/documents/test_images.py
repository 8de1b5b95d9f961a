"""Pictures: told by their bytes, small enough, and never a danger."""

from __future__ import annotations

import random
import struct
import zlib
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from ferrule.host.documents.file_kinds import image_type
from ferrule.host.documents.images import LONG_SIDE, MOST_BYTES, BadImage, fit_picture, thumbnail
from tests.drawing import examples
from tests.host.documents.making import encoded, png
from tests.requirement import requirement


def _drawn(form: str) -> bytes:
    return encoded(Image.linear_gradient("L").resize((64, 48)).convert("RGB"), form)


MODES = {"PNG": "1 L LA P RGB RGBA I;16", "JPEG": "1 L RGB CMYK", "GIF": "1 L P RGB RGBA", "WEBP": "L RGB RGBA"}
"""How each format can hold its pixels."""
FORMS = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}


@requirement("READ-4")
@pytest.mark.parametrize("form", FORMS)
def test_a_small_picture_stays_as_it_is_byte_for_byte(form: str) -> None:
    data = _drawn(form)

    picture = fit_picture(data)

    assert (picture.data, picture.media_type) == (data, FORMS[form])
    assert (picture.width, picture.height, picture.original_width, picture.original_height) == (64, 48, 64, 48)


@requirement("READ-4", "BUD-5")
@pytest.mark.parametrize(("form", "mode"), [(form, mode) for form, modes in MODES.items() for mode in modes.split()])
def test_a_large_picture_of_any_kind_shrinks(form: str, mode: str) -> None:
    picture = fit_picture(encoded(Image.new(mode, (3 * LONG_SIDE, 48)), form))

    assert (picture.width, picture.height) == (LONG_SIDE, 16)
    assert Image.open(BytesIO(picture.data)).size == (picture.width, picture.height)
    assert image_type(picture.data) == picture.media_type
    assert len(picture.data) <= MOST_BYTES


@requirement("READ-4")
def test_a_picture_of_sixteen_bits_keeps_its_brightness() -> None:
    picture = fit_picture(encoded(Image.new("I;16", (2000, 10), 128 * 256), "PNG"))

    assert Image.open(BytesIO(picture.data)).getpixel((0, 0)) == 128


@requirement("READ-4")
def test_a_photograph_of_12_000_pixels_shrinks() -> None:
    picture = fit_picture(encoded(Image.new("RGB", (12_000, 400), "teal"), "JPEG"))

    assert (picture.media_type, picture.original_width, picture.width, picture.height) == (
        "image/jpeg",
        12_000,
        LONG_SIDE,
        52,
    )


@requirement("READ-4", "BUD-5")
def test_noise_that_no_compression_helps_fits_all_the_same() -> None:
    noise = Image.frombytes("RGB", (1100, 1100), random.Random(1).randbytes(1100 * 1100 * 3))

    picture = fit_picture(encoded(noise, "PNG"))

    assert (picture.media_type, len(picture.data) <= MOST_BYTES) == ("image/jpeg", True)


@requirement("READ-4")
def test_a_moving_picture_that_is_too_large_becomes_its_first_frame() -> None:
    frames = [Image.new("RGB", (2000, 20), colour) for colour in ("red", "lime", "blue")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])

    picture = fit_picture(data)

    assert picture.media_type == "image/png"
    assert Image.open(BytesIO(picture.data)).convert("RGB").getpixel((5, 5)) == (255, 0, 0)


@requirement("READ-4")
def test_a_photograph_taken_sideways_is_turned_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encoded(Image.new("RGB", (40, 20)), "JPEG", exif=exif)

    picture = fit_picture(data)

    assert (picture.width, picture.height) == (20, 40)


@requirement("READ-4")
@pytest.mark.parametrize("form", FORMS)
def test_a_picture_that_ends_early_is_told_so(form: str) -> None:
    data = _drawn(form)

    with pytest.raises(BadImage, match="broken or incomplete"):
        fit_picture(data[: len(data) // 2])


@requirement("READ-4")
def test_a_picture_loses_an_extra_whose_checksum_is_wrong_and_is_shown() -> None:
    sound = _drawn("PNG")
    extra = struct.pack(">I", 4) + b"teXt" + b"a\0bc" + struct.pack(">I", 1)

    picture = fit_picture(sound[:33] + extra + sound[33:])

    assert picture.data == sound


def test_a_picture_is_not_mended_where_its_own_data_is_damaged() -> None:
    sound = _drawn("PNG")
    at = sound.index(b"IDAT") + 20
    damaged = sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :]

    with pytest.raises(BadImage):
        fit_picture(damaged)


@requirement("READ-4")
def test_a_picture_that_would_fill_the_memory_is_not_unpacked() -> None:
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 1000)), (b"IEND", b""))
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )

    with pytest.raises(BadImage, match="60,000 by 60,000 pixels"):
        fit_picture(data)


@requirement("READ-4")
@examples(60)
@given(st.sampled_from(list(FORMS)), st.lists(st.tuples(st.integers(8, 400), st.integers(0, 255)), max_size=5))
def test_damage_is_told_or_harmless(form: str, damage: list[tuple[int, int]]) -> None:
    data = bytearray(_drawn(form))
    for place, byte in damage:
        data[place % len(data)] = byte

    try:
        picture = fit_picture(bytes(data))
    except BadImage:
        return

    assert max(picture.width, picture.height) <= LONG_SIDE


@requirement("READ-4")
def test_a_thumbnail_is_small() -> None:
    small = thumbnail(png(1000, 500))

    assert (small.media_type, small.width, small.height, small.original_width) == ("image/png", 128, 64, 1000)


@requirement("READ-4")
@pytest.mark.parametrize("data", [b"", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"BM\0\0", b"RIFF\0\0\0\0WAVE"])
def test_other_bytes_are_no_picture(data: bytes) -> None:
    assert image_type(data) is None
    with pytest.raises(BadImage, match="not a PNG, JPEG, GIF or WebP"):
        fit_picture(data)

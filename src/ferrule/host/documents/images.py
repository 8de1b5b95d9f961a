"""Pictures, recognized by their first bytes and made small enough for a model to look at."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Final

from ...core.values import plain_value
from .file_kinds import image_type

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile


SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_AROUND: Final = 12
"""Bytes of length, name and checksum around what a chunk holds."""
_OPTIONAL: Final = 0x20
"""The bit that makes the first letter of a chunk's name lowercase, which marks the chunk as optional."""


def without_broken_extras(data: bytes) -> bytes | None:
    """The file without its optional chunks whose checksum is wrong; `None` where it is broken in another way.

    Every browser shows such files, and Pillow and some models' services do not.
    """
    if not data.startswith(SIGNATURE):
        return None
    kept, dropped = [SIGNATURE], False
    for chunk, is_sound in _chunks(data):
        if not is_sound and not chunk[4] & _OPTIONAL:
            return None
        dropped = dropped or not is_sound
        if is_sound:
            kept.append(chunk)
    return b"".join(kept) if dropped else None


def _chunks(data: bytes) -> Iterator[tuple[bytes, bool]]:
    """Each that is whole, and whether its checksum is right."""
    at = len(SIGNATURE)
    while at + _AROUND <= len(data):
        end = at + _AROUND + struct.unpack_from(">I", data, at)[0]
        if end > len(data):
            return
        (checksum,) = struct.unpack_from(">I", data, end - 4)
        yield data[at:end], zlib.crc32(memoryview(data)[at + 4 : end - 4]) == checksum
        at = end


LONG_SIDE = 1_568
"""Pixels beyond which models shrink a picture themselves. At this size one costs up to about 3,300 tokens."""
PIXELS_PER_TOKEN = 750
MOST_BYTES = 2_800_000
"""As base64, a third more: 3.75 MB."""
MOST_PIXELS = 64_000_000
"""What is unpacked whole takes four bytes of memory for each."""
MOST_JPEG_PIXELS = 120_000_000
"""A JPEG is unpacked at an eighth of its size where that is enough."""
THUMBNAIL = 128
QUALITIES = (85, 70, 50, 30)
ORIENTATION = 0x0112

BROKEN = (
    OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, EOFError, OverflowError, AttributeError,
    struct.error, zlib.error,
)  # fmt: skip
"""What Pillow's decoders are known to raise for bytes that are not what they begin like."""


class BadImage(Exception):
    """It begins like a picture, but cannot be shown. The message says why."""


@plain_value
class FittedPicture:
    media_type: str
    data: bytes
    original_size: int
    original_width: int
    original_height: int
    width: int
    height: int

    @property
    def base64(self) -> str:
        return b64encode(self.data).decode()


def pixels_of(data: bytes) -> int:
    """How many it says it has; nothing is unpacked for this. Raises `BadImage`."""
    width, height = size_of(data)
    return width * height


def size_of(data: bytes) -> tuple[int, int]:
    """Its width and height in pixels, as it says; nothing is unpacked for this. Raises `BadImage`."""
    with _unpacking(data) as (image, _):
        return image.size


def fit_picture(data: bytes) -> FittedPicture:
    """The picture within the limits, byte for byte as it was if it is within them. Raises `BadImage`.

    Of one that moves and has to shrink, the first frame is left.
    """
    try:
        return _fit(data)
    except BadImage:
        mended = without_broken_extras(data)
        if mended is None:
            raise
        return _fit(mended)


def _fit(data: bytes) -> FittedPicture:
    with _unpacking(data) as (image, media_type):
        width, height = image.size
        turned = image.getexif().get(ORIENTATION, 1) not in (0, 1)
        if max(width, height) <= LONG_SIDE and len(data) <= MOST_BYTES and not turned:
            image.load()  # a broken one is found here and not by the model's service
            return FittedPicture(media_type, data, len(data), width, height, width, height)
        small = _shrunk(image, LONG_SIDE)
        smaller_type, smaller = _encode(small, media_type)
        return FittedPicture(smaller_type, smaller, len(data), width, height, *small.size)


def thumbnail(data: bytes) -> FittedPicture:
    """A small picture for people. Raises `BadImage`."""
    with _unpacking(data) as (image, _):
        width, height = image.size
        small = _shrunk(image, THUMBNAIL)
        return FittedPicture("image/png", _save(small, "PNG"), len(data), width, height, *small.size)


def fit_bitmap(image: Image) -> FittedPicture:
    """A picture that was drawn here, such as a page of a document."""
    small = _shrunk(image, LONG_SIDE)
    media_type, data = _encode(small, "image/png")
    return FittedPicture(media_type, data, len(data), *image.size, *small.size)


@contextmanager
def _unpacking(data: bytes) -> Generator[tuple[ImageFile, str]]:
    """The picture, opened by the decoder that its bytes ask for; `PIL.Image.open` would load and try all of them."""
    # Pillow takes longer to load than most files take to read
    from PIL import GifImagePlugin, JpegImagePlugin, PngImagePlugin, WebPImagePlugin
    from PIL.Image import DecompressionBombError, DecompressionBombWarning

    decoders: dict[str, type[ImageFile]] = {
        "image/png": PngImagePlugin.PngImageFile,
        "image/jpeg": JpegImagePlugin.JpegImageFile,
        "image/gif": GifImagePlugin.GifImageFile,
        "image/webp": WebPImagePlugin.WebPImageFile,
    }
    media_type = image_type(data)
    if media_type is None:
        raise BadImage("it is not a PNG, JPEG, GIF or WebP picture")
    try:
        with decoders[media_type](BytesIO(data)) as image:
            _require_reasonable(image, media_type)
            yield image, media_type
    except (*BROKEN, DecompressionBombError, DecompressionBombWarning):
        raise BadImage("it is a picture that is broken or incomplete") from None


def _require_reasonable(image: ImageFile, media_type: str) -> None:
    """Before anything is unpacked: a few bytes can claim to be a picture that fills the memory."""
    width, height = image.size
    if width * height > (MOST_JPEG_PIXELS if media_type == "image/jpeg" else MOST_PIXELS):
        raise BadImage(f"it is a picture of {width:,} by {height:,} pixels, more than can be unpacked safely")


def _shrunk(image: Image, side: int) -> Image:
    """Upright, in a form that can be saved, and no side longer than `side`."""
    from PIL import ImageOps

    width, height = image.size
    scale = min(1.0, side / max(width, height))
    image.draft("RGB", (int(width * scale) or 1, int(height * scale) or 1))  # a JPEG is unpacked no larger than needed
    image.load()
    if image.mode.startswith("I;16") or image.mode == "I":
        small = image.convert("I").point(lambda value: value / 256).convert("L")  # pyright: ignore[reportUnknownMemberType]
    elif image.has_transparency_data:
        small = image.convert("RGBA")
    else:
        small = image if image.mode in ("L", "RGB") else image.convert("RGB")
    if max(small.size) > side:
        small = small.copy() if small is image else small
        small.thumbnail((side, side), reducing_gap=2.0)
    return ImageOps.exif_transpose(small)


def _encode(image: Image, media_type: str) -> tuple[str, bytes]:
    """As PNG where it was drawn and that is small enough, otherwise as JPEG in the best quality that fits."""
    if media_type in ("image/png", "image/gif"):
        data = _save(image, "PNG")
        if len(data) <= MOST_BYTES:
            return "image/png", data
    return "image/jpeg", next(data for data in _jpegs(_on_white(image)) if len(data) <= MOST_BYTES)


def _jpegs(image: Image) -> Iterator[bytes]:
    """Ever smaller; a picture of these dimensions fits by the last."""
    for quality in QUALITIES:
        yield _save(image, "JPEG", quality=quality)
    yield _save(image.reduce(2), "JPEG", quality=QUALITIES[-1])


def _on_white(image: Image) -> Image:
    if image.mode != "RGBA":
        return image
    from PIL import Image as Images

    white = Images.new("RGB", image.size, "white")
    white.paste(image, mask=image.getchannel("A"))
    return white


def _save(image: Image, form: str, **options: int) -> bytes:
    buffer = BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()

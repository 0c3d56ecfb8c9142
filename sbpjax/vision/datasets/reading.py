"""Image files: finds them in a folder per class, decodes them by Pillow, and reports unreadable ones."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from typing import Any

from sbpjax.errors import DataError, nearest, warn
from sbpjax.vision.transforms.kinds import pillow

ON_ERROR = ("raise", "skip")
ENV_PIXELS = "SBPJAX_MAX_IMAGE_PIXELS"
MOST_PIXELS = 89_478_485  # Pillow's own: 256 MB of RGB; a file of 200 kB can hold as many, and ten thousand times more
ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")


class ImageFileError(DataError):
    """An image file cannot be read: it is truncated, damaged, of another format, or missing."""


def find_images(root: str | os.PathLike, operation: str) -> tuple[list[str], list[tuple[str, int]]]:
    """Return the names of the folders in a folder, sorted, and of each image below them its path and class.

    A folder without an image is a class too, with a warning: held-out images may lack a class.

    Raises:
        DataError: there is no folder, or no image.
    """
    if not os.path.isdir(root):
        raise DataError(operation, "there is no such folder", "a folder has a folder per class", _nearest_folder(root))
    classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    found: list[tuple[str, int]] = []
    for label, name in enumerate(classes):
        for folder, folders, files in os.walk(os.path.join(root, name)):
            folders.sort()
            images = sorted(file for file in files if file.lower().endswith(ENDINGS))
            found += [(os.path.join(folder, file), label) for file in images]
    if not found:
        rule = f"images are in a folder per class, with endings {', '.join(ENDINGS)}"
        seen = f"{len(classes)} folders, none with an image below it" if classes else "no folders in it"
        raise DataError(operation, seen, rule, "another path")
    labels = {label for _, label in found}
    if empty := [name for i, name in enumerate(classes) if i not in labels]:
        warn(f"{operation}: no image of class {', '.join(map(repr, empty[:5]))}", UserWarning)
    return classes, found


def _nearest_folder(path: str | os.PathLike) -> str:
    """Return a folder that is there, and is called much like the first part of a path that is not."""
    missing, around = os.path.abspath(path), os.path.dirname(os.path.abspath(path))
    while not os.path.isdir(around):
        missing, around = around, os.path.dirname(around)
    there = [entry.name for entry in os.scandir(around) if entry.is_dir()]
    near = nearest(os.path.basename(missing), there)
    rest = os.path.relpath(os.path.abspath(path), missing)
    return os.path.normpath(os.path.join(around, near, rest)) if near else "another path"


def pixel_limit() -> int:
    """Return how many pixels an image may have: ``SBPJAX_MAX_IMAGE_PIXELS``, by default `MOST_PIXELS`.

    Raises:
        DataError: the variable holds no number above 0.
    """
    text = os.environ.get(ENV_PIXELS, "").replace("_", "")
    if not text:
        return MOST_PIXELS
    if not text.isascii() or not text.isdecimal() or not 0 < int(text[:30]):
        raise DataError(ENV_PIXELS, repr(text)[:60], "it is a number of pixels above 0", f"{ENV_PIXELS}=200000000")
    return int(text[:30])


def read_image(path: str | os.PathLike, mode: str = "RGB", at_least: int | None = None, operation: str = "") -> Any:
    """Return an image of Pillow, all of it read.

    Args:
        path: of the file.
        mode: ``"RGB"`` or ``"L"``.
        at_least: a JPEG file is decoded at 1/2, 1/4 or 1/8 of its size as long as its shorter side keeps so many
            pixels, which takes a fraction of the time; None for its own size.
        operation: the call that an error names.

    Raises:
        ImageFileError: it is no image, not a whole one, or has more pixels than `pixel_limit`; nothing is decoded then.
    """
    library, most = pillow(), pixel_limit()
    bombs = library.DecompressionBombError, library.DecompressionBombWarning
    if library.MAX_IMAGE_PIXELS is not None and most > library.MAX_IMAGE_PIXELS:
        library.MAX_IMAGE_PIXELS = most  # the user has raised the limit, and Pillow has one of its own
    try:
        with library.open(path) as opened:
            if at_least is not None:
                opened.draft(mode, (at_least, at_least))  # does nothing where the file is no JPEG
            if opened.width * opened.height > most:
                raise library.DecompressionBombError(f"{opened.width:,} x {opened.height:,} pixels")
            return opened.convert(mode)
    # Pillow raises OSError for files that are cut off or unknown, and what its decoders hit in damaged ones.
    except (
        OSError,
        SyntaxError,
        ValueError,
        IndexError,
        EOFError,
        TypeError,
        struct.error,
        zlib.error,
        *bombs,
    ) as error:
        rule = "a file with the ending of an image is one, and whole"
        fix = "remove it, or write it anew; on_error='skip' takes the next one in its place"
        if isinstance(error, FileNotFoundError):
            fix = "the path of a file that is there"
        if isinstance(error, bombs):
            rule = f"an image has at most {most:,} pixels: a small file can hold more than memory does"
            fix = f"{ENV_PIXELS}=N for more, if the file is meant to be so large"
        raise ImageFileError(f"{operation or 'read_image'}, {os.fspath(path)}", f"{error}", rule, fix) from None


def checked_on_error(on_error: str, operation: str) -> str:
    """Return what is done with files that cannot be read.

    Raises:
        DataError: it is no such thing.
    """
    if on_error not in ON_ERROR:
        rule = f"on_error is one of {', '.join(map(repr, ON_ERROR))}"
        raise DataError(f"{operation}(...)", f"on_error={on_error!r}", rule, "on_error='skip'")
    return on_error


def first_readable(read: Callable[[int], Any], index: int, count: int, on_error: str) -> Any:
    """Return the sample of an index, or with ``on_error="skip"`` of the next one whose files can be read.

    Args:
        read: reads the sample of an index.
        index: which.
        count: how many there are; behind the last one the first is next.
        on_error: ``"raise"`` or ``"skip"``; a warning names the file that is left out.

    Raises:
        ImageFileError: the file cannot be read, or none can.
    """
    for other in range(count):
        try:
            return read((index + other) % count)
        except ImageFileError as error:
            if on_error == "raise" or other == count - 1:
                raise
            operation, reason, *_ = str(error).splitlines()
            warn(f"left out: {operation.partition(' (at ')[0]}: {reason.strip()}")
    raise IndexError(f"index {index} is outside an empty dataset")

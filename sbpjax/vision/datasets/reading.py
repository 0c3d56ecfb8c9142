"""Files of images: which there are in a folder per class; one of them read by Pillow, or named in the error."""

from __future__ import annotations

import os
from typing import Any

from sbpjax.errors import DataError
from sbpjax.vision.transforms.kinds import pillow

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")


class ImageFileError(DataError):
    """A file that should be an image cannot be read as one: it is cut off, damaged, of another kind, or not there."""


def find_images(root: str | os.PathLike, asked: str) -> tuple[list[str], list[tuple[str, int]]]:
    """Return the names of the folders in a folder, sorted, and of each image below them its path and class.

    Raises:
        DataError: there is no folder, or no image.
    """
    if not os.path.isdir(root):
        raise DataError(asked, "there is no such folder", "a folder has a folder per class", "another path")
    classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    found: list[tuple[str, int]] = []
    for label, name in enumerate(classes):
        for folder, folders, files in os.walk(os.path.join(root, name)):
            folders.sort()
            images = sorted(file for file in files if file.lower().endswith(ENDINGS))
            found += [(os.path.join(folder, file), label) for file in images]
    if not found:
        rule = f"images are in a folder per class, with endings {', '.join(ENDINGS)}"
        raise DataError(asked, f"{len(classes)} folders without an image", rule, "another path")
    return classes, found


def read_image(path: str | os.PathLike, mode: str = "RGB", at_least: int | None = None, asked: str = "") -> Any:
    """Return an image of Pillow, all of it read.

    Args:
        path: of the file.
        mode: ``"RGB"`` or ``"L"``.
        at_least: a JPEG file is decoded at 1/2, 1/4 or 1/8 of its size as long as its shorter side keeps so many
            pixels, which takes a fraction of the time; None for its own size.
        asked: what is told in an error.

    Raises:
        ImageFileError: it is no image, or not a whole one.
    """
    library = pillow()
    try:
        with library.open(path) as opened:
            if at_least is not None:
                opened.draft(mode, (at_least, at_least))  # does nothing where the file is no JPEG
            return opened.convert(mode)
    # Pillow raises OSError for files that are cut off or unknown, and what its decoders hit in damaged ones.
    except (OSError, SyntaxError, ValueError, IndexError, library.DecompressionBombError) as error:
        rule = "a file with the ending of an image is one, and whole"
        fix = "remove it, or write it anew; on_error='skip' takes the next one in its place"
        raise ImageFileError(f"{asked or 'read_image'}, {os.fspath(path)}", f"{error}", rule, fix) from None

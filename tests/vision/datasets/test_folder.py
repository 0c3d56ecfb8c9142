"""`ImageFolder`: what is found and in which order, transforms by number, workers, damaged files."""

import struct
import warnings
import zlib

import numpy as np
import pytest

from sbpjax.errors import DataError
from sbpjax.utils.data import DataLoader
from sbpjax.vision import transforms as T
from sbpjax.vision.datasets import ImageFileError, ImageFolder

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")


@pytest.fixture
def root(tmp_path):
    rng = np.random.default_rng(0)
    for name, count in (("dog", 3), ("cat", 2)):
        (tmp_path / name).mkdir()
        for i in range(count):
            Image.fromarray(rng.integers(0, 256, (40, 60, 3), np.uint8)).save(tmp_path / name / f"{i}.JPEG")
    return tmp_path


WAYS = T.Compose([T.RandomResizedCrop(16), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize([0.5], [0.5])], seed=2)


def test_pairs(root):
    found = ImageFolder(root)
    assert found.classes == ["cat", "dog"] and found.class_to_idx == {"cat": 0, "dog": 1}
    assert [label for _, label in found] == [0, 0, 1, 1, 1]
    assert found[0][0].size == (60, 40) and found[-1][1] == 1
    assert ImageFolder(root, at_least=16)[0][0].size == (30, 20)
    with pytest.raises(IndexError):
        found[5]


def test_a_sample_is_the_same_in_any_worker(root):
    found = ImageFolder(root, WAYS)
    alone = np.stack([image.numpy() for image, _ in found])
    for workers in (0, 2):
        batches = list(DataLoader(found, batch_size=2, num_workers=workers))
        assert batches[0][0].shape == (2, 3, 16, 16) and batches[0][1].tolist() == [0, 0]
        together = np.concatenate([np.asarray(images.numpy()) for images, _ in batches])
        np.testing.assert_allclose(together, alone, atol=1e-6)
    found.set_epoch(1)
    assert (found[0][0].numpy() != alone[0]).any()
    number = len(found) + 3
    np.testing.assert_allclose(found[3][0].numpy(), WAYS(ImageFolder(root)[3][0], number=number).numpy(), atol=1e-6)


def test_damaged_files_are_named_raised_or_left_out(root):
    (root / "cat" / "1.JPEG").write_bytes((root / "cat" / "1.JPEG").read_bytes()[:700])
    (root / "dog" / "0.JPEG").write_text("<html>not found</html>")
    found = ImageFolder(root)
    for index, name in ((1, "1.JPEG"), (2, "0.JPEG")):
        with pytest.raises(ImageFileError, match=name) as caught:
            found[index]
        assert "on_error='skip'" in str(caught.value)
    with pytest.raises(ImageFileError, match=r"1.JPEG, in DataLoader worker process 0\n  seen: .*\n  rule: ") as caught:
        list(DataLoader(found, batch_size=2, num_workers=1, collate_fn=list))
    assert "Traceback" not in str(caught.value)
    left_out = [pytest.warns(UserWarning, match=f"left out: ImageFolder.*{name}") for name in ("1.JPEG", "0.JPEG")]
    with left_out[0], left_out[1]:
        image, label = ImageFolder(root, on_error="skip")[1]
    assert label == 1 and image.tobytes() == found[3][0].tobytes()
    for path in root.rglob("*.JPEG"):
        path.write_bytes(b"")
    with pytest.raises(ImageFileError), pytest.warns(UserWarning):
        ImageFolder(root, on_error="skip")[0]


def test_wrong_calls(root):
    with pytest.raises(DataError, match="there is no such folder"):
        ImageFolder(root / "none")
    with pytest.raises(TypeError, match=r"transform is a list[\s\S]*Compose"):
        ImageFolder(root, [])
    with pytest.raises(DataError, match="on_error is one of 'raise', 'skip'"):
        ImageFolder(root, on_error="ignore")


def png(path, width, height):
    """Write a picture of zeros, whose file is a thousandth of it or less."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = zlib.compressobj(9)
    packed = b"".join(rows.compress(bytes(1 + 3 * width)) for _ in range(height)) + rows.flush()
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b""))


@pytest.mark.parametrize("size", [(10_000, 9_000), (20_000, 10_000)])  # beyond the limit, and beyond Pillow's own
def test_a_small_file_of_many_pixels_is_refused(size, tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    png(tmp_path / "a" / "bomb.png", *size)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ImageFileError, match=r"(?s)bomb\.png.*at most 89,478,485 pixels.*SBPJAX_MAX_IMAGE_PIXELS"):
            ImageFolder(tmp_path)[0]


def test_the_limit_of_pixels_is_the_users(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    png(tmp_path / "a" / "x.png", 30, 20)
    for text, fits in (("600", True), ("599", False), ("1_000", True)):
        monkeypatch.setenv("SBPJAX_MAX_IMAGE_PIXELS", text)
        if fits:
            assert ImageFolder(tmp_path)[0][0].size == (30, 20)
        else:
            with pytest.raises(ImageFileError, match="30 x 20 pixels"):
                ImageFolder(tmp_path)[0]
    monkeypatch.setenv("SBPJAX_MAX_IMAGE_PIXELS", "many")
    with pytest.raises(DataError, match="a number of pixels above 0"):
        ImageFolder(tmp_path)[0]

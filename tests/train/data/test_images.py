"""Images with classes: pixels as they are in the files, and cuts that are a function of the sample's number."""

import numpy as np
import pytest

from sbpjax.errors import DataError
from sbpjax.train.data import ArrayImages, ImageFolder

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:.*no image of class")  # `root` has such a one


@pytest.fixture
def root(tmp_path):
    rng = np.random.default_rng(0)
    for name, sizes in (("b", [(8, 8), (8, 12)]), ("a", [(16, 8)]), ("empty", [])):
        (tmp_path / name / "deeper").mkdir(parents=True)
        for i, size in enumerate(sizes):
            pixels = rng.integers(0, 256, (*size, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / name / ("deeper" if i else "") / f"{i}.png")
            np.save(tmp_path / f"{name}{i}.npy", pixels)
    (tmp_path / "a" / "notes.txt").write_text("no image")
    return tmp_path


def test_a_folder_of_classes(root):
    found = ImageFolder(root, 8, shuffle=False, mean=(0.5, 0.25, 0), std=(0.5, 1, 2))
    assert found.classes == ["a", "b", "empty"] and [label for _, label in found.files] == [0, 1, 1]
    sample = found[1]
    whole = np.load(root / "b0.npy").transpose(2, 0, 1).astype(np.float32) / 255
    wanted = (whole - np.array([0.5, 0.25, 0])[:, None, None]) / np.array([0.5, 1, 2])[:, None, None]
    np.testing.assert_allclose(sample["images"], wanted, atol=1e-6)
    assert sample["images"].dtype == np.float32 and sample["labels"] == 1
    middle = np.load(root / "b1.npy")[:, 2:10].transpose(2, 0, 1) / 255
    np.testing.assert_allclose(found[2]["images"][2] * 2, middle[2], atol=1e-6)


def test_a_class_without_an_image_is_told_of(root):
    with pytest.warns(UserWarning, match="no image of class 'empty'"):
        ImageFolder(root, 8)


def test_damaged_files(root):
    (root / "b" / "0.png").write_bytes((root / "b" / "0.png").read_bytes()[:100])
    with pytest.raises(DataError, match=r"b/0.png[\s\S]*on_error='skip'"):
        ImageFolder(root, 8, shuffle=False)[1]
    found = ImageFolder(root, 8, shuffle=False, on_error="skip")
    with pytest.warns(UserWarning, match="left out: ImageFolder.*b/0.png"):
        sample = found[1]
    assert sample["labels"] == 1 and np.array_equal(sample["images"], found[2]["images"])


def test_any_file_as_a_model_is_given_it(root):
    found = ImageFolder(root, 8, shuffle=False)
    np.testing.assert_array_equal(found.read(found.files[2][0]), found[2]["images"])
    with pytest.raises(DataError, match="notes.txt"):
        found.read(root / "a" / "notes.txt")


def test_cuts_are_a_function_of_seed_and_number(root):
    options = {"augment": True, "samples": 60, "seed": 3}
    one, two = ImageFolder(root, 6, **options), ImageFolder(root, 6, **options)
    for i in (59, 0, 17):
        assert np.array_equal(one[i]["images"], two[i]["images"]) and one[i]["images"].shape == (3, 6, 6)
    first = [one.sample(n)["images"].tobytes() for n in range(60)]
    assert len(set(first)) > 50  # of 3 files


def test_arrays_with_a_margin():
    pixels = np.arange(1, 17, dtype=np.uint8).reshape(1, 4, 4)
    moved = ArrayImages(pixels, [0], augment=True, margin=1, mirror=False, samples=500, mean=(0,), std=(1 / 255,))
    around = np.pad(pixels[0], 1)
    allowed = {around[i : i + 4, j : j + 4].tobytes() for i in range(3) for j in range(3)}
    seen = {np.rint(sample["images"][0]).astype(np.uint8).tobytes() for sample in moved}
    assert seen == allowed
    mirrored = ArrayImages(pixels, [0], augment=True, samples=50, mean=(0,), std=(1 / 255,))
    seen = {np.rint(sample["images"][0]).astype(np.uint8).tobytes() for sample in mirrored}
    assert seen == {pixels[0].tobytes(), pixels[0][:, ::-1].tobytes()}


def test_refused(root, tmp_path):
    with pytest.raises(DataError, match="there is no such folder"):
        ImageFolder(root / "missing", 8)
    with pytest.raises(DataError, match=f"fix:  {root}"):
        ImageFolder(f"{root}s", 8)
    with pytest.raises(DataError, match=r"size=\(8, 8\)[\s\S]*their side in pixels"):
        ImageFolder(root, (8, 8))
    with pytest.raises(DataError, match="on_error is one of 'raise', 'skip'"):
        ImageFolder(root, 8, on_error="ignore")
    for name in ("one", "two"):
        (tmp_path / "hollow" / name).mkdir(parents=True)
    with pytest.raises(DataError, match="no folders in it"):
        ImageFolder(root / "empty" / "deeper", 8)
    with pytest.raises(DataError, match="2 folders, none with an image"):
        ImageFolder(tmp_path / "hollow", 8)
    (root / "a" / "broken.png").write_bytes(b"no image")
    with pytest.raises(DataError, match="broken.png"):
        list(ImageFolder(root, 8))


@pytest.mark.parametrize(
    ("pixels", "labels", "fix"),
    [
        (np.full((2, 4, 4), 0.5), [0, 1], r"\(pixels \* 255\).round\(\).astype\(np.uint8\)"),
        (np.full((2, 4, 4), 200), [0, 1], r"\(pixels\).round\(\).astype\(np.uint8\)"),
        (np.zeros((2, 4, 4), np.uint8), [0], "one label for each"),
        (np.zeros((2, 4, 4), np.uint8), [0, 1.5], r"labels.astype\(np.int64\)"),
    ],
)
def test_refused_arrays(pixels, labels, fix):
    with pytest.raises(DataError, match=fix) as found:
        ArrayImages(pixels, labels)
    assert "pixels are (N, H, W, C)" in str(found.value)

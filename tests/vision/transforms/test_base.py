"""`Transform` and `Compose`: samples of a number are the same; what moves together; what is said of wrong samples."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import DataError, DataTypeError
from sbpjax.vision import transforms as T
from tests.vision.transforms.pictures import image_of, values

WAYS = [
    T.RandomResizedCrop(16), T.RandomHorizontalFlip(), T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.RandAugment(),
    T.RandomRotation(10), T.RandomApply(T.RandomGrayscale(1.0), 0.3), T.ToTensor(), T.RandomErasing(),
]  # fmt: skip


def test_a_sample_is_a_function_of_seed_and_number():
    ways = T.Compose(WAYS, seed=1)
    once = [values(ways(image_of("pil"), number=i)) for i in range(6)]
    again = [values(ways(image_of("pil"), number=i)) for i in reversed(range(6))][::-1]
    assert all((a == b).all() for a, b in zip(once, again, strict=True))
    assert len({one.tobytes() for one in once}) == 6
    assert (values(T.Compose(WAYS, seed=2)(image_of("pil"), number=0)) != once[0]).any()
    random = T.generator(1, 3)
    assert (values(ways(image_of("pil"), random=random)) == once[3]).all()
    assert "RandomResizedCrop(size=(16, 16)" in repr(ways)


@pytest.mark.parametrize("kind", ["pil", "array", "float"])
def test_boxes_and_masks_move_as_the_image_does(kind):
    image = np.zeros((40, 60, 3), np.uint8)
    image[10:30, 20:40] = 255
    sample = {
        "image": flow.tensor(image.transpose(2, 0, 1) / np.float32(255)) if kind == "float" else image,
        "boxes": np.array([[20, 10, 40, 30]], np.float32), "masks": image[None, :, :, 0] > 0, "labels": np.array([4]),
    }  # fmt: skip
    if kind == "pil":
        from PIL import Image

        sample["image"] = Image.fromarray(image)
    ways = T.Compose([
        T.RandomResizedCrop((64, 64), scale=(0.6, 1.0)), T.RandomHorizontalFlip(),
        T.RandomVerticalFlip(), T.RandomCrop(60), T.Resize((30, 45)), T.CenterCrop((28, 45)),
    ])  # fmt: skip
    for number in range(5):
        found = ways(sample, number=number)
        grey = values(found["image"])[0] if kind == "float" else np.asarray(found["image"])[..., 0]
        assert grey.shape == (28, 45) and found["labels"].tolist() == [4]
        white = grey > (0.5 if kind == "float" else 127)
        rows, columns = np.nonzero(white)
        around = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        np.testing.assert_allclose(found["boxes"][0], around, atol=1)
        assert (found["masks"][0] == white).mean() > 0.97
    assert sample["boxes"].tolist() == [[20, 10, 40, 30]]


def test_boxes_without_area_are_dropped():
    sample = {"image": image_of("array"), "boxes": np.array([[0, 0, 4, 4], [12, 8, 18, 14.0]]), "labels": [1, 2]}
    found = T.Compose([T.CenterCrop(10), T.SanitizeBoxes()])(sample)
    assert found["labels"].tolist() == [2] and len(found["boxes"]) == 1
    with pytest.raises(DataError, match="there is one row per box"):
        T.SanitizeBoxes()({**sample, "labels": [1]})


WRONG = {
    "outside": (lambda: _boxed([[0, 0, 31, 10]]), "box 0, .* in an image 21 high and 30 wide"),
    "sizes": (lambda: _boxed([[1, 1, 5, 5], [20, 10, 8, 9]]), "box_convert"),
    "rows": (lambda: _boxed([1, 2, 3, 4]), r"boxes are \(N, 4\)"),
    "key": (lambda: T.Resize(4)({"images": image_of("array")}), r"sample\['image'\] = sample.pop\('images'\)"),
    "list": (lambda: T.Resize(4)([[1, 2], [3, 4]]), "an image is one of Pillow, a NumPy array"),
    "channels": (lambda: T.Resize(4)(np.zeros((3, 20, 20))), "transpose"),
    "flat": (lambda: T.Resize(4)(flow.zeros(8, 8)), r"a tensor is \(..., C, H, W\)"),
    "random": (lambda: T.Resize(4)(image_of("pil"), random=0), "random is a generator of NumPy"),
    "compose": (lambda: T.Compose([T.Resize(4), 7]), "transforms are callable"),
    "probability": (lambda: T.RandomHorizontalFlip(1.5), "a probability is from 0 to 1"),
    "size": (lambda: T.Resize(0), "a size is a number or"),
    "filter": (lambda: T.Resize(4, "cubic"), "an interpolation is one of nearest, bilinear"),
    "small": (lambda: T.RandomCrop(25)(image_of("pil")), "pad_if_needed=True"),
    "scale": (lambda: T.RandomResizedCrop(8, scale=(1, 0.5)), "scale is the least, then the largest"),
    "jitter": (lambda: T.ColorJitter(hue=0.7), "hue is a number, 0 or more, or a pair within -0.5 to 0.5"),
    "normalise": (lambda: T.Normalize([0.5], [0.5])(image_of("array")), "it takes floats from 0 to 1"),
    "deviation": (lambda: T.Normalize([0.5], [0.0]), "a deviation above 0"),
    "policy": (lambda: T.AutoAugment("imagnet"), "fix:  'imagenet'"),
    "strength": (lambda: T.RandAugment(magnitude=31), "from 0 to num_magnitude_bins - 1"),
    "severity": (lambda: T.AugMix(severity=0), "a severity is from 1 to 10"),
    "dtype": (lambda: T.ToDtype("real"), "a dtype is one of floats or of whole numbers"),
}


def _boxed(boxes):
    return T.Resize(8)({"image": image_of("array"), "boxes": np.array(boxes, np.float32)})


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls(name):
    call, words = WRONG[name]
    with pytest.raises((DataError, DataTypeError), match=words) as caught:
        call()
    assert all(part in str(caught.value) for part in ("\n  seen: ", "\n  rule: ", "\n  fix:  "))

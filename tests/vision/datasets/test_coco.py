"""`CocoDetection`: boxes, masks and keypoints of a file in COCO's format, and files that are not."""

import json

import pytest

from sbpjax.errors import DataError
from sbpjax.vision import transforms as T
from sbpjax.vision.datasets import CocoDetection

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
CONTENT = {
    "images": [{"id": 9, "file_name": "b.png"}, {"id": 3, "file_name": "a.png"}, {"id": 5, "file_name": "a.png"}],
    "categories": [{"id": 1, "name": "person"}, {"id": 18, "name": "dog"}],
    "annotations": [
        {"id": 1, "image_id": 9, "category_id": 18, "bbox": [2, 3, 10, 5], "area": 40.5, "iscrowd": 0,
         "segmentation": [[2, 3, 12, 3, 12, 8, 2, 8]], "keypoints": [4, 5, 2, 0, 0, 0]},
        {"id": 2, "image_id": 9, "category_id": 1, "bbox": [-2, 15, 10, 15], "iscrowd": 0, "segmentation": []},
        {"id": 3, "image_id": 9, "category_id": 1, "bbox": [0, 0, 30, 20], "iscrowd": 1,
         "segmentation": {"size": [20, 30], "counts": [0, 600]}},
        {"id": 4, "image_id": 3, "category_id": 1, "bbox": [5, 5, 0, 4], "iscrowd": 0, "segmentation": []},
    ],
}  # fmt: skip


@pytest.fixture
def written(tmp_path):
    for name in ("a.png", "b.png"):
        Image.new("RGB", (30, 20)).save(tmp_path / name)

    def write(content):
        (tmp_path / "all.json").write_text(json.dumps(content))
        return tmp_path, tmp_path / "all.json"

    return write


def test_boxes_masks_and_keypoints(written):
    found = CocoDetection(*written(CONTENT), masks=True, keypoints=True)
    assert found.ids == [3, 5, 9] and found.classes == {1: "person", 18: "dog"}
    sample = found[2]
    assert sample["boxes"].tolist() == [[2, 3, 12, 8], [0, 15, 8, 20]]  # cut at the border
    assert sample["labels"].tolist() == [18, 1] and sample["area"].tolist() == [40.5, 150] and sample["image_id"] == 9
    assert sample["masks"].shape == (2, 20, 30) and sample["masks"][0, 3:8, 2:12].all() and sample["masks"].sum() == 50
    assert sample["keypoints"].tolist() == [[[4, 5, 2], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]]
    assert found[0]["boxes"].shape == (0, 4) and found[1]["masks"].shape == (0, 20, 30)
    assert CocoDetection(*written(CONTENT), crowds=True)[2]["iscrowd"].tolist() == [0, 0, 1]
    assert CocoDetection(*written(CONTENT), empty=False).ids == [3, 9]


def test_transforms_take_the_whole_sample(written):
    ways = T.Compose([T.RandomHorizontalFlip(1.0), T.Resize((40, 60)), T.SanitizeBoxes(), T.ToTensor()])
    sample = CocoDetection(*written(CONTENT), ways, masks=True)[2]
    assert sample["image"].shape == (3, 40, 60) and sample["boxes"].tolist() == [[36, 6, 56, 16], [44, 30, 60, 40]]
    assert sample["masks"][0, 6:16, 36:56].all() and sample["masks"].sum() == 200


WRONG = {
    "no object": ([1], "no list of images, categories, annotations"),
    "captions": ({"images": [], "annotations": []}, "no list of categories"),
    "box": ({**CONTENT, "annotations": [{"id": 7, "image_id": 9, "category_id": 1, "bbox": [1, 2]}]}, "annotation 7"),
    "image": ({**CONTENT, "annotations": [{"id": 7, "image_id": 4, "category_id": 1, "bbox": [1] * 4}]}, "image 4"),
}


@pytest.mark.parametrize("name", WRONG)
def test_files_of_another_format(written, name):
    content, words = WRONG[name]
    with pytest.raises(DataError, match=words):
        CocoDetection(*written(content))


def test_images_outside_of_the_folder(written):
    folder, path = written({**CONTENT, "images": [{"id": 9, "file_name": "../b.png"}], "annotations": []})
    with pytest.raises(DataError, match="images are in the folder of the images"):
        CocoDetection(folder, path)[0]
    with pytest.raises(DataError, match="No such file"):
        CocoDetection(folder, folder / "none.json")

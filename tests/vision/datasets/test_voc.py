"""`VocDetection`: lists, boxes of XML, difficult ones, and files that would never end."""

import pytest

from sbpjax.errors import DataError
from sbpjax.vision.datasets import VocDetection

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
OBJECT = """<object><name>{name}</name><difficult>{hard}</difficult>
    <bndbox><xmin>{box[0]}</xmin><ymin>{box[1]}</ymin><xmax>{box[2]}</xmax><ymax>{box[3]}</ymax></bndbox></object>"""


@pytest.fixture
def root(tmp_path):
    for folder in ("ImageSets/Main", "JPEGImages", "Annotations"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "ImageSets/Main/train.txt").write_text("one\n\ntwo -1\n")
    objects = [OBJECT.format(name="dog", hard=0, box=(1, 1, 2, 2)), OBJECT.format(name="cat", hard=1, box=(3, 1, 9, 8))]
    for name, text in (("one", "".join(objects)), ("two", "")):
        Image.new("RGB", (20, 10)).save(tmp_path / f"JPEGImages/{name}.jpg")
        (tmp_path / f"Annotations/{name}.xml").write_text(f"<annotation>{text}</annotation>")
    return tmp_path


def test_boxes(root):
    found = VocDetection(root)
    assert len(found) == 2 and found[0]["name"] == "one" and found[0]["image"].size == (20, 10)
    assert found[0]["boxes"].tolist() == [[0, 0, 2, 2]] and found[0]["labels"].tolist() == [12]
    assert found[1]["boxes"].shape == (0, 4)
    both = VocDetection(root, difficult=True)[0]
    assert both["difficult"].tolist() == [False, True] and both["boxes"][1].tolist() == [2, 0, 9, 8]


def test_entities_are_not_expanded(root):
    nested = '<!DOCTYPE a [<!ENTITY a "dog"><!ENTITY b "&a;&a;">]><annotation><name>&b;</name></annotation>'
    (root / "Annotations/one.xml").write_text(nested)
    with pytest.raises(DataError, match="<!DOCTYPE a>") as caught:
        VocDetection(root)[0]
    assert "declare no document type" in str(caught.value)


def test_wrong_files(root):
    with pytest.raises(DataError, match=r"fix:  one of \['train'\]"):
        VocDetection(root, "val")
    (root / "Annotations/one.xml").write_text("<annotation>")
    with pytest.raises(DataError, match="annotations are a file of XML"):
        VocDetection(root)[0]
    text = OBJECT.format(name="unicorn", hard=0, box=(1, 1, 2, 2))
    (root / "Annotations/one.xml").write_text(f"<annotation>{text}</annotation>")
    with pytest.raises(DataError, match="fix:  classes="):
        VocDetection(root)[0]
    text = text.replace("unicorn", "dog").replace("<ymin>1</ymin>", "")
    (root / "Annotations/one.xml").write_text(f"<annotation>{text}</annotation>")
    with pytest.raises(DataError, match="a bndbox has xmin, ymin, xmax and ymax"):
        VocDetection(root)[0]
    (root / "Annotations/one.xml").write_text(
        f"<annotation>{OBJECT.format(name='dog', hard=0, box=('nan', 1, 2, 2))}</annotation>"
    )
    with pytest.raises(DataError, match="a bndbox of .*'nan'"):
        VocDetection(root)[0]
    for encoding in ("unknown-1", "utf-16"):
        (root / "Annotations/one.xml").write_text(f'<?xml version="1.0" encoding="{encoding}"?><annotation/>')
        with pytest.raises(DataError, match="annotations are a file of XML"):
            VocDetection(root)[0]
    (root / "ImageSets/Main/train.txt").write_bytes(b"one\xff\n")
    with pytest.raises(DataError, match="utf-8.*\n.*the lists of images"):
        VocDetection(root)
    (root / "ImageSets/Main/train.txt").write_bytes(b"one\0\n")
    with pytest.raises(DataError, match="null"):
        VocDetection(root)[0]

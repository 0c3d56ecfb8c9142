"""Criteo's logs in text, compressed, and in Parquet; fields that are empty; lines that are damaged; samples."""

import gzip

import numpy as np
import pytest

from sbpjax.errors import DataError
from sbpjax.train.data import Clicks, read_criteo
from sbpjax.train.data.criteo import MISSING


def line(label, counts=None, keys=None):
    counts = [str(i) for i in range(13)] if counts is None else counts
    keys = [f"{i:08x}" for i in range(26)] if keys is None else keys
    return "\t".join([str(label), *counts, *keys])


TEXT = "\n".join([line(1), line(0, ["", "-1", *["3"] * 11], ["", *["ffffffff"] * 25]), line(0)]) + "\n"


def check(blocks):
    assert [len(block.labels) for block in blocks] == [2, 1]
    first = blocks[0]
    assert first.labels.tolist() == [1, 0] and first.dense.dtype == np.float32 and first.keys.dtype == np.uint64
    np.testing.assert_allclose(first.dense[0], np.log1p(np.arange(13)), rtol=1e-6)
    assert first.dense[1, :2].tolist() == [0, 0]
    assert first.keys[0].tolist() == list(range(26)) and first.keys[1, 0] == MISSING
    assert first.keys[1, 1] == 0xFFFFFFFF


def test_text_and_compressed_text(tmp_path):
    (tmp_path / "day_0").write_text(TEXT)
    (tmp_path / "day_1").write_bytes(TEXT.replace("\n", "\r\n").encode())
    with gzip.open(tmp_path / "day_2.gz", "wt") as file:
        file.write(TEXT)
    for name in ("day_0", "day_1", "day_2.gz"):
        check(list(read_criteo(tmp_path / name, lines=2)))


def test_parquet(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    rows = [row.split("\t") for row in TEXT.splitlines()]
    columns = [[int(row[0]) for row in rows]]
    columns += [[int(row[i]) if row[i] else None for row in rows] for i in range(1, 14)]
    columns += [[row[i] or None for row in rows] for i in range(14, 40)]
    table = arrow.table({f"c{i}": column for i, column in enumerate(columns)})
    parquet.write_table(table, tmp_path / "day.parquet")
    check(list(read_criteo(tmp_path / "day.parquet", lines=2)))


def test_without_pyarrow_parquet_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(DataError, match="pip install pyarrow"):
        list(read_criteo(tmp_path / "day.parquet"))


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ("1\t2\t3", "3 fields in line 2"),
        (line(1, ["x"] * 13), r"(?s)line 2: invalid literal.*counts are whole numbers"),
        (line(1, keys=["zz"] * 26), r"(?s)line 2: .*digits in base 16"),
        (line(2), "the label b'2'"),
        (line(-1), "the label b'-1'"),
        (line(" 1"), "the label b' 1'"),
        (line(1, keys=["1ffffffff"] * 26), "more than eight digits"),
        (line(1, keys=["-1"] * 26), "out of bounds"),
        (line(1, keys=["1" * 17] * 26), "line 2"),
        (line(1, ["1_0"] * 13), "another character"),
        (line(1, ["9" * 30] * 13), "the count 1e"),
        (line(1, ["9" * 400] * 13), "longer|line 2"),
        ("1" * 100_000, "at most 4,096 bytes"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, wrong, expected):
    (tmp_path / "day").write_text(line(1) + "\n" + wrong + "\n" + line(0) + "\n")
    with pytest.raises(DataError, match=expected):
        list(read_criteo(tmp_path / "day"))


def test_samples():
    dense, ids = np.arange(12.0).reshape(4, 3), np.arange(8).reshape(4, 2)
    clicks = Clicks(dense, ids, [0, 1, 0, 1], samples=8, seed=3)
    found = [clicks[i] for i in range(8)]
    assert sorted(int(s["ids"][0]) for s in found[:4]) == sorted(int(s["ids"][0]) for s in found[4:]) == [0, 2, 4, 6]
    assert found[0]["dense"].dtype == np.float32 and found[0]["ids"].dtype == np.int64
    for arrays in ((dense, ids[:3], [0] * 4), (dense, ids.astype(float), [0] * 4), (dense[0], ids, [0] * 4)):
        with pytest.raises(DataError, match="ids are integers"):
            Clicks(*arrays)


@pytest.mark.parametrize(
    "harm", [lambda b: b"", lambda b: b[:-5], lambda b: b[:30] + b"xx" + b[32:], lambda b: b[:-6] + b"x" + b[-5:]]
)
def test_a_damaged_archive_is_one_error(tmp_path, harm):
    whole = gzip.compress("".join(f"{line(i % 2)}\n" for i in range(50)).encode())
    (tmp_path / "day.gz").write_bytes(harm(whole))
    with pytest.raises(DataError, match="(?s)read_criteo.*fetch it again"):
        list(read_criteo(tmp_path / "day.gz"))

"""Files of rows: what was written comes back, and what was changed is refused."""

import errno
import os

import ml_dtypes
import numpy as np
import pytest

from sbpjax.errors import TableError
from sbpjax.one_embedding import columns
from sbpjax.one_embedding.row_files import RowFile, write_rows


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int64])
def test_round_trip(dtype, tmp_path):
    path, rows = str(tmp_path / "x"), np.arange(35).reshape(7, 5).astype(dtype)
    write_rows(path, dtype, 5, 7, [rows[:3], rows[3:]])
    file = RowFile(path)
    file.check()
    assert (file.rows, file.width, file.dtype) == (7, 5, np.dtype(dtype))
    np.testing.assert_array_equal(np.concatenate(list(file.blocks(2))), rows)
    write_rows(path, np.int32, 0, 0, [])
    assert list(RowFile(path).blocks(4)) == []


@pytest.mark.parametrize(
    ("harm", "expected"),
    [
        (lambda b: b[:-1], "bytes, and its header has"),
        (lambda b: b[:20], "less than a header"),
        (lambda b: b"XXXX" + b[4:], "it begins with"),
        (lambda b: b[:8] + b"object".ljust(16, b"\0") + b[24:], "the dtype"),
        (lambda b: b[:-1] + bytes([b[-1] ^ 1]), "checksum"),
        (lambda b: b[:32] + (10**15).to_bytes(8, "little") + b[40:], "its header has"),
    ],
)
def test_damage(harm, expected, tmp_path):
    path = tmp_path / "x"
    write_rows(str(path), np.float32, 3, 4, [np.ones((4, 3))])
    path.write_bytes(harm(path.read_bytes()))
    with pytest.raises(TableError, match=expected):
        RowFile(str(path)).check()


def test_no_file_and_a_full_disk(tmp_path, monkeypatch):
    with pytest.raises(TableError, match="No such file"):
        RowFile(str(tmp_path / "none"))

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(columns.os, "posix_fallocate", full)
    with pytest.raises(TableError, match="No space left"):
        write_rows(str(tmp_path / "x"), np.float32, 3, 4, [np.ones((4, 3))])

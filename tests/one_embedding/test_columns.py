"""Arrays that grow, in memory and in files; a full disk."""

import errno
import os

import numpy as np
import pytest

from sbpjax.errors import TableError
from sbpjax.one_embedding import columns
from sbpjax.one_embedding.columns import FileColumn, MemoryColumn


@pytest.mark.parametrize("fill", [0.0, 0.5])
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_they_grow_and_keep(kind, fill, tmp_path):
    column = MemoryColumn(3, np.float32, fill) if kind == "memory" else FileColumn(3, np.float32, fill, str(tmp_path))
    column.reserve(10)
    column.data[:10] = np.arange(30).reshape(10, 3)
    column.reserve(9_000_000)
    assert len(column.data) >= 9_000_000
    assert column.data[9].tolist() == [27, 28, 29] and (column.data[8_999_999] == fill).all()
    assert not os.listdir(tmp_path)  # the file has no name: nothing is left of a process that was killed
    column.close()


def test_a_full_disk_is_an_error_before_anything_changes(tmp_path, monkeypatch):
    column = FileColumn(4, np.float32, 0.0, str(tmp_path))
    column.reserve(100)
    column.data[:] = 7
    held = len(column.data)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(columns.os, "posix_fallocate", full)
    with pytest.raises(TableError, match="MiB more: No space left on device"):
        column.reserve(held + 1)
    assert len(column.data) == held and (column.data == 7).all()


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TableError, match="a file: "):
        FileColumn(4, np.float32, 0.0, str(tmp_path / "file"))

"""OneFlow's reader of token files: batches of the stream of documents, shares of them, and dtypes."""

import struct

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn


def write_index(prefix, documents):
    """Write sequences of tokens, one per document, as Megatron's indexed files."""
    np.concatenate(documents).astype(np.uint16).tofile(f"{prefix}.bin")
    sizes = np.array([len(d) for d in documents], np.int32)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64) * 2
    with open(f"{prefix}.idx", "wb") as file:
        file.write(b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, len(sizes), len(sizes) + 1))
        file.write(sizes.tobytes() + starts.tobytes() + np.arange(len(sizes) + 1).tobytes())


def test_token_batches(tmp_path):
    prefix = str(tmp_path / "text")
    write_index(prefix, [np.arange(5), np.arange(5, 8), np.arange(8, 20)])
    reader = nn.GPTIndexedBinDataReader(prefix, 4, 6, 2, shuffle=False)
    stream = np.concatenate([np.arange(20), np.arange(20)])
    for i in range(len(reader)):
        want = [stream[4 * n : 4 * n + 5] for n in (2 * i, 2 * i + 1)]
        assert reader().tolist() == np.stack(want).tolist()
    assert reader().tolist()[0] == [0, 1, 2, 3, 4]
    mixed = nn.GPTIndexedBinDataReader(prefix, 4, 6, 6, random_seed=1)().tolist()
    assert mixed == nn.GPTIndexedBinDataReader(prefix, 4, 6, 6, random_seed=1)().tolist() != reader().tolist()
    part = nn.GPTIndexedBinDataReader(prefix, 2, 2, 2, shuffle=False, split_sizes=["1", "2"], split_index=0)
    assert part().tolist() == [[0, 1, 2], [2, 3, 4]]
    placement = flow.placement("cpu", [0, 1])
    options = {"placement": placement, "sbp": flow.sbp.split(0), "shuffle": False}
    assert nn.GPTIndexedBinDataReader(prefix, 4, 6, 2, **options)().sbp == (flow.sbp.split(0),)
    (tmp_path / "bad.idx").write_bytes(b"nothing" * 9)
    (tmp_path / "bad.bin").write_bytes(b"")
    with pytest.raises(ValueError, match="an index of tokens begins with"):
        nn.GPTIndexedBinDataReader(str(tmp_path / "bad"), 4, 6, 2)


@pytest.mark.parametrize(("code", "dtype"), [(6, np.float64), (7, np.float32)])
def test_floats_are_what_megatron_calls_them(tmp_path, code, dtype):
    np.arange(10, dtype=dtype).tofile(tmp_path / "t.bin")
    head = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, code, 1, 2)
    (tmp_path / "t.idx").write_bytes(head + struct.pack("<iqqq", 10, 0, 0, 1))
    reader = nn.GPTIndexedBinDataReader(str(tmp_path / "t"), 3, 3, 3, shuffle=False, dtype=flow.float32)
    assert reader().tolist() == [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]

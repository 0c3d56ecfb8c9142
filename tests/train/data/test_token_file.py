"""Token files: the layout byte by byte, what is refused, and that a killed writer leaves nothing half visible."""

import pickle
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sbpjax
from sbpjax.errors import DataError
from sbpjax.train.data import TokenFile, TokenFileWriter, token_dtype

DOCUMENTS = [[1, 2, 3], [], [65535], [4, 5]]


def write(prefix, documents=DOCUMENTS, dtype=np.uint16, **options):
    with TokenFileWriter(prefix, dtype, **options) as writer:
        for document in documents:
            writer.add(document)
    return TokenFile(prefix)


def layout(code, lengths, pointers, documents):
    """Return an index, as its description says it."""
    head = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, code, len(lengths), len(documents))
    return head + struct.pack(f"<{len(lengths)}i{len(pointers)}q{len(documents)}q", *lengths, *pointers, *documents)


def test_the_layout_byte_by_byte(tmp_path):
    write(tmp_path / "t")
    assert (tmp_path / "t.bin").read_bytes() == struct.pack("<6H", 1, 2, 3, 65535, 4, 5)
    assert (tmp_path / "t.idx").read_bytes() == layout(8, [3, 0, 1, 2], [0, 6, 6, 8], [0, 1, 2, 3, 4])
    assert {path.name for path in tmp_path.iterdir()} == {"t.bin", "t.idx", "t.idx.sha256"}


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int32, np.int64, np.uint16])
def test_what_is_written_is_read(tmp_path, dtype):
    rng = np.random.default_rng(0)
    documents = [rng.integers(0, 100, n) for n in rng.integers(0, 2000, 400)]  # more than is held back at once
    file = write(tmp_path / "folder" / "t", documents, dtype)
    assert len(file) == 400 and file.dtype == dtype and file.tokens.dtype == dtype
    assert all(np.array_equal(file[i], document) for i, document in enumerate(documents))
    assert np.array_equal(file[-1], documents[-1]) and not file.tokens.flags.writeable
    again = pickle.loads(pickle.dumps(file))
    assert np.array_equal(again.tokens, file.tokens) and len(pickle.dumps(file)) < 500
    with pytest.raises(IndexError, match="document 400 is outside a file of 400 documents"):
        file[400]


def test_many_at_once_is_one_by_one(tmp_path):
    write(tmp_path / "a")
    with TokenFileWriter(tmp_path / "b", np.uint16) as writer:
        writer.add_many([1, 2, 3], [3, 0])
        writer.add_many([65535, 4, 5], [1, 2])
    for ending in (".bin", ".idx"):
        assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()


def test_documents_of_several_sequences(tmp_path):
    (tmp_path / "t.bin").write_bytes(np.arange(10, dtype=np.int32).tobytes())
    (tmp_path / "t.idx").write_bytes(layout(4, [2, 3, 5], [0, 8, 20], [0, 2, 2, 3]))
    file = TokenFile(tmp_path / "t")
    assert [file[i].tolist() for i in range(len(file))] == [[0, 1, 2, 3, 4], [], [5, 6, 7, 8, 9]]


def test_a_document_may_change_behind_add(tmp_path):
    buffer = np.array([1, 2])
    with TokenFileWriter(tmp_path / "t", np.uint16) as writer:
        writer.add(buffer)
        buffer[:] = 9
    assert TokenFile(tmp_path / "t").tokens.tolist() == [1, 2]


def test_dtypes_of_vocabularies():
    assert [token_dtype(n) for n in (2, 65536, 65537)] == [np.uint16, np.uint16, np.int32]


GOOD = layout(8, [3, 2], [0, 6], [0, 1, 2])


@pytest.mark.parametrize(
    ("index", "tokens", "expected"),
    [
        (None, b"", "there is no file .*t.idx"),
        (GOOD, None, "there is no file .*t.bin"),
        (b"TNTIDX\x00\x00" + GOOD[8:], bytes(10), "begins with b'TNTIDX.*an index of tokens begins with b'MMIDIDX"),
        (b"", bytes(10), "begins with b''"),
        (GOOD[:20], bytes(10), "has 20 bytes\n  rule: an index has a head of 34 bytes"),
        (GOOD[:9] + struct.pack("<Q", 2) + GOOD[17:], bytes(10), "is of version 2\n  rule: version 1 is read"),
        (GOOD[:17] + b"\x06" + GOOD[18:], bytes(10), "has dtype code 6\n  rule: tokens are whole numbers: 1 uint8"),
        (GOOD[:-1], bytes(10), "has 81 bytes\n  rule: 2 sequences and 3 ends of documents .* make 82 bytes"),
        (GOOD + b"\x00\x00", bytes(10), "has 84 bytes"),
        (GOOD, bytes(9), "t.bin has 9 bytes\n  rule: its index speaks of 10 bytes"),
        (GOOD, bytes(12), "t.bin has 12 bytes"),
        (layout(8, [], [], [0]), b"", "has 0 bytes\n  rule: .* there is one token at least"),
        (layout(8, [3, 2], [2, 4], [0, 1, 2]), bytes(8), "sequence 0 of 3 tokens at byte 2"),
        (layout(8, [3, 2], [0, 4], [0, 1, 2]), bytes(10), "sequence 1 .*begins at byte 6"),
        (layout(8, [3, -1, 3], [0, 6, 4], [0, 1, 2, 3]), bytes(10), "sequence 1 of -1 tokens"),
        (layout(8, [3, 2], [0, 6], [0, 2, 1, 2]), bytes(10), "document 1 of the sequences 2 to 1"),
        (layout(8, [3, 2], [0, 6], [0, -1, 2]), bytes(10), "document 0 of the sequences 0 to -1"),
        (layout(8, [3, 2], [0, 6], [0, 1, 1]), bytes(10), "documents go from sequence 0 to 2"),
    ],
)
def test_files_that_are_refused(tmp_path, index, tokens, expected):
    for ending, content in ((".idx", index), (".bin", tokens)):
        if content is not None:
            (tmp_path / f"t{ending}").write_bytes(content)
    with pytest.raises(DataError, match=f"(?s)TokenFile\\(.*seen: .*{expected}.*\n  fix:  "):
        TokenFile(tmp_path / "t")


def test_an_index_is_compared_with_its_digest(tmp_path):
    write(tmp_path / "t", [[1], [2], [3]])
    index = tmp_path / "t.idx"
    data = bytearray(index.read_bytes())
    data[-24] = 0  # the first document is empty then, and the second has its token
    index.write_bytes(data)
    with pytest.raises(DataError, match=r"(?s)another SHA-256.*remove t\.idx\.sha256"):
        TokenFile(tmp_path / "t")
    (tmp_path / "t.idx.sha256").unlink()
    assert [TokenFile(tmp_path / "t")[i].tolist() for i in range(3)] == [[], [1, 2], [3]]


def test_negative_tokens_are_refused(tmp_path):
    for tokens in ([1, -2], np.array([1, -2], np.int32)):
        with pytest.raises(DataError, match="token -2\n.*from 0 to 2147483647"):
            write(tmp_path / "t", [tokens], np.int32)
    file = write(tmp_path / "t", [[1, 2], [3, 4]], np.int32)
    np.array([1, 2, 3, -4], np.int32).tofile(tmp_path / "t.bin")
    file = TokenFile(tmp_path / "t")
    assert file[0].tolist() == [1, 2]
    for read in (lambda: file[1], lambda: file.read(1, 4)):
        with pytest.raises(DataError, match="token -4 at token"):
            read()


def test_a_path_with_its_ending(tmp_path):
    write(tmp_path / "t")
    with pytest.raises(DataError, match="fix:  TokenFile\\('.*/t'\\)"):
        TokenFile(tmp_path / "t.bin")


@pytest.mark.parametrize(
    ("document", "expected"),
    [([70000], "token 70000\n.*from 0 to 65535"), ([-1], "token -1"), ([0.5], "float64"), ([[1]], "shape \\(1, 1\\)")],
)
def test_documents_that_are_refused(tmp_path, document, expected):
    with pytest.raises(DataError, match=expected):
        write(tmp_path / "t", [[1, 2], document])
    assert not list(tmp_path.iterdir())


def test_other_misuse_of_the_writer(tmp_path):
    with pytest.raises(DataError, match="float32\n  rule: tokens are one of uint8"):
        TokenFileWriter(tmp_path / "t", np.float32)
    for documents in ([], [[]]):
        with pytest.raises(DataError, match="a file has one token at least"):
            write(tmp_path / "t", documents)
    with (
        pytest.raises(DataError, match="2 tokens, 2 lengths of sum 3"),
        TokenFileWriter(tmp_path / "t", "i4") as writer,
    ):
        writer.add_many([1, 2], [1, 2])
    with pytest.raises(KeyError), TokenFileWriter(tmp_path / "t", np.int32) as writer:
        writer.add([1])
        raise KeyError
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten_unless_asked(tmp_path):
    write(tmp_path / "t")
    with pytest.raises(DataError, match="t.bin is there\n  rule: existing files are not overwritten"):
        TokenFileWriter(tmp_path / "t", np.uint16)
    assert write(tmp_path / "t", [[7]], np.int32, overwrite=True).tokens.tolist() == [7]


def test_one_writer_at_a_time(tmp_path):
    with TokenFileWriter(tmp_path / "t", np.uint16) as writer:
        writer.add([1])
        with pytest.raises(DataError, match="is open in another writer"):
            TokenFileWriter(tmp_path / "t", np.uint16)
    assert TokenFile(tmp_path / "t").tokens.tolist() == [1]


# A process without JAX that is killed in a call of the system, or in the midst of writing.
WRITER = """
import os, runpy, signal, sys
root, prefix, name, turn, overwrite = sys.argv[1:]
sys.path.insert(0, os.path.dirname(root))
runpy.run_path(os.path.join(root, "data", "loading", "worker_main.py"))["put_light_package"](root, [])
from sbpjax.train.data import TokenFileWriter
assert "jax" not in sys.modules
called, calls = getattr(os, name), []
def killed(*args, **options):
    calls.append(args)
    if len(calls) > int(turn):
        os.kill(os.getpid(), signal.SIGKILL)
    return called(*args, **options)
with TokenFileWriter(prefix, "int32", overwrite=overwrite == "True") as writer:
    for i in range(1000):
        writer.add(range(1000))
    setattr(os, name, killed)
"""
CALLS = [("fsync", 0), ("fsync", 1), ("unlink", 0), ("replace", 0), ("replace", 1), ("replace", 2), ("fsync", 5)]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(("name", "turn"), CALLS)
def test_a_killed_writer_leaves_nothing_half_visible(tmp_path, name, turn, overwrite):
    if overwrite:
        write(tmp_path / "t")
    root = str(Path(sbpjax.__file__).parent)
    command = [sys.executable, "-c", WRITER, root, str(tmp_path / "t"), name, str(turn), str(overwrite)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    if (name, turn) == ("fsync", 5):  # behind the last name
        assert TokenFile(tmp_path / "t").tokens.size == 1_000_000
    elif overwrite and (tmp_path / "t.idx").exists():
        assert TokenFile(tmp_path / "t").tokens.tolist() == [1, 2, 3, 65535, 4, 5]  # still the old ones
    else:
        with pytest.raises(DataError, match="there is no file"):
            TokenFile(tmp_path / "t")
    write(tmp_path / "t", overwrite=True)
    assert {path.name for path in tmp_path.iterdir()} == {"t.bin", "t.idx", "t.idx.sha256"}

"""Documents of files: chunks that lose and double no line wherever they are cut, and what is refused."""

import json
import pickle
import re

import numpy as np
import pytest

from sbpjax.errors import DataError
from sbpjax.train.data import EncodedDocuments
from sbpjax.train.data.documents import chunks_of, identity_collate, texts_of
from sbpjax.train.data.tokenizer import train_tokenizer

LINES = ["one", "", "zwei, drei", "  ", "猫は", "4" * 40, "the end"]
WANTED = [line for line in LINES if line.strip()]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("size", [1, 2, 5, 7, 30, 1000])
def test_lines_are_neither_lost_nor_doubled(tmp_path, size, last, newline):
    file = tmp_path / "t.txt"
    file.write_bytes((newline.join(LINES) + newline * last).encode())
    chunks = chunks_of([str(file)], True, size)
    assert chunks[0].begin == 0 and chunks[-1].end == file.stat().st_size
    assert [text for chunk in chunks for text in texts_of(chunk, "text")] == WANTED


def test_json_whole_files_and_their_order(tmp_path):
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"id": 1, "body": text}) + "\n" for text in LINES))
    (tmp_path / "b.txt").write_text("a\nb\n")
    (tmp_path / "empty.txt").write_text("")
    files = [str(tmp_path / name) for name in ("b.txt", "empty.txt", "a.jsonl")]
    found = [text for chunk in chunks_of(files, False, 16) for text in texts_of(chunk, "body")]
    assert found == ["a\nb\n", *LINES]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"txet": "a"}', "line 3 .*an object with txet\n  rule: .*a text under 'text'\n  fix:  --json-key txet"),
        (b'{"text": 5}', "line 3 .*an object with text"),
        (b"[1]", "line 3 .*seen: b'\\[1\\]'"),
        (b'{"text": "a"', "line 3 .*has one object per line"),
    ],
)
def test_lines_that_are_refused(tmp_path, line, expected):
    (tmp_path / "t.jsonl").write_bytes(b'{"text": "a"}\n\n' + line + b"\n")
    with pytest.raises(DataError) as told_by:
        [list(texts_of(chunk, "text")) for chunk in chunks_of([str(tmp_path / "t.jsonl")], False, 20)]
    assert re.search(expected, str(told_by.value), re.DOTALL), told_by.value


def test_other_files_that_are_refused(tmp_path):
    (tmp_path / "t.txt").write_bytes(b"good\nb\xe4d\n")
    for per_line in (True, False):
        (chunk,) = chunks_of([str(tmp_path / "t.txt")], per_line)
        with pytest.raises(DataError, match="line 2 .*\n  seen: byte 6 of the file is 0xe4\n  rule: text is UTF-8"):
            list(texts_of(chunk, "text"))
    with pytest.raises(DataError, match="is a folder\n  rule: every input is a file"):
        chunks_of([str(tmp_path)], False)
    with pytest.raises(DataError, match="none.txt is not there"):
        chunks_of([str(tmp_path / "none.txt")], False)


def test_tokens_of_chunks(tmp_path):
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    tokenizer = train_tokenizer(WANTED, 300)
    tokenizer.enable_truncation(2)
    (tmp_path / "t.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in LINES))
    chunks = chunks_of([str(tmp_path / "t.jsonl")], False)
    encoded = EncodedDocuments(chunks, tokenizer.to_str(), np.uint16, "text", 0)
    tokens, lengths = pickle.loads(pickle.dumps(encoded))[0]
    tokenizer.no_truncation()
    wanted = [tokenizer.encode(text).ids + [0] for text in LINES if text]  # no document without tokens
    assert tokens.dtype == np.uint16 and tokens.tolist() == sum(wanted, [])
    assert lengths.tolist() == [len(ids) for ids in wanted]
    assert identity_collate(encoded) is encoded and len(encoded) == 1

"""Documents of text files, and `EncodedDocuments`: tokenized chunks of them, for the workers of a loader.

A file of lines is cut every MiB; a chunk has the lines that *begin* in it, so no two chunks share one, and each is
independent of those before it. A file that is one document is one chunk. The chunks in their order are all documents in
theirs, regardless of the worker.

This module is imported by worker processes, which have no JAX.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from sbpjax.errors import DataError, nearest
from sbpjax.utils.data import Dataset, get_worker_info

from .tokenizer import package

_CHUNK_BYTES = 1 << 20


class Chunk(NamedTuple):
    """A part of a file.

    Attributes:
        path: the file.
        kind: ``"file"``, one document; ``"lines"``, a document per line; ``"json"``, an object per line.
        begin: the first byte.
        end: the byte after the last.
    """

    path: str
    kind: str
    begin: int
    end: int


def chunks_of(paths: Sequence[str], per_line: bool, chunk_bytes: int = _CHUNK_BYTES) -> list[Chunk]:
    """Return the chunks of some files: JSON lines by their endings ``.jsonl`` and ``.json``, else text.

    Args:
        paths: the files.
        per_line: whether a line of a text file is a document, or the whole file.
        chunk_bytes: the size of a chunk of a file of lines.

    Raises:
        DataError: one is not a file.
    """
    chunks = []
    for path in paths:
        if not os.path.isfile(path):
            seen = f"{path} is {'a folder' if os.path.isdir(path) else 'not there'}"
            raise DataError("preprocess", seen, "every input is a file", "folder/*.txt")
        size = os.path.getsize(path)
        kind = "json" if path.endswith((".jsonl", ".json")) else "lines" if per_line else "file"
        begins = range(0, size, chunk_bytes) if kind != "file" else range(size > 0)
        chunks += [Chunk(path, kind, b, size if kind == "file" else min(b + chunk_bytes, size)) for b in begins]
    return chunks


def texts_of(chunk: Chunk, key: str) -> Iterator[str]:
    """Yield the documents of a chunk.

    Args:
        chunk: the chunk.
        key: the key of the text in a JSON object.

    Raises:
        DataError: bytes are no UTF-8, a line is no object of JSON, or has no text under the key.
    """
    if chunk.kind == "file":
        with open(chunk.path, "rb") as file:
            yield _decode_text(chunk.path, 0, file.read())
        return
    for begin, line in _lines(chunk):
        if line.strip():
            yield (
                _parse_json(chunk.path, begin, line, key)
                if chunk.kind == "json"
                else _decode_text(chunk.path, begin, line)
            )


def _lines(chunk: Chunk) -> Iterator[tuple[int, bytes]]:
    with open(chunk.path, "rb") as file:
        if chunk.begin:
            file.seek(chunk.begin - 1)
            file.readline()  # of the line that begins in the chunk before
        begin = file.tell()
        while begin < chunk.end and (line := file.readline()):
            yield begin, line.rstrip(b"\r\n")
            begin += len(line)


def _document_error(path: str, begin: int, seen: str, rule: str, fix: str) -> DataError:
    with open(path, "rb") as file:
        number = 1
        while begin > 0 and (part := file.read(min(begin, _CHUNK_BYTES))):
            number, begin = number + part.count(b"\n"), begin - len(part)
    return DataError(f"preprocess {path}, line {number}", seen, rule, fix)


def _decode_text(path: str, begin: int, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        seen = f"byte {begin + error.start} of the file is {data[error.start]:#04x}"
        raise _document_error(path, begin + error.start, seen, "text is UTF-8", "iconv -t UTF-8") from None


def _parse_json(path: str, begin: int, line: bytes, key: str) -> str:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:  # JSONDecodeError, UnicodeDecodeError
        rule = "a file .jsonl or .json has one object per line"
        raise _document_error(path, begin, f"{line[:60]!r}: {error}", rule, "one object per line") from None
    if not isinstance(found, dict) or not isinstance(found.get(key), str):
        keys = list(found) if isinstance(found, dict) else []
        seen = f"an object with {', '.join(keys) or 'no keys'}" if isinstance(found, dict) else f"{line[:60]!r}"
        fix = f"--json-key {nearest(key, keys) or next(iter(keys), 'KEY')}"
        raise _document_error(path, begin, seen, f"a line is an object with a text under {key!r}", fix)
    return found[key]


class EncodedDocuments(Dataset):
    """Chunks of documents as ``(tokens, lengths)``: all tokens of the chunk, and how many each document has.

    Documents without a token are left out. No special tokens are added but `end`.

    Args:
        chunks: the result of `chunks_of`.
        tokenizer: a tokenizer's JSON, ``tokenizer.to_str()``.
        dtype: of the tokens.
        key: the key of the text in JSON objects.
        end: the token after every document; None for none.
    """

    def __init__(self, chunks: Sequence[Chunk], tokenizer: str, dtype: Any, key: str, end: int | None) -> None:
        self.chunks, self.tokenizer, self.dtype = chunks, tokenizer, np.dtype(dtype)
        self.key, self.end, self._made = key, end, None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_made": None}

    def __len__(self) -> int:
        return len(self.chunks)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        texts = list(texts_of(self.chunks[index], self.key))
        encoded = self._encoder().encode_batch_fast(texts, add_special_tokens=False)
        end = [] if self.end is None else [self.end]
        documents = [ids + end for each in encoded if (ids := each.ids)]
        tokens = np.fromiter(itertools.chain.from_iterable(documents), self.dtype)
        return tokens, np.array([len(ids) for ids in documents], np.int64)

    def _encoder(self) -> Any:
        if self._made is None:
            if get_worker_info() is not None:  # the workers are the parallelism: threads in each would be in the way
                os.environ["TOKENIZERS_PARALLELISM"] = "false"
            self._made = package().Tokenizer.from_str(self.tokenizer)
            self._made.no_truncation()
            self._made.no_padding()
        return self._made


def identity_collate(value: Any) -> Any:
    """Return a chunk unchanged: the loader makes no tensors of it."""
    return value

"""Token files in the layout of Megatron's indexed datasets: `TokenFile`, `TokenFileWriter`.

``corpus.bin`` holds the tokens of all documents, one after the other, ``corpus.idx`` their beginnings; its layout is in
`sbpjax/data/token_index.py`.

Here every document that is written is one sequence; a file that is read may have several in a document (sentences).

The writer works on ``corpus.bin.part`` and ``corpus.idx.part``, and renames them when both are complete and on disk:
the tokens, the digest of the index ``corpus.idx.sha256``, and the index last. So a file is complete if its index
exists, whenever the writer is killed.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
from typing import Any

import numpy as np

from sbpjax.data.token_index import DIGEST, HEAD, MAGIC, TOKEN_CODES, check_tokens, digest_line, read_index
from sbpjax.errors import DataError

_FLUSH_TOKENS = 1 << 18


def token_dtype(vocabulary: int) -> np.dtype:
    """Return the smallest dtype for tokens below a number that Megatron's own files have: uint16 or int32.

    Example:
        >>> token_dtype(50_257), token_dtype(128_256)
        (dtype('uint16'), dtype('int32'))
    """
    return np.dtype(np.uint16 if vocabulary <= 1 << 16 else np.int32)


class TokenFile:
    """The documents of ``<prefix>.bin`` and ``<prefix>.idx``, memory-mapped and read on access.

    Only the path is sent to another process (a data worker).

    Args:
        prefix: the path without ``.bin`` or ``.idx``.

    Attributes:
        prefix: the path.
        tokens: all tokens, one document after the other, read-only.
        dtype: of the tokens.

    Raises:
        DataError: a file is missing, of another kind or version, damaged, or the two do not belong together; a
            document that is read has a negative token.

    Example:
        >>> with TokenFileWriter("greetings", token_dtype(100)) as writer:
        ...     writer.add([7, 8, 9])
        ...     writer.add([10, 11])
        >>> file = TokenFile("greetings")
        >>> len(file), file[1].tolist(), file.tokens.tolist()
        (2, [10, 11], [7, 8, 9, 10, 11])
    """

    def __init__(self, prefix: str | os.PathLike) -> None:
        self.prefix = os.fspath(prefix)
        index = read_index(self.prefix, f"TokenFile({self.prefix!r})", TOKEN_CODES)
        self.dtype, self._pointers, self._documents = index.dtype, index.pointers, index.documents
        self.tokens = np.memmap(f"{self.prefix}.bin", index.dtype, "r").view(np.ndarray)

    def __reduce__(self) -> tuple:
        return type(self), (self.prefix,)

    def __len__(self) -> int:
        return len(self._documents) - 1

    def __getitem__(self, document: int) -> np.ndarray:
        return self.read(*self.span(document))

    def span(self, document: int) -> tuple[int, int]:
        """Return where a document begins and ends, in tokens."""
        if not -len(self) <= document < len(self):
            raise IndexError(f"document {document} is outside a file of {len(self)} documents")
        document %= len(self)
        return self._begin(document), self._begin(document + 1)

    def read(self, begin: int, end: int) -> np.ndarray:
        """Return the tokens from a place to another, over the ends of documents.

        Raises:
            DataError: one is negative.
        """
        return check_tokens(self.tokens[begin:end], f"token {begin}", f"TokenFile({self.prefix!r})")

    @property
    def lengths(self) -> np.ndarray:
        """How many tokens each document has, `(documents,)` int64; the whole index is read for it."""
        begins = np.append(self._pointers // self.dtype.itemsize, self.tokens.size)  # of sequences
        return np.diff(begins[self._documents])

    def sentences(self, document: int) -> np.ndarray:
        """Return the beginnings of a document's sequences after the first, in its tokens; files of Megatron have them.

        Example:
            >>> with TokenFileWriter("one", token_dtype(100)) as writer:
            ...     writer.add([7, 8, 9])
            >>> TokenFile("one").sentences(0).tolist()
            []
        """
        first, last = int(self._documents[document]), int(self._documents[document + 1])
        return self._pointers[first + 1 : last] // self.dtype.itemsize - self._begin(document)

    def _begin(self, document: int) -> int:
        """Return the beginning of a document, in tokens; the end of the file for the number after the last."""
        sequence = int(self._documents[document])
        if sequence == len(self._pointers):
            return self.tokens.size
        return int(self._pointers[sequence]) // self.dtype.itemsize


class TokenFileWriter:
    """Writes documents of tokens, one after the other, into files that appear when complete.

    As a context, it finishes the files at the end of the block, and leaves no file if the block raises.

    Args:
        prefix: the path without ``.bin`` or ``.idx``.
        dtype: of the tokens in the file, as from `token_dtype`.
        overwrite: whether existing files are replaced.

    Raises:
        DataError: files are there already, another process writes them, a document is no list of tokens, a token does
            not fit the dtype, or there was none.

    Example:
        >>> with TokenFileWriter("numbers", token_dtype(50_257)) as writer:
        ...     for document in ([1, 2, 3], [50_256]):
        ...         writer.add(document)
        >>> TokenFile("numbers").tokens.tolist()
        [1, 2, 3, 50256]
    """

    def __init__(self, prefix: str | os.PathLike, dtype: Any, *, overwrite: bool = False) -> None:
        self.prefix, self.dtype, self.overwrite = os.fspath(prefix), np.dtype(dtype), overwrite
        if self.dtype not in map(np.dtype, TOKEN_CODES.values()):
            allowed = ", ".join(str(np.dtype(each)) for each in TOKEN_CODES.values())
            raise self._write_error(f"dtype {self.dtype}", f"tokens are one of {allowed}", "token_dtype(vocabulary)")
        there = [path for path in (f"{self.prefix}.bin", f"{self.prefix}.idx") if os.path.lexists(path)]
        if there and not overwrite:
            raise self._write_error(f"{there[0]} is there", "existing files are not overwritten", "overwrite=True")
        self._bin_path, self._index_path = f"{self.prefix}.bin.part", f"{self.prefix}.idx.part"
        self._digest_path = f"{self.prefix}.idx{DIGEST}.part"
        os.makedirs(os.path.dirname(self.prefix) or ".", exist_ok=True)
        self._file = self._lock_file()
        self._lengths = array.array("i")
        self._waiting: list[np.ndarray] = []  # documents that are not written yet
        self._waiting_tokens = 0

    def _write_error(self, seen: str, rule: str, fix: str) -> DataError:
        return DataError(f"TokenFileWriter({self.prefix!r})", seen, rule, fix)

    def _lock_file(self) -> Any:
        """Return the unfinished file, empty; it is locked for other processes while open."""
        file = os.fdopen(os.open(self._bin_path, os.O_RDWR | os.O_CREAT, 0o666), "wb")  # it is not emptied by that
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the system gives it back when a process is killed
            if os.fstat(file.fileno()).st_ino != os.stat(self._bin_path).st_ino:
                raise BlockingIOError  # finished by another writer between the two lines above
        except (BlockingIOError, FileNotFoundError):
            file.close()
            seen = f"{self._bin_path} is open in another writer"
            raise self._write_error(seen, "one writer at a time", "another path, or wait") from None
        file.truncate(0)
        return file

    def add(self, tokens: Any) -> None:
        """Write one document.

        Args:
            tokens: a list or array of whole numbers, ``(n,)``; none is an empty document.
        """
        document = np.asarray(tokens)
        self._take(document)
        self._lengths.append(document.size)

    def add_many(self, tokens: Any, lengths: Any) -> None:
        """Write several documents.

        Args:
            tokens: of all of them, one after the other, ``(n,)``.
            lengths: the number of tokens of each, of sum n.
        """
        documents, sizes = np.asarray(tokens), np.array(lengths, np.int64)
        if sizes.ndim != 1 or sizes.sum() != documents.size or (sizes < 0).any() or (sizes >= 1 << 31).any():
            seen = f"{documents.size} tokens, {sizes.size} lengths of sum {sizes.sum()}"
            rule = "lengths are not negative, below 2³¹, and their sum is the number of tokens"
            raise self._write_error(seen, rule, "add(tokens) for each document")
        self._take(documents)
        self._lengths.frombytes(sizes.astype(np.int32).tobytes())

    def _take(self, tokens: np.ndarray) -> None:
        if tokens.dtype == self.dtype and tokens.ndim == 1:  # as they are in the file
            if self.dtype.kind == "i" and tokens.size:
                self._check_bounds(tokens)
            if self._waiting:
                self._flush()
            self._file.write(tokens.tobytes())
            return
        if tokens.size == 0:
            return
        if tokens.ndim != 1 or tokens.dtype.kind not in "iu":
            seen = f"an array of {tokens.dtype}, shape {tokens.shape}"
            raise self._write_error(seen, "a document is whole numbers in one dim", "writer.add([1, 2, 3])")
        self._waiting.append(tokens.copy())  # the caller may change it before it is written
        self._waiting_tokens += tokens.size
        if self._waiting_tokens >= _FLUSH_TOKENS:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        tokens = self._waiting[0] if len(self._waiting) == 1 else np.concatenate(self._waiting)
        self._waiting, self._waiting_tokens = [], 0
        self._check_bounds(tokens)
        self._file.write(tokens.astype(self.dtype, copy=False).data)

    def _check_bounds(self, tokens: np.ndarray) -> None:
        most, low, high = np.iinfo(self.dtype).max, int(tokens.min()), int(tokens.max())
        if low < 0 or high > most:
            seen, rule = f"token {low if low < 0 else high}", f"tokens of {self.dtype} are from 0 to {most}"
            raise self._write_error(seen, rule, "dtype=token_dtype(vocabulary)")

    def close(self) -> None:
        """Finish the files and give them their names."""
        self._flush()
        if not self._file.tell():
            self.discard()
            raise self._write_error("no token", "a file has one token at least", "check the documents")
        _to_disk(self._file)
        lengths = np.frombuffer(self._lengths, np.int32)
        with open(self._index_path, "wb") as index:
            code = next(code for code, dtype in TOKEN_CODES.items() if np.dtype(dtype) == self.dtype)
            index.write(HEAD.pack(MAGIC, 1, code, lengths.size, lengths.size + 1))
            ends = np.cumsum(lengths, dtype="<i8") * self.dtype.itemsize
            index.write(lengths.astype("<i4").data)
            index.write((ends - lengths * np.int64(self.dtype.itemsize)).data)
            index.write(np.arange(lengths.size + 1, dtype="<i8").data)
            _to_disk(index)
        with open(self._digest_path, "w", encoding="utf-8") as digest:
            digest.write(digest_line(self._index_path))
            _to_disk(digest)
        with contextlib.suppress(FileNotFoundError):  # an old index must not remain beside new tokens
            os.unlink(f"{self.prefix}.idx")
        for path in (self._bin_path, self._digest_path, self._index_path):
            os.replace(path, path.removesuffix(".part"))
            self._sync_folder()
        self._file.close()

    def _sync_folder(self) -> None:
        folder = os.open(os.path.dirname(self.prefix) or ".", os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def discard(self) -> None:
        """Discard the unfinished files; harmless after `close`."""
        if not self._file.closed:
            for path in (self._digest_path, self._index_path, self._bin_path):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
            self._file.close()

    def __enter__(self) -> TokenFileWriter:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is None:
                self.close()
        finally:
            self.discard()


def _to_disk(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())

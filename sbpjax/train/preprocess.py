"""Tokenize texts into token files: ``python -m sbpjax.train.preprocess INPUT... --output PREFIX``.

    python -m sbpjax.train.preprocess docs/*.txt --tokenizer llama-3-8b/ --append-eod --output data/docs
    python -m sbpjax.train.preprocess crawl.jsonl --train-vocab 32000 --append-eod --output data/crawl

Worker processes encode chunks of the inputs; the chunks are written in their order, so the files do not depend on the
number of workers. They appear when complete: a killed run leaves only ``.part`` files, which the next run overwrites.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from sbpjax.errors import DataError, SbpjaxError
from sbpjax.utils.data import DataLoader
from sbpjax.utils.host import command_parser, cores, show_progress

from .data.documents import Chunk, EncodedDocuments, chunks_of, identity_collate, texts_of
from .data.token_file import TokenFileWriter, token_dtype
from .data.tokenizer import MODELS, end_of_document, read_tokenizer, train_tokenizer, vocabulary_of


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command's options."""
    made = command_parser("sbpjax.train.preprocess")
    made.add_argument("input", nargs="+", help="a text file, or a .jsonl or .json file with one object per line")
    made.add_argument(
        "--output", required=True, metavar="PREFIX", help="path of the token files, without .bin and .idx"
    )
    made.add_argument(
        "--tokenizer", metavar="PATH", help="a tokenizer.json, or a folder with one; otherwise one is trained"
    )
    made.add_argument(
        "--train-vocab", type=int, default=32_000, metavar="N", help="vocabulary size of a trained tokenizer"
    )
    made.add_argument(
        "--model", choices=MODELS, default="bpe", help="tokenizer to train: byte-level BPE, or BERT's WordPiece"
    )
    made.add_argument("--json-key", default="text", metavar="KEY", help="key of the text in an object")
    made.add_argument(
        "--per-line", action="store_true", help="treat each line as a document, instead of the whole file"
    )
    made.add_argument("--append-eod", action="store_true", help="write the end-of-document token after each document")
    made.add_argument(
        "--eod-token", metavar="TOKEN", help="the end-of-document token, if the tokenizer's files name none"
    )
    made.add_argument("--workers", type=int, metavar="N", help="number of encoding processes; by default one per core")
    made.add_argument("--force", action="store_true", help="overwrite existing files")
    return made


def preprocess(options: argparse.Namespace) -> str:
    """Write the files, and return a text with the counts.

    Raises:
        DataError: an input or the tokenizer cannot be used, or files are there already.
    """
    chunks = chunks_of(options.input, options.per_line)
    trained = None if options.tokenizer is not None else f"{options.output}.tokenizer.json"
    if trained is not None and os.path.lexists(trained) and not options.force:
        raise DataError("preprocess", f"{trained} is there", "existing files are not overwritten", "--force")
    _raise_if_exists(options)
    tokenizer = _tokenizer(options, chunks)
    named = options.append_eod or options.eod_token is not None
    end = end_of_document(tokenizer, options.tokenizer, options.eod_token) if named else None
    vocabulary = vocabulary_of(tokenizer)
    dtype = token_dtype(vocabulary)
    documents = EncodedDocuments(chunks, tokenizer.to_str(), dtype, options.json_key, end)
    size, count, total = sum(chunk.end - chunk.begin for chunk in chunks), 0, 0
    with (
        TokenFileWriter(options.output, dtype, overwrite=options.force) as writer,
        show_progress(f"preprocessing to {options.output}", size) as progress,
    ):
        loader = DataLoader(documents, None, collate_fn=identity_collate, num_workers=_workers(options, len(chunks)))
        for chunk, (tokens, lengths) in zip(chunks, loader, strict=True):
            writer.add_many(tokens, lengths)
            count, total = count + len(lengths), total + len(tokens)
            progress.advance(chunk.end - chunk.begin, f"{count:,} documents, {total:,} tokens")
        if trained is not None:
            tokenizer.save(f"{trained}.part")
            os.replace(f"{trained}.part", trained)
    written = f"{options.output}.bin: {count:,} documents, {total:,} tokens of {dtype}"
    return f"{written}, vocabulary {vocabulary:,}" + ("" if trained is None else f" ({trained})")


def _raise_if_exists(options: argparse.Namespace) -> None:
    """Raise for existing files before a tokenizer is trained, not only when the writer opens them."""
    there = [path for path in (f"{options.output}.bin", f"{options.output}.idx") if os.path.lexists(path)]
    if there and not options.force:
        raise DataError("preprocess", f"{there[0]} is there", "existing files are not overwritten", "--force")


def _tokenizer(options: argparse.Namespace, chunks: Sequence[Chunk]) -> Any:
    if options.tokenizer is not None:
        return read_tokenizer(options.tokenizer)
    texts = (text for chunk in chunks for text in texts_of(chunk, options.json_key))
    return train_tokenizer(texts, options.train_vocab, sys.stderr.isatty(), model=options.model)


def _workers(options: argparse.Namespace, chunks: int) -> int:
    """Return the number of encoding processes; 0 where this one does it, with the threads of tokenizers."""
    wanted = cores() if options.workers is None else options.workers
    wanted = min(wanted, chunks)
    return wanted if wanted > 1 else 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = parser().parse_args(arguments)
    try:
        print(preprocess(options))
    except SbpjaxError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()

"""`LabelledTexts`: text classification and regression datasets from tables: TSV, JSON lines, GLUE's files.

    tokenizer = read_tokenizer("bert/")
    mrpc = LabelledTexts("MRPC/train.tsv", tokenizer, GLUE["mrpc"], length=128)
    mrpc[0]                                    # input_ids, token_type_ids, attention_mask (128,); labels: a number

All texts are tokenized when the dataset is made, and are sent to data workers as numbers.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from sbpjax.errors import DataError, nearest

from .numbered import Shuffled
from .tokenizer import SpecialTokens


@dataclass(frozen=True)
class Columns:
    """Columns of texts and labels in a table.

    Attributes:
        text: the column of the text; a name in the first line, or a number in a table without names.
        label: of the label.
        pair: of a second text; None for none.
        classes: the names of the classes, in the order of their numbers. None: those that the file has, sorted.
        number: whether labels are numbers (regression), not classes.
    """

    text: str | int = "sentence"
    label: str | int = "label"
    pair: str | int | None = None
    classes: tuple[str, ...] | None = ("0", "1")
    number: bool = False


_INFERENCE = ("entailment", "not_entailment")
# Of the files that the tasks are published as; classes in the order that GLUE's own programs give them.
GLUE = {
    "cola": Columns(3, 1),
    "sst2": Columns("sentence", "label"),
    "mrpc": Columns("#1 String", "Quality", "#2 String"),
    "qqp": Columns("question1", "is_duplicate", "question2"),
    "stsb": Columns("sentence1", "score", "sentence2", None, number=True),
    "mnli": Columns("sentence1", "gold_label", "sentence2", ("contradiction", "entailment", "neutral")),
    "qnli": Columns("question", "label", "sentence", _INFERENCE),
    "rte": Columns("sentence1", "label", "sentence2", _INFERENCE),
    "wnli": Columns("sentence1", "label", "sentence2"),
}


class LabelledTexts(Shuffled):
    r"""The rows of a table as samples for a model that classifies sequences.

    Args:
        path: a file ``.jsonl`` or ``.json`` with an object per line, or of lines whose cells are parted by tabs.
        tokenizer: of the package `tokenizers`.
        columns: the columns of texts and labels.
        length: the input length, special tokens included: longer texts are cut off, of a pair the longer one.
        special: the special tokens; by default the tokenizer's.
        samples: the number of samples of a run, over as many epochs as needed; one epoch if not given.
        seed: of the order, 0 or more.
        shuffle: False for the order of the file.

    Attributes:
        path: of the table.
        classes: the names of the classes; none where labels are numbers.
        highest: the highest token.
        widths: `(per_epoch,)`: how long each row's input is, without padding.

    Raises:
        DataError: the file is missing, a line lacks cells, or a label is none of the classes.

    Example:
        >>> with open("table.tsv", "w") as file:
        ...     _ = file.write("sentence\tlabel\na good one\t1\nno\t0\n")
        >>> tokenizer = train_tokenizer(["a good one", "no"], 300, model="wordpiece")
        >>> rows = LabelledTexts("table.tsv", tokenizer, GLUE["sst2"], length=8, shuffle=False)
        >>> rows[1]["labels"], rows[1]["attention_mask"].tolist(), rows.classes
        (np.int64(0), [1, 1, 1, 0, 0, 0, 0, 0], ('0', '1'))
    """

    def __init__(
        self,
        path: str | os.PathLike,
        tokenizer: Any,
        columns: Columns,
        length: int,
        *,
        special: SpecialTokens | None = None,
        samples: int | None = None,
        seed: int = 0,
        shuffle: bool = True,
    ) -> None:
        self.path, self.columns, self.length = os.fspath(path), columns, length
        self.special = SpecialTokens.from_tokenizer(tokenizer) if special is None else special
        ends = 2 if columns.pair is None else 3
        if length <= ends:
            rule = f"an input has {ends} special tokens, and one of text at least"
            self._refuse("", f"length={length}", rule, "length=128")
        rows = self._rows()
        if not rows:
            self._refuse("", "no rows", "a table has one row at least", "another file")
        first = self._cut_into_tokens(tokenizer, [row[0] for row in rows])
        second = None if columns.pair is None else self._cut_into_tokens(tokenizer, [row[2] for row in rows])
        self._texts = [
            _fit_texts(a, b, length - ends) for a, b in zip(first, second or [None] * len(rows), strict=True)
        ]
        self.widths = np.array([len(a) + (0 if b is None else len(b)) + ends for a, b in self._texts])
        self.highest = max(*self.special, *(int(each.max()) for each in [*first, *(second or [])] if len(each)))
        self.classes, self.labels = self._number_labels([row[1] for row in rows])
        super().__init__(len(rows), samples, seed, shuffle)

    def _refuse(self, place: str, seen: str, rule: str, fix: str) -> None:
        raise DataError(f"LabelledTexts({self.path!r}){place}", seen, rule, fix)

    def _cut_into_tokens(self, tokenizer: Any, texts: list[str]) -> list[np.ndarray]:
        encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [np.array(each.ids, np.int32) for each in encoded]

    def _rows(self) -> list[tuple]:
        """Return text, label and second text of each line."""
        if not os.path.isfile(self.path):
            self._refuse("", "there is no such file", "a table is a file .tsv or .jsonl", "another path")
        try:
            with open(self.path, encoding="utf-8-sig", newline="\n") as file:
                lines = [(number, line.rstrip("\r\n")) for number, line in enumerate(file, 1)]
        except UnicodeDecodeError as error:
            self._refuse("", f"{error}", "a table is text in UTF-8", f"iconv -f latin1 -t utf-8 {self.path}, say")
        lines = [(number, line) for number, line in lines if line.strip()]
        if self.path.endswith((".jsonl", ".json")):
            return [self._parse_json(number, line) for number, line in lines]
        wanted = [self.columns.text, self.columns.label, self.columns.pair]
        places: list[Any] = wanted
        if any(isinstance(each, str) for each in wanted):
            names = lines[0][1].split("\t") if lines else []
            places = [each if isinstance(each, int) else self._place(names, each) for each in wanted]
            lines = lines[1:]
        return [self._parse_cells(number, line.split("\t"), places) for number, line in lines]

    def _place(self, names: list[str], wanted: str | None) -> int | None:
        if wanted is None:
            return None
        if wanted not in names:
            fix = f"Columns(...) with {nearest(wanted, names) or (names or [''])[0]!r}"
            self._refuse(", line 1", f"columns {', '.join(names)}", f"a column is called {wanted!r}", fix)
        return names.index(wanted)

    def _parse_cells(self, number: int, cells: list[str], places: list[Any]) -> tuple:
        most = max(each for each in places if each is not None)
        if len(cells) <= most:
            rule = f"columns {[each for each in places if each is not None]} are read"
            self._refuse(f", line {number}", f"{len(cells)} cells", rule, "parted by tabs, without quotes around them")
        return tuple(None if each is None else cells[each] for each in places)

    def _parse_json(self, number: int, line: str) -> tuple:
        wanted = [self.columns.text, self.columns.label, self.columns.pair]
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            self._refuse(f", line {number}", f"{error}", "one object per line", "one object per line")
        missing = [each for each in wanted if each is not None and (not isinstance(found, dict) or each not in found)]
        if missing:
            keys = ", ".join(found) if isinstance(found, dict) else line[:60]
            self._refuse(f", line {number}", keys, f"an object has {missing}", "Columns(...) with other names")
        text, label, pair = (None if each is None else found[each] for each in wanted)
        if not isinstance(text, str) or not isinstance(pair, (str, type(None))) or isinstance(label, (list, dict)):
            seen = f"{str({k: found[k] for k in wanted if k is not None})[:100]}"
            self._refuse(f", line {number}", seen, "texts are texts, and a label is a text or a number", "look there")
        return text, label, pair

    def _number_labels(self, labels: list[Any]) -> tuple[tuple[str, ...], np.ndarray]:
        if self.columns.number:
            try:
                return (), np.array([float(label) for label in labels], np.float32)
            except (TypeError, ValueError) as error:
                self._refuse("", f"{error}", "labels are numbers", "Columns(..., number=False)")
        names = [str(label) for label in labels]
        classes = tuple(sorted(set(names))) if self.columns.classes is None else self.columns.classes
        numbers = {name: i for i, name in enumerate(classes)}
        other = next((i for i, name in enumerate(names) if name not in numbers), None)
        if other is not None:
            fix = "Columns(..., classes=None) takes those of the file"
            self._refuse(f", row {other + 1}", f"label {names[other]!r}", f"classes are {', '.join(classes)}", fix)
        return classes, np.array([numbers[name] for name in names], np.int64)

    def __getitem__(self, index: int | tuple[int, int]) -> dict[str, Any]:
        if isinstance(index, tuple):  # of a `Buckets`: which row, and how long
            return self._pad_text(*index)
        return super().__getitem__(index)

    def sample(self, number: int) -> dict[str, Any]:
        """Return ``input_ids``, ``token_type_ids``, ``attention_mask``, `(length,)` each, and ``labels``, a number."""
        return self._pad_text(self.index(number), self.length)

    def _pad_text(self, row: int, width: int) -> dict[str, Any]:
        return self.special.join_sentences(*self._texts[row], width) | {"labels": self.labels[row]}


def _fit_texts(first: np.ndarray, second: np.ndarray | None, room: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return one text or two, cut off to so many tokens: token by token the longer one, of equal ones the second."""
    if second is None:
        return first[:room], None
    kept = min(len(first), max(room - len(second), room - room // 2))
    return first[:kept], second[: room - kept]

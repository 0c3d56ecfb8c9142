"""Variable-length sequences: padding them to one tensor, or packing them without padding.

A `PackedSequence` holds all first steps, then all second steps, and so on, of sequences sorted by length. Worked case:
`abc`, `d`, `ef` sorted are `abc`, `ef`, `d`; packed they are `a e d b f c` with batch sizes 3, 2, 1.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sbpjax._core import functions
from sbpjax._core.functions.nn import pad
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import from_data
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax.sbp.algebra import broadcast

_Fields = namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the permutation that undoes another; None stays None."""
    return None if permutation is None else permutation.argsort()


class PackedSequence(_Fields):
    """Sequences of different lengths without padding, step by step; made by `pack_padded_sequence`.

    Attributes:
        data: `(sum of lengths, ...)`, all first steps, then all second steps, and so on.
        batch_sizes: the number of sequences that have each step, int64 on the CPU.
        sorted_indices: the sequence at each position of the sorted batch, or None.
        unsorted_indices: the position of each sequence in the sorted batch, or None.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ):
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            data, batch_sizes = data
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return the sequences with their data moved or cast."""
        return self._replace(data=self.data.to(*args, **kwargs))

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return the sequences on a GPU."""
        return self._replace(data=self.data.cuda(*args, **kwargs))

    def cpu(self) -> PackedSequence:
        """Return the sequences on the CPU."""
        return self._replace(data=self.data.cpu())

    def double(self) -> PackedSequence:
        """Return the sequences in float64."""
        return self.to(dtypes.float64)

    def float(self) -> PackedSequence:
        """Return the sequences in float32."""
        return self.to(dtypes.float32)

    def half(self) -> PackedSequence:
        """Return the sequences in float16."""
        return self.to(dtypes.float16)

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a GPU."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Return whether the data is in pinned memory, which JAX has no notion of."""
        return False

    def pin_memory(self) -> PackedSequence:
        """Return the sequences; memory is not pinned here."""
        return self


def _numbers(lengths: Any) -> np.ndarray:
    values = lengths.detach().numpy() if isinstance(lengths, Tensor) else lengths
    return np.asarray(values, np.int64).reshape(-1)


def _index_tensor_like(indices: np.ndarray, like: Tensor) -> Tensor:
    """Return host numbers as an index tensor on the device or placement of `like`."""
    made = from_data.tensor(np.asarray(indices, np.int64))
    return made.to_global(like.placement, [broadcast] * len(like.sbp)) if like.is_global else made


def _places(lengths: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, for sorted lengths, the flat places `(step, row)` of the packed elements, and the batch sizes."""
    runs = np.arange(steps)[:, None] < lengths[None]  # (steps, rows)
    return np.flatnonzero(runs), runs.sum(1)


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Return padded sequences without their padding.

    Args:
        input: `(T, N, ...)`, or `(N, T, ...)` with `batch_first`.
        lengths: `(N,)` numbers, on the CPU; each at least 1.
        batch_first: the batch is dim 0.
        enforce_sorted: raise if the lengths do not descend, rather than sort.

    Raises:
        OpError: a length is 0, or they do not descend though they should.
    """
    counts = _numbers(lengths)
    operation = "pack_padded_sequence(input, lengths)"
    order = None
    if not enforce_sorted:
        order = np.argsort(-counts, kind="stable")
        counts = counts[order]
    if (np.diff(counts) > 0).any():
        rule = "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True"
        fail("shape", operation, f"lengths {counts.tolist()}", rule, "enforce_sorted=False")
    rows, steps = (input.shape[0], input.shape[1]) if batch_first else (input.shape[1], input.shape[0])
    if len(counts) != rows or counts.min(initial=1) < 1 or counts.max(initial=0) > steps:
        seen = f"lengths {counts.tolist()}, input {tuple(input.shape)}"
        rule = f"Length of all samples has to be greater than 0, at most {steps}, and one per row ({rows})"
        fail("shape", operation, seen, rule, "take empty sequences out first")
    places, sizes = _places(counts, int(counts[0]))
    step, row = np.divmod(places, rows)
    row = row if order is None else order[row]
    flat = row * steps + step if batch_first else step * rows + row
    data = input.reshape(rows * steps, *input.shape[2:]).index_select(0, _index_tensor_like(flat, input))
    sorted_indices = None if order is None else _index_tensor_like(order, input)
    return PackedSequence(data, from_data.tensor(sizes), sorted_indices)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return sequences padded to one tensor, in their first order, and their lengths.

    Args:
        sequence: packed sequences.
        batch_first: return `(N, T, ...)` rather than `(T, N, ...)`.
        padding_value: the value after the end of a sequence.
        total_length: T; at least the longest length.
    """
    sizes = _numbers(sequence.batch_sizes)
    steps, rows = len(sizes), int(sizes[0])
    if total_length is not None:
        if total_length < steps:
            seen = f"total_length={total_length}, longest sequence {steps}"
            rule = "Expected total_length to be at least the length of the longest sequence in input"
            fail("value", "pad_packed_sequence(...)", seen, rule, f"total_length={steps}")
        steps = total_length
    lengths = (np.arange(rows)[None] < sizes[:, None]).sum(0)
    order = None if sequence.unsorted_indices is None else _numbers(sequence.unsorted_indices)
    start = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    index = np.zeros((steps, rows), np.int64)
    inside = np.arange(steps)[:, None] < lengths[None]
    index[: len(sizes)] = np.where(inside[: len(sizes)], start[:, None] + np.arange(rows)[None], 0)
    if order is not None:
        index, inside, lengths = index[:, order], inside[:, order], lengths[order]
    if batch_first:
        index, inside = index.T, inside.T
    data = sequence.data
    out = data.index_select(0, _index_tensor_like(index.reshape(-1), data)).reshape(*index.shape, *data.shape[1:])
    if not inside.all():
        mask = from_data.tensor(~inside.reshape(*inside.shape, *[1] * (data.ndim - 1)))
        if data.is_global:
            mask = mask.to_global(data.placement, [broadcast] * len(data.sbp))
        out = out.masked_fill(mask, padding_value)
    return out, from_data.tensor(lengths)


def pad_sequence(
    sequences: Tensor | Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Return sequences `(L, ...)` of different lengths as one tensor, `(T, N, ...)`.

    Args:
        sequences: the tensors; equal but for dim 0.
        batch_first: return `(N, T, ...)`.
        padding_value: the value of the padding.
        padding_side: ``"right"`` or ``"left"``: the side of the padding.
    """
    if padding_side not in ("left", "right"):
        rule = "padding_side must be 'left' or 'right'"
        fail("shape", "pad_sequence(...)", f"padding_side={padding_side!r}", rule, "padding_side='right'")
    if not isinstance(sequences, Iterable):
        kind, rule = type(sequences).__name__, "pad_sequence: Expected iterable for input sequences"
        fail("shape", "pad_sequence(sequences)", f"a {kind}", rule, "pad_sequence([a, b])")
    rows = list(sequences)
    if not rows:
        fail("shape", "pad_sequence([])", "no tensors", "received an empty list of sequences", "pad_sequence([a, b])")
    longest = max(row.shape[0] for row in rows)
    padded = []
    for row in rows:
        rest = longest - row.shape[0]
        ends = (rest, 0) if padding_side == "left" else (0, rest)
        padded.append(pad(row, (*[0, 0] * (row.ndim - 1), *ends), value=padding_value))
    return functions.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Return the sequences of a padded tensor, each with its own length.

    Args:
        padded_sequences: `(T, N, ...)`, or `(N, T, ...)` with `batch_first`.
        lengths: `(N,)`.
        batch_first: the batch is dim 0.
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(n)] for row, n in zip(rows, _numbers(lengths))]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Return sequences `(L, ...)` of different lengths packed; arguments as in `pack_padded_sequence`."""
    lengths = [v.shape[0] for v in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return packed sequences as a list, in their first order."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def lengths_of(batch_sizes: Tensor) -> np.ndarray:
    """Return the lengths of the sorted sequences from the batch sizes of the steps."""
    sizes = _numbers(batch_sizes)
    return (np.arange(sizes[0])[None] < sizes[:, None]).sum(0)


def pad_sorted(sequence: PackedSequence) -> Tensor:
    """Return sorted sequences as `(T, N, ...)`, in their sorted order."""
    return pad_packed_sequence(PackedSequence(sequence.data, sequence.batch_sizes))[0]


def packed_like(padded: Tensor, sequence: PackedSequence) -> PackedSequence:
    """Return `(T, N, ...)` outputs packed like another batch."""
    made = pack_padded_sequence(padded, lengths_of(sequence.batch_sizes))
    return PackedSequence(made.data, sequence.batch_sizes, sequence.sorted_indices, sequence.unsorted_indices)

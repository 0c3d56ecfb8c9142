"""OneFlow's data layers that need no file format of their own: on the host, in NumPy, between steps.

    reader = nn.GPTIndexedBinDataReader("corpus_text_document", seq_length=1024, num_samples=10_000, batch_size=8)
    tokens = reader()                        # (8, 1025) int64: 1024 tokens and the one behind them

Each call gives the next batch; under a placement the batch is one logical tensor, the same whatever the sbp.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from sbpjax import functions
from sbpjax.nn.module import Module
from sbpjax.ops.dims import fail
from sbpjax.tensor import Tensor, from_data
from sbpjax.tensor import dtype as dtypes


def _placed(array: np.ndarray, device: Any, placement: Any, sbp: Any) -> Tensor:
    made = from_data.tensor(array, device=device)
    return made if placement is None else made.to_global(placement=placement, sbp=sbp)


def _seeded(random_seed: int | None) -> np.random.Generator:
    return np.random.default_rng(None if random_seed is None or random_seed < 0 else random_seed)


class CoinFlip(Module):
    """Random zeros and ones, int8, a new batch per call.

    Args:
        batch_size: how many.
        random_seed: the seed; None or a negative number is a random one.
        probability: of a one.
        device: where they go.
        placement: the devices of a global result.
        sbp: its layout.
    """

    def __init__(
        self,
        batch_size: int = 1,
        random_seed: int | None = None,
        probability: float = 0.5,
        device: Any = None,
        placement: Any = None,
        sbp: Any = None,
    ):
        super().__init__()
        self.batch_size, self.probability = batch_size, probability
        self.device, self.placement, self.sbp = device, placement, sbp
        self.generator = _seeded(random_seed)

    def forward(self) -> Tensor:
        """Return `(batch_size,)` zeros and ones."""
        drawn = (self.generator.random(self.batch_size) < self.probability).astype(np.int8)
        return _placed(drawn, self.device, self.placement, self.sbp)


class CropMirrorNormalize(Module):
    """Images cut, mirrored where a coin says so, brought to mean 0 and deviation 1, and laid out anew.

    Args:
        color_space: ``"BGR"``, ``"RGB"`` or ``"GRAY"``; says how many channels there are.
        output_layout: ``"NCHW"`` or ``"NHWC"``.
        crop_h: height of the cut; 0 keeps all.
        crop_w: width of the cut; 0 keeps all.
        crop_pos_y: where it lies, from 0 (top) to 1.
        crop_pos_x: where it lies, from 0 (left) to 1.
        mean: taken from each channel.
        std: what each channel is divided by.
        output_dtype: of the result.
    """

    def __init__(
        self,
        color_space: str = "BGR",
        output_layout: str = "NCHW",
        crop_h: int = 0,
        crop_w: int = 0,
        crop_pos_y: float = 0.5,
        crop_pos_x: float = 0.5,
        mean: Sequence[float] = (0.0,),
        std: Sequence[float] = (1.0,),
        output_dtype: Any = None,
    ):
        super().__init__()
        if output_layout not in ("NCHW", "NHWC"):
            rule = "output_layout is 'NCHW' or 'NHWC'"
            fail("value", "CropMirrorNormalize(...)", f"output_layout={output_layout!r}", rule, "'NCHW'")
        self.color_space, self.output_layout = color_space, output_layout
        self.crop, self.position = (crop_h, crop_w), (crop_pos_y, crop_pos_x)
        self.mean, self.std = tuple(mean), tuple(std)
        self.output_dtype = output_dtype or dtypes.float32

    def forward(self, input: Tensor, mirror: Tensor | None = None) -> Tensor:
        """Return the images.

        Args:
            input: `(N, H, W, C)`, any dtype.
            mirror: `(N,)`, not 0 where an image is mirrored left to right.
        """
        for dim, (size, place) in enumerate(zip(self.crop, self.position), 1):
            if size:
                if size > input.shape[dim]:
                    rule = f"the cut is not larger than the image, {input.shape[dim]}"
                    fail("shape", "CropMirrorNormalize(...)", f"crop {self.crop}", rule, "a smaller crop")
                input = input.narrow(dim, int((input.shape[dim] - size) * place), size)
        if mirror is not None:
            input = functions.where((mirror != 0).reshape(-1, 1, 1, 1), input.flip(2), input)
        out = input.to(dtypes.float32)
        channels = input.shape[-1]
        mean, std = (v * channels if len(v) == 1 else v for v in (self.mean, self.std))
        parts = [(out.narrow(3, i, 1) - m) / s for i, (m, s) in enumerate(zip(mean, std, strict=True))]
        out = functions.cat(parts, dim=3)
        out = out.permute(0, 3, 1, 2) if self.output_layout == "NCHW" else out
        return out.to(self.output_dtype)


_DTYPES = {1: np.uint8, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64, 6: np.float32, 7: np.float64, 8: np.uint16}
_MAGIC = b"MMIDIDX\x00\x00"


class GPTIndexedBinDataReader(Module):
    """Batches of token sequences from Megatron's indexed files, `<prefix>.bin` and `<prefix>.idx`.

    The documents of the chosen share stand one behind the other in random order, epoch after epoch; sample i is the
    tokens ``[i * seq_length, (i + 1) * seq_length]``, so neighbouring samples share one token. Samples come shuffled.

    Args:
        data_file_prefix: path of the files without their endings.
        seq_length: tokens of a sample, to which the next one is added.
        num_samples: samples of an epoch of this reader.
        batch_size: samples of a batch.
        dtype: of the result.
        shuffle: shuffle documents and samples.
        random_seed: the seed of it; None or a negative number is a random one.
        split_sizes: shares of the documents, e.g. ``["949", "50", "1"]``; None is all.
        split_index: which share is read.
        device: where batches go.
        placement: the devices of global batches.
        sbp: their layout.
    """

    def __init__(
        self,
        data_file_prefix: str,
        seq_length: int,
        num_samples: int,
        batch_size: int,
        dtype: Any = None,
        shuffle: bool = True,
        random_seed: int | None = None,
        split_sizes: Sequence[str] | None = None,
        split_index: int | None = None,
        device: Any = None,
        placement: Any = None,
        sbp: Any = None,
    ):
        super().__init__()
        self.seq_length, self.num_samples, self.batch_size = seq_length, num_samples, batch_size
        self.dtype = dtype or dtypes.int64
        self.device, self.placement, self.sbp = device, placement, sbp
        kind, self._sizes, self._starts, documents = _read_index(f"{data_file_prefix}.idx")
        self._tokens = np.memmap(f"{data_file_prefix}.bin", dtype=kind, mode="r")
        low, high = _share(len(documents) - 1, split_sizes, split_index)
        rng = _seeded(random_seed)
        self._order, self._ends = self._laid_out(documents, low, high, shuffle, rng)
        self._samples = rng.permutation(num_samples) if shuffle else np.arange(num_samples)
        self._next = 0

    def _laid_out(self, documents, low: int, high: int, shuffle: bool, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return the sequences in the order of reading, and where each ends in the joined stream."""
        wanted, total, orders = self.num_samples * self.seq_length + 1, 0, []
        while total < wanted:
            chosen = rng.permutation(np.arange(low, high)) if shuffle else np.arange(low, high)
            order = np.concatenate([np.arange(documents[d], documents[d + 1]) for d in chosen])
            length = int(self._sizes[order].sum())
            if length == 0:
                rule = "the chosen share of the documents has tokens"
                fail("value", "GPTIndexedBinDataReader(...)", f"documents {low} to {high}", rule, "other split_sizes")
            orders.append(order)
            total += length
        order = np.concatenate(orders)
        return order, np.cumsum(self._sizes[order])

    def __len__(self) -> int:
        return self.num_samples // self.batch_size

    def _sample(self, number: int) -> np.ndarray:
        start, left = number * self.seq_length, self.seq_length + 1
        place = int(np.searchsorted(self._ends, start, side="right"))
        parts = []
        while left:
            sequence = self._order[place]
            inside = start - (int(self._ends[place]) - int(self._sizes[sequence]))
            count = min(left, int(self._sizes[sequence]) - inside)
            first = int(self._starts[sequence]) + inside
            parts.append(self._tokens[first : first + count])
            start, left, place = start + count, left - count, place + 1
        return np.concatenate(parts)

    def forward(self) -> Tensor:
        """Return the next `(batch_size, seq_length + 1)` tokens; behind the last sample the first comes again."""
        numbers = [self._samples[(self._next + i) % self.num_samples] for i in range(self.batch_size)]
        self._next = (self._next + self.batch_size) % self.num_samples
        batch = np.stack([self._sample(int(n)) for n in numbers]).astype(self.dtype.np)
        return _placed(batch, self.device, self.placement, self.sbp)


def _read_index(path: str) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Return the dtype, lengths of sequences, their first places (in tokens), and the first sequence per document."""
    with open(path, "rb") as file:
        head = file.read(34)
        if head[:9] != _MAGIC or os.path.getsize(path) < 34:
            fail(
                "value", f"reading {path}", repr(head[:9]), f"an index begins with {_MAGIC!r}", "Megatron's preprocess"
            )
        _, code, sequences, documents = struct.unpack("<QBQQ", head[9:34])
        view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    kind = _DTYPES[code]
    sizes = np.frombuffer(view, np.int32, sequences, 34)
    pointers = np.frombuffer(view, np.int64, sequences, 34 + sizes.nbytes)
    places = np.frombuffer(view, np.int64, documents, 34 + sizes.nbytes + pointers.nbytes)
    return kind, sizes, pointers // np.dtype(kind).itemsize, places


def _share(documents: int, sizes: Sequence[str] | None, index: int | None) -> tuple[int, int]:
    """Return the first document of a share, and the one behind its last."""
    if sizes is None:
        return 0, documents
    shares = np.array([float(s) for s in sizes])
    ends = np.round(np.concatenate([[0.0], np.cumsum(shares / shares.sum())]) * documents).astype(int)
    chosen = 0 if index is None else index
    return int(ends[chosen]), int(ends[chosen + 1])

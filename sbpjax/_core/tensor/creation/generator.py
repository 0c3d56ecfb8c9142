"""Random number generators: a seed and a counter; the numbers do not depend on the tensors' layouts.

Each random op takes one key, ``fold_in(key(seed), counter)``, and counts on. The op then draws by the global element
index, so ``rand(8, 4)`` gives the same numbers on one device, split over four, or broadcast.

Inside a traced program the numbers must differ from call to call: `under_trace` puts a traced key in the seed's place,
for the thread that traces. Other threads draw on from the seed meanwhile.
"""

from __future__ import annotations

import functools
import os
import threading
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from sbpjax._core.jax_private import trace_state_clean
from sbpjax._core.runtime.ambient_mesh import hide_mesh, jit_without_mesh
from sbpjax.errors import OpTypeError, OpValueError

from ..handle import dtype as dtypes
from ..handle.device import device as Device
from .from_data import tensor

_DEFAULT_SEED = 67280421310721


# How many keys are folded on the host before a program does it: making that program takes 150 ms, and many scripts
# initialise a model and draw no more; a key by hand takes 0.1 ms, three times the program's.
_by_hand = 1024
_WORD = 0xFFFF_FFFF
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def _fold_counter(seed: int, counter: int) -> np.ndarray:
    """Return the data of ``fold_in(key(seed), counter)``: Threefry-2x32 of (0, counter) under the seed's two words.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
    """
    first, second = seed >> 32 & _WORD, seed & _WORD
    words = (first, second, first ^ second ^ 0x1BD1_1BDA)
    a, b = first, (counter + second) & _WORD
    for i in range(5):
        for bits in _ROTATIONS[i % 2]:
            a = (a + b) & _WORD
            b = (b << bits | b >> 32 - bits) & _WORD ^ a
        a = (a + words[(i + 1) % 3]) & _WORD
        b = (b + words[(i + 2) % 3] + i + 1) & _WORD
    return np.array((a, b), np.uint32)


@functools.cache
def _folder():
    return jit_without_mesh(lambda seed, counter: jax.random.fold_in(jax.random.key(seed), counter))


class _Tracing(threading.local):
    """The traced keys that this thread draws from, by generator."""

    def __init__(self) -> None:
        self.streams: dict[Generator, TracedStream] = {}


class TracedStream:
    """The keys of one trace: ``fold_in(key, base + drawn)``."""

    __slots__ = ("base", "drawn", "key")

    def __init__(self, key, base) -> None:
        self.key = key
        self.base = base
        self.drawn = 0


_tracing = _Tracing()
_drawing = threading.Lock()  # two threads never draw the same key


class Generator:
    """A stream of random keys.

    Args:
        device: kept for its spelling; a stream is the same on every device.
    """

    def __init__(self, device="cpu") -> None:
        self.device = Device("cpu" if device == "auto" else device)
        self._seed = _DEFAULT_SEED
        self._drawn = 0

    @property
    def trace(self) -> TracedStream | None:
        """The traced keys that this thread draws from, None outside `under_trace`."""
        return _tracing.streams.get(self)

    @property
    def _counter(self) -> int:
        """How many keys were drawn: from this thread's trace, else from the seed."""
        stream = _tracing.streams.get(self)
        return self._drawn if stream is None else stream.drawn

    @_counter.setter
    def _counter(self, value: int) -> None:
        stream = _tracing.streams.get(self)
        if stream is None:
            self._drawn = value
        else:
            stream.drawn = value

    def _next(self) -> int:
        with _drawing:
            counter = self._drawn
            self._drawn = counter + 1
        return counter

    def manual_seed(self, seed: int) -> Generator:
        """Set the seed, start the stream anew, and return the generator.

        Raises:
            OpTypeError: the seed is no number.
            OpValueError: it does not fit in 64 bits.
        """
        try:
            number = int(seed)
        except (TypeError, ValueError):
            rule = "a seed is an integer"
            raise OpTypeError("manual_seed(seed)", repr(seed)[:60], rule, "manual_seed(0)") from None
        if not -(1 << 63) <= number < 1 << 64:
            rule = "a seed is in [-2**63, 2**64)"
            raise OpValueError("manual_seed(seed)", repr(seed)[:60], rule, "manual_seed(seed % 2**63)")
        # 63 bits: the seed travels in an int64 tensor (`get_state`), and JAX's keys take it as such.
        self._seed = number & 0x7FFF_FFFF_FFFF_FFFF
        self._counter = 0
        return self

    def seed(self) -> int:
        """Choose a random seed and return it."""
        self.manual_seed(int.from_bytes(os.urandom(7), "little"))
        return self._seed

    def initial_seed(self) -> int:
        """Return the seed of this stream."""
        return self._seed

    def get_state(self):
        """Return the state as an int64 tensor ``[seed, counter]``."""
        return tensor([self._seed, self._counter], dtype=dtypes.int64)

    def set_state(self, state) -> None:
        """Set the state that `get_state` returned.

        Raises:
            OpTypeError: this is no such state.
        """
        values = state.tolist() if hasattr(state, "tolist") else list(state)
        if len(values) != 2 or not all(isinstance(v, int) for v in values):
            raise OpTypeError(
                "set_state(state)", repr(values)[:60], "a state is the two integers [seed, counter]", "get_state()"
            )
        self._seed, self._counter = values

    @hide_mesh
    def draw(self) -> int:
        """Return the next 63 bits of the stream as an integer, on the host."""
        first, second = _fold_counter(self._seed, self._next()).tolist()
        return (first << 32 | second) & 0x7FFF_FFFF_FFFF_FFFF

    @hide_mesh
    def key(self):
        """Return the next key of the stream, a 0-d `jax.random.key` array."""
        stream = _tracing.streams.get(self)
        if stream is not None:
            # In a trace the count is part of the program and the key its input: each call of the program draws anew.
            stream.drawn += 1
            return jax.random.fold_in(stream.key, stream.base + stream.drawn - 1)
        counter = self._next()
        # One count for all generators: they share one program, whose lowering is saved.
        global _by_hand
        config: Any = jax.config  # its flags are made at run time
        if _by_hand and trace_state_clean() and config.jax_default_prng_impl == "threefry2x32":
            _by_hand -= 1
            folded: Any = _fold_counter(self._seed, counter)  # NumPy will do
            return jax.random.wrap_key_data(folded)
        return _folder()(self._seed, counter)

    @contextmanager
    def under_trace(self, key, base=0):
        """Draw in this thread from a traced key within the block, counted from 0 after ``base``; yields the stream."""
        streams = _tracing.streams
        before = streams.get(self)
        streams[self] = stream = TracedStream(key, base)
        try:
            yield stream
        finally:
            if before is None:
                del streams[self]
            else:
                streams[self] = before


default_generator = Generator()


def generator_or_default(generator: Generator | None) -> Generator:
    """Return the generator to draw from."""
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        raise OpTypeError(
            "generator=...",
            f"a {type(generator).__name__}",
            "a generator is an sbpjax.Generator",
            "sbpjax.Generator().manual_seed(0)",
        )
    return generator


def manual_seed(seed: int) -> Generator:
    """Seed the default generator and return it."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed the default generator with a random number and return that."""
    return default_generator.seed()


def initial_seed() -> int:
    """Return the default generator's seed."""
    return default_generator.initial_seed()


def get_rng_state():
    """Return the default generator's state."""
    return default_generator.get_state()


def set_rng_state(state) -> None:
    """Set the default generator's state."""
    default_generator.set_state(state)


@contextmanager
def fork_rng(devices=None, enabled: bool = True, **_):
    """Restore the default generator's state after the block.

    Args:
        devices: accepted; there is one stream for all devices.
        enabled: whether to do so.
    """
    if not enabled:
        yield
        return
    state = default_generator._seed, default_generator._counter
    try:
        yield
    finally:
        default_generator._seed, default_generator._counter = state

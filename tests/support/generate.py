"""`Gen`: random inputs of ops, drawn from a recorded, replayable sequence of choices.

A function draws everything that varies in a call from a `Gen`: shapes, dtypes, values, dims, flags::

    def make(g):
        x = g.tensor(kinds="fi", min_dim=1)
        return call(x, dim=g.dim(x), keepdim=g.flag())

A `Gen` draws: ``g.tensor(shape, kinds="fic", low=, high=, special=True, grad=False, min_dim=, max_dim=, empty=False)``,
``g.like(x)`` (broadcasts with x), ``g.index(shape, size)``, ``g.dim(x)``, ``g.dims(x)``, ``g.flag()``,
``g.pick(a, b, …)``, ``g.maybe(beta=0.5)`` (keywords that may be absent), ``g.dtype("fi")``. An `Input` holds its value
as a NumPy array, ``x.value``.

Every draw is a choice among options, the simplest first, and the sequence of chosen indices defines a case: the same
sequence gives the same case again, and a smaller index at any position gives a simpler one. So a failing case can be
shrunk without help from `make`.

Wrong input comes the same way. With ``fault="dim"``, the first `Gen.dim` gives a dim that the tensor does not have;
with ``fault="shape"``, the first `Gen.like` a shape that does not broadcast; ``hit`` is whether there was such a draw.
"""

from __future__ import annotations

import dataclasses
import zlib
from typing import Any

import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16)
KINDS = {
    "f": ("float32", "float64"),
    "h": ("bfloat16", "float16"),
    "i": ("int64", "int32", "uint8", "int16", "int8"),
    "b": ("bool",),
    "c": ("complex64", "complex128"),
}
ANY_DTYPE = "float32 float64 bfloat16 float16 int64 int32 int16 int8 uint8 bool complex64 complex128".split()
SHAPES = ((3,), (2, 3), (), (0,), (1,), (2, 1, 3), (4, 3), (3, 0, 2), (2, 3, 1, 2), (1, 2, 1, 3, 2))
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, 2.5, -2.5, 1.0, -1.0, 1e-3, 3.0, -7.0, 30.0)
CORNERS = (*SPECIAL, 0.0, -0.0, np.inf, -np.inf, np.nan)  # no denormal numbers: XLA counts them as zeros on CPUs


def numpy_dtype(name: str) -> np.dtype:
    """Return the NumPy dtype of a dtype's name."""
    return BF16 if name == "bfloat16" else np.dtype(name)


@dataclasses.dataclass(frozen=True)
class Dtype:
    """A dtype as an argument; each library gets its own."""

    name: str


@dataclasses.dataclass(frozen=True, eq=False)
class Input:
    """A tensor argument: ``base`` with ``suffix`` applied, for instance ``.transpose(-1, -2)``."""

    base: np.ndarray
    suffix: str = ""
    grad: bool = True

    @property
    def value(self) -> np.ndarray:
        """Logical value, as NumPy sees it."""
        x: Any = self.base
        if self.suffix.startswith(".expand"):
            return np.broadcast_to(x, eval(self.suffix[len(".expand") :]))
        if self.suffix.startswith(".transpose"):
            return np.swapaxes(x, -1, -2)
        return eval("x" + self.suffix, {"x": x})

    @property
    def shape(self) -> tuple[int, ...]:
        """Logical shape."""
        return self.value.shape

    @property
    def ndim(self) -> int:
        """Number of dims."""
        return len(self.shape)

    @property
    def dtype(self) -> str:
        """Name of the dtype."""
        return self.base.dtype.name

    @property
    def differentiable(self) -> bool:
        """Whether it may require grad."""
        return self.grad and (self.base.dtype == BF16 or self.base.dtype.kind in "fc")


@dataclasses.dataclass(frozen=True)
class Call:
    """Arguments of one call; `Input` and `Dtype` represent tensors and dtypes, also inside lists and tuples."""

    args: tuple
    kwargs: dict

    def inputs(self) -> list[Input]:
        """Return the tensors, in order."""
        found: list[Input] = []
        walk((self.args, self.kwargs), lambda x: found.append(x) if isinstance(x, Input) else None)
        return found


def call(*args, **kwargs) -> Call:
    """Return the arguments of one call."""
    return Call(args, kwargs)


def walk(tree, visit):
    """Return nested lists, tuples and dicts with ``visit`` applied to their leaves."""
    if isinstance(tree, (list, tuple)) and not hasattr(tree, "_fields"):
        return type(tree)([walk(x, visit) for x in tree])
    if isinstance(tree, dict):
        return {k: walk(v, visit) for k, v in tree.items()}
    return visit(tree)


class Gen:
    """Draws the inputs of one case.

    Args:
        seed: of the choices that ``replay`` does not give, and of the values.
        replay: the first choices; beyond them the simplest option is taken.
        floats: the only float dtypes to draw, where a test needs one.
        fault: the argument to make invalid: "dim" or "shape".
        wild: draw any dtype whatever, for the promotion of dtypes.
        views: draw strided and expanded inputs.
        ties: draw small whole numbers too, of which many are equal.
        corners: draw NaN, infinities, zeros and ties into every float tensor, bounded ones too (as far as the bounds
            allow); they still require grad. With ``"finite"``, only zeros and ties.
    """

    def __init__(
        self, seed, *, replay=None, floats=None, fault=None, wild=False, views=True, ties=True, corners=""
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._seed = seed
        self._replay = None if replay is None else list(replay)
        self.floats, self.fault, self.wild, self.views, self.ties = floats, fault, wild, views, ties
        self.corners = corners
        self.choices: list[int] = []
        self.hit = False
        self._arrays = 0

    # ------------------------------------------------------------------------------------------------ choices

    def pick(self, *options):
        """Return one of the options; the first is the simplest."""
        if self._replay is None:
            index = int(self._rng.integers(len(options)))
        else:
            at = len(self.choices)
            index = self._replay[at] if at < len(self._replay) else 0
            index = min(index, len(options) - 1)
        self.choices.append(index)
        return options[index]

    def flag(self) -> bool:
        """Return False or True."""
        return self.pick(False, True)

    def maybe(self, **kwargs) -> dict:
        """Return some of the keywords: each is there or not."""
        return {k: v for k, v in kwargs.items() if self.flag()}

    def shape(self, min_dim: int = 0, max_dim: int = 5, empty: bool = True) -> tuple[int, ...]:
        """Return a shape with a number of dims in a range."""
        return self.pick(*[s for s in SHAPES if min_dim <= len(s) <= max_dim and (empty or 0 not in s)])

    def dtype(self, kinds: str = "f") -> str:
        """Return a dtype's name of one of the kinds: f float, h half, i integer, b bool, c complex."""
        if self.wild:
            return self.pick(*ANY_DTYPE)
        if self.floats and set(kinds) & set("fh"):
            return self.pick(*self.floats)
        return self.pick(*[d for k in kinds for d in KINDS[k]])

    def dim(self, x, extra: int = 0) -> int:
        """Return a dim of a tensor (or of so many dims), negative ones too; ``extra`` more are allowed."""
        ndim = (x if isinstance(x, int) else x.ndim) + extra
        if self.fault == "dim" and not self.hit:
            self.hit = True
            return ndim + 3
        n = max(ndim, 1)
        return self.pick(*range(n), *range(-n, 0))

    def dims(self, x, none: bool = True):
        """Return None, one dim, or a tuple of different dims."""
        n = x if isinstance(x, int) else x.ndim
        how = (
            self.pick(*((None,) if none else ()), "one", "two")
            if n > 1
            else self.pick(*((None,) if none else ()), "one")
        )
        if how is None and self.fault != "dim":
            return None
        if how == "two":
            first = self.pick(*range(n))
            return (first, self.pick(*[d - n for d in range(n) if d != first]))
        return self.dim(x)

    # ------------------------------------------------------------------------------------------------- arrays

    def tensor(
        self,
        shape=None,
        kinds: str = "f",
        *,
        low=None,
        high=None,
        special: bool = False,
        grad: bool = True,
        views: bool = True,
        **limits,
    ) -> Input:
        """Return a tensor.

        Args:
            shape: its shape, or None to draw one within ``limits`` (of `Gen.shape`).
            kinds: the kinds of dtypes, or a dtype's name.
            low: least value, for functions with a domain; integers in [low, high).
            high: largest value.
            special: also draw NaN, infinities, both zeros, halves.
            grad: whether its gradient is compared, if it is a float.
            views: also draw strides.
            **limits: of `Gen.shape`.
        """
        shape = self.shape(**limits) if shape is None else tuple(shape)
        name = kinds if kinds in ANY_DTYPE else self.dtype(kinds)
        style = "normal"
        if self.corners:
            style = self.pick("normal", "corner", "corners", "corners", *(("ties",) if low is high is None else ()))
        elif low is None and high is None:
            style = self.pick("normal", *(("ties",) if self.ties else ()), *(("special",) if special else ()))
        array = self.array(shape, name, low, high, style)
        return self.view(array, grad and style != "special") if views and self.views else Input(array, "", grad)

    def array(self, shape, name: str, low=None, high=None, style: str = "normal") -> np.ndarray:
        """Return values of a dtype; the same ones for the same place in the same case."""
        self._arrays += 1
        rng = np.random.default_rng([zlib.crc32(repr((self._seed, shape, name, style)).encode()), self._arrays])
        dtype = numpy_dtype(name)
        if dtype.kind == "b":
            return np.asarray(rng.random(shape) < 0.5)
        if dtype.kind in "iu":
            least = (0 if dtype.kind == "u" else -4) if low is None else int(low)
            return np.asarray(rng.integers(least, 5 if high is None else max(int(high), least + 1), size=shape)).astype(
                dtype
            )
        if style == "special":
            return np.asarray(rng.choice(SPECIAL, size=shape)).astype(dtype)
        if style == "ties":
            return np.asarray(rng.integers(-2, 3, size=shape)).astype(dtype)

        least, most = -8.0 if low is None else low, 8.0 if high is None else high

        def reals():
            return rng.normal(size=shape) if low is None and high is None else rng.uniform(least, most, size=shape)

        if style in ("corner", "corners") and dtype.kind != "c":
            bounded = [] if low is None and high is None else [v for v in (low, high) if v is not None]
            values = [*bounded, *(v for v in CORNERS if not bounded or not v < least and not v > most)]
            if self.corners == "finite":
                values = [v for v in values if np.isfinite(v)]
            there = rng.random(shape) < (0.25 if style == "corner" else 0.8)
            return np.asarray(np.where(there, rng.choice(values, size=shape), reals())).astype(dtype)
        return np.asarray(reals() + 1j * reals() if dtype.kind == "c" else reals()).astype(dtype)

    def view(self, array: np.ndarray, grad: bool = True) -> Input:
        """Return a tensor with a value, over memory that may be strided, shifted or expanded."""
        how = self.pick(
            "plain",
            "plain",
            *(("transposed",) if array.ndim > 1 else ()),
            *(("step", "offset") if array.ndim else ()),
            *(("expanded",) if array.ndim and array.shape[0] else ()),
        )
        if how == "transposed":
            return Input(np.swapaxes(array, -1, -2).copy(), ".transpose(-1, -2)", grad)
        if how == "step":
            return Input(np.repeat(array, 2, axis=-1), "[..., ::2]", grad)
        if how == "offset":
            return Input(
                np.concatenate([array[:1], array]) if array.shape[0] else array, "[1:]" if array.shape[0] else "", grad
            )
        if how == "expanded":
            return Input(array[:1].copy(), f".expand{array.shape}", grad)
        return Input(array, "", grad)

    def like(self, x: Input, kinds: str | None = None, **options) -> Input:
        """Return a tensor that broadcasts with another: its shape, some dims 1, or fewer dims."""
        shape = x.shape
        kinds = kinds or ("f" if self.wild else x.dtype)
        if self.fault == "shape" and not self.hit and any(n > 1 for n in shape):
            self.hit = True
            return self.tensor(
                (*shape[:-1], shape[-1] + 3) if shape[-1] > 1 else tuple(n + 3 for n in shape),
                kinds,
                views=False,
            )
        options_of_shape = [shape]
        if shape:
            options_of_shape += [shape[1:], (1, *shape[1:]), (*shape[:-1], 1), (), (2, *shape)][
                : 5 if len(shape) < 5 else 4
            ]
        return self.tensor(self.pick(*options_of_shape), kinds, **options)

    def index(self, shape, size: int, **options) -> Input:
        """Return int64 indices in [0, size)."""
        return self.tensor(shape, "int64", low=0, high=max(size, 1), grad=False, **options)

    def number(self, *values):
        """Return a Python number: one of the values."""
        return self.pick(*values)

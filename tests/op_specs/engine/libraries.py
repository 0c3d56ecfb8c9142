"""The places where a case runs: PyTorch, sbpjax on one device, sbpjax on a placement under random sbps.

Each turns the arguments of a `Call` into its own tensors and its results into plain values, so that everything else in
this package is written once.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from sbpjax._core.tensor.handle.tensor import wrap_any
from sbpjax.sbp import algebra
from tests.support.generate import BF16, Call, Dtype, Input, walk
from tests.support.layouts import MESHES, lay_out, random_codes


class Plain:
    """A tensor's plain value: dtype's name and array."""

    __slots__ = ("array", "dtype")

    def __init__(self, dtype: str, array: np.ndarray) -> None:
        self.dtype, self.array = dtype, array

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.array.shape)} {self.array.tolist()}"


class Library:
    """One place where a case runs; subclasses say how tensors are made and read."""

    def __init__(self, package) -> None:
        self.package = package

    def tensor(self, array: np.ndarray) -> Any:
        """Return a tensor with a value."""
        raise NotImplementedError

    def array(self, tensor) -> np.ndarray:
        """Return a tensor's value."""
        raise NotImplementedError

    def name_of(self, dtype) -> str:
        """Return a dtype's name."""
        return str(dtype).split(".")[-1]

    def find(self, name: str):
        """Return the function of a dotted name, or None."""
        found = self.package
        for part in name.split("."):
            found = getattr(found, part, None)
            if found is None:
                return None
        return found

    def build(self, call: Call, grad: bool = True):
        """Return ``(args, kwargs, leaves)``: this library's arguments and the leaves that require grad."""
        leaves = []

        def made(x):
            if isinstance(x, Dtype):
                return getattr(self.package, x.name)
            if not isinstance(x, Input):
                return x
            base = self.tensor(x.base)
            if grad and x.differentiable:
                base.requires_grad_(True)
                leaves.append(base)
            return view_of(base, x.suffix)

        args, kwargs = walk((call.args, call.kwargs), made)
        return args, kwargs, leaves

    def plain(self, result):
        """Return a result with plain values for tensors and names for dtypes."""
        if isinstance(result, self.package.Tensor):
            return Plain(self.name_of(result.dtype), self.array(result))
        if isinstance(result, self.package.dtype):
            return self.name_of(result)
        if isinstance(result, self.package.Size):
            return tuple(result)
        if isinstance(result, (list, tuple)):
            return [self.plain(x) for x in result]
        if isinstance(result, dict):
            return {k: self.plain(v) for k, v in result.items()}
        return result

    def tensors(self, result) -> list:
        """Return the tensors in a result, in order."""
        if isinstance(result, self.package.Tensor):
            return [result]
        if isinstance(result, (list, tuple)):
            return [t for x in result for t in self.tensors(x)]
        return []


def view_of(base, suffix: str):
    """Return a tensor's view that a suffix such as ``[1:]`` names."""
    return eval("x" + suffix, {"x": base}) if suffix else base


class Torch(Library):
    """PyTorch on the CPU."""

    def __init__(self) -> None:
        import torch

        super().__init__(torch)

    def tensor(self, array: np.ndarray):
        if array.dtype == BF16:
            return self.package.from_numpy(array.astype(np.float32)).to(self.package.bfloat16)
        if not array.size:  # NumPy gives empty arrays strides of its own
            return self.package.empty(array.shape, dtype=getattr(self.package, array.dtype.name))
        return self.package.from_numpy(np.ascontiguousarray(array).reshape(array.shape).copy())

    def array(self, tensor) -> np.ndarray:
        if tensor._is_zerotensor():
            return np.zeros(
                tuple(tensor.shape), BF16 if tensor.dtype == self.package.bfloat16 else str(tensor.dtype)[6:]
            )
        x = tensor.detach().resolve_conj().resolve_neg()
        return x.float().numpy().astype(BF16) if x.dtype == self.package.bfloat16 else x.numpy().copy()


class Local(Library):
    """Sbpjax on one device."""

    def __init__(self) -> None:
        super().__init__(sys.modules["sbpjax"])  # under test as its users see it; it is there before this module

    def tensor(self, array: np.ndarray):
        return self.package.from_numpy(np.asarray(array).copy())

    def array(self, tensor) -> np.ndarray:
        return np.asarray(tensor.detach().numpy())

    def name_of(self, dtype) -> str:
        return dtype.name


class Placed(Local):
    """Sbpjax on a placement: every tensor lies under an sbp drawn at random.

    Attributes:
        seen: the sbps, in the order of the inputs.
        values: the values that the tensors stand for; a sum of summands may turn -0.0 into 0.0.
    """

    def __init__(self, mesh: str, rng: np.random.Generator, partial: bool = True) -> None:
        super().__init__()
        self._mesh, self._rng, self._partial = mesh, rng, partial
        self.seen: list[str] = []
        self.values: list[np.ndarray] = []

    def tensor(self, array: np.ndarray):
        codes = random_codes(self._rng, array.ndim, np.ndim(MESHES[self._mesh]))
        if not self._partial or array.dtype.name in ("int8", "uint8", "int16"):
            codes = tuple(algebra.B if c == algebra.P else c for c in codes)
        laid, layout, value = lay_out(array, MESHES[self._mesh], codes, self._rng)
        self.seen.append(algebra.nd_name(codes))
        self.values.append(value)
        return wrap_any(laid, layout)

"""An evaluated program: what NumPy computes for some inputs, and how often before the compiled one takes over."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from sbpjax._core.jax_private import ArrayImpl, PRNGKeyArray, key_data, xla_client

from ...launch import checks_results
from .setting import setting

# The data of a random key, see `random_bits`.
KEY = np.dtype([("high", np.uint32), ("low", np.uint32)])

_put = xla_client.batched_device_put
log = logging.getLogger("sbpjax")


class EvaluatedProgram:
    """A program of arrays on one CPU device that NumPy computes for some calls.

    Args:
        name: the op.
        run: the program of NumPy calls.
        types: the dtypes of its inputs.
        avals: of its results.
        tree: the tree of its results.
        device: of its inputs.
        calls: how often it is evaluated.

    Attributes:
        calls: how often it will be evaluated from now on.
        half: the calls left when another thread may begin to compile.
    """

    __slots__ = (
        "_avals", "_default", "_device", "_name", "_run", "_sharding", "_single", "_tree", "_types", "calls", "half",
    )  # fmt: skip

    def __init__(
        self, name: str, run: Callable, types: list, avals: list, tree: Any, device: jax.Device, calls: int
    ) -> None:
        self._name, self._run, self._types, self._avals, self._tree = name, run, types, avals, tree
        self._device, self.calls, self.half = device, calls, calls // 2
        self._single = tree == jax.tree.structure(0)
        self._sharding = jax.sharding.SingleDeviceSharding(device)
        self._default = jax.config.jax_default_device

    def __call__(self, arrays: Sequence) -> Any:
        """Return the results; None where the inputs are on another device, or have been evaluated often enough.

        Raises:
            MemoryError: there is none for an array.
        """
        if self.calls <= 0 or jax.config.jax_default_device is not self._default:
            return None
        committed, given, devices = False, [], [self._device]
        for x in arrays:
            if x.__class__ is ArrayImpl or x.__class__ is PRNGKeyArray:
                if x._committed:
                    committed = True
                    if self._device not in x.devices():
                        return None
                given.append(np.asarray(x) if x.__class__ is ArrayImpl else _key_of(x))
            elif x is not None:
                given.append(np.asarray(x, self._types[len(given)]))
        try:
            outs = self._run(*given)
        except MemoryError:
            raise
        except Exception as error:  # of any class: NumPy computes this otherwise, or not at all
            log.info("%s is compiled, since NumPy raised %s", self._name, error)
            self.calls = 0
            return None
        self.calls -= 1
        if self._single:
            return _put(self._avals[0], self._sharding, outs, devices, committed)
        outs = [_put(a, self._sharding, [x], devices, committed) for a, x in zip(self._avals, outs, strict=True)]
        return jax.tree.unflatten(self._tree, outs)


def _key_of(x: Any) -> np.ndarray:
    """Return the data of keys."""
    return np.asarray(key_data(x)).view(KEY)[..., 0]


def may_evaluate() -> bool:
    """Return whether calls may be evaluated; `jax.debug_nans` checks compiled programs only."""
    return setting.allowed and not setting.held and not checks_results()

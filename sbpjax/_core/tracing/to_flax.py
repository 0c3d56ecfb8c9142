"""`to_flax`: a module as an `nnx.Module`, whose parameters Flax's optimizers, transforms and checkpoints see.

Worked case: ``to_flax(nn.Linear(3, 2))`` in a model of NNX has the parameters ``params["weight"]`` and
``params["bias"]``; its call is the module's own, as a pure function (`to_pure`), so `nnx.jit` and `nnx.grad` go through
it. Buffers are batch statistics. Global parameters come as arrays sharded over the mesh of their placement.
"""

from __future__ import annotations

import functools
from typing import Any

from sbpjax._core.runtime.optional_packages import LazyModule
from sbpjax.errors import OpTypeError
from sbpjax.nn.module import Module

from .pure import to_pure

nnx = LazyModule("flax.nnx")  # Flax takes longer to import than JAX


def to_flax(module: Module, *, rngs: Any = None) -> Any:
    """Return a module as an `nnx.Module`.

    Args:
        module: the module; its values are read now, and calls of the result do not change it.
        rngs: an ``nnx.Rngs`` whose stream ``dropout`` gives a key for each call in training; without it dropout and the
            like draw as in a trace of the module, the same numbers in every call of a compiled function.

    Returns:
        A module that is called with arrays, or tensors, and returns arrays. Its ``params`` are an ``nnx.Param`` for
        each parameter, under its name, its ``stats`` an ``nnx.BatchStat`` for each buffer. ``train()`` and ``eval()``
        are those of Flax.

    Raises:
        OpTypeError: it is no module of this package.

    Example:
        >>> layer = nn.to_flax(nn.Linear(3, 1))
        >>> nnx.grad(lambda m: m(jnp.ones((2, 3), "float32")).sum())(layer)["params"]["bias"][...]
        Array([2.], dtype=float32)
    """
    if not isinstance(module, Module):
        raise OpTypeError(
            "nn.to_flax(module)",
            f"a {type(module).__name__}",
            "the module is an nn.Module of this package",
            "nn.to_flax(nn.Linear(3, 2))",
        )
    return _nnx_class()(module, rngs)


@functools.cache  # a class body needs the base class, and so Flax
def _nnx_class() -> type:
    class FromModule(nnx.Module):
        """A module of this package in a model of NNX; made by `to_flax`."""

        def __init__(self, module: Module, rngs: Any) -> None:
            self._module = _Static(module)
            self._apply, params = to_pure(module, mutable=True)
            buffers = {n: b.jax() for n, b in module.named_buffers()}
            self.params = nnx.Dict({n: nnx.Param(a) for n, a in params.items()})
            self.stats = nnx.Dict({n: nnx.BatchStat(a) for n, a in buffers.items()})
            self.rngs = rngs
            self.deterministic = False  # set by `train` and `eval` of NNX

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            training = not self.deterministic
            key = self.rngs.dropout() if self.rngs is not None and training else None
            module = self._module.value
            before = {m: m.training for m in module.modules()}
            module.train(training)
            try:
                params = {n: p[...] for n, p in self.params.items()}
                stats = {n: b[...] for n, b in self.stats.items()}
                outs, after = self._apply(params, *args, buffers=stats, key=key, **kwargs)
            finally:
                for m, value in before.items():
                    m.training = value
            for name, value in after.items():
                if training:
                    self.stats[name][...] = value
            return outs

    return FromModule


class _Static:
    """A module as a static attribute of one of NNX, which compares it by identity."""

    def __init__(self, value: Module) -> None:
        self.value = value

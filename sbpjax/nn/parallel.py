"""Data parallelism of local modules, under PyTorch's name.

A global module needs no wrapper: its parameters lie as ``broadcast``, its input as ``split(0)``, and the reduction of
the gradients is part of the plan. `DistributedDataParallel` is for code written over local tensors.
"""

from __future__ import annotations

import contextlib

from sbpjax.errors import MixedTensorError, OpError, message
from sbpjax.nn.module import Module


class DistributedDataParallel(Module):
    """A local module whose gradients are averaged over the processes; in one process, the module itself.

    Args:
        module: a module of local parameters.
        broadcast_buffers: kept for its spelling; with one process there is nothing to broadcast.

    Raises:
        MixedTensorError: a parameter is global.
        OpError: there are several processes; use a global module there.
    """

    def __init__(self, module: Module, *, broadcast_buffers: bool = True) -> None:
        super().__init__()
        for name, parameter in module.named_parameters():
            if parameter.is_global:
                raise MixedTensorError(
                    message(
                        "DistributedDataParallel(module)",
                        f"parameter {name!r} is global: {parameter.sbp} on {parameter.placement!r}",
                        "it is for modules of local parameters; a global module is data parallel by its layouts",
                        "use the module itself, with its input as x.to_global(placement, sbpjax.sbp.split(0))",
                    )
                )
        from sbpjax import env

        if env.get_world_size() > 1:
            raise OpError(
                message(
                    "DistributedDataParallel(module)",
                    f"{env.get_world_size()} processes",
                    "gradients of local tensors are not exchanged between processes",
                    "module.to_global(sbpjax.placement.all(type), sbpjax.sbp.broadcast), and the input as split(0)",
                )
            )
        self.module = module

    def forward(self, *inputs, **keywords):
        """Call the module."""
        return self.module(*inputs, **keywords)

    @contextlib.contextmanager
    def no_sync(self):
        """Leave the gradients unreduced within the block; with one process there is nothing to reduce."""
        yield

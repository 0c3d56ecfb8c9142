"""`torch.utils.tensorboard`: the writer of the package tensorboardX, which takes sbpjax's tensors here."""

from __future__ import annotations

import functools
from typing import Any

from sbpjax._core.runtime.optional_packages import LazyModule
from sbpjax.distributed.global_view import _map_tensors
from sbpjax.errors import NotInJaxError

_package = LazyModule("tensorboardX")


def _as_numpy(value: Any) -> Any:
    return _map_tensors(value, lambda x: x.detach().cpu().numpy())


@functools.cache
def _writer() -> type:
    fields: dict[str, Any] = {"__doc__": "A writer of TensorBoard's files; see tensorboardX."}
    for name in dir(_package.SummaryWriter):
        if name.startswith("add_"):
            fields[name] = _with_arrays(getattr(_package.SummaryWriter, name))

    def add_graph(self: Any, model: Any, input_to_model: Any = None, *args: Any, **options: Any) -> None:
        """Raise: graphs of TensorBoard are PyTorch's traces."""
        rule, fix = "a graph is a trace of PyTorch's ops", "sbpjax.visualize(graph)  # of an nn.Graph"
        raise NotInJaxError("SummaryWriter.add_graph(model)", type(model).__name__, rule, fix)

    return type("SummaryWriter", (_package.SummaryWriter,), {**fields, "add_graph": add_graph})


def _with_arrays(method: Any) -> Any:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        return method(self, *_as_numpy(args), **_as_numpy(options))

    return call


def __getattr__(name: str) -> Any:
    if name == "SummaryWriter":
        return _writer()
    if name == "FileWriter":
        return _package.FileWriter
    raise AttributeError(name)

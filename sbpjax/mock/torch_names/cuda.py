"""Names of `torch.cuda` that belong to CUDA itself."""

from __future__ import annotations

from sbpjax.errors import OutOfMemoryError as OutOfMemoryError

from .absent import absent

_WHY = "CUDA graphs record kernel launches; here a whole program is compiled"

CUDAGraph = absent("torch.cuda.CUDAGraph", _WHY, "nn.Graph, or sbpjax.compile")
StreamContext = absent("torch.cuda.StreamContext", "streams are a GPU runtime of its own", "call the function")
graph = absent("torch.cuda.graph", _WHY, "nn.Graph, or sbpjax.compile")
make_graphed_callables = absent("torch.cuda.make_graphed_callables", _WHY, "sbpjax.compile")
device_of = absent(
    "torch.cuda.device_of", "layouts say where tensors are", "x.to_global(placement, sbp), or x.to(device)"
)
_initialized = False


def is_current_stream_capturing() -> bool:
    """Return False: nothing records launches."""
    return False


def list_gpu_processes(device=None) -> str:
    """Return a text: which processes use a GPU is not known here."""
    return "not known here"


def _lazy_call(callable, **options) -> None:
    """Call a function: there is nothing to wait for."""
    callable()

"""Names of `torch.cuda` about CUDA itself."""

from __future__ import annotations

from sbpjax.errors import OutOfMemoryError as OutOfMemoryError

from .absent import absent

_WHY = "CUDA graphs record kernel launches; here a whole program is compiled"

CUDAGraph = absent("torch.cuda.CUDAGraph", _WHY, "nn.Graph, or sbpjax.compile")
StreamContext = absent("torch.cuda.StreamContext", "streams are a GPU runtime of its own", "call the function")
graph = absent("torch.cuda.graph", _WHY, "nn.Graph, or sbpjax.compile")


def is_current_stream_capturing() -> bool:
    """Return False: nothing records launches."""
    return False

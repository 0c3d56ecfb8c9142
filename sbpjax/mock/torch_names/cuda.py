"""Names of `torch.cuda` that belong to CUDA itself."""

from __future__ import annotations

from .absent import absent

_WHY = "CUDA graphs record kernel launches; here a whole program is compiled"

CUDAGraph = absent("torch.cuda.CUDAGraph", _WHY, "nn.Graph, or sbpjax.compile")
StreamContext = absent("torch.cuda.StreamContext", "streams are a GPU runtime of its own", "call the function")
graph = absent("torch.cuda.graph", _WHY, "nn.Graph, or sbpjax.compile")
make_graphed_callables = absent("torch.cuda.make_graphed_callables", _WHY, "sbpjax.compile")

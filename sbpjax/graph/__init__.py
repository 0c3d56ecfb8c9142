"""Compiled programs: a whole training step traced, planned and compiled as one."""

from sbpjax.world.pause import Pause as _Pause  # isort: skip  # first of all

_resting = _Pause()

from sbpjax.inspect import graph_views as graph_views
from sbpjax.inspect.explain import explain as explain
from sbpjax.inspect.explain import visualize as visualize
from sbpjax.tracing.host_inputs import Request as Request
from sbpjax.tracing.host_inputs import host_input as host_input
from sbpjax.tracing.signature import TensorSpec as TensorSpec

from .compile import Compiled as Compiled
from .compile import compile as compile
from .config import GraphConfig as GraphConfig
from .graph import Graph as Graph
from .loaded import LoadedGraph as LoadedGraph
from .loaded import load_graph as load_graph
from .proxy import GraphModule as GraphModule
from .proxy import GraphTensor as GraphTensor
from .proxy import Proxy as Proxy
from .proxy import ProxyModule as ProxyModule

del _resting

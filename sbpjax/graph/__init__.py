"""Compiled programs: a whole training step traced, planned and compiled as one."""

from . import shown as shown
from .compile import Compiled as Compiled
from .compile import compile as compile
from .config import GraphConfig as GraphConfig
from .explain import explain as explain
from .explain import visualize as visualize
from .graph import Graph as Graph
from .loaded import LoadedGraph as LoadedGraph
from .loaded import load_graph as load_graph
from .proxy import GraphModule as GraphModule
from .proxy import GraphTensor as GraphTensor
from .proxy import Proxy as Proxy
from .proxy import ProxyModule as ProxyModule
from .signature import TensorSpec as TensorSpec

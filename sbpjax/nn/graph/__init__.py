"""OneFlow's place of what belongs to graphs; the code is in `sbpjax.graph`."""

from sbpjax.graph.graph import Graph as Graph
from sbpjax.graph.proxy import GraphModule as GraphModule
from sbpjax.graph.proxy import GraphTensor as GraphTensor
from sbpjax.graph.proxy import Proxy as Proxy
from sbpjax.graph.proxy import ProxyModule as ProxyModule

from . import graph_config as graph_config

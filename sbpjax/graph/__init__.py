"""Compiled programs: a whole training step traced, planned and compiled as one."""

from sbpjax._core.runtime.gc_pause import Pause as _Pause  # isort: skip  # first of all

_resting = _Pause()

from sbpjax._core.functions.table.table import reexport_hooks as _reexport_hooks
from sbpjax._core.inspect import graph_views as _graph_views  # fills the registry of reports
from sbpjax._core.serialization.signing import private_key as private_key
from sbpjax._core.tracing.host_inputs import Request as Request
from sbpjax._core.tracing.host_inputs import host_input as host_input
from sbpjax._core.tracing.signature import TensorSpec as TensorSpec

from .config import GraphConfig as GraphConfig
from .dynamic import Dynamic as Dynamic
from .export.loaded import LoadedGraph as LoadedGraph
from .export.loaded import load_graph as load_graph
from .graph import Graph as Graph
from .module_proxy import GraphModule as GraphModule
from .module_proxy import GraphTensor as GraphTensor
from .module_proxy import Proxy as Proxy
from .module_proxy import ProxyModule as ProxyModule
from .program.compile import Compiled as Compiled
from .program.compile import compile as compile

# Names of a package that builds on this one.
_ABOVE = """explain=_core.inspect.explain:explain visualize=_core.inspect.explain:visualize
 Explanation=_core.inspect.plan_table:Explanation"""
__getattr__, __dir__ = _reexport_hooks("graph", globals(), modules=_ABOVE)

del _ABOVE, _Pause, _reexport_hooks, _graph_views, _resting

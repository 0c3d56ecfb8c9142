"""Private names of JAX: the one module that imports them, each seen in jax 0.10.2 and 0.12.0.

`tests/test_jax_private.py` imports every name under the installed JAX. The classes of jaxprs are public in
`jax.extend.core`, whose import loads Pallas, a fifth of the time of importing sbpjax; the objects are the same.
"""

from __future__ import annotations

import contextlib as _contextlib
import functools as _functools
import threading as _threading
import typing as _typing

import numpy as _np
from jax import jit as _jax_jit
from jax._src import api_util as _api_util
from jax._src import compilation_cache as compilation_cache
from jax._src import compiler as compiler
from jax._src import config as config
from jax._src import core as core
from jax._src import distributed as distributed
from jax._src import dtypes as _dtypes
from jax._src import mesh as _mesh
from jax._src import source_info_util as source_info_util
from jax._src import tree_util as tree_util
from jax._src import xla_bridge as xla_bridge
from jax._src.array import ArrayImpl as ArrayImpl  # `type(x) is ArrayImpl`: a third of isinstance(x, jax.Array)
from jax._src.clusters import ClusterEnv as ClusterEnv
from jax._src.core import DropVar as DropVar
from jax._src.core import JaxprEqn as JaxprEqn
from jax._src.core import Literal as Literal
from jax._src.core import NamedAxisEffect as NamedAxisEffect
from jax._src.core import Primitive as Primitive
from jax._src.core import Var as Var
from jax._src.core import eval_context as eval_context
from jax._src.core import eval_trace as eval_trace
from jax._src.core import is_symbolic_dim as is_symbolic_dim  # its public name loads all of `jax.export`
from jax._src.core import jaxpr_as_fun as jaxpr_as_fun
from jax._src.core import jaxprs_in_params as jaxprs_in_params
from jax._src.core import new_jaxpr_eqn as new_jaxpr_eqn
from jax._src.core import no_effects as no_effects
from jax._src.core import trace_ctx as trace_ctx
from jax._src.core import trace_state_clean as trace_state_clean
from jax._src.core import update_aval_with_sharding as update_aval_with_sharding
from jax._src.cudnn import fused_attention_stablehlo as cudnn_attention  # noqa: F401
from jax._src.dispatch import check_special as check_special
from jax._src.dispatch import prim_requires_devices_during_lowering as prim_requires_devices_during_lowering
from jax._src.extend.random import define_prng_impl as define_prng_impl  # importing `jax.extend` loads Pallas
from jax._src.interpreters import batching as _batching
from jax._src.interpreters import partial_eval as partial_eval
from jax._src.interpreters import pxla as pxla
from jax._src.interpreters.partial_eval import DynamicJaxprTrace as DynamicJaxprTrace
from jax._src.lax.lax import optimization_barrier_p as optimization_barrier_p
from jax._src.lib import _jax as _jax
from jax._src.lib import xla_client as xla_client
from jax._src.random.prng import PRNGKeyArray as PRNGKeyArray
from jax._src.random.threefry2x32 import threefry2x32_p as threefry2x32_p
from jax._src.random.threefry2x32 import threefry_prng_impl as threefry_prng_impl
from jax._src.source_info_util import current_name_stack as current_name_stack
from jax._src.source_info_util import set_name_stack as set_name_stack
from jaxlib import lapack as _lapack

# From JAX 0.12 on a jaxpr holds its constants itself, and `jax.extend.core` gives that class under both names.
if _typing.TYPE_CHECKING:
    from jax._src.core import ClosedJaxpr as ClosedJaxpr
else:
    ClosedJaxpr = getattr(core, "ClosedJaxpr", None) or core.Jaxpr

# Its ``value`` is the trace of this thread, `eval_trace` where none is running: `trace_state_clean` is four calls more.
trace_of_thread = core.trace_state_strong_ref

# The error of compiled programs under `jax.debug_nans`; `jax.jit` raises FloatingPointError in its place.
FOUND_NAN: type[Exception] = getattr(_api_util, "InternalFloatingPointError", FloatingPointError)

# The two thread-local values of `jax.set_mesh`, in `mesh` from JAX 0.12 on, and their value where nobody has set one.
_of_meshes = _mesh if hasattr(_mesh, "device_context") else config
abstract_mesh_context = _of_meshes.abstract_mesh_context_manager
device_context = _of_meshes.device_context
unset = config.config_ext.unset


def with_cache_miss(jitted, uncompiled, wrap):
    """Return a ``jax.jit`` function that calls ``wrap(miss)`` in place of its ``miss``, where C++ knows no program yet.

    Args:
        jitted: the function.
        uncompiled: what runs under `jax.disable_jit`.
        wrap: takes the Python function that traces, compiles and runs, and returns one like it.
    """
    call = _call_of(jitted.__name__, jitted._jit_info, jitted._fun, uncompiled, wrap(jitted._cache_miss))
    call._fun, call._jit_info = jitted._fun, jitted._jit_info  # read by its `lower` and `trace`
    return call


def call_of_misses(uncompiled, miss):
    """Return what ``jax.jit`` would, calling ``miss`` where C++ knows no program, in a tenth of the time.

    It has no `lower` and no `trace`.
    """
    return _call_of(uncompiled.__name__, _default_info(), uncompiled, uncompiled, miss)


def _call_of(name, info, function, uncompiled, miss):
    key = pxla.JitGlobalCppCacheKeys(donate_argnums=info.donate_argnums, compiler_options_kvs=info.compiler_options_kvs)
    rest = info.static_argnums, info.static_argnames, key, tree_util.dispatch_registry, pxla.cc_shard_arg
    return _functools.wraps(function)(_jax.pjit(name, uncompiled, miss, *rest))


@_functools.cache
def _default_info():
    return _jax_jit(lambda: None)._jit_info


def is_leaked(tracer: core.Tracer) -> bool:
    """Return whether the trace of a tracer is over: it is neither the current one nor around it."""
    trace = core.trace_ctx.trace
    while trace is not None and trace is not core.eval_trace:
        if trace is tracer._trace:
            return False
        trace = getattr(trace, "parent_trace", None)
    # A chain that ends in another way is not known.
    return trace is core.eval_trace


def stages_program() -> bool:
    """Return whether JAX stages a program, as under `jax.jit`; ``grad`` and ``vmap`` alone compute at once."""
    trace = core.trace_ctx.trace
    while trace is not None and not isinstance(trace, DynamicJaxprTrace):
        trace = getattr(trace, "parent_trace", None)
    return trace is not None


def register_array_type(kind: type, aval_of, array_of, check_result) -> None:
    """Let JAX's functions take objects of a class for arrays, as they take NumPy's; JAX's random keys enter so too.

    Args:
        kind: the class; its objects have ``sharding`` and ``_committed``, as arrays do.
        aval_of: the JAX type of an object.
        array_of: the array of an object.
        check_result: called with an object that a function under ``vmap`` returned; raises if it holds a tracer.
    """
    core.pytype_aval_mappings[kind] = aval_of
    _dtypes.canonicalize_value_handlers[kind] = array_of

    def from_vmap(to_array, axis_size, value, axis):
        check_result(value)
        return to_array(axis_size, array_of(value), axis)

    _batching.from_elt_handlers[kind] = from_vmap


def key_data(keys):
    """Return the array of integers of an array of random keys, which `jax.random.key_data` compiles a program for."""
    return keys._base_array


def prepare_lapack() -> None:
    """Register SciPy's LAPACK functions with XLA, as JAX's lowering rules of linear algebra do."""
    _lapack.prepare_lapack_call("getrf_ffi", _np.dtype(_np.float32))


_replacing = _threading.Lock()
_replaced: dict[tuple, tuple] = {}


@_contextlib.contextmanager
def replaced_in_thread(module, name: str, make):
    """Replace a function of JAX for the calls of this thread, while the block runs.

    The module's function is JAX's own again after the last such block. Other threads call JAX's in the meantime.

    Args:
        module: the module of JAX.
        name: the function's name in it, under which JAX calls it.
        make: takes JAX's function, and returns the one of this thread.
    """
    thread, key = _threading.get_ident(), (module.__name__, name)
    with _replacing:
        if key not in _replaced:
            original, functions = _replaced[key] = getattr(module, name), {}

            def dispatch(*args, **options):
                return functions.get(_threading.get_ident(), original)(*args, **options)

            setattr(module, name, dispatch)
        original, functions = _replaced[key]
        before = functions.get(thread)
        functions[thread] = make(original)
    try:
        yield
    finally:
        with _replacing:
            if before is not None:
                functions[thread] = before
            elif functions.pop(thread) and not functions:
                setattr(module, name, original)
                del _replaced[key]


def skip_cache(client) -> None:
    """Keep programs of a client's runtime, as of compile-only ones, out of JAX's cache on disk."""
    runtime = client.runtime_type
    if runtime not in compilation_cache._UNSUPPORTED_RUNTIMES:
        compilation_cache._UNSUPPORTED_RUNTIMES.add(runtime)
        compilation_cache.logger.addFilter(lambda record: record.args != (runtime,))  # JAX warns at each program


def without_cycles():
    """Trace with symbolic dims in the ``with`` block, and leave no reference cycles behind.

    For each symbolic dim JAX raises an error that refers to its own frame, and so to the frames of all callers: their
    arrays would live until the garbage is collected. Here such a dim is returned before that.
    """

    def make(canonicalize):
        return lambda dim: dim if is_symbolic_dim(dim) else canonicalize(dim)

    return replaced_in_thread(core, "_canonicalize_dimension", make)

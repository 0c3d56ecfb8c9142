"""Private names of JAX are there, and those of jaxprs are the public ones."""

import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import jax.extend.core
import pytest

from sbpjax._core import jax_private

ROOT = Path(__file__).resolve().parents[1]
PUBLIC = [
    name for name in vars(jax_private) if not name.startswith("_") and hasattr(jax.extend.core, name) and name != "core"
]


@pytest.mark.parametrize("name", PUBLIC)
def test_jaxpr_class_is_the_public_one(name):
    assert getattr(jax_private, name) is getattr(jax.extend.core, name)


def test_all_jaxpr_classes_are_compared():
    assert {"ClosedJaxpr", "JaxprEqn", "Literal", "Primitive", "Var", "jaxpr_as_fun"} <= set(PUBLIC)


def test_attributes_of_private_modules_exist():
    """Attributes that callers take from the modules; an upgrade of JAX that moves one fails here first."""
    used = """compilation_cache.is_cache_used compilation_cache._UNSUPPORTED_RUNTIMES
    compilation_cache.put_executable_and_time
    compiler._cache_write compiler.get_compile_options config.trace_context config.debug_nans.value
    core.trace_ctx.trace core._canonicalize_dimension distributed.global_state partial_eval.dce_jaxpr
    core.pytype_aval_mappings pxla.JitGlobalCppCacheKeys
    pxla.cc_shard_arg pxla.MeshExecutableFastpathData source_info_util.current source_info_util.user_context
    tree_util.dispatch_registry xla_bridge.backends_are_initialized _jax.pjit _dtypes.canonicalize_value_handlers
    abstract_mesh_context.set_local device_context.get_local trace_of_thread.value"""
    for path in used.split():
        found = jax_private
        for name in path.split("."):
            found = getattr(found, name)


def test_private_names_are_imported_in_one_file():
    files = (path for path in (ROOT / "sbpjax").rglob("*.py") if path.name != "jax_private.py")
    found = [
        path.name for path in files if "from jax._src" in path.read_text() or "import jax._src" in path.read_text()
    ]
    assert not found


def test_function_is_replaced_in_its_thread_alone():
    module = SimpleNamespace(__name__="module", f=lambda: "of JAX")
    original, seen, inside, leave = module.f, [], threading.Event(), threading.Event()

    def run_in_thread():
        with jax_private.replaced_in_thread(module, "f", lambda before: lambda: f"second, {before()}"):
            inside.set()
            leave.wait()
            seen.append(module.f())

    thread = threading.Thread(target=run_in_thread)
    with jax_private.replaced_in_thread(module, "f", lambda before: lambda: "first"):
        thread.start()
        inside.wait()
        seen.append(module.f())
        with jax_private.replaced_in_thread(module, "f", lambda before: lambda: "nested"):
            seen.append(module.f())
    seen.append(module.f())
    leave.set()
    thread.join()
    assert seen == ["first", "nested", "of JAX", "second, of JAX"]
    assert module.f is original


def test_import_and_ops_replace_no_function_of_jax(tmp_path):
    """After ops, a graph and a rank's settings, the functions of JAX's modules are those that JAX defines there."""
    script = """
import sys, jax
def functions():
    return {(m, n): f for m, module in list(sys.modules.items()) if m.startswith("jax")
            for n, f in list(vars(module).items()) if callable(f)}
before = functions()
import sbpjax as flow
flow.compile(lambda x: x * 2 + 1)(flow.ones(3, 4) @ flow.ones(4, 5)).numpy()
flow.ones(7).sum().item()
after = functions()
print([key for key in before if after.get(key) is not before[key]])
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"

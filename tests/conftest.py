"""Process-wide settings of the test run; they must stand before JAX starts, so before any import of jax or sbpjax."""

import collections
import importlib.util
import inspect
import os
import pathlib
import sys
import time
import zlib

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "8")
os.environ.setdefault("NPROC", "64")
# Tests count compilations; those of an earlier run must not answer for this one.
# tests/compiler/eager/test_disk_cache.py does.
os.environ.setdefault("SBPJAX_PROGRAM_CACHE", "off")
os.environ.setdefault("SBPJAX_COMPILE_NOTE", "off")  # the suite compiles all the time; tests count other lines

import hypothesis
import pytest

from tests import xla_flags
from tests.support import worker_end

if os.environ["JAX_PLATFORMS"] == "cpu":
    os.environ.setdefault("XLA_FLAGS", xla_flags.QUICK)

# Derandomised: a failing example fails for everyone. No deadline: the first example of each shape compiles.
hypothesis.settings.register_profile(
    "sbpjax",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
)
hypothesis.settings.load_profile("sbpjax")


# Of the cases of a test one in so many runs by default, the others are exhaustive tests: the suite fits into twenty
# minutes on two cores, most of which are XLA compiling what the cases ask for. Of the tests of functions each function
# (the first parameter) keeps a case. Which cases stay differs from test to test, so that meshes and layouts take turns.
OF_EACH_FUNCTION = {"ops": 8, "nn/test_module": 3, "functions/layers/test_functional": 3}
OF_A_TEST = {  # the first that a path begins with
    "compiler": 4,
    "distributions": 6,
    "examples/test_gpt.py": 3,
    "functions": 4,
    "graph/auto": 3,
    "graph/pipeline": 5,
    "graph/test_matrix.py": 9,
    "graph": 8,
    "independence": 10,
    "inspect/auto": 2,
    "inspect": 4,
    "models/test_training.py": 14,
    "models": 3,
    "models_torch/test_models.py": 8,
    "nn": 6,
    "one_embedding": 2,
    "optim/test_sweep.py": 20,
    "optim": 6,
    "oracle": 16,
    "documentation/test_guides.py": 1,
    "documentation/test_notebooks.py": 1,
    "documentation": 20,
    "planner": 4,
    "programs": 4,
    "runtime": 4,
    "sbp": 4,
    "tensor": 4,
    "test_commands.py": 2,
    "tracing": 4,
    "train": 3,
    "op_specs/test_specs.py": 12,
    "vision/ops": 4,
    "vision/transforms": 4,
    "vision": 2,
}


def _leave_cases_to_the_exhaustive_tests(items):
    cases = collections.defaultdict(list)
    for item in items:
        if "[" not in item.nodeid or item.get_closest_marker("exhaustive"):
            continue
        path = item.path.relative_to(pathlib.Path(__file__).parent).as_posix()
        of_each = next((n for start, n in OF_EACH_FUNCTION.items() if path.startswith(start)), None)
        if of_each is not None:
            cases[item.nodeid.split("-")[0], of_each].append(item)
        else:
            every = next((n for start, n in OF_A_TEST.items() if path.startswith(start)), 1)
            cases[item.nodeid.split("[")[0], every].append(item)
    for (name, every), some in cases.items():
        kept = zlib.crc32(name.encode()) % min(every, len(some))
        for i, item in enumerate(some):
            if i % every != kept:
                item.add_marker("exhaustive")


def pytest_pycollect_makeitem(collector, name, obj):
    """Make no cases of an exhaustive test that the run leaves out: they are six of seven of all cases.

    A test that the command line names is made, so that pytest reports it as deselected.
    """
    config = collector.config
    if config.option.markexpr not in ("not exhaustive", "fast") or any("::" in name for name in config.args):
        return None
    marks = (*getattr(obj, "pytestmark", ()), *collector.iter_markers())
    is_test = collector.funcnamefilter(name) and inspect.isfunction(obj)
    return [] if is_test and any(mark.name == "exhaustive" for mark in marks) else None


# `make test-fast`: some tests of every file but those of processes, of examples and of what others recorded. Which ones
# stays the same from run to run, and adding a test moves no other.
ONE_IN = 16
NOT_FAST = tuple(
    """distributed/ documentation/ examples/ fuzz/ independence/ models_torch/ op_specs/ oracle/
    compat/test_compat_programs compat/test_library_names graph/pipeline/test_processes models/test_generate
    models/test_pretrained models/test_processes models/test_training""".split()
)
ALL_FAST = ("test_imports.py", "support")


def _choose_the_fast():
    """Return a function that says of a test whether it is one of the fast ones."""
    seen = set()

    def is_fast(item):
        path = item.path.relative_to(pathlib.Path(__file__).parent).as_posix()
        left_out = any(item.get_closest_marker(marker) for marker in ("exhaustive", "slow", "aot", "gpu"))
        if left_out or path.startswith(NOT_FAST):
            return False
        first = path not in seen
        seen.add(path)
        return first or path.startswith(ALL_FAST) or zlib.crc32(item.nodeid.encode()) % ONE_IN == 0

    return is_fast


AMBIENT_MESH = "ambient_mesh"


def pytest_addoption(parser):
    choices = ("auto", "explicit")
    parser.addoption("--ambient-mesh", dest=AMBIENT_MESH, choices=choices, help="run each test under jax.set_mesh")
    parser.addoption("--sample", type=int, help="run so many test functions of the files about placements")


def _draw_functions(config, items):
    """Deselect all but a sample of the functions of global tensors, in files that do not use JAX itself.

    Which functions stay depends on their names only, and is the same on every machine.
    """
    sources = {item.module: inspect.getsource(item.module) for item in items}
    functions = {
        item.nodeid.split("[")[0]
        for item in items
        if not item.get_closest_marker("exhaustive")
        and "jax" not in vars(item.module)
        and "placement" in sources[item.module]
    }
    drawn = set(sorted(functions, key=lambda name: zlib.crc32(name.encode()))[: config.option.sample])
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid.split("[")[0] not in drawn])
    items[:] = [item for item in items if item.nodeid.split("[")[0] in drawn]


@pytest.fixture(autouse=True)
def _under_an_ambient_mesh(request):
    """Run a test under a mesh of all devices, if the option is given and the test file does not use JAX itself."""
    types = request.config.getoption(AMBIENT_MESH)
    if types is None or "jax" in vars(request.module):
        yield
        return
    import jax

    mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(jax.sharding.AxisType[types.capitalize()],) * 2)
    with jax.set_mesh(mesh):
        yield
        assert jax.sharding.get_mesh() == mesh and jax.sharding.get_abstract_mesh() == mesh.abstract_mesh


@pytest.hookimpl(tryfirst=True)  # before the cases are chosen by marker
def pytest_collection_modifyitems(config, items):
    _leave_cases_to_the_exhaustive_tests(items)
    if config.option.sample is not None:
        _draw_functions(config, items)
    reasons = {}
    if importlib.util.find_spec("libtpu") is None:
        reasons["aot"] = "needs libtpu to compile for absent devices: install the extra `aot`"
    if "cuda" not in os.environ["JAX_PLATFORMS"] and "gpu" not in os.environ["JAX_PLATFORMS"]:
        reasons["gpu"] = "needs a GPU: run with JAX_PLATFORMS=cuda,cpu on a machine that has one"
    is_fast = _choose_the_fast()
    for item in items:
        if is_fast(item):
            item.add_marker("fast")
        for marker, reason in reasons.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


_CLEARED_AFTER = 50  # tests
_since = 0  # the last clearance, in tests


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Let go of the MLIR of compiled programs, which JAX keeps: with thousands of it, all that MLIR does is slow.

    Each has a context of its own, and a context looks through the others of its thread whenever it makes a new type:
    after 1,300 programs a fifth of the time of compiling another. The executables stay, until the process has so many
    that sbpjax would soon drop them by itself, in a test that counts compilations perhaps.
    """
    global _since
    _since += 1
    if _since < _CLEARED_AFTER and nextitem is not None and nextitem.path == item.path or "jax" not in sys.modules:
        return
    _since = 0
    from jax._src import pjit
    from jax._src.interpreters import pxla

    for cache in (getattr(pjit, "_pjit_lower", None), getattr(pxla, "_cached_lowering_to_hlo", None)):
        if cache is not None:
            cache.cache_clear()
    mappings = sys.modules.get("sbpjax._core.compiler.mappings")
    if mappings is not None and mappings.count_mappings() > mappings.mapping_limit() / 2:
        sys.modules["jax"].clear_caches()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """Say how a worker ended that nobody ended."""
    if error is not None:
        print(f"\nworker {node.gateway.id} {worker_end.of_node(node)}", file=sys.stderr, flush=True)


class Compilations:
    """Counts the programs that XLA compiled (or loaded from its cache) while a `with` block ran."""

    def __init__(self):
        self.count = 0
        self.active = False

    def __enter__(self):
        # Backwards that tests before recorded and never called may still be compiling on other threads.
        from sbpjax._core.compiler.eager import background_compile as first_call

        while first_call._threads:
            time.sleep(0.01)
        self.count, self.active = 0, True
        return self

    def __exit__(self, *exc):
        self.active = False

    def on_event(self, name, duration, **rest):
        if self.active and name == "/jax/core/compile/jaxpr_to_mlir_module_duration":
            self.count += 1


_compilations = Compilations()


@pytest.fixture
def compiled_ops():
    """Let eager ops be compiled at their first calls too, so that they have the bits of other programs of the same."""
    import sbpjax

    sbpjax.use_deterministic_algorithms(True)
    yield
    sbpjax.use_deterministic_algorithms(False)


@pytest.fixture(scope="session")
def compilations():
    """Return the process's counter of compilations: ``with compilations as c: ...; assert c.count == 0``."""
    import jax

    jax.monitoring.register_event_duration_secs_listener(_compilations.on_event)
    return _compilations

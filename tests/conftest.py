"""Process-wide settings of the test run; they must stand before JAX starts, so before any import of jax or sbpjax."""

import collections
import importlib.util
import os
import pathlib
import zlib

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "8")
os.environ.setdefault("NPROC", "64")
# Tests count compilations; those of an earlier run must not answer for this one. tests/sbp/test_program_cache.py does.
os.environ.setdefault("SBPJAX_PROGRAM_CACHE", "off")

import hypothesis
import pytest

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
OF_EACH_FUNCTION = {"ops": 4, "nn": 3, "optim": 3}
OF_A_TEST = {
    "distributions/test_values.py": 3,
    "examples/test_gpt.py": 3,
    "graph/test_export.py": 3,
    "graph/test_matrix.py": 3,
    "graph/test_proxy.py": 3,
    "graph/test_zero.py": 3,
    "independence": 4,
    "models_torch/test_models.py": 3,
    "nn/test_layers.py": 2,
    "nn/test_more_layers.py": 2,
    "optim/test_from_optax.py": 3,
    "oracle/test_gradients.py": 2,
    "oracle/test_signatures.py": 2,
    "oracle/test_snippets.py": 2,
    "sbp/plan/test_control.py": 3,
    "sbp/plan/test_program.py": 2,
    "sbp/test_fallback.py": 2,
    "sbp/test_rules": 3,
    "tensor/test_creation.py": 2,
    "tensor/test_global.py": 3,
    "tensor/test_user_scripts.py": 3,
    "tensor/test_views.py": 3,
    "testing/test_specs.py": 3,
}


def _leave_cases_to_the_exhaustive_tests(items):
    cases = collections.defaultdict(list)
    for item in items:
        if "[" not in item.nodeid or item.get_closest_marker("exhaustive"):
            continue
        path = item.path.relative_to(pathlib.Path(__file__).parent).as_posix()
        every = next((n for start, n in OF_A_TEST.items() if path.startswith(start)), 1)
        if every > 1:
            cases[path, item.nodeid.split("[")[0], every].append(item)
        else:
            every = OF_EACH_FUNCTION.get(path.split("/")[0], 1)
            cases[path, item.nodeid.split("-")[0], every].append(item)
    for (_, name, every), some in cases.items():
        kept = zlib.crc32(name.encode()) % min(every, len(some))
        for i, item in enumerate(some):
            if i % every != kept:
                item.add_marker("exhaustive")


@pytest.hookimpl(tryfirst=True)  # before the cases are chosen by marker
def pytest_collection_modifyitems(items):
    _leave_cases_to_the_exhaustive_tests(items)
    reasons = {}
    if importlib.util.find_spec("libtpu") is None:
        reasons["aot"] = "needs libtpu to compile for absent devices: install the extra `aot`"
    if "cuda" not in os.environ["JAX_PLATFORMS"] and "gpu" not in os.environ["JAX_PLATFORMS"]:
        reasons["gpu"] = "needs a GPU: run with JAX_PLATFORMS=cuda,cpu on a machine that has one"
    for item in items:
        for marker, reason in reasons.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


class Compilations:
    """Counts the programs that XLA compiled (or loaded from its cache) while a `with` block ran."""

    def __init__(self):
        self.count = 0
        self.active = False

    def __enter__(self):
        self.count, self.active = 0, True
        return self

    def __exit__(self, *exc):
        self.active = False

    def on_event(self, name, duration, **rest):
        if self.active and name == "/jax/core/compile/jaxpr_to_mlir_module_duration":
            self.count += 1


_compilations = Compilations()


@pytest.fixture(scope="session")
def compilations():
    """Return the process's counter of compilations: ``with compilations as c: ...; assert c.count == 0``."""
    import jax

    jax.monitoring.register_event_duration_secs_listener(_compilations.on_event)
    return _compilations

"""Process-wide settings of the test run; they must stand before JAX starts, so before any import of jax or sbpjax."""

import collections
import importlib.util
import os
import pathlib

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


# Of the cases of one function one in so many runs by default, at least one of each; the others are exhaustive tests.
# Every op's values and gradients are held against PyTorch's once more in tests/testing.
ONE_IN = {"ops": 3, "nn": 2, "optim": 2}


def _leave_cases_to_the_exhaustive_tests(items):
    seen = collections.Counter()
    for item in items:
        every = ONE_IN.get(item.path.relative_to(pathlib.Path(__file__).parent).parts[0], 1)
        case = item.nodeid.split("-")[0]  # the file, the test, and the first parameter: the function or layer
        if "[" in item.nodeid and seen[case] % every:
            item.add_marker("exhaustive")
        seen[case] += 1


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

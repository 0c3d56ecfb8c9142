"""JAX's compilation cache in a job: every rank writes the programs of sbpjax, JAX's rule holds for all others."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from sbpjax._core.jax_private import compilation_cache, compiler, distributed
from sbpjax._core.runtime.ambient_mesh import jit_without_mesh
from sbpjax._core.runtime.compilation_cache import compile_cached


class Lowered:
    """A program whose compilation asks JAX's cache to write it, as JAX does."""

    def __init__(self, platform, host_callbacks=(), then=None):
        self.backend, self.host_callbacks = SimpleNamespace(platform=platform), list(host_callbacks)
        self.then = then or (lambda: None)

    def compile(self):
        self.then()
        compiler._cache_write("key", 2.5, "name", self.backend, "program", self.host_callbacks)


@pytest.fixture
def writes(monkeypatch):
    """What is written by a process of rank 1: the programs of sbpjax, and what is left to JAX's rule."""
    found = []
    monkeypatch.setattr(compiler, "_cache_write", lambda *given: found.append("by JAX's rule"))
    monkeypatch.setattr(compilation_cache, "put_executable_and_time", lambda *given: found.append("by this rank"))
    monkeypatch.setattr(distributed.global_state, "process_id", 1)
    return found


@pytest.mark.parametrize(("platform", "local", "writer"), [
    ("cpu", "3", "by this rank"), ("gpu", "0", "by this rank"), ("gpu", "3", "by JAX's rule"),
])  # fmt: skip
def test_other_ranks_write_their_programs(platform, local, writer, writes, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", local)
    rule = compiler._cache_write
    compile_cached(Lowered(platform))
    compile_cached(Lowered(platform, ["a host callback"]))
    assert writes == [writer, "by JAX's rule"] and compiler._cache_write is rule


def test_programs_of_others_keep_the_rule_of_jax(writes):
    rule = compiler._cache_write

    def compile_another():
        other = threading.Thread(target=Lowered("cpu").compile)  # JAX's own call on a thread of the user
        other.start()
        other.join()
        assert writes == ["by JAX's rule"]

    compile_cached(Lowered("cpu", then=compile_another))
    assert writes == ["by JAX's rule", "by this rank"] and compiler._cache_write is rule


def test_an_error_of_the_compiler_gives_the_rule_back(writes):
    rule = compiler._cache_write

    def fail():
        raise ValueError("no such instruction")

    with pytest.raises(ValueError, match="no such instruction"):
        compile_cached(Lowered("cpu", then=fail))
    assert compiler._cache_write is rule


def test_programs_of_sbpjax_are_compiled_by_calls_that_write(writes):
    found = jit_without_mesh(lambda x: 3 * x + 1)(np.arange(5.0))  # by JAX's call, which compiles at the first use
    assert writes == ["by this rank"] and found.tolist() == [1, 4, 7, 10, 13]

"""Programs for chips that are not there: the TPU compiler says which collectives a plan becomes."""

import os
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache
from jax.sharding import NamedSharding, PartitionSpec

from sbpjax._core.compiler import lower
from sbpjax._core.compiler.lower import spmd_function
from sbpjax._core.planner import plan_exactly
from sbpjax._core.programs.normalise import normalise
from sbpjax.sbp import placement
from sbpjax.sbp.conversion_steps import MeshPosition
from sbpjax.sbp.layout import layout_of

pytestmark = pytest.mark.aot

COLLECTIVE = re.compile(r"= \S+ (all-reduce|reduce-scatter|all-gather|all-to-all|collective-permute)(-start)?\(")


@pytest.fixture(scope="module")
def chips():
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    directory = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)  # programs for absent chips cannot be read back from the cache
    compilation_cache.reset_cache()
    yield placement.topology("v5p:2x2x2", [2, 4])
    jax.config.update("jax_compilation_cache_dir", directory)
    compilation_cache.reset_cache()


def compiled_for(chips, function, shapes, in_codes, pins):
    program = normalise(jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes)))
    plan = plan_exactly(program, chips.hierarchy, in_codes, pins)
    layouts = [layout_of(chips, c, s, np.dtype(np.float32)) for c, s in zip(in_codes, shapes, strict=True)]
    args = [jax.ShapeDtypeStruct(lay.physical_shape, lay.dtype, sharding=lay.sharding) for lay in layouts]
    return plan, jax.jit(spmd_function(plan, chips)).lower(*args).compile()


def test_absent_chips_form_a_placement(chips):
    assert chips.type == "tpu"
    assert chips.hierarchy == (2, 4)
    assert not chips.is_present


def test_megatron_forward_is_one_all_reduce(chips):
    def mlp(x, v, w):
        return jnp.tanh(x @ v) @ w

    shapes = ((512, 1024), (1024, 4096), (4096, 1024))
    in_codes = ((0, -1), (-1, 1), (-1, 0))
    plan, program = compiled_for(chips, mlp, shapes, in_codes, ((0, -1),))
    assert [b.steps[0].kind for b in plan.boxings] == ["psum"]
    assert [m[0] for m in COLLECTIVE.findall(program.as_text())] == ["all-reduce"]


def test_gradients_into_split_state_are_reduce_scattered(chips):
    def gradient(w, x):
        return jax.grad(lambda w: jnp.tanh(x @ w).sum())(w)

    shapes = ((1024, 1024), (65536, 1024))
    in_codes = ((-1, -1), (0, 0))
    flat = placement.topology("v5p:2x2x1", [2, 2])  # over all of a torus of three dims an all-reduce is made of it
    plan, program = compiled_for(flat, gradient, shapes, in_codes, ((0, 0),))
    assert {s.kind for b in plan.boxings for s in b.steps} == {"psum_scatter"}
    assert {m[0] for m in COLLECTIVE.findall(program.as_text())} == {"reduce-scatter"}
    memory = program.memory_analysis()
    assert memory.argument_size_in_bytes < 1.1 * 4 * (1024 * 1024 + 65536 * 1024 // 4)


def test_gathered_state_is_written_in_the_place_of_the_old_one():
    """Left to itself the compiler copies the old parameter, and the new one behind its gather."""
    line = placement.topology("v5p:2x2x2", [8])
    (name,) = line.axis_names
    here, rows, width = MeshPosition((8,), (name,)), 16384, 8192

    def copies(place):
        def step(w, m, x):
            gradient = jax.lax.psum((x @ w.T).T @ x, name)
            part = here.index(0) * (rows // 8)
            mine, old = (jax.lax.dynamic_slice_in_dim(a, part, rows // 8) for a in (gradient, w))
            m = 0.9 * m + mine
            return place(jax.lax.all_gather(old - m, name, tiled=True), here), m

        whole, cut = PartitionSpec(), PartitionSpec(name)
        run = jax.shard_map(step, mesh=line.mesh, in_specs=(whole, cut, cut), out_specs=(whole, cut), check_vma=False)
        args = [
            jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(line.mesh, spec))
            for shape, spec in (((rows, width), whole), ((rows, width), cut), ((16384, width), cut))
        ]
        text = jax.jit(run, donate_argnums=(0, 1)).lower(*args).compile().as_text()
        return len(re.findall(rf"= bf16\[{rows},{width}\]\S* copy\(", text))

    assert copies(lambda w, _: w) == 2
    assert copies(lower._rewrite_in_place) == 0

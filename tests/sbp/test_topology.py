"""Placements of machines that are not there; what needs a compiler's wheel is marked `aot`."""

import importlib.util
import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from sbpjax._core.compiler import hlo
from sbpjax._core.compiler.lower import spmd_function
from sbpjax._core.planner import plan_exactly
from sbpjax._core.planner.prices.cost import PRESETS
from sbpjax._core.planner.prices.links import of_placement
from sbpjax._core.programs.normalise import normalise
from sbpjax.errors import PlacementError
from sbpjax.sbp import boxing, placement, topology
from sbpjax.sbp.algebra import B, P
from sbpjax.sbp.conversion_steps import MeshPosition, make_step
from sbpjax.sbp.layout import layout_of
from sbpjax.sbp.placement import flat_placement


@pytest.fixture
def no_wheels(monkeypatch):
    """The environment without the compilers' wheels."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    topology.devices.cache_clear()
    yield
    topology.devices.cache_clear()


def lines_of(error) -> list[str]:
    return [line.split(":")[0].strip() for line in str(error.value).splitlines()[1:]]


@pytest.mark.parametrize(
    "name, wheel", [("v5p:4x4x4", "no libtpu"), ("h100:8", "no jax-cuda12-plugin and jax-cuda12-pjrt")]
)
def test_a_missing_compiler_is_named(no_wheels, name, wheel):
    with pytest.raises(PlacementError, match=wheel) as error:
        placement.topology(name)
    assert lines_of(error) == ["seen", "rule", "fix"]
    assert 'pip install "jax[tpu]>=' in str(error.value)
    assert __file__ in str(error.value)


@pytest.mark.parametrize("name", ["v99:2x2", "laptop", ""])
def test_an_unknown_kind_is_an_error(name):
    with pytest.raises(PlacementError, match="the kind one of a100, h100, h200, v2") as error:
        placement.topology(name)
    assert lines_of(error) == ["seen", "rule", "fix"]


@pytest.mark.parametrize("name", ["h100", "h100:0", "h100:2x2x2", "h100:eight"])
def test_a_gpu_size_is_devices_or_nodes_times_devices(name):
    with pytest.raises(PlacementError, match="kind:devices or kind:nodes×devices"):
        placement.topology(name)


def test_the_target_text_holds_the_data_sheet():
    text = topology.GPUS["h100"].target()
    for line in ("core_count: 132", "major: 9 minor: 0", "memory_bandwidth: 3352000000000", "clock_rate_ghz: 1.98"):
        assert line in text


@pytest.mark.parametrize(
    "shape, inner",
    [((2, 2, 4), (1, 2, 4)), ((16,), (8,)), ((4, 4), (2, 4)), ((1, 2, 8), (1, 1, 8)), ((2, 8, 1), (1, 8, 1))],
)
def test_slices_are_outermost(shape, inner):
    assert topology._shape_of_slice("2*v5e:2x4", shape, 2) == inner


def test_an_axis_that_cuts_through_slices_is_an_error():
    with pytest.raises(PlacementError, match="outer axes hold whole slices: 3 and 2 do not divide"):
        topology._shape_of_slice("2*v5e:2x3", (3, 4), 2)


def test_gpus_have_no_slices():
    with pytest.raises(PlacementError, match="slices are of TPUs"):
        placement.topology("2*h100:8")


def test_kind_and_slices_of_a_name():
    assert [topology.kind_of(n) for n in ("v5p:2x2x2", "2*v5p:2x2x2")] == ["v5p", "v5p"]
    assert [topology.slices_of(n) for n in ("v5p:2x2x2", "32*v5e:16x16")] == [1, 32]


@pytest.mark.aot
class TestSlices:
    def test_grid_and_links(self):
        p = placement.topology("2*v5e:2x4", [2, 2, 4])
        assert [{d.slice_index for d in part.flat} for part in p.devices] == [{0}, {1}]
        whole = placement.topology("2*v5e:2x4")
        assert [d.slice_index for d in whole.devices.flat] == [0] * 8 + [1] * 8
        model = of_placement(p)
        network = PRESETS["v5e"].slices
        assert [link.bytes_per_s for link in model.links] == [
            network.bytes_per_s * model.efficiency.slices, *[PRESETS["v5e"].interconnect_bytes_per_s] * 2
        ]  # fmt: skip
        assert model.links[0].alpha_us == network.alpha_us

    def test_a_sum_sends_an_eighth_between_slices(self):
        """Of 2 x (2 x 4) chips a sum by the planner's path sends 1/8 of a flat one's bytes over the outer axis."""
        p = placement.topology("2*v5e:2x4", [2, 2, 4])
        shape, codes = (4096, 1024), ((P,) * 3, (B,) * 3)
        layout = layout_of(p, codes[0], shape, np.dtype(np.float32))
        x = jax.ShapeDtypeStruct(layout.physical_shape, layout.dtype, sharding=layout.sharding)
        here = MeshPosition(p.hierarchy, p.axis_names, None)
        step = make_step(shape, 4, p.hierarchy, codes[0], 0, B)
        sums = {
            "planned": lambda x: boxing.run(here, x, shape, *codes),
            "flat": lambda x: here.convert(x, shape, codes[0], step),  # all of every chip's summand
        }
        between = {}
        for name, run in sums.items():
            spec = PartitionSpec(*p.axis_names)
            body = lambda x, run=run: run(x[0, 0, 0])[None, None, None]  # noqa: E731
            mapped = jax.jit(jax.shard_map(body, mesh=p.mesh, in_specs=spec, out_specs=spec, check_vma=False))
            found = hlo.collectives(mapped.trace(x).lower(lowering_platforms=("tpu",)).compile().as_text())
            (between[name],) = [c for c in found if c.between_slices]
        assert {c.kind for c in between.values()} == {"all-reduce"} and {c.group for c in between.values()} == {2}
        assert between["flat"].interconnect_bytes == 4096 * 1024 * 4
        assert between["planned"].interconnect_bytes * 8 == between["flat"].interconnect_bytes


@pytest.mark.aot
class TestTpu:
    def test_type_and_shape(self):
        p = placement.topology("v5p:2x2x2", [2, 4])
        assert (p.type, p.hierarchy, p.size, p.is_present) == ("tpu", (2, 4), 8, False)
        assert p.topology_name == "v5p:2x2x2"
        assert sorted(p.ranks.flat) == list(range(8))
        assert placement.topology("v5p:2x2x2").hierarchy == (8,)

    def test_equal_ones_are_equal(self):
        p = placement.topology("v5p:2x2x2", [2, 4])
        assert p == placement.topology("v5p:2x2x2", [2, 4])
        assert hash(p) == hash(placement.topology("v5p:2x2x2", [2, 4]))
        assert p != placement.topology("v5p:2x2x2", [4, 2])
        assert p != placement.topology("v5e:2x4", [2, 4])
        assert pickle.loads(pickle.dumps(p)) == p

    def test_repr_says_how_to_make_it(self):
        p = placement.topology("v5p:2x2x2", [2, 4])
        assert repr(p) == 'sbpjax.placement.topology("v5p:2x2x2", [2, 4])'
        assert flat_placement(p).hierarchy == (8,)
        assert (flat_placement(p).devices == p.devices.reshape(-1)).all()

    def test_neighbours_on_an_axis_are_neighbours_in_the_machine(self):
        p = placement.topology("v5p:4x4x4", [4, 4, 4])
        coords = np.array([d.coords for d in p.devices.flat]).reshape(4, 4, 4, 3)
        for axis in range(3):
            steps = np.abs(np.diff(coords, axis=axis)).sum(-1)
            assert (steps == 1).all()

    def test_ranks_may_be_given(self):
        p = placement.topology("v5p:2x2x2", ranks=[[7, 6], [1, 0]])
        assert p.ranks.tolist() == [[7, 6], [1, 0]]
        with pytest.raises(PlacementError, match="ranks 0 to 7"):
            placement.topology("v5p:2x2x2", ranks=[0, 8])

    def test_wrong_names_and_hierarchies(self):
        with pytest.raises(PlacementError, match="not divisible") as error:
            placement.topology("v5p:3x2x7")
        assert lines_of(error) == ["seen", "rule", "fix"]
        with pytest.raises(PlacementError, match="a hierarchy of 3 × 3 = 9 ranks") as error:
            placement.topology("v5p:2x2x2", [3, 3])
        assert "has 8 devices" in str(error.value)

    def test_nothing_happens_at_import(self):
        code = "import sys, sbpjax; sys.exit('libtpu' in sys.modules or sbpjax.env.devices_started())"
        assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


def _program(p):
    def gradient(w, x):
        return jax.grad(lambda w: jnp.tanh(x @ w).sum())(w)

    shapes, in_codes = ((1024, 1024), (65536, 1024)), ((-1, -1), (0, 0))
    program = normalise(jax.make_jaxpr(gradient)(*(jax.ShapeDtypeStruct(s, jnp.bfloat16) for s in shapes)))
    plan = plan_exactly(program, p.hierarchy, in_codes, ((0, 0),))
    layouts = [layout_of(p, c, s, np.dtype(jnp.bfloat16)) for c, s in zip(in_codes, shapes, strict=True)]
    args = [jax.ShapeDtypeStruct(lay.physical_shape, lay.dtype, sharding=lay.sharding) for lay in layouts]
    return plan, jax.jit(spmd_function(plan, p)).lower(*args)


@pytest.mark.aot
@pytest.mark.parametrize("name", ["v5p:2x2x2", "h100:8"])
def test_gradients_are_reduce_scattered_by_the_real_compilers(name):
    if name.startswith("h100"):
        pytest.importorskip("jax_cuda12_plugin", reason="needs jax-cuda12-plugin and jax-cuda12-pjrt (extra `aot`)")
    p = placement.topology(name, [2, 4])
    plan, lowered = _program(p)
    compiled = lowered.compile()
    found = hlo.collectives(compiled.as_text())
    assert {c.kind for c in found} == {"reduce-scatter"}
    assert sum(c.interconnect_bytes for c in found) == plan.bytes
    lowered.compile()  # again: nothing of it was left in a cache that cannot be read


@pytest.mark.aot
def test_gpus():
    pytest.importorskip("jax_cuda12_plugin", reason="needs jax-cuda12-plugin and jax-cuda12-pjrt (extra `aot`)")
    p = placement.topology("h100:8", [2, 4])
    assert (p.type, p.hierarchy, p.is_present) == ("cuda", (2, 4), False)
    assert p.devices.flat[0].device_kind == "NVIDIA H100 80GB HBM3"
    assert p == placement.topology("h100:8", [2, 4]) != placement.topology("h100:2x4", [2, 4])
    assert placement.topology("h100:2x8").size == 16

"""Ordinary sharded arrays in and out."""

import contextlib
import random

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import sbpjax as flow
from sbpjax import sbp
from sbpjax._core.compiler import conversions, interop
from sbpjax.errors import SbpError
from sbpjax.sbp import algebra, placement

TYPES = (AxisType.Auto, AxisType.Explicit)
X = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.mark.parametrize(
    ("spec", "codes"),
    [
        (PartitionSpec("x", "y"), (0, 1)),
        (PartitionSpec(("x", "y")), (0, 0)),
        (PartitionSpec(None, "x"), (1, -1)),
        (PartitionSpec(), (-1, -1)),
        (PartitionSpec(("y", "x")), (0, 0)),
    ],
)
def test_from_jax(spec, codes):
    mesh = Mesh(np.asarray(jax.devices()[:4]).reshape(2, 2), ("x", "y"))
    array, layout = interop.from_jax(jax.device_put(X, NamedSharding(mesh, spec)))
    assert layout.codes == codes
    assert layout.placement == placement("cpu", [[0, 1], [2, 3]])
    np.testing.assert_array_equal(conversions.to_logical(array, layout), X)


def test_one_device_is_local():
    assert interop.from_jax(jax.numpy.ones(3))[1] is None


@pytest.mark.parametrize("value", [jax.random.key(0), jax.random.split(jax.random.key(0), 8), 1.0, [1, 2], None])
def test_no_array_of_numbers(value):
    with pytest.raises(flow.errors.OpTypeError, match=r"(?s)from_jax.*seen: .*rule: .*fix:  sbpjax.tensor"):
        flow.from_jax(value)


def test_to_jax_and_back():
    array, layout = conversions.from_logical(X, placement("cpu", [[0, 1], [2, 3]]), "S1,S0")
    mesh = Mesh(layout.placement.devices, ("data", "model"))
    out = interop.to_jax(array, layout, mesh)
    assert out.sharding == NamedSharding(mesh, PartitionSpec("model", "data"))
    np.testing.assert_array_equal(out, X)
    back = interop.from_jax(out)[1]
    assert (back.placement, back.codes, back.placement.mesh) == (layout.placement, layout.codes, mesh)


def test_padded_dims_are_refused():
    array, layout = conversions.from_logical(np.ones((5, 4), np.float32), placement("cpu", [0, 1, 2, 3]), "S0")
    with pytest.raises(SbpError, match=r"(?s)x.jax\(\).*no padding.*fix: .*to_global"):
        interop.to_jax(array, layout)


def test_partial_sum_is_an_unreduced_array():
    """The blocks of an unreduced array are the summands: JAX's own reduction gives the value."""
    mesh = jax.make_mesh((2, 4), ("data", "model"))
    x = flow.arange(32.0).reshape(8, 4).to_global(placement(mesh), [sbp.split(0), sbp.partial_sum])
    x = x + x.to_global(sbp=[sbp.split(0), sbp.partial_sum])
    array = x.jax()
    assert array.sharding == NamedSharding(mesh, PartitionSpec("data", unreduced={"model"}))
    with jax.set_mesh(mesh):
        whole = jax.jit(lambda a: jax.sharding.reshard(a, PartitionSpec("data")))(array)
    np.testing.assert_array_equal(whole, 2 * X)


def test_unreduced_result_of_jax_comes_in():
    mesh = jax.make_mesh((2, 4), ("a", "b"))
    left = jax.device_put(np.arange(64, dtype="f").reshape(8, 8), NamedSharding(mesh, PartitionSpec("a", "b")))
    right = jax.device_put(np.arange(64, dtype="f").reshape(8, 8), NamedSharding(mesh, PartitionSpec("b")))
    spec = NamedSharding(mesh, PartitionSpec("a", unreduced={"b"}))
    product = jax.jit(lambda x, y: jax.numpy.einsum("ij,jk->ik", x, y, out_sharding=spec))(left, right)
    x = flow.from_jax(product)
    assert x.sbp == (sbp.split(0), sbp.partial_sum) and x.placement.mesh == mesh
    np.testing.assert_array_equal(x.numpy(), np.asarray(left) @ np.asarray(right))
    assert x.jax().sharding == NamedSharding(mesh, PartitionSpec("a", unreduced={"b"}))


def test_reduced_array_is_broadcast():
    mesh = jax.make_mesh((2, 4), ("a", "b"))
    array = jax.device_put(X, NamedSharding(mesh, PartitionSpec("a", reduced={"b"})))
    assert flow.from_jax(array).sbp == (sbp.split(0), sbp.broadcast)


def test_partial_sum_without_a_mesh_gets_explicit_axes():
    array = flow.ones(8, 4).to_global(placement("cpu", [0, 1, 2, 3]), "P").jax()
    assert array.sharding.spec == PartitionSpec(unreduced={"a0"})
    assert array.sharding.mesh.axis_types == (AxisType.Explicit,)


def test_partial_sum_on_auto_axes_is_refused():
    mesh = Mesh(np.asarray(jax.devices()[:4]), ("data",))
    with pytest.raises(SbpError, match=r"(?s)x.jax\(mesh.*axes of type Explicit.*fix: .*x.jax\(\), or"):
        flow.ones(8, 4).to_global(placement(mesh), "P").jax(mesh)


def test_random_layouts_there_and_back():
    """Any layout without padding crosses to JAX and back with equal sharding, names, types and values."""
    draw, crossed, padded = random.Random(0), 0, 0
    while crossed < 40:
        sizes = draw.choice([(2, 4), (4, 2), (2, 2, 2), (8,)])
        types = tuple(draw.choice([AxisType.Auto, AxisType.Explicit]) for _ in sizes)
        mesh = jax.make_mesh(sizes, tuple(draw.sample(["data", "model", "pipe", "x"], len(sizes))), axis_types=types)
        shape = draw.choice([(8, 16), (16, 8, 8), (7, 5), (8, 3, 8)])
        codes = tuple(draw.choice([-2, -1, *range(len(shape))]) for _ in sizes)
        x = flow.arange(float(np.prod(shape))).reshape(*shape).to_global(placement(mesh), algebra.to_sbp(codes))
        if not x.layout.is_even:
            padded += 1
            with pytest.raises(SbpError, match="no padding"):
                x.jax()
            continue
        array = x.jax()
        y = flow.from_jax(array)
        assert (y.sbp, y.placement, y.placement.axis_names) == (x.sbp, x.placement, mesh.axis_names)
        assert y.jax().sharding == array.sharding and (-2 in codes or array.sharding.mesh == mesh)
        np.testing.assert_array_equal(y.numpy(), x.numpy())
        crossed += 1
    assert padded


def test_random_arrays_of_jax_there_and_back():
    """Also on meshes of shuffled or few devices and with axes of size 1, under the array's mesh and without."""
    draw = random.Random(7)
    for _ in range(40):
        sizes = draw.choice([(8,), (2, 4), (4, 2), (2, 2, 2), (1, 8), (2, 2)])
        names = tuple(draw.sample(["data", "model", "expert", "x"], len(sizes)))
        devices = np.asarray(draw.sample(jax.devices(), np.prod(sizes))).reshape(sizes)
        mesh = Mesh(devices, names, axis_types=tuple(draw.choice(list(TYPES)) for _ in sizes))
        dims: list = [[] for _ in range(draw.choice([1, 2, 3]))]
        for name in names:
            draw.choice([*dims, []]).append(name)
        sharding = NamedSharding(mesh, PartitionSpec(*[tuple(d) or None for d in dims]))
        values = np.arange(8.0 ** len(dims), dtype="f").reshape((8,) * len(dims))
        with jax.set_mesh(mesh) if draw.random() < 0.5 else contextlib.nullcontext():
            x = flow.from_jax(jax.device_put(values, sharding))
            back = x.jax()
            assert x.placement.axis_names == names
            np.testing.assert_array_equal(x.numpy(), values)
        assert back.sharding.mesh == mesh and back.sharding.is_equivalent_to(sharding, len(dims))

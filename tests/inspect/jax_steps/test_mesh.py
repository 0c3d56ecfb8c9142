"""Meshes as placements, layouts as specs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from sbpjax._core.inspect.jax_steps.mesh import MeshAxes
from sbpjax.errors import PlacementError, SbpError
from sbpjax.sbp.placement import placement

from .cases import make_mesh


def test_axes_of_one_device_are_left_out():
    mesh = jax.make_mesh((1, 2, 1, 4), tuple("abcd"), axis_types=(AxisType.Auto,) * 4)
    axes = MeshAxes(mesh)
    assert axes.names == ("b", "d") and axes.sizes == (2, 4) and axes.title == "b 2 × d 4"
    assert axes.parse("x", P(("a", "b"), "d"), (2, 4)) == (0, 1)
    assert MeshAxes(make_mesh(1, 1)).sizes == (1,)


@pytest.mark.parametrize(
    "codes, spec",
    [((0, 1), P("data", "model")), ((1, 1), P(None, ("data", "model"))), ((-1, -1), P()), ((-1, 0), P("model"))],
)
def test_specs_and_codes(codes, spec):
    axes = MeshAxes(make_mesh(2, 4))
    assert axes.spec(codes, 2) == spec
    assert axes.parse("x", spec, (8, 8)) == codes
    assert axes.parse("x", NamedSharding(axes.mesh, spec), (8, 8)) == codes


def test_a_placement_is_a_mesh():
    axes = MeshAxes(placement("cpu", np.arange(8).reshape(2, 4)))
    assert axes.sizes == (2, 4) and isinstance(axes.mesh, Mesh)


def test_own_codes_are_of_this_mesh_alone():
    axes = MeshAxes(make_mesh(2, 4))
    x = jax.device_put(jnp.ones((8, 8)), NamedSharding(axes.mesh, P("model")))
    assert axes.own_codes(x.sharding, x.shape) == (-1, 0)
    assert axes.own_codes(jax.device_put(x, jax.devices()[0]).sharding, x.shape) is None
    turned = Mesh(axes.mesh.devices[::-1], axes.mesh.axis_names)
    assert axes.own_codes(NamedSharding(turned, P("model")), x.shape) is None


def test_what_is_no_mesh_is_refused():
    with pytest.raises(PlacementError, match="a jax.sharding.Mesh"):
        MeshAxes([0, 1])
    mixed = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Explicit))
    with pytest.raises(PlacementError, match="a mesh with axes data Auto, model Explicit"):
        MeshAxes(mixed)
    with pytest.raises(PlacementError, match="Manual"):
        MeshAxes(make_mesh(2, 4, kind="Manual"))


@pytest.mark.parametrize(
    "layout, text",
    [
        (P(("model", "data")), "the inner axis cuts"),
        (P("data", unreduced={"model"}), "no partial sum"),
        (NamedSharding(make_mesh(8), P("data")), "over another mesh"),
        ("P,B", "no partial sum"),
        ("S2,B", "S2|split"),
    ],
)
def test_wrong_layouts_are_refused(layout, text):
    with pytest.raises(SbpError, match=text):
        MeshAxes(make_mesh(2, 4)).parse("x", layout, (8, 8))

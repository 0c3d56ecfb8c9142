"""Ordinary sharded arrays in and out."""

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from sbpjax._core.compiler import conversions, interop
from sbpjax.errors import SbpError
from sbpjax.sbp import placement

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


def test_to_jax_and_back():
    array, layout = conversions.from_logical(X, placement("cpu", [[0, 1], [2, 3]]), "S1,S0")
    mesh = Mesh(layout.placement.devices, ("data", "model"))
    out = interop.to_jax(array, layout, mesh)
    assert out.sharding == NamedSharding(mesh, PartitionSpec("model", "data"))
    np.testing.assert_array_equal(out, X)
    assert interop.from_jax(out)[1] is layout


@pytest.mark.parametrize(("sbp", "shape", "reason"), [("P", (8, 4), "partial sums"), ("S0", (5, 4), "padded")])
def test_what_is_no_jax_array(sbp, shape, reason):
    array, layout = conversions.from_logical(np.ones(shape, np.float32), placement("cpu", [0, 1, 2, 3]), sbp)
    with pytest.raises(SbpError, match=rf"(?s)x.jax\(\).*{reason}.*fix: .*to_global"):
        interop.to_jax(array, layout)

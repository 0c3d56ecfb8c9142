"""Inputs drawn from a seed: corners and bounds, wrong inputs, values of views."""

import numpy as np
import pytest

import sbpjax
from tests.support.generate import Gen, Input


def test_corners_are_drawn_within_bounds():
    drawn = [Gen([s], corners="all").tensor((40,), "float32", views=False).base for s in range(20)]
    assert any(np.isnan(x).any() and np.isinf(x).any() for x in drawn) and any((x == 0).sum() > 1 for x in drawn)
    for s in range(20):
        x = Gen([s], corners="all").tensor((40,), "float32", low=0.0, high=1.0, views=False).base
        assert ((x >= 0) & (x <= 1) | np.isnan(x)).all()
        assert np.isfinite(Gen([s], corners="finite").tensor((40,), "float32", views=False).base).all()


def test_faults_are_drawn():
    g = Gen(0, fault="dim")
    assert g.dim(2) == 5 and g.hit
    g = Gen(0, fault="shape")
    x = Input(np.zeros((2, 3), np.float32))
    with pytest.raises(ValueError):
        np.broadcast_shapes(x.shape, g.like(x).shape)


@pytest.mark.parametrize("suffix", ["", ".transpose(-1, -2)", "[1:]", "[..., ::2]", ".expand(4, 3)"])
def test_views_have_their_value(suffix):
    base = np.arange(3 if "expand" in suffix else 12, dtype=np.float32).reshape(-1, 3)
    x = Input(base, suffix)
    tensor = eval(f"b{suffix}", {"b": sbpjax.from_numpy(base.copy())})
    np.testing.assert_array_equal(tensor.numpy(), x.value)

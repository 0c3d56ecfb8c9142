"""A planned step: what it accepts, where arrays have to be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import sbpjax
from sbpjax._core.inspect.jax_steps.mesh import MeshAxes
from sbpjax.errors import MixedTensorError, OpValueError, PlacementError
from sbpjax.sbp.placement import placement

from .cases import arguments, losses, make_mesh, one_device, planned, train_step


def test_arguments_of_another_form_are_refused():
    step, (params, state, x, y) = planned(8).jit(donate=False), arguments()
    with pytest.raises(OpValueError, match=r"x float32\[16, 64\]"):
        step(params, state, x[:16], y[:16])
    with pytest.raises(OpValueError, match=r"x int32\[32, 64\]"):
        step(params, state, x.astype(jnp.int32), y)
    with pytest.raises(OpValueError, match="arguments of the structure"):
        step(params, state, x, (y, y))


def test_an_option_of_another_value_is_refused():
    def step(x, double):
        return x * 2 if double else x

    x = jnp.ones(8, jnp.float32)
    found = sbpjax.auto.plan(step, x, True, mesh=make_mesh(8)).jit()
    with pytest.raises(OpValueError, match="the constant False.*\n.*made for True"):
        found(x, False)


def test_arrays_placed_elsewhere_are_refused_by_name():
    step, (params, state, x, y) = planned(8).jit(donate=False), arguments()
    elsewhere = jax.device_put(x, NamedSharding(make_mesh(4), P("data")))
    with pytest.raises(MixedTensorError, match=r"(?s)x float32\[32, 64\] as .*plan.put"):
        step(params, state, elsewhere, y)
    placed = planned(8).put(params, state, elsewhere, y)
    np.testing.assert_allclose(step(*placed)[2], train_step(params, state, x, y)[2], rtol=1e-6)


def test_host_arrays_are_divided():
    args = jax.tree.map(np.asarray, arguments())
    np.testing.assert_allclose(
        losses(planned(2, 4).jit(donate=False), args), one_device(train_step, arguments()), rtol=1e-6
    )


def test_a_step_for_absent_devices_is_not_run():
    class Absent:
        platform, device_kind, process_index = "tpu", "TPU v5p", 0

        def __init__(self, number):
            self.id = number

    axes = MeshAxes(make_mesh(8))
    axes.placement = placement.of_devices(np.asarray([Absent(i) for i in range(8)], dtype=object))
    found = planned(8)
    step = found.jit()
    step._axes = axes
    with pytest.raises(PlacementError, match="can be compiled and inspected, not run"):
        step(*arguments())


def test_it_runs_under_an_ambient_mesh():
    wanted = one_device(train_step, arguments())
    for kind in ("Auto", "Explicit"):
        step = planned(2, 4, kind=kind).jit(donate=False)
        with jax.set_mesh(make_mesh(8, kind=kind)):
            np.testing.assert_allclose(losses(step, arguments()), wanted, rtol=1e-6)


def test_lower_takes_no_arguments():
    lowered = planned(8).jit().lower()
    assert "all-reduce" in lowered.compile().as_text() or "all-gather" in lowered.compile().as_text()

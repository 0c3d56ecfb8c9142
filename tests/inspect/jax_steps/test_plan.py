"""`auto.plan` on a hand-written step: values, collectives, shardings, pins, files, errors."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import sbpjax
from sbpjax._core.inspect.traffic import planned_launches
from sbpjax.errors import (
    ConfigError,
    DataDependentError,
    OpNotSupportedError,
    OpTypeError,
    OutOfMemoryError,
    PlacementError,
    SbpError,
)

from .cases import ADAM, arguments, init, loss_of, losses, make_mesh, one_device, planned, train_step

TOLERANCE = 1e-6
plan = sbpjax.auto.plan


def same(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("shape, kind", [((8,), "Auto"), ((2, 4), "Auto"), ((2, 4), "Explicit"), ((1, 8), "Auto")])
def test_losses_equal_one_device(shape, kind):
    step = planned(*shape, kind=kind).jit(train_step, donate=False)
    same(losses(step, arguments()), one_device(train_step, arguments()))


@pytest.mark.parametrize("shape", [(8,), (2, 4)])
def test_compiled_collectives_are_the_planned_ones(shape):
    found = planned(*shape)
    traffic = found.traffic()
    assert traffic.planned and traffic.planned == traffic.compiled
    assert traffic.counts == planned_launches(found.plan, sbpjax.placement("cpu", np.arange(8).reshape(shape)))


def test_state_comes_back_as_it_went_in_and_is_donated():
    found = planned(2, 4)
    assert found.out_shardings[:2] == found.in_shardings[:2]
    args = jax.tree.map(jnp.copy, found.put(*arguments()))
    out = found.jit(train_step)(*args)
    for kept, given in ((False, args[:2]), (True, args[2:])):
        assert all(x.is_deleted() != kept for x in jax.tree.leaves(given))
    for x, sharding in zip(jax.tree.leaves(out), jax.tree.leaves(found.out_shardings), strict=True):
        assert x.sharding.is_equivalent_to(sharding, x.ndim)
    assert {n.partition(".")[0] for n in found.donated} == {"params", "opt_state"}


def test_shardings_serve_plain_jit():
    found = planned(2, 4)
    step = jax.jit(train_step, in_shardings=found.in_shardings, out_shardings=found.out_shardings)
    same(losses(step, arguments()), one_device(train_step, arguments()))


def test_constraints_give_the_same_values():
    step = planned(2, 4).jit(train_step, lowering="constraints", donate=False)
    same(losses(step, arguments()), one_device(train_step, arguments()))


def test_arguments_without_data_give_the_same_plan():
    abstract = jax.eval_shape(lambda: arguments())
    found = plan(train_step, *abstract, mesh=make_mesh(2, 4))
    assert found.in_shardings == planned(2, 4).in_shardings and found.bytes == planned(2, 4).bytes


def test_free_results_are_divided_evenly_and_never_partial():
    def gradients(params, x, y):
        return jax.grad(loss_of)(params, x, y), x @ params["l0"]["w"], jnp.ones((6, 3), jnp.float32) * x[0, 0]

    params, _, x, y = arguments(24, 40, 12, 10)
    found = plan(gradients, params, x, y, mesh=make_mesh(2, 4))
    assert found.donated == ()
    args = (params, x, y)
    for got, wanted in zip(
        jax.tree.leaves(found.jit()(*args)), jax.tree.leaves(jax.jit(gradients)(*args)), strict=True
    ):
        same(got, wanted)
    for argument in ("in_shardings", "out_shardings"):
        trees = args if argument == "in_shardings" else jax.eval_shape(gradients, *args)
        for x, s in zip(jax.tree.leaves(trees), jax.tree.leaves(getattr(found, argument)), strict=True):
            s.shard_shape(x.shape)  # refuses uneven parts


def test_dims_that_no_axis_divides_stay_whole():
    found = plan(train_step, *arguments(7, 6, 5, 3), mesh=make_mesh(2, 4))
    assert all(axis == "data" for s in jax.tree.leaves(found.in_shardings) for axis in jax.tree.leaves(tuple(s.spec)))
    same(losses(found.jit(donate=False), arguments(7, 6, 5, 3)), one_device(train_step, arguments(7, 6, 5, 3)))


# -- pins and files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pins, leaf, spec",
    [
        ({"x": P("data")}, lambda s: s[2], P("data")),
        ({"params.*.w": P(None, "model")}, lambda s: s[0]["l1"]["w"], P(None, "model")),
        ({"params": P("model"), "params.l1": P()}, lambda s: s[0]["l1"]["b"], P()),
        ({"params.l1.w": "S1,S0"}, lambda s: s[0]["l1"]["w"], P("model", "data")),
        ({"y": NamedSharding(make_mesh(2, 4), P(("data", "model")))}, lambda s: s[3], P(("data", "model"))),
    ],
)
def test_a_pin_is_kept(pins, leaf, spec):
    found = plan(train_step, *arguments(), mesh=make_mesh(2, 4), pins=pins)
    assert leaf(found.in_shardings).spec == spec
    same(losses(found.jit(donate=False), arguments()), one_device(train_step, arguments()))


def test_an_activation_can_be_pinned():
    found = plan(train_step, *arguments(), mesh=make_mesh(2, 4), pins={"dot_general": P("data", "model")})
    assert found.report.sbp("dot_general") == (sbpjax.sbp.split(0), sbpjax.sbp.split(1))


def test_a_plan_file_gives_the_plan_again(tmp_path):
    path = planned(2, 4).save(tmp_path / "plan.json")
    found = plan(train_step, *arguments(), mesh=make_mesh(2, 4), pins=path)
    assert found.in_shardings == planned(2, 4).in_shardings
    assert found.time_us <= planned(2, 4).time_us * (1 + TOLERANCE)  # with fewer choices the search may end lower
    data = json.loads(path.read_text())
    data["batch"]["x"] = "S0,B"
    path.write_text(json.dumps(data))
    assert plan(train_step, *arguments(), mesh=make_mesh(2, 4), pins=path).in_shardings[2].spec == P("data")


def test_a_plan_file_runs_no_code(tmp_path):
    path = tmp_path / "plan.py"
    path.write_text("raise SystemExit('it ran')")
    with pytest.raises(SbpError, match="reading one runs no code"):
        plan(train_step, *arguments(), mesh=make_mesh(8), pins=path)
    with pytest.raises(SbpError, match="reading one runs no code"):
        planned(8).save(path)
    assert path.read_text().startswith("raise")


def test_a_limit_of_memory_is_kept_or_refused():
    args, mesh = arguments(), make_mesh(8)
    held = planned(8).report["found"].memory_bytes
    found = plan(train_step, *args, mesh=mesh, memory=held)
    assert found.report["found"].memory_bytes <= held
    with pytest.raises(OutOfMemoryError, match="the smallest plan found holds"):
        plan(train_step, *args, mesh=mesh, memory=held // 2)


def _checkpointed_step(params, state, x):
    def layer(x, w):
        return x + jnp.tanh(x @ w["up"].astype(jnp.bfloat16)) @ w["down"].astype(jnp.bfloat16), None

    def loss_fn(params):
        y, _ = jax.lax.scan(jax.checkpoint(layer), x.astype(jnp.bfloat16), params)
        return (y.astype(jnp.float32) ** 2).mean()

    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, state = ADAM.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


def test_weights_that_a_checkpointed_loop_casts_are_gathered_once():
    """And, within a limit of memory that their casts exceed, once for the forward and once for the recomputation."""
    shapes = {"up": (4, 64, 256), "down": (4, 256, 64)}
    params = {n: 0.1 * jax.random.normal(jax.random.key(i), s, "float32") for i, (n, s) in enumerate(shapes.items())}
    args = params, ADAM.init(params), jax.random.normal(jax.random.key(2), (4096, 64), "float32")
    weights = 7 * 2 * sum(w.size for w in params.values()) // 8  # bytes in bfloat16 from the seven other devices
    found = plan(_checkpointed_step, *args, mesh=make_mesh(8))
    assert found.traffic().planned["all-gather"] == found.traffic().planned["reduce-scatter"] == weights
    expected = _checkpointed_step(*args)[2]
    np.testing.assert_allclose(found.jit()(*found.put(*args))[2], expected, rtol=TOLERANCE)
    limit = 0.93 * found.report["found"].memory_bytes
    small = plan(_checkpointed_step, *args, mesh=make_mesh(8), memory=limit)
    assert small.report["found"].memory_bytes <= limit
    assert small.traffic().planned["all-gather"] == 2 * weights


def test_sensitivity_prices_another_layout():
    found = planned(8).sensitivity("params.*.w", P())
    assert found.names and found.time_us >= 0


# -- what is refused ---------------------------------------------------------------------------------------------------


def branches(params, x):
    """A step that reads a value."""
    return params * 2 if x.sum() > 0 else params


def test_a_step_that_reads_values_is_refused():
    x = jnp.ones(8, jnp.float32)
    with pytest.raises(DataDependentError, match="which of its branches runs must not depend on values"):
        plan(branches, x, x, mesh=make_mesh(8))
    with pytest.raises(DataDependentError, match=r"(?s)auto.plan\(<lambda>.*seen.*rule.*fix"):
        plan(lambda x: np.asarray(x) + 1, x, mesh=make_mesh(8))


def test_a_step_that_divides_its_own_work_is_refused():
    mesh = make_mesh(8)
    inner = jax.shard_map(lambda x: x * 2, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
    with pytest.raises(OpNotSupportedError, match="a shard_map inside"):
        plan(inner, jnp.ones(8, jnp.float32), mesh=mesh)


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({"pins": {"parms": P()}}, SbpError, "no tensor of the step is called 'parms'"),
        ({"pins": {"x": P("rows")}}, SbpError, "the axes of the placement are"),
        ({"pins": {"x": P(None, None, "data")}}, SbpError, "split.2. of a tensor with 2 dims"),
        ({"pins": {"x": "P,B"}}, SbpError, "no partial sum"),
        ({"pins": {"y": P(None, ("data", "model"))}}, SbpError, "dim 1 of 10 is not divisible by 8"),
        ({"memory": -1}, ConfigError, "a number of bytes"),
    ],
)
def test_wrong_options_are_refused(options, error, text):
    args = arguments(16, 8, 10)
    with pytest.raises(error, match=text) as found:
        plan(train_step, *args, mesh=make_mesh(2, 4), **options)
    assert [line.strip().partition(":")[0] for line in str(found.value).splitlines()[1:]] == ["seen", "rule", "fix"]


def test_no_function_and_no_array_are_refused():
    with pytest.raises(OpTypeError, match="in the place of the step"):
        plan(3, mesh=make_mesh(8))
    with pytest.raises(OpTypeError, match="without an array"):
        plan(train_step, mesh=make_mesh(8))


def test_another_function_has_no_plan():
    with pytest.raises(OpTypeError, match="another function than the planned one"):
        planned(8).jit(lambda *args: args)
    with pytest.raises(ConfigError, match="a lowering is one of"):
        planned(8).jit(lowering="gspmd")


# -- forms of steps ----------------------------------------------------------------------------------------------------


def test_options_are_constants():
    def step(params, x, y, scaled):
        loss, grads = jax.value_and_grad(loss_of)(params, x, y)
        rate = 0.1 if scaled else 1.0
        return jax.tree.map(lambda p, g: p - rate * g, params, grads), loss

    params, _, x, y = arguments()
    found = plan(step, params, x, y, True, mesh=make_mesh(8))
    new, loss = found.jit(donate=False)(params, x, y, True)
    wanted = step(params, x, y, True)
    same(new["l0"]["w"], wanted[0]["l0"]["w"])
    assert found.in_shardings[3] is None
    same(loss, wanted[1])


def test_numbers_are_inputs():
    def step(w, rate):
        return w - rate * w, rate * 0.5

    w = jnp.ones((8, 8), jnp.float32)
    found = plan(step, w, 0.5, mesh=make_mesh(8)).jit(donate=False)
    same(found(w, 0.25)[0], 0.75 * w)


def test_loops_branches_and_checkpoints_are_planned():
    """Micro-batches in a scan, layers in a checkpointed scan, clipping in a cond, a while loop, a custom gradient."""

    @jax.custom_vjp
    def activation(x):
        return jnp.tanh(x)

    activation.defvjp(lambda x: (jnp.tanh(x), x), lambda x, g: (g * (1 - jnp.tanh(x) ** 2),))

    def loss_fn(params, x, y):
        layer = jax.checkpoint(lambda h, w: (activation(h @ w), None))
        h, _ = jax.lax.scan(layer, x, params["blocks"])
        return jnp.mean((h @ params["head"] - y) ** 2)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, opt_state, x, y):
        def micro(total, batch):
            loss, grads = jax.value_and_grad(loss_fn)(params, *batch)
            return jax.tree.map(jnp.add, total, (grads, loss)), None

        zero = jax.tree.map(jnp.zeros_like, params), jnp.float32(0)
        (grads, loss), _ = jax.lax.scan(micro, zero, (x, y))
        norm = sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)) ** 0.5
        grads = jax.lax.cond(norm > 0.1, lambda g: jax.tree.map(lambda v: v / norm, g), lambda g: g, grads)
        updates, opt_state = ADAM.update(grads, opt_state, params)
        turns, _ = jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (0, loss))
        return jax.tree.map(jnp.add, params, updates), opt_state, loss + 0 * turns

    rng = np.random.default_rng(0)
    array = lambda *shape: jnp.asarray(rng.standard_normal(shape).astype(np.float32) / 8)  # noqa: E731
    params = {"blocks": array(3, 64, 64), "head": array(64, 8)}
    args = params, ADAM.init(params), array(2, 16, 64), array(2, 16, 8)
    found = plan(step, *args, mesh=make_mesh(2, 4))
    assert {n.partition(".")[0] for n in found.donated} == {"params", "opt_state"}
    assert found.traffic().planned == found.traffic().compiled
    copied = jax.tree.map(jnp.copy, args)
    same(losses(found.jit(step), args), one_device(step, copied))


def test_init_makes_parameters_where_the_plan_wants_them():
    found = planned(2, 4)
    params = jax.jit(lambda: init(64, 256, 256, 16), out_shardings=found.in_shardings[0])()
    assert params["l1"]["w"].sharding == found.in_shardings[0]["l1"]["w"]


def test_the_text_of_a_plan_and_of_its_report():
    found = planned(2, 4)
    assert repr(found).startswith("plan of train_step over data 2 × model 4: ") and "collectives" in repr(found)
    text = str(found.report)
    spec = str(found.in_shardings[0]["l1"]["w"].spec).replace("PartitionSpec", "P")
    for part in ("data parallel × tensor parallel", "params.l1.w", spec, "all_gather(model)", "cases.py:"):
        assert part in text, text
    assert "your own" not in text


def test_shardings_of_the_arguments_are_compared():
    mesh = make_mesh(8)
    params, state, x, y = arguments()
    divided = jax.device_put((x, y), NamedSharding(mesh, P("data")))
    report = plan(train_step, params, state, *divided, mesh=mesh).report
    assert report["your own"].bytes == report["data parallel"].bytes
    assert report["found"].time_us <= report["your own"].time_us


# -- absent devices ----------------------------------------------------------------------------------------------------


@pytest.mark.aot
@pytest.mark.parametrize("topology, sizes", [("v5p:2x2x2", (2, 4)), ("h100:8", (8,))])
def test_a_step_is_compiled_for_absent_devices(topology, sizes):
    mesh = Mesh(sbpjax.placement.topology(topology, sizes).devices, ("data", "model")[: len(sizes)])
    found = plan(train_step, *arguments(1024, 512, 2048, 256), mesh=mesh)
    assert f"by the prices of {topology.partition(':')[0]}" in found.report.head()
    traffic = found.traffic()
    assert traffic.planned and abs(traffic.difference()) < 0.02
    assert found.report["found"].time_us <= min(t.time_us for t in found.report.totals) * (1 + TOLERANCE)
    with pytest.raises(PlacementError, match="can be compiled and inspected, not run"):
        found.jit()(*arguments(1024, 512, 2048, 256))

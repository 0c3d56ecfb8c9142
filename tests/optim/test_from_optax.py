"""Optax transformations as optimizers: optax's own numbers, state laid out like the parameters, saving, compiled."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import sbpjax as flow
from sbpjax import amp, nn, optim
from sbpjax.optim import lr_scheduler
from tests.support import compare

STEPS = 8
TOLERANCE = 2e-6  # a few units in the last place of float32
close = functools.partial(compare.close, rtol=TOLERANCE, atol=TOLERANCE)
SHAPES = [(8, 4), (6, 4), (4,)]
LINE = flow.placement("cpu", [0, 1, 2, 3])
SBPS = {"local": None, "broadcast": ["B", "B", "B"], "split": ["S0", "S1", "S0"]}
TRANSFORMATIONS = {
    "sgd": optax.sgd(0.1),
    "adamw": optax.adamw(0.05, weight_decay=0.1),
    "lion": optax.lion(0.01, weight_decay=0.1),
    "chain": optax.chain(optax.clip_by_global_norm(0.5), optax.scale_by_adam(), optax.scale(-0.1)),
    "schedule": optax.adam(optax.linear_schedule(0.1, 0.01, 5)),
    "masked": optax.chain(
        optax.masked(optax.add_decayed_weights(0.1), lambda t: jax.tree.map(lambda p: p.ndim > 1, t)),
        optax.sgd(0.1, 0.9),
    ),
    "adafactor": optax.adafactor(0.05, min_dim_size_to_factor=4),
}


def values(seed):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32) for shape in SHAPES]


def make(layout="local", dtype=flow.float32):
    params = [flow.tensor(v) for v in values(0)]
    if SBPS[layout] is not None:
        params = [p.to_global(LINE, sbp) for p, sbp in zip(params, SBPS[layout])]
    return [nn.Parameter(p.to(dtype)) for p in params]


def give(params, seed):
    for param, value in zip(params, values(seed)):
        grad = flow.tensor(value).to(param.dtype)
        param.grad = grad.to_global(param.placement, param.sbp) if param.is_global else grad


def reference(tx, steps=STEPS, factor=lambda step: 1.0):
    params = {str(i): jnp.asarray(v) for i, v in enumerate(values(0))}
    state = tx.init(params)
    for step in range(steps):
        grads = {str(i): jnp.asarray(v) for i, v in enumerate(values(step + 1))}
        updates, state = tx.update(grads, state, params)
        params = optax.apply_updates(params, jax.tree.map(lambda u, step=step: u * factor(step), updates))
    return [np.asarray(params[str(i)]) for i in range(len(SHAPES))]


@pytest.mark.parametrize("layout", SBPS)
@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_equals_optax(name, layout):
    params = make(layout)
    optimizer = optim.Optax(params, TRANSFORMATIONS[name])
    for step in range(STEPS):
        give(params, step + 1)
        optimizer.step()
    close(params, reference(TRANSFORMATIONS[name]))
    for param in params:
        for tensor in optimizer.state[param].values():
            assert tensor.shape == param.shape
            assert not param.is_global or tensor.sbp == param.sbp
    for tensor in optimizer.shared[0].values():
        assert layout == "local" or tensor.sbp == (flow.sbp.broadcast,)


def test_moments_belong_to_parameters_and_the_rest_is_shared():
    params = make()
    adam = optim.Optax(params, optax.adam(0.1))
    adam.prepare()
    assert [sorted(adam.state[p]) for p in params] == [["[0].mu", "[0].nu"]] * 3
    assert list(adam.shared[0]) == ["[0].count"]
    factored = optim.Optax(params, TRANSFORMATIONS["adafactor"])
    factored.prepare()
    shapes = {name: tuple(t.shape) for name, t in factored.shared[0].items()}
    assert {(8,), (4,), (6,)} <= set(shapes.values())  # statistics of rows and columns
    assert list(factored.state[params[2]]) == ["[0].v"]  # a vector is not factored


def test_a_schedule_multiplies_the_updates():
    params = make()
    optimizer = optim.from_optax(optax.sgd(0.1, 0.9))(params)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    for step in range(STEPS):
        give(params, step + 1)
        optimizer.step()
        scheduler.step()
    close(params, reference(optax.sgd(0.1, 0.9), factor=lambda step: 0.5**step))


def test_parameters_may_have_names():
    params = make()
    seen = []

    def mask(tree):
        seen.append(sorted(tree))
        return {name: name != "bias" for name in tree}

    named = zip(("first", "second", "bias"), params)
    optimizer = optim.from_optax(optax.masked(optax.sgd(0.1), mask), named)
    give(params, 1)
    grads = [p.grad.numpy() for p in params]
    optimizer.step()
    assert seen[0] == ["bias", "first", "second"]
    close(params, [v - 0.1 * g for v, g in zip(values(0)[:2], grads)] + [values(0)[2] + grads[2]])


def test_missing_gradients_are_zeros_and_frozen_parameters_stay():
    params = make()
    params[1].requires_grad_(False)
    optimizer = optim.Optax(params, TRANSFORMATIONS["adamw"])
    params[2].grad = flow.zeros(4)
    optimizer.step()
    close(params, [values(0)[0] * (1 - 0.05 * 0.1), values(0)[1], values(0)[2] * (1 - 0.05 * 0.1)])


@pytest.mark.parametrize("layout", ["local", "split"])
@pytest.mark.parametrize("name", ["adamw", "chain", "adafactor"])
def test_compiled_steps_are_eager_steps(name, layout, compilations):
    results = []
    for compiled in (False, True):
        params = make(layout)
        optimizer = optim.Optax(params, TRANSFORMATIONS[name])
        scaler = amp.GradScaler(init_scale=8.0)

        def step(x, params=params, optimizer=optimizer, scaler=scaler):
            optimizer.zero_grad()
            loss = ((x @ params[0] + params[2]) ** 2).mean() + (params[1] ** 2).sum()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss.detach()

        scaler.prepare(params[0])
        run = flow.compile(step, state=(params, optimizer, scaler.state_tensors())) if compiled else step
        for i in range(5):
            x = flow.tensor(np.random.default_rng(i).standard_normal((8, 8)).astype(np.float32))
            x = x * float("inf") if i == 2 else x
            x = x if layout == "local" else x.to_global(LINE, flow.sbp.broadcast)
            if i == 4:
                optimizer.param_groups[0]["lr"] = 0.5
                with compilations as made:
                    run(x)
                assert not compiled or made.count == 0
            else:
                run(x)
        assert scaler.get_scale() == 4.0
        results.append([p.detach().numpy() for p in params])
    for a, b in zip(*results):
        assert np.isfinite(a).all()
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_master_weights():
    params = make(dtype=flow.bfloat16)
    optimizer = optim.Optax(params, optax.sgd(2.0**-12, 0.9))
    optimizer.use_master_weights()
    for _ in range(4):
        for param in params:
            param.grad = flow.ones_like(param.detach())
        optimizer.step()
    moved = 2.0**-12 * (1 + 1.9 + 2.71 + 3.439)
    for param, value in zip(params, make(dtype=flow.bfloat16)):
        master = optimizer.state[param]["master"]
        assert master.dtype == flow.float32 and param.dtype == flow.bfloat16
        np.testing.assert_allclose(master.numpy(), value.detach().float().numpy() - moved, rtol=1e-6, atol=1e-6)


def test_state_dict_goes_on_and_a_foreign_one_is_refused():
    tx = TRANSFORMATIONS["adafactor"]
    params, others = make(), make("split")
    whole, resumed = optim.Optax(params, tx), optim.Optax(others, tx)
    for step in range(3):
        give(params, step)
        whole.step()
    for a, b in zip(others, params):
        a.data = b.detach().to_global(LINE, a.sbp)
    resumed.load_state_dict(whole.state_dict())
    for step in range(3, 6):
        for owned, optimizer in ((params, whole), (others, resumed)):
            give(owned, step)
            optimizer.step()
    close(others, [p.detach().numpy() for p in params])
    before = {n: t.tolist() for n, t in resumed.shared[0].items()}
    for foreign in (optim.Optax(make(), optax.adam(0.1)), optim.Adam(make(), 0.1)):
        foreign.prepare()
        with pytest.raises(ValueError, match="load_state_dict"):
            resumed.load_state_dict(foreign.state_dict())
        assert {n: t.tolist() for n, t in resumed.shared[0].items()} == before


def test_state_that_was_cleared_is_made_anew_and_a_snapshot_puts_it_back():
    params = make()
    optimizer = optim.Optax(params, optax.adam(0.1))
    for step in range(2):
        give(params, step)
        optimizer.step()
    undo = optimizer.snapshot()
    before = optimizer.state_dict()
    optimizer.state.clear()
    optimizer.param_groups[0]["lr"] = 7.0
    optimizer.prepare()
    assert optimizer.shared[0]["[0].count"].item() == 0
    undo()
    after = optimizer.state_dict()
    assert after["param_groups"] == before["param_groups"]
    assert all(after["state"][i][n] is t for i, s in before["state"].items() for n, t in s.items())
    assert after["shared"][0]["[0].count"].item() == 2


def test_bad_arguments():
    with pytest.raises(TypeError, match=r"init\(params\) and update"):
        optim.Optax(make(), "adam")
    with pytest.raises(ValueError, match="has no sparse form"):
        optim.Optax(make(), optax.sgd(0.1)).use_sparse_updates()
    with pytest.raises(ValueError, match="a name of its own"):
        optim.Optax([("a", p) for p in make()], optax.sgd(0.1))
    mixed = optim.Optax([*make(), *make("split")], optax.sgd(0.1))
    with pytest.raises(ValueError, match="all of it is on one placement"):
        mixed.prepare()

"""Loss scaling against PyTorch's: scale, skipped steps, order of calls; eager, global and inside a compiled step."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import amp, nn, optim

TOLERANCE = 2e-6  # a few units in the last place of float32
INF, NAN = float("inf"), float("nan")
# What the loss of each step is multiplied by: the gradients overflow where it is not finite.
EVENTS = [1, 1, INF, 1, 1, 1, 1, NAN, INF, 1, 1, 1, 1, 1, 1, 1, -INF, 1, 1, 1]
OPTIONS = {"init_scale": 1024.0, "growth_factor": 4.0, "backoff_factor": 0.25, "growth_interval": 3}
LINE = [0, 1, 2, 3]
KINDS = {
    "sgd": lambda m, p: m.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda m, p: m.AdamW(p, lr=0.1),
    "adagrad": lambda m, p: m.Adagrad(p, lr=0.1),
}


def weights():
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in ((4, 8), (8,))]


def inputs(step):
    return np.random.default_rng(100 + step).standard_normal((8, 4)).astype(np.float32)


def reference(kind):
    """Return the weights, the scales and the step counts of PyTorch."""
    params = [torch.nn.Parameter(torch.tensor(w)) for w in weights()]
    optimizer = KINDS[kind](torch.optim, params)
    scaler = torch.amp.GradScaler("cpu", **OPTIONS)
    scales = []
    for step, event in enumerate(EVENTS):
        optimizer.zero_grad()
        loss = ((torch.tensor(inputs(step)) @ params[0] + params[1]) ** 2).mean() * event
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(params, 0.5)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return [p.detach().numpy() for p in params], scales, scaler.state_dict()


def setting(kind, layout):
    params = [flow.tensor(w) for w in weights()]
    if layout is not None:
        placement = flow.placement("cpu", LINE)
        sbps = {"split": [flow.sbp.split(1), flow.sbp.split(0)], "broadcast": [flow.sbp.broadcast] * 2}[layout]
        params = [p.to_global(placement, sbp) for p, sbp in zip(params, sbps)]
    params = [nn.Parameter(p) for p in params]
    return params, KINDS[kind](optim, params), amp.GradScaler(**OPTIONS)


def batch(step, layout):
    x = flow.tensor(inputs(step))
    return x if layout is None else x.to_global(flow.placement("cpu", LINE), flow.sbp.split(0))


def make_step(params, optimizer, scaler):
    def step(x, event):
        optimizer.zero_grad()
        loss = ((x @ params[0] + params[1]) ** 2).mean() * event
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(params, 0.5)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return step


@pytest.mark.parametrize("layout", [None, "broadcast", "split"])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("kind", KINDS)
def test_equals_torch(kind, compiled, layout):
    values, scales, state = reference(kind)
    assert len(set(scales)) >= 3
    params, optimizer, scaler = setting(kind, layout)
    step = make_step(params, optimizer, scaler)
    if compiled:
        scaler.prepare(params[0])
        step = flow.compile(step, state=(params, optimizer, scaler.state_tensors()))
    seen = []
    for i, event in enumerate(EVENTS):
        flag = flow.tensor(float(event))
        if layout is not None:
            flag = flag.to_global(params[0].placement, flow.sbp.broadcast)
        step(batch(i, layout), flag)
        seen.append(scaler.get_scale())
    assert seen == scales
    assert scaler.state_dict() == state
    for param, value in zip(params, values):
        np.testing.assert_allclose(param.detach().numpy(), value, rtol=TOLERANCE, atol=TOLERANCE)
    good = sum(np.isfinite(e) for e in EVENTS)
    assert [int(optimizer.state[p]["step"].item()) for p in params] == [good] * 2


def test_step_unscales_if_nobody_did():
    params, optimizer, scaler = setting("sgd", None)
    plain, other, _ = setting("sgd", None)
    for i in range(3):
        for owned, opt in ((params, optimizer), (plain, other)):
            opt.zero_grad()
            loss = ((flow.tensor(inputs(i)) @ owned[0] + owned[1]) ** 2).mean()
            (scaler.scale(loss) if opt is optimizer else loss).backward()
        scaler.step(optimizer)
        scaler.update()
        other.step()
    for a, b in zip(params, plain):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=TOLERANCE, atol=TOLERANCE)


def test_one_overflow_of_two_optimizers_skips_that_one_and_lowers_the_scale():
    params = [nn.Parameter(flow.ones(2)), nn.Parameter(flow.ones(2))]
    optimizers = [optim.SGD([p], lr=0.5) for p in params]
    scaler = amp.GradScaler(init_scale=8.0)
    params[0].grad = flow.tensor([8.0, INF])
    params[1].grad = flow.tensor([8.0, 16.0])
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
    assert params[0].tolist() == [1.0, 1.0] and params[1].tolist() == [0.5, 0.0]
    assert scaler.get_scale() == 4.0


def test_parameters_on_two_placements():
    placements = [flow.placement("cpu", [0, 1]), flow.placement("cpu", [2, 3])]
    params = [nn.Parameter(flow.ones(4).to_global(p, flow.sbp.split(0))) for p in placements]
    optimizer, scaler = optim.SGD(params, lr=0.5), amp.GradScaler(init_scale=8.0)
    for last, values, scale in ((INF, (1.0, 1.0), 4.0), (8.0, (0.0, 0.0), 4.0)):
        for param, value in zip(params, (8.0, last)):
            param.grad = flow.full((4,), value).to_global(param.placement, param.sbp)
        scaler.step(optimizer)
        scaler.update()
        assert [p.detach().numpy().tolist() for p in params] == [[v] * 4 for v in values]
        assert scaler.get_scale() == scale


@pytest.mark.parametrize("dtype", [flow.bfloat16, flow.float16, flow.float32])
def test_gradients_keep_their_dtype(dtype):
    param = nn.Parameter(flow.ones(3, dtype=dtype))
    param.grad = flow.tensor([2.0, 4.0, 6.0], dtype=dtype)
    optimizer = optim.SGD([param], lr=1.0)
    amp.GradScaler(init_scale=2.0).unscale_(optimizer)
    assert param.grad.dtype == dtype and param.grad.tolist() == [1.0, 2.0, 3.0]


def test_an_optimizer_with_a_step_of_its_own_is_not_called_after_an_overflow():
    class Counted(optim.SGD):
        calls = 0

        def step(self, closure=None):
            self.calls += 1
            return super().step(closure)

    param = nn.Parameter(flow.ones(2))
    optimizer, scaler = Counted([param], lr=1.0), amp.GradScaler()
    for grad, calls in ((INF, 0), (1.0, 1)):
        param.grad = flow.full((2,), grad)
        scaler.step(optimizer)
        scaler.update()
        assert optimizer.calls == calls


def test_static_scaling_keeps_its_scale_and_skips():
    param = nn.Parameter(flow.ones(2))
    optimizer, scaler = optim.SGD([param], lr=1.0), amp.StaticGradScaler(4.0)
    assert scaler.scale(flow.tensor(2.0)).item() == 8.0
    for grad, value in ((INF, 1.0), (2.0, 0.5)):
        param.grad = flow.full((2,), grad)
        scaler.step(optimizer)
        scaler.update()
        assert param.tolist() == [value] * 2 and scaler.get_scale() == 4.0
    other = amp.StaticGradScaler(1.0)
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 4.0


def test_scales_nested_outputs():
    scaler = amp.GradScaler(init_scale=2.0)
    first, (second,) = scaler.scale((flow.tensor(1.0), [flow.tensor(3.0)]))
    assert (first.item(), second.item()) == (2.0, 6.0)
    with pytest.raises(TypeError, match="a Tensor or an iterable of Tensors"):
        scaler.scale(1.0)


def test_a_disabled_scaler_passes_everything_on():
    param = nn.Parameter(flow.ones(2))
    optimizer, scaler = optim.SGD([param], lr=1.0), amp.GradScaler(enabled=False)
    loss = scaler.scale(flow.tensor(3.0))
    assert (loss.item(), scaler.get_scale(), scaler.state_dict()) == (3.0, 1.0, {})
    param.grad = flow.ones(2)
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert param.tolist() == [0.0, 0.0]


def misuse(*calls):
    param = nn.Parameter(flow.ones(2))
    param.grad = flow.ones(2)
    optimizer, scaler = optim.SGD([param], lr=1.0), amp.GradScaler()
    for call in calls:
        getattr(scaler, call)(*([] if call == "update" else [optimizer]))


@pytest.mark.parametrize(
    ("calls", "text"),
    [
        (("unscale_", "unscale_"), r"unscale_\(\) has already been called"),
        (("step", "unscale_"), r"unscale_\(\) is being called after step\(\)"),
        (("step", "step"), r"step\(\) has already been called"),
        (("update",), "No inf checks were recorded prior to update"),
    ],
)
def test_calls_out_of_order_are_errors(calls, text):
    with pytest.raises(RuntimeError, match=text):
        misuse(*calls)


@pytest.mark.parametrize(
    "options", [{"init_scale": 0.0}, {"growth_factor": 1.0}, {"backoff_factor": 1.0}, {"growth_interval": 0}]
)
def test_bad_factors(options):
    with pytest.raises(ValueError, match="  rule: The (growth|backoff|scale)"):
        amp.GradScaler(**options)
    with pytest.raises(ValueError, match="must > 0"):
        amp.StaticGradScaler(0.0)


def test_a_changed_factor_takes_effect_without_compiling_anew(compilations):
    params, optimizer, scaler = setting("sgd", None)
    step = flow.compile(make_step(params, optimizer, scaler), state=(params, optimizer, scaler.state_tensors()))
    one = flow.tensor(1.0)
    for i in range(2):
        step(batch(i, None), one)
    before = scaler.get_scale()
    scaler.set_growth_interval(1)
    scaler.set_growth_factor(8.0)
    x = batch(2, None)
    with compilations as made:
        step(x, one)
    assert made.count == 0
    assert scaler.get_growth_factor() == 8.0 and before == 1024.0
    step(x, one)
    assert scaler.get_scale() > before


def test_a_trace_that_failed_leaves_nothing_behind():
    params, optimizer, scaler = setting("sgd", None)

    def broken(x):
        scaler.scale(((x @ params[0]) ** 2).mean()).backward()
        scaler.unscale_(optimizer)
        raise KeyError("stop")

    with pytest.raises(KeyError):
        flow.compile(broken, state=(params, optimizer, scaler.state_tensors()))(batch(0, None))
    step = make_step(params, optimizer, scaler)
    step(batch(0, None), 1.0)
    flow.compile(step, state=(params, optimizer, scaler.state_tensors()))(batch(0, None), flow.tensor(1.0))
    assert int(optimizer.state[params[0]]["step"].item()) == 2


def test_state_goes_on_and_a_foreign_one_is_refused():
    params, optimizer, scaler = setting("sgd", None)
    step = make_step(params, optimizer, scaler)
    for i, event in enumerate(EVENTS[:5]):
        step(batch(i, None), event)
    state = scaler.state_dict()
    other = amp.GradScaler()
    other.load_state_dict(state)
    assert other.state_dict() == state
    for bad in ({}, state | {"more": 1}, state | {"growth_factor": 0.5}):
        with pytest.raises(ValueError):
            other.load_state_dict(bad)
        assert other.state_dict() == state

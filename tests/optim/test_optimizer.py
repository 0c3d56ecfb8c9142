"""The optimizers against PyTorch's, local and under every layout; one compiled update; saved state."""

import functools

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import optim
from sbpjax.optim import rules, run
from tests.support import compare

STEPS = 20
TOLERANCE = 2e-6  # a few units in the last place of float32 values near 1, over STEPS steps
assert_equal = functools.partial(compare.close, rtol=TOLERANCE, atol=TOLERANCE)
SHAPES = [(6, 4), (4,), (3, 5, 2)]

CASES = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.1, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "maximize": True}),
    ("AdamW", {"lr": 0.1}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5, "maximize": True}),
    ("Adadelta", {"lr": 1.0}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {"lr": 0.1, "eps": 1e-16}),
    ("RMSprop", {"lr": 0.05, "alpha": 0.8, "weight_decay": 0.1, "momentum": 0.9, "centered": True, "eps": 1e-16}),
    ("RMSprop", {"lr": 0.05, "momentum": 0.5, "maximize": True, "eps": 1e-16}),
]

LINE = ("cpu", [0, 1, 2, 3])
GRID = ("cpu", [[0, 1], [2, 3]])
LAYOUTS = [
    None,
    (LINE, ["B", "B", "B"]),
    (LINE, ["S0", "B", "S1"]),
    (LINE, ["S1", "S0", "S0"]),
    (GRID, [("S0", "S1"), ("B", "S0"), ("B", "B")]),
    (GRID, [("S0", "S0"), ("B", "B"), ("S1", "B")]),
]
NAMES = {"B": flow.sbp.broadcast, "S0": flow.sbp.split(0), "S1": flow.sbp.split(1), "P": flow.sbp.partial_sum}


def nd(sbp):
    return [NAMES[name] for name in (sbp if isinstance(sbp, tuple) else (sbp,))]


def values(seed):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32) for shape in SHAPES]


def make(layout, arrays=None):
    tensors = [flow.tensor(a) for a in (arrays or values(0))]
    if layout is not None:
        placement = flow.placement(*layout[0])
        tensors = [t.to_global(placement, nd(sbp)) for t, sbp in zip(tensors, layout[1])]
    return [flow.nn.Parameter(t) for t in tensors]


def give_grads(params, arrays):
    for param, array in zip(params, arrays):
        grad = flow.tensor(array)
        param.grad = grad.to_global(param.placement, param.sbp) if param.is_global else grad


def both(name, options, layout=None):
    ours = make(layout)
    theirs = [torch.nn.Parameter(torch.tensor(a)) for a in values(0)]
    return ours, getattr(optim, name)(ours, **options), theirs, getattr(torch.optim, name)(theirs, **options)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_equals_torch(name, options, layout):
    ours, optimizer, theirs, reference = both(name, options, layout)
    for step in range(STEPS):
        grads = values(step + 1)
        give_grads(ours, grads)
        for param, grad in zip(theirs, grads):
            param.grad = torch.tensor(grad)
        optimizer.step()
        reference.step()
    assert_equal(ours, theirs)
    assert any(optimizer.state[param].keys() == {*reference.state[other], "step"} for param, other in zip(ours, theirs))
    for param, other in zip(ours, theirs):
        for key, tensor in optimizer.state[param].items():
            assert param.dtype == flow.float32
            if key != "step":
                assert tensor.is_global == param.is_global
                assert not param.is_global or (tensor.placement == param.placement and tensor.sbp == param.sbp)
                assert_equal([tensor], [reference.state[other][key]])


@pytest.mark.parametrize("layout", [None, LAYOUTS[2]], ids=str)
@pytest.mark.parametrize("nesterov", [False, True])
def test_dampening_takes_part_in_the_first_step_as_in_oneflow(nesterov, layout):
    ours = make(layout)
    optimizer = optim.SGD(ours, lr=0.1, momentum=0.9, dampening=0.3, nesterov=nesterov)
    expected, sums = [a.astype(np.float64) for a in values(0)], [0.0] * len(SHAPES)
    for step in range(3):
        give_grads(ours, values(step + 1))
        optimizer.step()
        for i, g in enumerate(values(step + 1)):
            sums[i] = 0.9 * sums[i] + 0.7 * g
            expected[i] -= 0.1 * (g + 0.9 * sums[i] if nesterov else sums[i])
    for p, value in zip(ours, expected):
        np.testing.assert_allclose(p.detach().numpy(), value, rtol=TOLERANCE, atol=TOLERANCE)


def test_nesterov_without_momentum_is_plain_descent():
    ours = make(None)
    give_grads(ours, values(1))
    optim.SGD(ours, lr=0.1, nesterov=True).step()
    for p, start, g in zip(ours, values(0), values(1)):
        np.testing.assert_allclose(p.detach().numpy(), start - 0.1 * g, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("layout", [LAYOUTS[1], LAYOUTS[2]], ids=str)
def test_partial_gradients_are_reduced_into_the_parameters_layout(layout):
    ours, optimizer, theirs, reference = both("Adam", {"lr": 0.1}, layout)
    for param, other, grad in zip(ours, theirs, values(1)):
        param.grad = flow.tensor(grad).to_global(param.placement, flow.sbp.partial_sum)
        other.grad = torch.tensor(grad)
    sbps = [p.sbp for p in ours]
    optimizer.step()
    reference.step()
    assert_equal(ours, theirs)
    assert [p.sbp for p in ours] == sbps


@pytest.mark.parametrize("layout", [None, LAYOUTS[2]], ids=str)
@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_one_program_for_the_list_and_none_for_a_new_rate(name, layout, compilations):
    params = make(layout)
    optimizer = getattr(optim, name)(params, lr=0.1)
    give_grads(params, values(1))
    optimizer.step()
    give_grads(params, values(2))
    with compilations as made:
        for rate in (0.05, 0.01, 1e-3):
            optimizer.param_groups[0]["lr"] = rate
            optimizer.step()
    assert made.count == 0


def test_the_update_is_one_call(monkeypatch, compiled_ops):
    params = make(None)
    optimizer = optim.Adam([{"params": params[:1], "lr": 0.1}, {"params": params[1:], "lr": 0.2}])
    give_grads(params, values(1))
    calls = []
    inner = run._compile_program

    def counted(*args):
        calls.append(args)
        return inner(*args)

    monkeypatch.setattr(run, "_compile_program", counted)
    optimizer.step()
    assert len(calls) == 1 and [b.count for b in dict(calls[0][1])["buckets"]] == [1, 2]


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
@pytest.mark.parametrize("target", [None, LAYOUTS[4]], ids=str)
def test_state_dict_continues_in_any_layout(name, target):
    options = {"lr": 0.1, "momentum": 0.9} if name == "SGD" else {"lr": 0.1}
    whole, resumed = make(None), make(target)
    optimizer = getattr(optim, name)(whole, **options)
    for step in range(STEPS):
        give_grads(whole, values(step + 1))
        optimizer.step()
    for param, source in zip(resumed, whole):
        value = source.detach()
        param.data = value.clone() if target is None else value.to_global(param.placement, param.sbp)
    second = getattr(optim, name)(resumed, lr=99.0)
    second.load_state_dict(optimizer.state_dict())
    assert second.param_groups[0]["lr"] == 0.1
    for step in range(STEPS):
        for params, opt in ((whole, optimizer), (resumed, second)):
            give_grads(params, values(100 + step))
            opt.step()
    assert_equal(resumed, whole)


def test_state_dict_has_torchs_shape():
    ours, optimizer, theirs, reference = both("Adam", {"lr": 0.1})
    give_grads(ours, values(1))
    for param, grad in zip(theirs, values(1)):
        param.grad = torch.tensor(grad)
    optimizer.step()
    reference.step()
    mine, other = optimizer.state_dict(), reference.state_dict()
    assert mine["state"].keys() == other["state"].keys()
    assert mine["state"][0].keys() == other["state"][0].keys()
    assert mine["param_groups"][0]["params"] == other["param_groups"][0]["params"]
    options = mine["param_groups"][0]
    assert options.pop("do_bias_correction")  # OneFlow's
    assert options.items() <= other["param_groups"][0].items()


def test_a_payload_that_something_else_holds_survives_the_step():
    params = make(None)
    held = params[0].jax()
    alias = params[1].detach()
    before = np.array(held)
    optimizer = optim.Adam(params, lr=0.1)
    for step in range(3):
        give_grads(params, values(step + 1))
        optimizer.step()
    np.testing.assert_array_equal(np.asarray(held), before)
    np.testing.assert_array_equal(alias.numpy(), params[1].detach().numpy())  # a view sees the update


def test_the_update_writes_into_the_donated_memory(compiled_ops):
    params = make(None, [np.ones((256, 256), np.float32)])
    optimizer = optim.SGD(params, lr=0.1)
    give_grads(params, [np.ones((256, 256), np.float32)])
    optimizer.step()
    address = params[0].jax().unsafe_buffer_pointer()
    optimizer.step()
    assert params[0].jax().unsafe_buffer_pointer() == address


def test_closure_zero_grad_and_hooks():
    params = make(None)
    optimizer = optim.SGD(params, lr=0.1)
    seen = []
    optimizer.register_step_pre_hook(lambda *a: seen.append("pre"))
    handle = optimizer.register_step_post_hook(lambda *a: seen.append("post"))

    def closure():
        optimizer.zero_grad()
        loss = sum((p * p).sum() for p in params)
        loss.backward()
        return loss

    first = optimizer.step(closure).item()
    handle.remove()
    assert optimizer.step(closure).item() < first
    assert seen == ["pre", "post", "pre"]
    optimizer.zero_grad()
    assert all((p.grad.numpy() == 0).all() for p in params)
    optimizer.zero_grad(set_to_none=True)
    assert all(p.grad is None for p in params)


def test_loading_a_state_of_another_shape_is_an_error_and_changes_nothing():
    params = make(None)
    optimizer = optim.Adam(params, lr=0.1)
    other = optim.Adam(make(None)[:2], lr=0.2)
    with pytest.raises(ValueError, match="doesn't match the size"):
        optimizer.load_state_dict(other.state_dict())
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_bucket_is_a_key():
    bucket = rules.Bucket(rules.sgd, (), ("lr",), (), 1)
    assert hash(bucket) == hash(rules.Bucket(rules.sgd, (), ("lr",), (), 1))


def test_the_base_class_updates_nothing_and_says_so():
    parameter = flow.nn.Parameter(flow.ones(2))
    optimizer = optim.Optimizer([parameter], {"lr": 0.1})
    parameter.sum().backward()
    reference = torch.optim.Optimizer([torch.nn.Parameter(torch.ones(2))], {"lr": 0.1})
    with pytest.raises(NotImplementedError):
        reference.step()
    with pytest.raises(NotImplementedError, match="Optimizer alone updates nothing"):
        optimizer.step()
    assert parameter.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("places", [None, ("S0",)])
@pytest.mark.parametrize("in_graph", [False, True])
def test_a_parameter_that_is_frozen_again_stays(in_graph, places):
    place = {} if places is None else {"placement": flow.placement("cpu", [0, 1]), "sbp": list(places)}
    flow.manual_seed(0)
    body, head = (flow.nn.Parameter(flow.randn(4, 4, **place)) for _ in range(2))
    optimizer = optim.AdamW([body, head], lr=0.1, weight_decay=0.1)

    class Step(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.body, self.head = body, head
            self.add_optimizer(optimizer)

        def build(self, x):
            loss = (x @ body @ head).square().sum()
            loss.backward()
            return loss

    def step():
        if in_graph:
            made(x)
        else:
            (x @ body @ head).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    x, made = flow.randn(2, 4, **({} if places is None else place | {"sbp": ["B"]})), Step()
    for frozen in (False, True, False):
        body.requires_grad_(not frozen)
        before = [p.numpy().copy() for p in (body, head)]
        step()
        moved = [bool(np.any(was != p.numpy())) for was, p in zip(before, (body, head), strict=True)]
        assert moved == [not frozen, True]


@pytest.mark.parametrize("layout", [LAYOUTS[3], LAYOUTS[4]], ids=str)
def test_state_follows_a_parameter_that_was_laid_out_anew(layout):
    ours, optimizer, theirs, reference = both("Adam", {"lr": 0.1})
    for step in range(2 * STEPS):
        if step == STEPS:
            placement = flow.placement(*layout[0])
            for param, sbp in zip(ours, layout[1]):
                param.data = param.data.to_global(placement, nd(sbp))
        grads = values(step + 1)
        give_grads(ours, grads)
        for param, grad in zip(theirs, grads):
            param.grad = torch.tensor(grad)
        optimizer.step()
        reference.step()
    assert_equal(ours, theirs)
    assert all(optimizer.state[p]["exp_avg"].sbp == p.sbp for p in ours)


def test_parameters_without_gradient_are_left_alone_and_count_their_own_steps():
    ours, optimizer, theirs, reference = both("Adam", {"lr": 0.1})
    for step in range(STEPS):
        grads = values(step + 1)
        give_grads(ours, grads)
        for param, grad in zip(theirs, grads):
            param.grad = torch.tensor(grad)
        if step % 2:
            ours[0].grad = theirs[0].grad = None
        if step == 2:
            ours[2].grad = theirs[2].grad = None
        optimizer.step()
        reference.step()
    assert_equal(ours, theirs)
    assert [int(optimizer.state[p]["step"].item()) for p in ours] == [STEPS // 2, STEPS, STEPS - 1]

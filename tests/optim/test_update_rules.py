"""Update rules of RAdam, NAdam, Adamax, ASGD, Rprop, Adafactor, Muon, Ftrl: against PyTorch, optax, formulas."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import optim
from tests.optim.test_optimizer import LAYOUTS, assert_equal, both, give_grads, make, values
from tests.support import graphs

STEPS = 8
# Four steps at a rate of 0.1 sqrt(2); an update of about 1 is rounded to bfloat16 in three products, five times.
MUON_TOLERANCE = 4 * 0.1 * 2**0.5 * 15 * 2**-9
CASES = [
    ("RAdam", {"lr": 0.1}),
    ("RAdam", {"lr": 0.1, "betas": (0.8, 0.95), "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.1, "momentum_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1}),
    ("Adamax", {"lr": 0.1, "maximize": True, "foreach": False}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "t0": 3}),
    ("ASGD", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("Rprop", {"lr": 0.1}),
    ("Rprop", {"lr": 0.1, "etas": (0.4, 1.4), "step_sizes": (1e-3, 0.2), "maximize": True}),
    ("Adafactor", {"lr": 0.1}),
    ("Adafactor", {"lr": 0.1, "eps": (1e-3, 1e-2), "d": 2.0, "weight_decay": 0.1, "beta2_decay": -0.5}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True, "capturable": False}),
]


def run_both(name, options, layout, steps=STEPS):
    ours, optimizer, theirs, reference = both(name, options, layout)
    for step in range(steps):
        grads = values(step + 1)
        give_grads(ours, grads)
        for param, grad in zip(theirs, grads):
            param.grad = torch.tensor(grad)
        for o in (optimizer, reference):
            o.param_groups[0]["lr"] *= 0.9
            o.step()
    return ours, optimizer, theirs, reference


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_equals_torch(name, options):
    ours, optimizer, theirs, reference = run_both(name, options, None)
    assert_equal(ours, theirs)
    for param, other in zip(ours, theirs):
        mine, wanted = optimizer.state[param], reference.state[other]
        wanted = {k: v for k, v in wanted.items() if v is not None}
        assert mine.keys() == wanted.keys()
        for key in wanted.keys() - {"step"}:
            assert tuple(mine[key].shape) == tuple(wanted[key].shape)
            assert_equal([mine[key]], [wanted[key]])


@pytest.mark.parametrize("layout", [LAYOUTS[2], LAYOUTS[4]], ids=str)
@pytest.mark.parametrize("name", ["NAdam", "RAdam", "ASGD", "Rprop", "Adafactor"])
def test_layouts_do_not_change_values(name, layout):
    ours, optimizer, theirs, _ = run_both(name, {"lr": 0.1}, layout, 4)
    assert_equal(ours, theirs)
    for param in ours:
        for key, tensor in optimizer.state[param].items():
            assert tensor.is_global and tensor.placement == param.placement
            if tensor.shape == param.shape and key not in ("row_var", "col_var"):
                assert tensor.sbp == param.sbp


@pytest.mark.parametrize("options", [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}], ids=str)
def test_muon(options):
    rng = np.random.default_rng(0)
    for shape in ((8, 4), (4, 8)):
        start = rng.standard_normal(shape).astype(np.float32)
        ours, theirs = flow.nn.Parameter(flow.tensor(start)), torch.nn.Parameter(torch.tensor(start))
        optimizer, reference = optim.Muon([ours], lr=0.1, **options), torch.optim.Muon([theirs], lr=0.1, **options)
        for _ in range(4):
            grad = rng.standard_normal(shape).astype(np.float32)
            ours.grad, theirs.grad = flow.tensor(grad), torch.tensor(grad)
            optimizer.step()
            reference.step()
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), atol=MUON_TOLERANCE, rtol=0)
        assert_equal([optimizer.state[ours]["momentum_buffer"]], [reference.state[theirs]["momentum_buffer"]])
    with pytest.raises(ValueError, match="Muon only supports 2D parameters"):
        optim.Muon([flow.nn.Parameter(flow.ones(3))])


def test_ftrl_equals_its_formula():
    options = {"lr": 0.1, "weight_decay": 0.01, "lambda1": 0.5, "lambda2": 0.1, "beta": 0.2}
    ours = make(None)
    optimizer = optim.Ftrl(ours, initial_accumulator_value=0.2, **options)
    theirs = [v.astype(np.float64) for v in values(0)]
    sums, leaders = [np.full_like(v, 0.2) for v in theirs], [np.zeros_like(v) for v in theirs]
    for step in range(STEPS):
        give_grads(ours, values(step + 1))
        optimizer.step()
        for i, g in enumerate(values(step + 1)):
            g = g.astype(np.float64) + 0.01 * theirs[i]
            after = sums[i] + g**2
            leaders[i] += g - (after**-0.5 - sums[i] ** -0.5) / 0.1 * theirs[i]
            new = (np.sign(leaders[i]) * 0.5 - leaders[i]) / ((0.2 + after**-0.5) / 0.1 + 0.1)
            theirs[i] = np.where(np.abs(leaders[i]) <= 0.5, 0, new)
            sums[i] = after
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a.detach().numpy(), b, rtol=1e-5, atol=1e-5)


MORE = ["NAdam", "RAdam", "Adamax", "ASGD", "Rprop", "Adafactor", "Muon", "Ftrl"]


@pytest.mark.parametrize("name", MORE)
def test_a_saved_state_goes_on(name):
    def train(params, optimizer, steps):
        for step in steps:
            for p, g in zip(params, values(step + 1)):
                p.grad = flow.tensor(g)
            optimizer.step()

    count = 1 if name == "Muon" else 3
    whole, first = make(None)[:count], make(None)[:count]
    train(whole, getattr(optim, name)(whole, lr=0.1), range(4))
    optimizer = getattr(optim, name)(first, lr=0.1)
    train(first, optimizer, range(2))
    second = [flow.nn.Parameter(p.detach().clone()) for p in first]
    again = getattr(optim, name)(second, lr=0.1)
    again.load_state_dict(optimizer.state_dict())
    train(second, again, range(2, 4))
    for a, b in zip(whole, second):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


@pytest.mark.parametrize("name", ["NAdam", "ASGD", "Adafactor"])
def test_torchs_state_goes_on(name):
    _, optimizer, theirs, reference = run_both(name, {"lr": 0.1}, None, 3)
    ours = [flow.nn.Parameter(flow.tensor(p.detach().numpy())) for p in theirs]
    optimizer = getattr(optim, name)(ours, lr=0.1)
    optimizer.load_state_dict(reference.state_dict())
    for step in (4, 5):
        give_grads(ours, values(step))
        for param, grad in zip(theirs, values(step)):
            param.grad = torch.tensor(grad)
        optimizer.step()
        reference.step()
    assert_equal(ours, theirs)


@pytest.mark.parametrize(
    "name", [n if n in ("NAdam", "Adafactor", "Muon") else pytest.param(n, marks=pytest.mark.exhaustive) for n in MORE]
)
def test_in_a_graph_with_clipping_and_master_weights(name):
    def model():
        flow.manual_seed(0)
        return flow.nn.Linear(4, 4, bias=name != "Muon").to(flow.bfloat16)

    def made(module):
        groups = [{"params": list(module.parameters()), "clip_grad_max_norm": 0.5}]
        optimizer = getattr(optim, name)(groups, lr=0.1)
        optimizer.use_master_weights()
        return optimizer

    eager, traced = model(), model()
    x = flow.randn(8, 4).to(flow.bfloat16)
    optimizer = made(eager)

    class Step(graphs.Train):
        loss = staticmethod(lambda model, x: model(x).float().square().mean())

    step = Step(traced, made(traced))
    for _ in range(3):
        loss = eager(x).float().square().mean()
        loss.backward()
        optimizer.clip_grad()
        optimizer.step()
        optimizer.zero_grad()
        np.testing.assert_allclose(step(x).item(), loss.item(), rtol=2e-2)
    for a, b in zip(eager.parameters(), traced.parameters()):
        assert a.dtype == flow.bfloat16
        np.testing.assert_allclose(a.detach().float().numpy(), b.detach().float().numpy(), atol=4e-2)


def test_choices_of_an_implementation_are_accepted():
    for name in ["SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "RMSprop", *MORE[:3]]:
        optimizer = getattr(optim, name)(make(None), foreach=True, fused=False, capturable=False)
        assert optimizer.defaults["foreach"] is True and optimizer.param_groups[0]["fused"] is False
    with pytest.raises(TypeError, match=r"keyword argument 'momentun'\n +fix: +momentum, not momentun: SGD\(p"):
        optim.SGD(make(None), momentun=0.9)
    with pytest.raises(TypeError, match=r"fix: +lr, not learning_rate: AdamW\(params, lr=0.001, .*weight_decay"):
        optim.AdamW(make(None), learning_rate=0.9)
    with pytest.raises(ValueError, match="no gradient flows"):
        optim.Adam(make(None), differentiable=True)


def test_named_parameters_are_accepted():
    module = flow.nn.Linear(2, 3)
    optimizer = optim.AdamW(module.named_parameters())
    assert optimizer.param_groups[0]["param_names"] == ("weight", "bias")
    assert optimizer.param_groups[0]["params"][0] is module.weight

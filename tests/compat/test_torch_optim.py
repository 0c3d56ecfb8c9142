"""Optimizers, schedules and modules under the name torch do what PyTorch's do, held against it live."""

import functools
import importlib
import pickle
import warnings

import numpy as np
import pytest
import torch as real

import sbpjax
from sbpjax import checkpoint, mock_torch
from tests.optim import schedule_cases, sweep_cases
from tests.support import compare

TOLERANCE = 1e-5
equal = functools.partial(compare.close, rtol=TOLERANCE, atol=TOLERANCE)
DEFAULTS = "Adadelta Adafactor Adagrad Adam AdamW Adamax ASGD NAdam RAdam RMSprop Rprop SGD".split()
OWN = {name: case for name, case in sweep_cases.ONEFLOW.items() if case["optimizer"] in ("SGD", "RMSprop")}
OWN |= {name: case for name, case in sweep_cases.TORCH_ONLY.items() if case["optimizer"] == "RMSprop"}
CHAINS = [*schedule_cases.CHAINED, *schedule_cases.MIXED]


@pytest.fixture
def torch():
    with mock_torch.enable():
        yield importlib.import_module("torch")


def both(run):
    """Return what a function of the library returns for us and for PyTorch, which imports itself while it runs."""
    theirs = run(real)
    with mock_torch.enable():
        return run(importlib.import_module("torch")), theirs


def train(library, make, steps=5):
    """Return the parameters after every step; the second has no gradient from the third step on."""
    params = [library.nn.Parameter(library.tensor(array)) for array in sweep_cases.start()]
    optimizer, found = make(params), []
    for step, slopes in enumerate(sweep_cases.slopes()[:steps], 1):
        optimizer.zero_grad()
        taken = list(zip(params, slopes))[: 1 if step > 2 else 2]
        sum((p * library.tensor(g)).sum() for p, g in taken).backward()
        optimizer.step()
        found += [p.detach().numpy().copy() for p in params]
    return found


@pytest.mark.parametrize("name", DEFAULTS)
def test_every_optimizer_by_default(name):
    equal(*both(lambda library: train(library, getattr(library.optim, name))))


@pytest.mark.parametrize("options", [{}, {"line_search_fn": "strong_wolfe"}], ids=["plain", "wolfe"])
def test_lbfgs(options):
    def run(library):
        param = library.nn.Parameter(library.tensor(sweep_cases.start()[0]).double())  # float32 stops on rounding
        optimizer, found = library.optim.LBFGS([param], **options), []

        def closure():
            optimizer.zero_grad()
            loss = (library.cosh(param) * library.arange(1, 4)).sum() + param.sum()
            loss.backward()
            return loss

        for _ in range(5):
            optimizer.step(closure)
            found.append(param.detach().numpy().copy())
        return found

    equal(*both(run))


def test_muon():
    def one(library):
        param = library.nn.Parameter(library.tensor(sweep_cases.start()[0]))
        optimizer, found = library.optim.Muon([param]), []
        for slopes in sweep_cases.slopes()[:5]:
            optimizer.zero_grad()
            (param * library.tensor(slopes[0])).sum().backward()
            optimizer.step()
            found.append(param.detach().numpy().copy())
        return found

    equal(*both(one))  # bfloat16 is rounded at the same places


def saved(library, name):
    """Return the names in a group of `state_dict`, and of a parameter's state, after a step."""
    param = library.nn.Parameter(library.tensor([[1.0, 2.0]]))
    optimizer = getattr(library.optim, name)([param])

    def closure():
        optimizer.zero_grad()
        loss = (param * param).sum()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)
    state = optimizer.state_dict()
    return set(state["param_groups"][0]), set(state["state"].get(0, {}))


@pytest.mark.parametrize("name", [*DEFAULTS, "LBFGS", "Muon"])
def test_state_dict_has_the_keys_of_pytorch(name):
    (options, state), (others, wanted) = both(functools.partial(saved, name=name))
    assert options >= others and state == wanted


WRONG = {
    "lr": lambda t: t.optim.Adam(None, lr=t.tensor([0.1, 0.1])),
    "betas": lambda t: t.optim.NAdam(None, betas=(1.0, 0.0)),
    "betas of two kinds": lambda t: t.optim.Adam(None, betas=(0.9, t.tensor(0.99))),
    "lr with foreach": lambda t: t.optim.AdamW(None, lr=t.tensor(0.1), foreach=True),
    "betas with foreach": lambda t: t.optim.Adam(None, betas=(t.tensor(0.9), t.tensor(0.9)), foreach=True),
    "momentum": lambda t: t.optim.SGD(None, momentum=-0.5),
    "rho": lambda t: t.optim.Adadelta(None, rho=1.1),
    "some names": lambda t: t.optim.SGD([("w", t.nn.Parameter(t.ones(1))), t.nn.Parameter(t.ones(1))]),
    "a later group with names": lambda t: t.optim.SGD(
        [{"params": [t.nn.Parameter(t.ones(1))]}, {"params": [("w", t.nn.Parameter(t.ones(1)))]}]
    ),
    "complex": lambda t: t.optim.SparseAdam([t.nn.Parameter(t.ones(1, 1, dtype=t.complex64))]),
    "no closure": lambda t: t.optim.LBFGS([t.nn.Parameter(t.ones(1))]).step(),
    "no parameters": lambda t: t.optim.SGD(None),
}


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_wrong_options_raise_pytorchs_class_before_parameters_are_looked_at(make):
    def raised(library):
        with pytest.raises(Exception) as info:
            make(library)
        return info.value

    ours, theirs = both(raised)
    assert isinstance(ours, type(theirs))


def test_sparse_adam_under_the_name_torch_updates_the_rows_that_were_looked_up():
    def run(library):
        table = library.nn.Embedding(5, 2, sparse=True)
        table.weight.data.copy_(library.arange(10.0).reshape(5, 2))
        optimizer = library.optim.SparseAdam(table.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (table(library.tensor([1, 3, 3])) ** 2).sum().backward()
            optimizer.step()
        return [table.weight.detach().numpy()]

    equal(*both(run))


def test_no_optimizer_of_pytorch_is_left_out():
    theirs = {n for n, v in vars(real.optim).items() if isinstance(v, type) and issubclass(v, real.optim.Optimizer)}
    assert theirs - {"Optimizer"} <= {*DEFAULTS, "LBFGS", "Muon", "SparseAdam"}


@pytest.mark.parametrize("case", OWN.values(), ids=OWN)
def test_options_of_those_that_differ_from_oneflow(case):
    def run(library):
        def clip(optimizer):
            for group in optimizer.param_groups:
                norm_type = group.get("clip_grad_norm_type", 2.0)
                library.nn.utils.clip_grad_norm_(group["params"], group["clip_grad_max_norm"], norm_type)

        def parameter(array):
            return library.nn.Parameter(library.tensor(array))

        try:
            return sweep_cases.run_eager(case, lambda n: getattr(library.optim, n), parameter, library.tensor, clip)
        except ValueError as error:
            return str(error).split(";")[0]

    ours, theirs = both(run)
    if isinstance(theirs, str):
        assert theirs in ours
    else:
        equal(ours, theirs)


def test_an_optimizer_of_the_name_torch_is_one_and_pickles(torch):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], momentum=0.9, dampening=0.5)
    assert isinstance(optimizer, torch.optim.Optimizer) and isinstance(optimizer, sbpjax.optim.SGD)
    assert torch.optim.sgd.SGD is torch.optim.SGD and type(pickle.loads(pickle.dumps(optimizer))) is torch.optim.SGD


def test_a_momentum_that_pytorch_saved_goes_on_dampened():
    def run(library):
        param = library.nn.Parameter(library.tensor([1.0, 2.0]))
        optimizer = library.optim.SGD([param], lr=0.1, momentum=0.9, dampening=0.5)
        options = {**real.optim.SGD([real.ones(1)], lr=0.1, momentum=0.9, dampening=0.5).param_groups[0], "params": [0]}
        state = {0: {"momentum_buffer": library.tensor([0.5, 0.0])}}
        optimizer.load_state_dict({"state": state, "param_groups": [options]})
        param.sum().backward()
        optimizer.step()
        return [param.detach().numpy()]

    equal(*both(run))


def test_other_names_stay_oneflows():
    param = sbpjax.nn.Parameter(sbpjax.ones(1))
    optimizer = sbpjax.optim.SGD([param], lr=1.0, momentum=0.9, dampening=0.5)
    param.sum().backward()
    optimizer.step()
    assert param.item() == 0.5
    optimizer.zero_grad()
    assert param.grad.item() == 0


@pytest.mark.parametrize("code", CHAINS)
def test_chained_schedules(code):
    def rates(library):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's words on steps of schedules without one of the optimizer
            return schedule_cases.run_eager(code, library, library.optim.lr_scheduler)

    ours, theirs = both(rates)
    assert ours.keys() == theirs.keys()
    for key in ours:
        np.testing.assert_allclose(ours[key], theirs[key], rtol=TOLERANCE, atol=1e-7)


@pytest.mark.parametrize("of", ["optimizer", "module"])
def test_zero_grad_drops_gradients(of):
    def run(library):
        layer = library.nn.Linear(2, 2)
        with library.no_grad():
            layer.weight.fill_(1.0)
        optimizer = library.optim.Adam(layer.parameters(), lr=0.1)
        layer(library.ones(1, 2)).sum().backward()
        optimizer.step()
        (optimizer if of == "optimizer" else layer).zero_grad()
        gone = layer.weight.grad is None
        optimizer.step()
        return gone, layer.weight.detach().numpy()

    (gone, ours), (_, theirs) = both(run)
    assert gone
    np.testing.assert_allclose(ours, theirs, rtol=TOLERANCE)


def test_zero_grad_may_be_told(torch):
    param = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([param])
    param.sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert param.grad.tolist() == [0, 0]


def test_state_dict_is_detached(torch):
    model, average = torch.nn.BatchNorm1d(2), torch.nn.BatchNorm1d(2)
    with torch.no_grad():
        model.weight.fill_(3.0)
    state = model.state_dict()
    for name, value in average.state_dict().items():
        assert not value.requires_grad and not isinstance(value, torch.nn.Parameter)
        value.copy_(state[name])
    assert average.weight.tolist() == [3, 3] and average.weight.requires_grad
    assert average.state_dict(keep_vars=True)["weight"] is average.weight


def test_a_checkpoint_restores_into_a_module(torch, tmp_path):
    model, fresh = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    checkpoint.save({"model": model}, tmp_path / "last")
    checkpoint.load(tmp_path / "last", into={"model": fresh})
    assert fresh.weight.equal(model.weight)


def test_state_dict_holds_the_parameters_under_other_names():
    layer = sbpjax.nn.Linear(2, 2)
    assert layer.state_dict()["weight"] is layer.weight

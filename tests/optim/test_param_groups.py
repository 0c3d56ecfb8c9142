"""Groups of parameters with options of their own, and what is refused in them."""

import pytest
import torch

import sbpjax as flow
from sbpjax import optim
from sbpjax._core import naming
from tests.optim.test_optimizer import STEPS, assert_equal, give_grads, make, values


def test_groups_have_options_of_their_own():
    ours, theirs = make(None), [torch.nn.Parameter(torch.tensor(a)) for a in values(0)]

    def groups(p):
        return [{"params": p[:1], "lr": 0.3, "weight_decay": 0.1}, {"params": p[1:]}]

    optimizer, reference = optim.AdamW(groups(ours), lr=0.05), torch.optim.AdamW(groups(theirs), lr=0.05)
    for step in range(STEPS):
        give_grads(ours, values(step + 1))
        for param, grad in zip(theirs, values(step + 1)):
            param.grad = torch.tensor(grad)
        optimizer.step()
        reference.step()
    assert_equal(ours, theirs)


@pytest.mark.parametrize(
    ("package", "leaf", "group"),
    [
        ("torch", "can't optimize a non-leaf Tensor: the next", "must be a dict, but got <class 'int'>: parameters"),
        ("oneflow", "parameters must be leaf tensor: the next", "param group must be a dict: parameters"),
    ],
)
def test_a_bad_parameter_is_refused_in_one_sentence_of_the_package(package, leaf, group):
    param = flow.nn.Parameter(flow.ones(2))
    naming.push_name(package)
    try:
        with pytest.raises(ValueError, match=leaf):
            optim.SGD([param * 2], lr=0.1)
        with pytest.raises(TypeError, match=group):
            optim.SGD([param], lr=0.1).add_param_group(3)
    finally:
        naming.remove_name(package)


@pytest.mark.parametrize(
    ("make_optimizer", "error", "text"),
    [
        (lambda p: optim.SGD([], lr=0.1), ValueError, "empty parameter list"),
        (lambda p: optim.SGD(p[0], lr=0.1), TypeError, "iterable of Tensors"),
        (lambda p: optim.SGD([1.0], lr=0.1), TypeError, "can only optimize Tensors"),
        (lambda p: optim.SGD([{"params": set(p)}], lr=0.1), TypeError, "ordered collections"),
        (lambda p: optim.SGD([p[0] * 2], lr=0.1), ValueError, "must be leaf tensor"),
        (lambda p: optim.SGD([{"params": p}, {"params": p[:1]}], lr=0.1), ValueError, "more than one parameter group"),
    ],
)
def test_bad_groups(make_optimizer, error, text):
    with pytest.raises(error, match=text):
        make_optimizer(make(None))

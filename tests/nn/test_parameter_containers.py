"""Lists and dicts of parameters, and the reprs of containers, against PyTorch's."""

import pytest
import torch

import sbpjax as flow
from sbpjax import nn

PROGRAM = {
    "list": "P(T.nn.ParameterList([T.ones(2), T.ones(3, 1), 3]))",
    "list grows": "P(grown(T.nn.ParameterList([T.ones(2)]), T))",
    "list state": "list(T.nn.ParameterList([T.ones(2), T.ones(1)]).state_dict())",
    "list parts": "len(T.nn.ParameterList([T.ones(2)] * 5)[1:3])",
    "dict": "P(T.nn.ParameterDict({'a': T.ones(2), 'b': T.zeros(1, dtype=T.float64), 'c': 'x'}))",
    "dict names": "sorted(T.nn.ParameterDict({'a': T.ones(2), 'b': T.ones(1)}).state_dict())",
    "dict joined": "list((T.nn.ParameterDict({'a': T.ones(2)}) | {'b': T.ones(1)}).keys())",
    "dict used": "used(T.nn.ParameterDict({'a': T.ones(2), 'b': T.ones(1)}), T)",
    "modules": "repr(T.nn.ModuleList([T.nn.Linear(2, 2)] * 3 + [T.nn.ReLU(), T.nn.ModuleList([T.nn.GELU()] * 2)]))",
    "no modules": "repr(T.nn.ModuleList())",
    "times": "repr(T.nn.Sequential(T.nn.ReLU()) * 3)",
    "out of range": "T.nn.ParameterList([T.ones(2)])[1]",
    "no key": "T.nn.ParameterDict()['a']",
    "no string": "T.nn.ParameterDict({1: T.ones(1)})",
    "no factor": "T.nn.Sequential() * 0",
    "called": "T.nn.ParameterList()()",
}


def grown(values, package):
    values += [package.zeros(1)]
    values[0] = package.zeros(4)
    values.extend([package.ones(1), None])
    return values


def used(values, package):
    kept = [values.pop("a").tolist(), values.get("z", 7), values.setdefault("c", package.ones(1)).tolist()]
    key, last = values.popitem()
    values.update([("d", package.ones(2))])
    twin = values.copy()
    values.clear()
    return [*kept, key, last.tolist(), list(twin), len(values), list(twin.fromkeys("xy", 0).items())]


def outcome(code, package):
    try:
        return eval(code, {"T": package, "P": lambda v: repr(v), "grown": grown, "used": used})
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("name", PROGRAM)
def test_containers(name):
    want, got = outcome(PROGRAM[name], torch), outcome(PROGRAM[name], flow)
    if isinstance(want, type):
        assert isinstance(got, type) and issubclass(got, want)
    else:
        assert str(got).replace("sbpjax.", "torch.") == str(want)


def test_elements_train():
    values = nn.ParameterList([flow.ones(2)])
    (values[0] * 3).sum().backward()
    assert values[0].grad.tolist() == [3.0, 3.0] and [n for n, _ in values.named_parameters()] == ["0"]

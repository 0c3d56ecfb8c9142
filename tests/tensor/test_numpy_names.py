"""NumPy's names of arguments, `axis` and `keepdims`, wherever PyTorch takes them."""

import numpy as np
import pytest
import torch

import sbpjax as flow

CALLS = [
    "x.sum(axis=1)", "x.sum(axis=(0, 1), keepdims=True)", "x.mean(axis=0, keepdims=True)", "T.mean(x, axis=1)",
    "x.max(axis=1)", "x.argmax(axis=1, keepdims=True)", "x.squeeze(axis=0)", "x.unsqueeze(axis=0)",
    "T.cat([x, x], axis=1)", "T.stack([x, x], axis=1)", "T.concat([x, x], axis=0)", "x.softmax(axis=1)",
    "x.cumsum(axis=0)", "x.prod(axis=0)", "x.std(axis=0, keepdims=True)", "x.all(axis=0)", "x.sort(axis=0)",
    "T.argsort(x, axis=0)", "x.amax(axis=0)", "x.logsumexp(axis=0)", "x.index_select(axis=0, index=T.tensor([0]))",
    "T.gather(x, axis=1, index=T.tensor([[0], [1]]))", "T.chunk(x, 2, axis=0)", "x.unbind(axis=0)", "x.median(axis=0)",
    "x.narrow(axis=0, start=0, length=1)", "T.topk(x, 1, axis=0)", "T.quantile(x, 0.5, axis=0)",
    "x.select(axis=0, index=1)", "T.linalg.norm(x, axis=0)", "T.var_mean(x, axis=0)", "T.diff(x, axis=0)",
    "x.scatter(axis=0, index=T.tensor([[1, 0]]), src=x)",
]  # fmt: skip


def values(found):
    if isinstance(found, (tuple, list)):
        return [values(each) for each in found]
    return found.numpy()


@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_pytorchs(call):
    found = []
    for library in (flow, torch):
        x = library.tensor([[3.0, 1.0], [2.0, 5.0]])
        found.append(values(eval(call, {"T": library, "x": x})))
    got, want = found
    for a, b in zip(*[f if isinstance(f, list) else [f] for f in (got, want)], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_one_argument_has_one_name():
    with pytest.raises(TypeError):
        flow.ones(2).sum(axes=0)
    with pytest.raises(TypeError):
        flow.ones(2).softmax(0, axis=0)

"""Clipping against PyTorch's, local and global, and parameters as one vector."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn

LAYOUTS = [None, ["B", "B"], ["S0", "S1"], ["S1", "B"]]


def parameters(layout, scale=1.0):
    rng = np.random.default_rng(0)
    ours, theirs = [], []
    for i, shape in enumerate([(8, 4), (4, 8)]):
        value, grad = (rng.standard_normal(shape).astype(np.float32) * scale for _ in range(2))
        p, g = flow.tensor(value), flow.tensor(grad)
        if layout is not None:
            placement = flow.placement("cpu", [0, 1, 2, 3])
            p, g = p.to_global(placement, layout[i]), g.to_global(placement, layout[i])
        ours.append(nn.Parameter(p))
        ours[-1].grad = g
        theirs.append(torch.nn.Parameter(torch.tensor(value)))
        theirs[-1].grad = torch.tensor(grad)
    return ours, theirs


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.0, float("inf")])
@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_clip_grad_norm(max_norm, norm_type, layout):
    ours, theirs = parameters(layout)
    sbps = [p.grad.sbp for p in ours if layout]
    a = nn.utils.clip_grad_norm_(ours, max_norm, norm_type)
    b = torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type)
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)
    for p, q in zip(ours, theirs):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=2e-5, atol=1e-6)
    assert [p.grad.sbp for p in ours if layout] == sbps


@pytest.mark.parametrize("sbp", [None, "S0", "P"])
@pytest.mark.parametrize(("dtype", "size"), [("bfloat16", 1.0), ("float16", 1024.0)])
def test_a_norm_of_low_precision_neither_stalls_nor_overflows(dtype, size, sbp):
    """A square of 256 and 24 of 1 sum to 256 in bfloat16, as 257 rounds to 256; squares of 1024 are no float16."""
    ours = [nn.Parameter(flow.zeros(4, dtype=getattr(flow, dtype))) for _ in range(25)]
    for i, p in enumerate(ours):
        p.grad = flow.tensor([16 * size if i == 0 else size, 0.0, 0.0, 0.0]).to(p.dtype)
        if sbp is not None:
            p.data = p.data.to_global(flow.placement("cpu", [0, 1, 2, 3]), "B")
            p.grad = p.grad.to_global(p.placement, "B").to_global(p.placement, sbp)
    norm = nn.utils.clip_grad_norm_(ours, size)
    assert norm.dtype == getattr(flow, dtype)
    assert norm.item() == pytest.approx(size * 280**0.5, rel=2**-8)
    assert ours[1].grad.numpy().astype(np.float32)[0] == pytest.approx(size / 280**0.5, rel=2**-8)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_clip_grad_value(layout):
    ours, theirs = parameters(layout)
    nn.utils.clip_grad_value_(ours, 0.3)
    torch.nn.utils.clip_grad_value_(theirs, 0.3)
    for p, q in zip(ours, theirs):
        np.testing.assert_array_equal(p.grad.numpy(), q.grad.numpy())


def test_non_finite_norm_raises_before_anything_is_written():
    ours, _ = parameters(None, scale=float("inf"))
    before = [p.grad.numpy().copy() for p in ours]
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(ours, 1.0, error_if_nonfinite=True)
    for p, old in zip(ours, before):
        np.testing.assert_array_equal(p.grad.numpy(), old)


def test_two_placements_and_missing_gradients():
    ours, theirs = parameters(None)
    other = ours[1].grad.to_global(flow.placement("cpu", [4, 5]), flow.sbp.split(0))
    ours[1] = nn.Parameter(ours[1].detach().to_global(flow.placement("cpu", [4, 5]), flow.sbp.split(0)))
    ours[1].grad = other
    ours.append(nn.Parameter(flow.ones(3)))
    a = nn.utils.clip_grad_norm_(ours, 0.5)
    b = torch.nn.utils.clip_grad_norm_(theirs, 0.5)
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)
    for p, q in zip(ours, theirs):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=2e-5, atol=1e-6)
    assert nn.utils.clip_grad_norm_([nn.Parameter(flow.ones(3))], 1.0).item() == 0.0


def test_vector_of_parameters_and_back():
    ours, theirs = parameters(None)
    vector = nn.utils.parameters_to_vector(ours)
    np.testing.assert_array_equal(vector.detach().numpy(), torch.nn.utils.parameters_to_vector(theirs).detach().numpy())
    nn.utils.vector_to_parameters(vector * 2, ours)
    np.testing.assert_array_equal(ours[1].detach().numpy(), 2 * theirs[1].detach().numpy())

"""LAMB against its formulas in float64, local and under layouts that split the tensors whose norms it needs."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, optim

STEPS = 20
TOLERANCE = 5e-6  # float32 against float64, over STEPS steps; the norms add rounding of their own
SHAPES = [(6, 4), (5,), (3, 3)]
CASES = [
    {"lr": 0.05},
    {"lr": 0.05, "weight_decay": 0.1},
    {"lr": 0.05, "weight_decay": 0.1, "adam_w_mode": False},
    {"lr": 0.02, "betas": (0.8, 0.9), "eps": 1e-4, "do_bias_correction": False},
]


def values(seed):
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in SHAPES]
    return [*arrays[:2], arrays[2] * (seed > 0)]  # a tensor of zeros has no norm to scale by


def expected(lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, adam_w_mode=True, do_bias_correction=True):
    params = [p.astype(np.float64) for p in values(0)]
    m, v = [np.zeros_like(p) for p in params], [np.zeros_like(p) for p in params]
    for t in range(1, STEPS + 1):
        for i, g in enumerate(values(t)):
            p, g = params[i], g.astype(np.float64)
            if not adam_w_mode:
                g = g + weight_decay * p
            m[i] = betas[0] * m[i] + (1 - betas[0]) * g
            v[i] = betas[1] * v[i] + (1 - betas[1]) * g**2
            one, two = (1 - betas[0] ** t, 1 - betas[1] ** t) if do_bias_correction else (1, 1)
            u = (m[i] / one) / (np.sqrt(v[i] / two) + eps)
            ratio = np.linalg.norm(p) / np.linalg.norm(u) if np.linalg.norm(p) > 0 else 1.0
            params[i] = p - lr * ratio * (u + (weight_decay if adam_w_mode else 0) * p)
    return params


@pytest.mark.parametrize("sbps", [None, ["B", "B", "B"], ["S0", "S0", "S1"], ["S1", "B", "S0"]], ids=str)
@pytest.mark.parametrize("options", CASES, ids=str)
def test_equals_the_formulas(options, sbps):
    params = [flow.tensor(p) for p in values(0)]
    if sbps is not None:
        placement = flow.placement("cpu", [0, 1, 2, 3])
        params = [p.to_global(placement, sbp) for p, sbp in zip(params, sbps)]
    params = [nn.Parameter(p) for p in params]
    optimizer = optim.LAMB(params, **options)
    for t in range(1, STEPS + 1):
        for param, grad in zip(params, values(t)):
            grad = flow.tensor(grad)
            param.grad = grad.to_global(param.placement, param.sbp) if sbps else grad
        optimizer.step()
    for param, value in zip(params, expected(**options)):
        np.testing.assert_allclose(param.detach().numpy(), value, rtol=TOLERANCE, atol=TOLERANCE)


def test_amsgrad_is_refused():
    with pytest.raises(ValueError, match="does not support AMSGrad"):
        optim.LAMB([nn.Parameter(flow.ones(2))], amsgrad=True)

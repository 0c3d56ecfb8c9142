"""A layer beside PyTorch's of the same name, with the same parameters, and what both give."""

from __future__ import annotations

import functools

import numpy as np
import torch

import sbpjax as flow
from sbpjax import nn
from tests.support import compare

RTOL, ATOL = 2e-5, 2e-5  # float32, sums of at most a few hundred terms of size about 1
close = functools.partial(compare.close, rtol=RTOL, atol=ATOL)


def numbers(*shape, seed=0):
    """Return normal numbers, float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def pair(name, args, options):
    """Return a layer and PyTorch's, with the same random parameters."""
    torch.manual_seed(0)
    theirs = getattr(torch.nn, name)(*args, **options)
    ours = getattr(nn, name)(*args, **options)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    ours.load_state_dict({k: flow.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    return ours, theirs


def flat(value):
    """Return the tensors of nested tuples, packed sequences opened."""
    if isinstance(value, tuple) and hasattr(value, "batch_sizes"):
        return [value.data]
    return [t for v in value for t in flat(v)] if isinstance(value, tuple) else [value]


def same(ours, theirs, a, b, inputs=()):
    """Compare the outputs `a` and `b` of two layers, and the gradients of their parameters and of pairs of inputs."""
    close(flat(a), flat(b), "output")
    sum((x * x).sum() for x in flat(a)).backward()
    sum((y * y).sum() for y in flat(b)).backward()
    for x, y in inputs:
        close(x.grad, y.grad, "gradient of the input")
    for (key, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        close(p.grad, q.grad, f"gradient of {key}")

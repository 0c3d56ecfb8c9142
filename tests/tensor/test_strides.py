"""Chains of views against PyTorch: shape, values, strides, offset, contiguity, and which `view` is refused.

Mirrors the stride rules of `sbpjax/_core/tensor/storage/view_steps.py`.
"""

import math
import random

import numpy as np
import pytest
import torch

import sbpjax

CHAINS, LONGEST = 24, 7  # per seed; views per chain


def _sizes(rng, elements: int) -> str:
    """Return random sizes with a number of elements, as arguments."""
    sizes = []
    for _ in range(rng.randrange(1, 4)):
        sizes.append(rng.choice([k for k in range(1, elements + 1) if elements % k == 0]))
        elements //= sizes[-1]
    sizes.append(elements)
    rng.shuffle(sizes)
    return ", ".join(map(str, sizes))


def _view(rng, shape: tuple[int, ...]) -> str | None:
    """Return one random view of a tensor of a shape as code; None if the drawn kind does not fit."""
    ndim, kind = len(shape), rng.randrange(14)
    dim = rng.randrange(ndim) if ndim else 0
    if ndim == 0 or 0 in shape or kind == 0:
        return ".squeeze()"
    if kind == 1:
        return f".permute({tuple(rng.sample(range(ndim), ndim))})"
    if kind == 2:
        return f".transpose({dim}, {rng.randrange(ndim)})"
    if kind == 3:
        start = rng.randrange(shape[dim])
        return f".narrow({dim}, {start}, {rng.randrange(1, shape[dim] - start + 1)})"
    if kind == 4:
        return f".select({dim}, {rng.randrange(shape[dim])})"
    if kind == 5:
        return f".expand({rng.randrange(1, 3)}, {', '.join(['-1'] * ndim)})" if ndim < 4 else None
    if kind == 6:
        return f".unsqueeze({rng.randrange(ndim + 1)})" if ndim < 4 else None
    if kind in (7, 8):
        return f".view({_sizes(rng, math.prod(shape))})"
    if kind == 9:
        return f".reshape({_sizes(rng, math.prod(shape))})"
    if kind == 10:
        return ".contiguous()"
    if kind == 11:
        return "[" + ", ".join(rng.choice([":", "::2", "1:", "-1:"]) for _ in shape) + "]"
    if kind == 12:
        return f".unfold({dim}, {rng.randrange(1, shape[dim] + 1)}, {rng.randrange(1, 3)})" if ndim < 4 else None
    return ".diagonal()" if ndim > 1 else ".chunk(2, 0)[-1]"


def _tried(x, code: str):
    try:
        return eval("x" + code, {"x": x})
    except RuntimeError as error:
        return error


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(2, 20))])
def test_chains_of_views(seed):
    rng = random.Random(seed)
    refused = 0
    for _ in range(CHAINS):
        shape = [rng.randrange(1, 5) for _ in range(rng.randrange(1, 4))]
        theirs = torch.arange(float(math.prod(shape))).reshape(shape)
        ours = sbpjax.tensor(theirs.numpy())
        chain = f"x of {shape}"
        for _ in range(LONGEST):
            code = _view(rng, tuple(theirs.shape))
            if code is None:
                continue
            chain += code
            theirs, ours = _tried(theirs, code), _tried(ours, code)
            assert isinstance(theirs, RuntimeError) == isinstance(ours, RuntimeError), (chain, ours)
            if isinstance(theirs, RuntimeError):
                refused += 1
                break
            seen = tuple(ours.shape), tuple(ours.stride()), ours.storage_offset(), ours.is_contiguous()
            wanted = tuple(theirs.shape), theirs.stride(), theirs.storage_offset(), theirs.is_contiguous()
            assert seen == wanted, chain
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy(), err_msg=chain)
    assert refused  # the chains reach views that are refused


@pytest.mark.parametrize("code", ["x[1:, ::2]", "x[::2, 1:2]", "x[:1, 3:]", "x[2:3:2, ::3]", "x[3:, 1:]"])
def test_writes_through_parts_of_one_element_and_none(code):
    ours, theirs = sbpjax.arange(12.0).reshape(3, 4), torch.arange(12.0).reshape(3, 4)
    for x in (ours, theirs):
        eval(code, {"x": x}).mul_(-1)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_the_result_of_an_op_is_row_major():
    """PyTorch keeps the input's strides, so there the view is refused."""
    assert sbpjax.ones(2, 3).t().relu().is_contiguous()
    assert sbpjax.ones(2, 3).t().relu().view(6).shape == (6,)
    with pytest.raises(RuntimeError):
        torch.ones(2, 3).t().relu().view(6)

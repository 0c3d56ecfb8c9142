"""Comparing what two ways of computing give: tensors of sbpjax and PyTorch, arrays, and nests of them."""

from __future__ import annotations

import numpy as np


def host(value) -> np.ndarray:
    """Return a tensor of sbpjax or PyTorch, or an array, as a NumPy array."""
    return np.asarray(value.detach().numpy() if hasattr(value, "detach") else value)


def close(got, want, what: str = "", *, rtol: float, atol: float) -> None:
    """Assert that shapes are equal and values close; those of lists, tuples and dicts one by one."""
    if isinstance(got, dict):
        assert list(got) == list(want), what
        for key, value in want.items():
            close(got[key], value, f"{what} {key}".strip(), rtol=rtol, atol=atol)
    elif isinstance(got, (list, tuple)):
        for i, (one, value) in enumerate(zip(got, want, strict=True)):
            close(one, value, f"{what} {i}".strip(), rtol=rtol, atol=atol)
    else:
        got, want = host(got), host(want)
        assert got.shape == want.shape, what
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=what)

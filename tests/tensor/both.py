"""Run one snippet with PyTorch and with sbpjax and compare what it leaves in ``R``: PyTorch is the truth.

A snippet sees the library as ``T`` and NumPy as ``np``. Errors count as equal if PyTorch's exception is of the same
builtin type.
"""

import numpy as np
import torch

import sbpjax

BUILTIN = (IndexError, TypeError, ValueError, RuntimeError)


def run(library, code: str):
    """Return ``R`` after the snippet as plain values, or the exception's builtin type."""
    space = {"T": library, "np": np}
    try:
        exec(code, space)
    except Exception as error:
        return ("raises", error)
    return plain(space["R"])


def plain(value):
    """Return a result as nested lists of NumPy arrays and Python values."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        array = value.float().numpy() if value.dtype == torch.bfloat16 else value.resolve_conj().numpy()
        return (str(value.dtype).split(".")[1], array)
    if isinstance(value, sbpjax.Tensor):
        array = value.detach().numpy()
        return (value.dtype.name, array.astype(np.float32) if value.dtype.name == "bfloat16" else array)
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (torch.dtype, sbpjax.dtype)):
        return str(value).split(".")[1]
    return value


def assert_equal(got, want, rtol, atol, where="R"):
    """Raise unless two plain results agree."""
    if isinstance(want, tuple) and len(want) == 2 and isinstance(want[1], np.ndarray):
        assert isinstance(got, tuple), f"{where}: {got!r} is no tensor"
        assert got[0] == want[0], f"{where}: dtype {got[0]}, PyTorch has {want[0]}"
        assert got[1].shape == want[1].shape, f"{where}: shape {got[1].shape}, PyTorch has {want[1].shape}"
        np.testing.assert_allclose(got[1], want[1], rtol=rtol, atol=atol, err_msg=where)
    elif isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want), f"{where}: {got!r}, PyTorch has {want!r}"
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            assert_equal(g, w, rtol, atol, f"{where}[{i}]")
    elif isinstance(want, float):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=where)
    else:
        assert got == want, f"{where}: {got!r}, PyTorch has {want!r}"


def same(code: str, rtol: float = 1e-6, atol: float = 1e-6) -> None:
    """Raise unless a snippet gives the same with both libraries, or fails in both with the same builtin type."""
    want, got = run(torch, code), run(sbpjax, code)
    if isinstance(want, tuple) and want[0] == "raises":
        assert isinstance(got, tuple) and got[0] == "raises", f"PyTorch raises {want[1]!r}; sbpjax gives {got}"
        kind = next((k for k in BUILTIN if isinstance(want[1], k)), Exception)
        assert isinstance(got[1], kind), f"PyTorch raises {want[1]!r}; sbpjax raises {got[1]!r}"
        return
    if isinstance(got, tuple) and got[0] == "raises":
        raise AssertionError(f"sbpjax raises, PyTorch does not: {got[1]}") from got[1]
    assert_equal(got, want, rtol, atol)

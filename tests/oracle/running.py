"""Recorded ops run for real: the gathered value (and gradients) against the same op on one device."""

from __future__ import annotations

import zlib

import numpy as np

from sbpjax.sbp import placement as Placement
from tests.oracle import inputs as make
from tests.oracle.notation import codes_of, load
from tests.oracle.planning import flat
from tests.oracle.signatures import evaluator

# Relative to the largest magnitude: float32 sums over ranks in another order, of partial sums whose terms are up to
# 2 + |x|.
TOLERANCE = 3e-5


def tensors_of(name: str, op: dict, case: str, requires_grad: bool = False):
    """Return ``(global, local)`` inputs of a fact, with equal values."""
    where = Placement("cpu", load(name)["meta"]["placement"])
    spread, alone = [], []
    for i, ((kind, shape), sbp) in enumerate(zip(op["inputs"], case.split("|"), strict=True)):
        value = make.values(kind, shape, zlib.crc32(f"{op['op']} {i}".encode()))
        spread.append(make.global_tensor(value, where, codes_of(sbp), seed=i))
        alone.append(make.local_tensor(value))
        if requires_grad and value.dtype.kind == "f":
            spread[-1].requires_grad_()
            alone[-1].requires_grad_()
    return spread, alone


def check_value(name: str, op: dict, case: str, flow) -> None:
    """Assert that a fact's op gives the one-device value here; random ops are only run."""
    spread, alone = tensors_of(name, op, case)
    evaluate = evaluator(op["expr"], flow)
    got, want = flat(evaluate(*spread)), flat(evaluate(*alone))
    assert len(got) == len(want)
    shapes = op.get("out_shapes")
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        assert g.dtype == w.dtype and tuple(g.shape) == tuple(w.shape)
        if shapes and op.get("value_checked", True) and not _data_dependent(op):
            assert list(g.shape) == shapes[i]
        if op.get("value_checked", True):
            close(g.numpy(), w.numpy(), f"{op['expr']} of {case}, output {i}")


def _data_dependent(op: dict) -> bool:
    return op["op"] in ("masked_select", "nonzero", "unique", "bincount")


def gradients(evaluate, leaves):
    """Run ``(out * out).sum().backward()`` on the first output of an op on ``leaf * 1.0``; return the first output."""
    held = [x * 1.0 if x.requires_grad else x for x in leaves]
    out = flat(evaluate(*held))[0]
    (out * out).sum().backward()
    return out


def check_gradients(name: str, op: dict, case: str, flow) -> None:
    """Assert that the gradients of a fact's leaves have the leaves' sbp and the one-device values."""
    spread, alone = tensors_of(name, op, case, requires_grad=True)
    evaluate = evaluator(op["expr"], flow)
    gradients(evaluate, spread)
    gradients(evaluate, alone)
    for i, (g, w) in enumerate(zip(spread, alone, strict=True)):
        if not w.requires_grad:
            continue
        what = f"gradient {i} of {op['expr']} at {case}"
        assert (g.grad is None) == (w.grad is None), what
        if g.grad is not None:
            assert g.grad.sbp == g.sbp and g.grad.placement == g.placement, what
            close(g.grad.numpy(), w.grad.numpy(), what)


def close(got: np.ndarray, want: np.ndarray, what: str) -> None:
    """Assert equal values, up to the order of floating-point sums."""
    assert got.dtype == want.dtype and got.shape == want.shape, what
    if want.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    scale = max(float(np.abs(want[np.isfinite(want)]).max(initial=0.0)), 1.0)
    np.testing.assert_allclose(got, want, rtol=TOLERANCE, atol=TOLERANCE * scale, err_msg=what)

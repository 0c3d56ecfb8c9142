"""Attention and its gradients by their formulas in NumPy, with all scores in float64; random problems for them.

Names and shapes are those of `_core.ops.attention.primitive`.
"""

import numpy as np

from sbpjax._core.ops.attention.scores import CAUSAL, EVERY_KEY, Scores


def by_formula(q, k, v, mask, segments, how, ct):
    """Return the result, the lse, and the gradients of queries, keys, values and of numbers that are added."""
    q, k, v, ct = (np.asarray(x, np.float64) for x in (q, k, v, ct))
    keys = k[..., None, :, :]  # of one group: (*lead, 1, S, D)
    s = how.scale * q @ keys.swapaxes(-1, -2)
    slope = 1.0
    if how.soft_cap is not None:
        s = how.soft_cap * np.tanh(s / how.soft_cap)
        slope = 1 - (s / how.soft_cap) ** 2
    row, key = np.indices(s.shape[-2:])
    left, right = (np.inf if n is None else n for n in how.window)
    keep = np.broadcast_to((row - left <= key) & (key <= row + right), s.shape)
    if segments is not None:
        rows, of_keys = (np.asarray(x) for x in segments)
        keep = keep & (rows[..., None, :, None] == of_keys[..., None, None, :])
    if mask is not None and mask.dtype == bool:
        keep = keep & mask
    elif mask is not None:
        s = s + np.asarray(mask, np.float64)
    s = np.where(keep, s, -np.inf)
    most = s.max(-1, keepdims=True, initial=-np.inf)
    most = np.where(np.isfinite(most), most, 0)
    odds = np.exp(s - most)
    total = odds.sum(-1, keepdims=True)
    p = np.divide(odds, total, out=np.zeros_like(odds), where=total > 0)
    lse = np.log(np.where(total > 0, total, np.inf)) + most
    out = p @ v[..., None, :, :]
    dbias = p * (ct @ v[..., None, :, :].swapaxes(-1, -2) - (ct * out).sum(-1, keepdims=True))
    ds = dbias * slope * how.scale
    grads = [ds @ keys, np.einsum("...gts,...gtd->...sd", ds, q), np.einsum("...gts,...gtd->...sd", p, ct)]
    if mask is not None and mask.dtype != bool:
        axes = tuple(d for d, n in enumerate(mask.shape) if n == 1)
        grads.append(dbias.sum(axes, keepdims=True))
    return out, lse[..., 0], *grads


def random_problem(rng, implementation):
    """Return ``(q, k, v, mask, segments, how)`` and the gradient of the result, for an implementation.

    Lengths are such that blocks of keys and queries have an end in their midst. JAX's splash attention takes neither
    numbers that are added nor float64; XLA's CPUs do not multiply bfloat16 as the heads together ask for it.
    """
    splash = implementation == "splash"
    dtypes = {"splash": ["float32", "bfloat16"], "together": ["float64", "float32"]}
    dtype = rng.choice(dtypes.get(implementation, ["float64", "float32", "bfloat16"]))
    batch, heads, groups = rng.choice([1, 2, 3]), rng.choice([1, 2]), rng.choice([1, 1, 2])
    t, s = rng.choice([100, 140, 200] if splash else [1, 17, 40, 70], 2)
    d, dv = (16, 16) if splash else rng.choice([1, 6, 8], 2)

    def floats(*shape):
        return rng.standard_normal(shape).astype(dtype)

    def ids(n):
        return np.sort(rng.integers(0, 3, (batch if rng.random() < 0.7 else 1, 1, n)), -1).astype(np.int32)

    kind = rng.choice(["none", "none", "keys"] if splash else ["none", "bool", "keys", "bias"])
    shape = (batch * rng.integers(2) or 1, heads * rng.integers(2) or 1, groups * rng.integers(2) or 1, t, s)
    mask = {
        "none": lambda: None,
        "bool": lambda: rng.random(shape) < 0.7,
        "keys": lambda: rng.random((batch, 1, 1, 1, s)) < 0.7,
        "bias": lambda: floats(*shape),
    }[kind]()
    before, behind = (int(n) for n in rng.integers(0, [s, s // 2 + 1]))
    windows = [EVERY_KEY, CAUSAL, CAUSAL, (before, 0), (before, behind), (None, behind), (before, None)]
    window = windows[rng.integers(len(windows))]
    segments = (ids(t), ids(s)) if rng.random() < 0.4 else None
    cap = float(rng.uniform(0.3, 2)) if rng.random() < 0.4 else None
    how = Scores(float(rng.uniform(0.05, 1)), window, cap)
    problem = floats(batch, heads, groups, t, d), floats(batch, heads, s, d), floats(batch, heads, s, dv)
    return (*problem, mask, segments, how), floats(batch, heads, groups, t, dv)

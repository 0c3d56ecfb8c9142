"""Random problems of attention, and the comparison of a kernel with the composition."""

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.ops.attention.attention import scaled_dot_product_attention as sdpa

# Of the largest element of the expected array: kernels sum in another order, and round 16-bit floats elsewhere than the
# composition, at most eight times their precision.
CLOSE = {"float64": 1e-11, "float32": 2e-5, "bfloat16": 3e-2, "float16": 8e-3}


def random_case(rng, lengths=(1, 3, 17, 40, 64, 70, 129)):
    """Return ``(q, k, v, mask)``, the gradient of the result, and the arguments of one problem."""
    dtype = rng.choice(list(CLOSE), p=[0.1, 0.6, 0.15, 0.15])
    batch, heads, groups = rng.choice([1, 2, 3]), rng.choice([1, 2, 3]), rng.choice([1, 1, 2, 3])
    t, s = rng.choice(lengths), rng.choice(lengths)
    d, dv = rng.choice([1, 8, 20]), rng.choice([1, 8, 24])

    def floats(*shape):
        return jnp.asarray(rng.standard_normal(shape), dtype)

    kind = rng.choice(["none", "causal", "bool", "keys", "bias", "-inf"])
    shape = (batch * rng.integers(2) or 1, heads * groups * rng.integers(2) or 1, t, s)
    mask = None
    if kind == "bool":
        mask = jnp.asarray(rng.random(shape) < 0.7)
    elif kind == "keys":
        mask = jnp.asarray(rng.random((batch, 1, 1, s)) < 0.7)
    elif kind == "bias":
        mask = floats(*shape[rng.integers(3) :])
    elif kind == "-inf":
        mask = jnp.where(jnp.asarray(rng.random(shape) < 0.6).at[..., -1].set(True), 0, -np.inf).astype(dtype)
    arrays = floats(batch, heads * groups, t, d), floats(batch, heads, s, d), floats(batch, heads, s, dv), mask
    keywords = {"is_causal": kind == "causal", "enable_gqa": True}
    if rng.random() < 0.5:
        keywords["scale"] = float(rng.uniform(0.05, 1.5))
    return arrays, floats(batch, heads * groups, t, dv), keywords


def with_gradients(arrays, ct, keywords, implementation):
    """Return the result and the gradients of all arrays that have one."""
    *_, mask = arrays
    wanted = (0, 1, 2) if mask is None or mask.dtype == bool else (0, 1, 2, 3)

    def total(*arrays):
        out = sdpa(*arrays, **keywords, implementation=implementation)
        return (out * ct).astype(ct.dtype).sum(), out

    grads, out = jax.grad(total, wanted, has_aux=True)(*arrays)
    return [out, *grads]


def assert_as_composed(found, expected, dtype, label=""):
    """Compare arrays with those of the composition, by the largest element."""
    for i, (x, y) in enumerate(zip(found, expected, strict=True)):
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        assert x.shape == y.shape, (label, i, x.shape, y.shape)
        np.testing.assert_array_equal(np.isnan(x), np.isnan(y), err_msg=f"{label} array {i}")
        size = max(np.abs(np.nan_to_num(y)).max(initial=0), 1)
        far = np.abs(np.nan_to_num(x - y)).max(initial=0) / size
        assert far <= CLOSE[str(dtype)], f"{label}: array {i} is off by {far:.1e} of its largest element"

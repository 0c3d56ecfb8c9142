"""Input checks of ops: dtypes without a kernel in PyTorch, mixed dtypes, and numbers of dims.

    maximum(x, y)      rejects complex numbers: they have no order
    adaptive_avg_pool2d(x)   rejects integers: their mean is no integer
    lerp(x, end, w)    requires one dtype, where other ops would promote
    scatter(x, dim, index, src)   requires as many dims of index as of src

`check` runs when an op is traced for new shapes and dtypes, so a call that is already compiled
pays nothing. `tests/op_specs/misuse_differences.py` lists further errors of PyTorch.
"""

from __future__ import annotations

import numpy as np

from .dims import fail

_WORDS = {
    "c": "complex numbers",
    "b": "booleans",
    "i": "signed whole numbers",
    "u": "unsigned whole numbers",
    "f": "fractions",
}


def _table() -> dict[str, tuple[tuple[str, tuple[int, ...]], ...]]:
    """Return the rejected dtypes per op, and the inputs concerned; no inputs named: all."""
    found: dict[str, list] = {}
    for kinds, inputs, names in _REFUSED:
        for name in names.split():
            found.setdefault(name, []).append((kinds, inputs))
    return {name: tuple(rules) for name, rules in found.items()}


_REFUSED: tuple[tuple[str, tuple[int, ...], str], ...] = (
    # ops that need an order or a sign
    ("c", (), "isposinf isneginf maximum minimum atan2 hypot amax amin max min aminmax mode kthvalue glu hardswish"),
    ("c", (), "hardsigmoid logit copysign signbit max_unpool1d max_unpool2d max_unpool3d logaddexp2"),
    # functions that are not continued to the complex plane here or there
    ("c", (), "spherical_bessel_j0 bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1"),
    ("c", (), "scaled_modified_bessel_k0 scaled_modified_bessel_k1 erfcx airy_ai xlog1py"),
    ("c", (1,), "poisson bernoulli"),  # after the key
    ("biu", (1,), "normal"),
    ("c", (), "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w"),
    ("c", (), "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v"),
    ("c", (), "shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he"),
    ("c", (), "legendre_polynomial_p laguerre_polynomial_l"),
    # layers and losses of real numbers
    ("c", (), "soft_margin_loss cross_entropy sparse_softmax_cross_entropy nll_loss mse_loss gaussian_nll_loss pdist"),
    ("c", (), "batch_norm batch_norm_of_batch batch_norm_with_statistics instance_norm _per_sample"),
    ("c", (), "layer_norm group_norm local_response_norm rms_norm"),
    ("c", (), "embedding_bag"),
    ("c", (), "interpolate grid_sample avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d"),
    ("c", (), "fractional_max_pool2d fractional_max_pool3d"),
    # no sum or no mean in its own dtype
    ("bi", (0,), "nanmean huber_loss soft_margin_loss rms_norm interpolate"),
    ("biu", (0,), "hardshrink softshrink logcumsumexp multi_margin_loss multilabel_margin_loss"),
    ("biuc", (0,), "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d"),
    ("biu", (0,), "batch_norm batch_norm_of_batch"),
    ("bi", (), "fractional_max_pool2d fractional_max_pool3d"),
    ("biu", (), "kl_div grid_sample"),
    ("biu", (0, 1), "binary_cross_entropy_with_logits"),
    ("iu", (0,), "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d fold unfold max_pool1d max_unpool1d"),
    ("iu", (0,), "hinge_embedding_loss frac"),
    ("i", (0,), "pdist"),
    ("u", (0,), "avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d max_unpool2d max_unpool3d"),
    ("u", (0,), "gradient_along"),
    ("biu", (1,), "embedding_bag"),
    ("biu", (2,), "multi_margin_loss cross_entropy"),
    ("iu", (3,), "scaled_dot_product_attention"),
    ("b", (0,), "relu6 softsign tanhshrink hardtanh threshold topk median nanmedian kthvalue trace vander mvlgamma"),
    ("b", (0,), "trapezoid cumulative_trapezoid gradient_along affine_grid max_pool1d max_pool2d max_pool3d"),
    ("b", (0,), "max_unpool1d max_unpool2d"),
    ("bi", (0,), "max_unpool3d"),
    ("b", (), "margin_ranking_loss gaussian_nll_loss"),
    ("b", (1,), "multilabel_soft_margin_loss lu_solve lu_unpack"),
    ("bi", (1, 2), "batch_norm_with_statistics"),
    # whole numbers are promoted beside fractions alone
    ("biu&", (), "logaddexp logaddexp2 igamma igammac"),
    # one dtype
    ("=", (0, 1), "isclose heaviside lerp lstsq cdist grid_sample"),
    ("=", (0, 2), "tensor_scatter_nd_update put"),
    # whole numbers
    ("bcf", (2, 3), "ctc_loss"),
    # one number of dims
    ("#", (), "margin_ranking_loss triplet_margin_loss"),
    ("#", (1, 2), "scatter scatter_add scatter_reduce"),
)
RULES = _table()


def check(name: str, arrays: tuple) -> None:
    """Raise if an op has a rule against the dtypes of its inputs.

    Args:
        name: the op, one of `RULES`.
        arrays: its inputs, which may be None; numbers take the dtype of the others.
    """
    for kinds, inputs in RULES[name]:
        chosen = arrays if not inputs else [arrays[i] for i in inputs if i < len(arrays)]
        found = [x for x in chosen if hasattr(x, "dtype")]
        firm = [x for x in found if not getattr(getattr(x, "aval", x), "weak_type", False)]
        if kinds == "=":
            if len({x.dtype for x in firm}) > 1:
                seen = " and ".join(f"{x.dtype}{list(x.shape)}" for x in firm)
                fail("type", f"{name}(...)", seen, f"the inputs of {name} have one dtype", "y.to(x.dtype)")
            continue
        if kinds == "#":
            # A bool is a number, too, but JAX marks none as one.
            firm = [x for x in firm if x.shape or x.dtype != bool]
            if len({len(x.shape) for x in firm}) > 1:
                seen = ", ".join(str(tuple(x.shape)) for x in firm)
                fail("shape", f"{name}(...)", seen, f"these inputs of {name} have as many dims each", "x.unsqueeze(0)")
            continue
        bad = [x for x in firm if np.dtype(x.dtype).kind in kinds]
        if bad and (len(bad) == len(firm) or not kinds.endswith("&")):
            kind, seen = np.dtype(bad[0].dtype).kind, f"{bad[0].dtype}{list(bad[0].shape)}"
            fail("type", f"{name}(...)", seen, f"{name} is not defined for {_WORDS[kind]}", _FIX[kind])


_FIX = {"c": "x.real, x.imag or x.abs()", "b": "x.float()", "i": "x.float()", "u": "x.float()", "f": "x.long()"}

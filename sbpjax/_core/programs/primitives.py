"""Kinds of JAX primitives (pointwise, contraction, …), as used by rules, passes, prices and live bytes.

Of ``y = tanh(x).T @ w`` the ``tanh`` costs many instructions an element and fuses with its neighbours, the
``transpose`` only moves elements, and the ``dot_general`` reads whole buffers. Each kind is listed here once, by the
names of its primitives; code that needs a larger kind unites these. A primitive of a new version of JAX is entered here
and, if it can run divided, given a rule (`_core.programs.rules`).
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# --- Pointwise: an element of the result depends on the elements of the operands at its place ------------------------

# A few instructions an element, and not linear.
SIMPLE = _names(
    "abs and ceil clamp clz eq eq_to floor ge gt integer_pow is_finite le le_to lt lt_to max min mulhi ne nextafter "
    "not one_minus_square or population_count reduce_precision rem round shift_left shift_right_arithmetic "
    "shift_right_logical sign square xor"
)
# Some ten instructions, often one of the accelerator's own.
TRANSCENDENTAL = _names(
    "acos acosh asin asinh atan atan2 atanh cbrt cos cosh erf erf_inv erfc exp exp2 expm1 log log1p log2 logistic "
    "polynomial pow rsqrt sin sinh sqrt tan tanh"
)
# Series and continued fractions.
SPECIAL = _names(
    "bessel_i0e bessel_i1e digamma igamma igamma_grad_a igammac lgamma polygamma random_gamma_grad "
    "regularized_incomplete_beta zeta"
)
NONLINEAR = SIMPLE | TRANSCENDENTAL | SPECIAL
LINEAR = _names("neg complex real imag conj copy copy_p name zeros_like")
SUMS = _names("add sub add_any")
CASTS = _names("convert_element_type bitcast_convert_type")
# Each row of the result is computed from the same row of the operands.
OWN_ROWS = (
    NONLINEAR
    | LINEAR
    | SUMS
    | CASTS
    | _names(
        "to_sbp stage_transfer copy stop_gradient reduce_precision cast_back square mul div rem select_n clamp not"
    )
)
CHEAP = SIMPLE | LINEAR | SUMS | CASTS | _names("mul select_n")
RANDOM = _names("random_bits threefry2x32 random_wrap random_unwrap random_fold_in")
# Expensive ones with the same bits at all optimization levels of XLA's CPU compiler.
STEADY = _names("div sqrt tanh logistic")
# Expensive ones with the same bits also at the lowest level, which vectorizes nothing.
STEADIEST = _names("div sqrt exp log logistic")
COSTLY = TRANSCENDENTAL | SPECIAL | RANDOM | {"div"}  # worth keeping where it is read twice

# --- The same elements, elsewhere ----------------------------------------------------------------------------------

# All elements of one operand, in another order or shape.
MOVES = _names("transpose reshape squeeze expand_dims rev copy stop_gradient")
# Linear in their one operand: a loss that is read through them is read through its sums.
OF_ONE_OPERAND = MOVES | _names(
    "neg convert_element_type broadcast_in_dim to_sbp stage_transfer cast_back reduce_precision slice cumsum"
)
LINEAR_IN_SUMS = _names("neg convert_element_type reshape squeeze expand_dims reduce_sum copy to_sbp transpose")
BROADCASTS = _names("broadcast_in_dim iota")
PIECES = _names("slice pad concatenate split")
DYNAMIC = _names("dynamic_slice dynamic_update_slice")
# Each operand is a result, at another place of the program.
BARRIERS = _names("optimization_barrier tie pin unpin")
# Equations that a compiler fuses into their readers at no cost.
LIGHT = CHEAP | MOVES | BROADCASTS | PIECES | {"optimization_barrier"}

# --- Equations that read whole buffers -------------------------------------------------------------------------------

CONVOLUTIONS = _names("conv_general_dilated convolution")  # the second one of `_core.ops.conv.primitive`
PRODUCTS = CONVOLUTIONS | {"dot_general"}
SCATTER_SUMS = _names("scatter-add scatter-sub")
SCATTERS = SCATTER_SUMS | _names("scatter scatter-mul scatter-min scatter-max")
REDUCTIONS = _names("reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor")
ARG_REDUCTIONS = _names("argmax argmin")
CUMULATIVE = _names("cumsum cumprod cummax cummin cumlogsumexp")
WINDOW_REDUCTIONS = _names("reduce_window_sum reduce_window_max reduce_window_min")
WINDOWS = WINDOW_REDUCTIONS | {"reduce_window"}
# The gradient of a pooling, and its tangent.
WINDOW_SELECTIONS = _names("select_and_scatter select_and_scatter_add select_and_gather_add")
SELECTIONS = _names("top_k approx_top_k")
ATTENTION = _names("attention attention_grad attention_tangent")  # `_core.ops.attention.primitive`
# `_core.ops.losses.cross_entropy_primitive`
LOSSES = _names(
    "cross_entropy cross_entropy_grad cross_entropy_tangent "
    "linear_cross_entropy linear_cross_entropy_grad linear_cross_entropy_tangent"
)
GROUPED = _names("grouped_matmul grouped_outer")  # `_core.ops.grouped_matmul.primitive`
ROW_UPDATES = _names("row_update")  # `_core.ops.layers.row_update`
KERNELS = _names("pallas_call custom_partitioning") | ATTENTION | LOSSES | GROUPED
# The collectives that lowering inserts, by the names that compiled programs give them.
COLLECTIVES = {
    "all_gather": "all-gather",
    "psum_scatter": "reduce-scatter",
    "psum": "all-reduce",
    "all_to_all": "all-to-all",
    "ppermute": "collective-permute",
}
# The number of dims of each operand in one matrix or vector; the dims before them are batch dims.
MATRIX_DIMS = {
    "cholesky": (2,),
    "eig": (2,),
    "eigh": (2,),
    "geqrf": (2,),
    "hessenberg": (2,),
    "householder_product": (2, 1),
    "lu": (2,),
    "lu_pivots_to_permutation": (1,),
    "qr": (2,),
    "schur": (2,),
    "svd": (2,),
    "symmetric_product": (2, 2),
    "triangular_solve": (2, 2),
    "tridiagonal": (2,),
    "tridiagonal_solve": (1, 1, 1, 2),
}

# --- Programs in a program -------------------------------------------------------------------------------------------

LOOPS = _names("scan while")
CONTROL = LOOPS | {"cond"}
# Calls, which a flat program has inlined, and the parameter that holds the callee.
JITS = {"jit": "jaxpr", "pjit": "jaxpr"}
CALLS = {
    **JITS,
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "call": "call_jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vmap_call": "call",
    "linear_call": "callee",
    "composite": "jaxpr",
    "program_order": "call_jaxpr",
    "xla_metadata_call": "jaxpr",
}
# Hints of GSPMD programs: the planner chooses these layouts itself, and inside `shard_map` they have no meaning.
HINTS = _names("sharding_constraint layout_constraint reshard relayout device_put")

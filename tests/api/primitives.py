"""Table of JAX's primitives with and without rules: the page ``docs/reference/primitives.md``.

``JAX_PLATFORMS=cpu python -m tests.api.primitives > docs/reference/primitives.md`` writes it, after a rule
was added or JAX changed.
"""

from __future__ import annotations

import gc

import jax
import jax.experimental.sparse
import jax.scipy.linalg
import jax.scipy.signal
import jax.scipy.special
from jax.extend import core

from sbpjax._core import planner as planner  # it registers rules of control flow
from sbpjax._core.programs.rules import table

# Primitives without rules, by their handling.
WITHOUT_RULES = {
    "Inlined: replaced by their equations": (
        "call closed_call composite custom_jvp_call custom_jvp_call_jaxpr custom_linear_solve custom_vjp_call "
        "custom_vmap_call eval_jaxpr jit linear_call program_order remat2 remat_opt xla_metadata_call"
    ),
    "Dropped: hints to GSPMD; the planner chooses instead": "layout_constraint relayout reshard",
    "Fallback: factorisations and streams of random bits; each part needs the whole operand": (
        "cholesky_update geqp3 ormqr rng_bit_generator"
    ),
    "Fallback: code that the planner cannot read": "call_exported core_map cudnn_fusion custom_partitioning",
    "Fallback: divisible, but too rare for a rule": (
        "broadcast_to empty empty2 random_gamma select_and_scatter threefry4x32 with_memory_space_constraint"
    ),
    "Fallback: kernels for one device": (
        "dot_product_attention_bwd dot_product_attention_bwd_wrapper dot_product_attention_fp8_bwd "
        "dot_product_attention_fp8_bwd_wrapper dot_product_attention_fp8_fwd dot_product_attention_fp8_fwd_wrapper "
        "dot_product_attention_fwd dot_product_attention_fwd_wrapper ffi_call scaled_dot scaled_matmul "
        "scaled_matmul_wrapper"
    ),
    "Fallback: callbacks to Python; every rank calls Python with the whole operands": (
        "check debug_callback debug_print io_callback pure_callback"
    ),
    "Fallback: sparse storage": (
        "bcoo_dot_general bcoo_dot_general_sampled bcoo_extract bcoo_fromdense bcoo_sort_indices bcoo_spdot_general "
        "bcoo_sum_duplicates bcoo_todense bcoo_transpose bcsr_dot_general bcsr_extract bcsr_fromdense bcsr_todense "
        "coo_fromdense coo_matmat coo_matvec coo_spmm coo_spmv coo_todense csr_fromdense csr_matmat csr_matvec "
        "csr_spmm csr_spmv csr_todense spsolve todense"
    ),
    "Fallback: mutable references and logs inside a jaxpr": (
        "accum_grad_in_ref addupdate box_get box_set create_linear empty_ref free_ref freeze get log_extend "
        "log_read new_box new_log new_ref run_state swap"
    ),
    "Fallback: a `shard_map` that the user wrote; every rank runs all of its blocks": "shard_map",
    "Only inside such a `shard_map`: run with its blocks, never planned separately": (
        "all_gather all_gather_done all_gather_invariant all_gather_reduced all_gather_reduced_start "
        "all_gather_start all_to_all all_to_all_done all_to_all_start axis_index pbroadcast "
        "pbroadcast_done pbroadcast_dynamic pbroadcast_start pmax pmin ppermute ppermute_done ppermute_start precv "
        "preduced psend psum psum_done psum_invariant psum_invariant_start psum_start pvary ragged_all_to_all "
        "reduce_scatter reduce_scatter_done reduce_scatter_start reduced_vary_cast reduced_vary_cast_p "
        "unreduced_pmax unreduced_pmin unreduced_psum unreduced_psum_start unreduced_reduce_scatter "
        "unreduced_reduce_scatter_start vary_unreduced_cast vary_unreduced_cast_p"
    ),
    "Error: XLA cannot compile them inside `shard_map` (JAX 0.10)": "philox2x32 philox4x32",
    "Never in a planned program: tokens, exported shapes, and names that exist only while JAX traces": (
        "after_all call_hi_primitive call_hi_primitive_linearized create_token custom_lin dce_sink dim_as_value "
        "dimension_size from_edtype inspect_sharding platform_index rng_uniform shape_assertion stage to_edtype "
        "unreachable"
    ),
}


# Marks that this package, or a tool of JAX, puts into a jaxpr; planned, or gone before anything is planned.
_MARKS = ("cast_back", "cotangent", "stage_transfer", "to_sbp", "xla_metadata_value")


def primitives() -> dict:
    """Return every primitive that JAX has made, by name: the possible contents of a jaxpr."""
    every = {x.name: x for x in gc.get_objects() if issubclass(type(x), core.Primitive)}  # no __class__
    return {name: x for name, x in every.items() if name not in _MARKS}


def families() -> dict[str, list[str]]:
    """Return the primitives that have rules, by the file their rule is in."""
    found: dict[str, list[str]] = {}
    for name, rule in sorted(table.registered_rules().items()):
        found.setdefault(rule.__module__.rsplit(".", 1)[-1], []).append(name)
    return found


def page() -> str:
    """Return ``docs/reference/primitives.md``."""
    every = set(primitives())
    lines = [
        "# Primitives",
        "",
        "This page lists the treatment of each JAX primitive in a planned program",
        "([How it works](../explanation/design.md#rules-plans-lowering)).",
        "",
        "* A primitive with a **rule** has strategies, and the plan uses one of them: each rank computes its part, or",
        "  the whole.",
        "* A primitive without a rule takes the **fallback**: its operands are boxed to broadcast, and every rank",
        "  computes the whole. The logger `sbpjax.rules` warns once for each name.",
        "  Primitives that are not listed also take the fallback.",
        "* [CONTRIBUTING](../../CONTRIBUTING.md#adding-) describes how to add a rule.",
        "",
        f"This page is generated from the rules and JAX {jax.__version__}. `JAX_PLATFORMS=cpu python -m",
        "tests.api.primitives` prints it; redirect the output into `docs/reference/primitives.md`.",
        "`tests/api/test_primitives.py` fails if the page differs.",
        "",
        "| Rule in `_core/programs/rules/` (`control`: in `_core/planner/`) | Primitives |",
        "| --- | --- |",
    ]
    known: set[str] = set()
    for family, found in sorted(families().items()):
        lines.append(f"| `{family}` | {' '.join(n for n in found if n in every)} |")
        known.update(found)
    lines += ["", "| Without a rule | Primitives |", "| --- | --- |"]
    for reason, text in WITHOUT_RULES.items():
        names = [n for n in text.split() if n in every and n not in known]
        lines.append(f"| {reason} | {' '.join(sorted(names))} |")
        known.update(names)
    other = sorted(n for found in families().values() for n in found if n not in every)
    rest = sorted(every - known)
    if rest:
        lines.append(f"| Fallback: not examined yet | {' '.join(rest)} |")
    lines += ["", f"Rules for primitives that only other versions of JAX have: {' '.join(other)}."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")

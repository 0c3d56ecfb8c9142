"""Which of JAX's primitives have rules: the page ``docs/primitives.md``.

Run ``python -m sbpjax.inspect.primitives > docs/primitives.md`` after adding a rule or moving to another JAX.
"""

from __future__ import annotations

import gc

from sbpjax.programs.rules import table

# Primitives without rules, by what happens to them.
WITHOUT_RULES = {
    "Inlined: planning looks through them": (
        "call closed_call composite custom_jvp_call custom_jvp_call_jaxpr custom_linear_solve custom_vjp_call "
        "custom_vmap_call eval_jaxpr jit linear_call program_order remat2 remat_opt xla_metadata_call"
    ),
    "Dropped: hints to GSPMD": "layout_constraint relayout reshard",
    "Fallback: look at the whole of their operand, or too rare for a rule": (
        "broadcast_to cholesky_update custom_partitioning empty empty2 geqp3 ormqr random_gamma rng_bit_generator "
        "select_and_scatter threefry4x32 call_exported cudnn_fusion with_memory_space_constraint"
    ),
    "Fallback: kernels of one device": (
        "dot_product_attention_bwd dot_product_attention_bwd_wrapper dot_product_attention_fp8_bwd "
        "dot_product_attention_fp8_bwd_wrapper dot_product_attention_fp8_fwd dot_product_attention_fp8_fwd_wrapper "
        "dot_product_attention_fwd dot_product_attention_fwd_wrapper ffi_call scaled_dot scaled_matmul "
        "scaled_matmul_wrapper"
    ),
    "Fallback: callbacks to Python; every rank calls with the whole operands": (
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
    "Fallback: the user's own `shard_map`, every block on every rank, and what only its body holds": (
        "all_gather all_gather_done all_gather_invariant all_gather_reduced all_gather_reduced_start "
        "all_gather_start all_to_all all_to_all_done all_to_all_start axis_index core_map pbroadcast "
        "pbroadcast_done pbroadcast_dynamic pbroadcast_start pmax pmin ppermute ppermute_done ppermute_start precv "
        "preduced psend psum psum_done psum_invariant psum_invariant_start psum_start pvary ragged_all_to_all "
        "reduce_scatter reduce_scatter_done reduce_scatter_start reduced_vary_cast reduced_vary_cast_p shard_map "
        "unreduced_pmax unreduced_pmin unreduced_psum unreduced_psum_start unreduced_reduce_scatter "
        "unreduced_reduce_scatter_start vary_unreduced_cast vary_unreduced_cast_p"
    ),
    "Not supported: XLA cannot compile them inside `shard_map` (JAX 0.10)": "philox2x32 philox4x32",
    "Not planned: tokens, exported shapes, and names that exist only while JAX traces": (
        "after_all call_hi_primitive call_hi_primitive_linearized create_token custom_lin dce_sink dim_as_value "
        "dimension_size from_edtype inspect_sharding platform_index rng_uniform shape_assertion stage to_edtype "
        "unreachable"
    ),
}


# What this package, or a tool of JAX, puts into a jaxpr as a mark; planned, or gone before anything is planned.
_MARKS = ("cast_back", "cotangent", "to_sbp", "xla_metadata_value")


def primitives() -> dict:
    """Return every primitive that JAX has made, by name: what a jaxpr can hold."""
    import jax.experimental.sparse
    import jax.nn
    import jax.scipy.linalg
    import jax.scipy.signal
    import jax.scipy.special  # noqa: F401
    from jax.extend import core

    every = {x.name: x for x in gc.get_objects() if issubclass(type(x), core.Primitive)}  # no __class__
    return {name: x for name, x in every.items() if name not in _MARKS}


def families() -> dict[str, list[str]]:
    """Return the primitives that have rules, by the file their rule is in."""
    found: dict[str, list[str]] = {}
    for name, rule in sorted(table.registered().items()):
        found.setdefault(rule.__module__.rsplit(".", 1)[-1], []).append(name)
    return found


def page() -> str:
    """Return ``docs/primitives.md``."""
    import jax

    from sbpjax import planner as plan  # noqa: F401  # registers control flow

    every = set(primitives())
    lines = [
        "# Primitives",
        "",
        "What happens to each of JAX's primitives in a planned program. A primitive with a rule runs divided where the",
        "plan says; one that takes the fallback runs whole on every rank, after its operands were boxed to broadcast",
        "(logged once by name).",
        "",
        f"Generated by `python -m sbpjax.inspect.primitives` from the table and JAX {jax.__version__}.",
        "",
        "| Rule in | Primitives |",
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
    lines.append(f"| None here: rules for primitives of other versions of JAX | {' '.join(other)} |")
    rest = sorted(every - known)
    if rest:
        lines.append(f"| Fallback: not looked at yet | {' '.join(rest)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")

"""The public ops: what is callable in `sbpjax`, `Tensor`, `nn.functional`, `linalg`, `fft` and `special`."""

from __future__ import annotations

import functools
import importlib
import inspect
import types

import sbpjax

NAMESPACES = {"": "sbpjax", "nn.functional.": "sbpjax.nn.functional", "linalg.": "sbpjax.linalg", "fft.": "sbpjax.fft"}
NAMESPACES["special."] = "sbpjax.special"


def _table(**groups) -> dict[str, str]:
    """Return name → reason for groups of names."""
    return {name: reason.replace("_", " ") for reason, several in groups.items() for name in several.split()}


# Callables that are no ops, with the reason.
NOT_OPS = _table(
    makes_or_reads_state="""fork_rng get_autocast_dtype get_default_dtype get_rng_state initial_seed
 is_autocast_enabled is_grad_enabled is_inference_mode_enabled manual_seed seed set_default_dtype set_printoptions
 set_rng_state are_deterministic_algorithms_enabled get_default_device get_float32_matmul_precision
 get_num_interop_threads get_num_threads is_deterministic_algorithms_warn_only_enabled set_default_device
 set_default_tensor_type set_float32_matmul_precision set_flush_denormal set_num_interop_threads set_num_threads
 use_deterministic_algorithms""",
    compiles_or_shows_programs="""boxing_policy compile cond explain load_graph summary visualize simulate
 load_ipython_extension vmap wrap_jax""",
    reads_or_writes_files="load save Tensor.load",
    takes_other_libraries_arrays="from_jax from_numpy from_dlpack to_dlpack frombuffer",
    says_what_an_object_is="""is_tensor typename Tensor.type Tensor.is_coalesced is_storage is_distributed get_device
 dtypes
 convert_oneflow_dtype_to_numpy_dtype Tensor.is_distributed Tensor.is_offloaded Tensor.is_shared Tensor.is_set_to
 Tensor.global_id Tensor.check_meta_consistency""",
    moves_a_tensor_between_layouts_or_devices="""to_global to_local Tensor.to_global Tensor.to_local
 Tensor.global_to_global Tensor.local_to_global Tensor.local_shards Tensor.cuda Tensor.pin_memory Tensor.is_pinned
 Tensor.get_device
 Tensor.offload Tensor.record_stream Tensor.share_memory_""",
    belongs_to_autograd="""Tensor.backward Tensor.register_hook Tensor.register_post_accumulate_grad_hook
 Tensor.requires_grad_ Tensor.retain_grad detach_ Tensor.detach_""",
    gives_other_libraries_arrays="Tensor.numpy Tensor.to_numpy Tensor.jax",
    speaks_of_memory_and_not_of_values="""contiguous Tensor.data_ptr Tensor.const_data_ptr Tensor.storage
 Tensor.storage_type Tensor.untyped_storage Tensor.set_ Tensor.resize Tensor.resize_ Tensor.resize_as
 Tensor.resize_as_ resize_as_
 empty_permuted empty_strided Tensor.new_empty_strided Tensor.as_strided_""",
    always_raises_and_says_what_to_use_instead="""Tensor.chalf
 Tensor.to_sparse_bsc Tensor.to_sparse_bsr Tensor.to_sparse_csc""",
    is_a_method_of_dtensor="Tensor.full_tensor Tensor.redistribute",
    calls_a_python_function="Tensor.apply_ Tensor.map_ Tensor.map2_",
    makes_an_object_of_another_class="""Tensor.to_sparse Tensor.to_sparse_coo Tensor.to_sparse_csr
 Tensor.as_subclass Tensor.new Tensor.to_dense BoolTensor ByteTensor CharTensor
 DoubleTensor FloatTensor HalfTensor IntTensor LongTensor BFloat16Tensor ShortTensor gen_tensor_buffer
 tensor_buffer_to_tensor tensor_to_tensor_buffer""",
    tested_against_references_of_their_own="""nms roi_align roc_auc_score nn.functional.deform_conv2d
 nn.functional.ctc_greedy_decoder distributed_partial_fc_sample""",
    draws_random_numbers_tested_by_their_moments_elsewhere="""binomial dropout normal_ Tensor.geometric_
 Tensor.log_normal_
 Tensor.kaiming_normal_ Tensor.kaiming_uniform_ Tensor.orthogonal_ Tensor.xavier_normal_ Tensor.xavier_uniform_
 alpha_dropout_ dropout_ feature_alpha_dropout_ native_dropout pca_lowrank svd_lowrank""",
    is_the_function_of_nn_functional_that_has_a_spec="""embedding_bag batch_norm instance_norm
 binary_cross_entropy_with_logits kl_div""",
)


@functools.cache
def public_ops() -> tuple[str, ...]:
    """Return the dotted names of all public callables that may be ops."""
    found = []
    for prefix, module in NAMESPACES.items():
        namespace = importlib.import_module(module)
        found += [f"{prefix}{n}" for n in sorted(dir(namespace)) if _may_be_op(_member(namespace, n), n, module)]
    found += [f"Tensor.{n}" for n in sorted(dir(sbpjax.Tensor)) if _may_be_op(getattr(sbpjax.Tensor, n), n, "")]
    return tuple(found)


def _member(namespace, name: str):
    try:
        return getattr(namespace, name, None)
    except ImportError:  # a room that needs what is not installed
        return None


def _may_be_op(thing, name: str, module: str) -> bool:
    if name.startswith("_") or not callable(thing) or inspect.isclass(thing) or isinstance(thing, types.ModuleType):
        return False
    home = getattr(thing, "__module__", None) or ""
    helper = home.startswith(
        (
            "sbpjax._core.tensor.calls.binding",
            "sbpjax._core.tensor.dispatch.op",
            "sbpjax._core.tensor.calls.bounds",
            "sbpjax.errors",
        )
    )
    return not helper and not home.startswith(("collections", "typing"))

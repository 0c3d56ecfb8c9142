"""Names of `sbpjax` that are loaded when they are first asked for.

Importing sbpjax is measured, and few programs take a Fourier transform. So ``sbpjax.fft``, ``sbpjax.svd`` and their
like are no imports of the package's face: the table here says which module has a name, `attribute` fetches it then,
and the package keeps it. `names` adds them to ``dir(sbpjax)``.

Tested in `tests/api`, which asks for every public name.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from .tensor import Tensor

ROOMS = (
    "_oneflow_internal",
    "asyncs",
    "auto",
    "backends",
    "boxing",
    "checkpoint",
    "comm",
    "cuda",
    "distributed",
    "distributions",
    "fft",
    "func",
    "hub",
    "linalg",
    "mock_oneflow",
    "mock_torch",
    "one_embedding",
    "profiler",
    "special",
    "unittest",
)
HOMES = {  # ``name:own`` where a function may not bear its public name
    "sbpjax.func.vmap": "vmap",
    "sbpjax.func.wrap_jax": "wrap_jax",
    "sbpjax.simulation": "simulate",
    "sbpjax.tensor.additions": """batch_gather binomial block_diag cartesian_prod cdist combinations
 constant_pad_nd corrcoef cov cumulative_trapezoid diagflat diagonal_scatter dist dsplit frexp
 frobenius_norm gcd gradient histogram histogramdd i0 igamma igammac index_reduce lcm ldexp logaddexp2
 mvlgamma nanquantile narrow_copy nextafter norm_except_dim nuclear_norm polygamma put renorm
 select_scatter signbit slice_scatter split_with_sizes trapezoid trapz tril_indices triu_indices
 unravel_index""",
    "sbpjax.tensor.forms": """gt_ index_add_ masked_fill_ normal_ to_local contiguous abs_ acos_ acosh_ add_
 addmv_ adjoint alias_copy arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asarray asin_ asinh_ atan_
 atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ cos_ cosh_ deg2rad_ detach detach_ detach_copy
 diagonal_copy distributed_partial_fc_sample div_ erf_ erfc_ erfinv_ exp2_ exp_ expand_copy expm1_ fill_
 fix fix_ floor_ frac_ frombuffer gcd_ get_device i0_ in_top_k index_put index_put_ is_distributed
 is_inference is_same_size is_signed is_storage lcm_ ldexp_ lerp_ log10_ log1p_ log2_ log_ logit_ mul_
 nan_to_num_ neg_ negative_ new_empty new_full new_ones new_tensor new_zeros permute_copy rad2deg_
 range:range_ reciprocal_ relu_ resize_as_ round_ rsqrt_ scalar_tensor select_copy sigmoid_ sin_ sinc_
 sinh_ slice:slice_ slice_update split_copy split_with_sizes_copy sqrt_ square_ square_relu squeeze_copy
 sub_ t_copy tan_ tanh_ transpose_copy trunc_ unbind_copy unfold_copy unsqueeze_copy unsafe_chunk
 unsafe_split view_as_complex_copy view_as_real_copy view_copy xlogy_ zero_""",
    "sbpjax.tensor.eigenvalues": "lobpcg",
    "sbpjax.tensor.interop": "from_dlpack to_dlpack",
    "sbpjax.tensor.lowlevel": "roc_auc_score",
    "sbpjax.tensor.settings": """are_deterministic_algorithms_enabled channels_last channels_last_3d
 contiguous_format convert_oneflow_dtype_to_numpy_dtype dtypes:all_dtypes e gen_tensor_buffer
 get_float32_matmul_precision get_default_device get_num_interop_threads get_num_threads inf
 is_deterministic_algorithms_warn_only_enabled layout memory_format nan newaxis pi preserve_format record
 set_default_device set_default_tensor_type set_float32_matmul_precision set_flush_denormal
 set_num_interop_threads set_num_threads sparse_coo sparse_csr strided tensor_buffer
 tensor_buffer_to_tensor tensor_to_tensor_buffer typename use_deterministic_algorithms""",
    "sbpjax.tensor.strided": """as_strided as_strided_ as_strided_copy as_strided_scatter empty_permuted
 empty_strided""",
    "sbpjax.amp": "GradScaler",
    "sbpjax.nn.functional": """adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
 adaptive_max_pool1d:adaptive_max_pool1d_with_indices alpha_dropout avg_pool1d batch_norm bilinear
 binary_cross_entropy_with_logits channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d
 conv_transpose3d cosine_embedding_loss cosine_similarity ctc_loss dropout embedding_bag
 feature_alpha_dropout group_norm hardshrink hinge_embedding_loss instance_norm kl_div layer_norm
 margin_ranking_loss max_pool1d max_pool2d max_pool3d pad pairwise_distance pdist pixel_shuffle
 pixel_unshuffle poisson_nll_loss celu_ rms_norm rrelu rrelu_ selu_ threshold_ triplet_margin_loss""",
    "sbpjax.tensor.complex": """angle complex conj_physical is_conj is_neg isreal polar resolve_conj
 resolve_neg sgn view_as_complex view_as_real""",
    "sbpjax.tensor.lowrank": """affine_grid_generator alpha_dropout_ dropout_ feature_alpha_dropout_ fill
 grid_sampler grid_sampler_2d grid_sampler_3d native_dropout native_layer_norm nonzero_static pca_lowrank
 svd_lowrank""",
    "sbpjax.tensor.regions": "nms roi_align",
    "sbpjax.tensor.signal": "bartlett_window blackman_window hamming_window hann_window istft kaiser_window stft",
    "sbpjax.tensor.linear_algebra": """chain_matmul cholesky cholesky_inverse cholesky_solve det inverse
 logdet lu lu_solve lu_unpack matrix_exp matrix_power orgqr pinverse qr slogdet svd triangular_solve vander""",
}
METHODS = {  # those that are methods of `Tensor` too
    "sbpjax.tensor.additions": """corrcoef cov diagflat diagonal_scatter dist dsplit frexp gcd histogram i0
 igamma igammac index_reduce lcm ldexp logaddexp2 mvlgamma nanquantile narrow_copy nextafter polygamma put
 renorm select_scatter signbit slice_scatter sum_to_size vdot""",
    "sbpjax.nn.init": "kaiming_normal_ kaiming_uniform_ orthogonal_ xavier_normal_ xavier_uniform_",
    "sbpjax.tensor.inplace_forms": """absolute_ apply_ arccos_ arccosh_ arcsin_ arcsinh_ arctan2_ arctan_
 arctanh_ as_subclass batch_gather cdouble cfloat conj_physical_ dim_order fill_diagonal_ fix fix_ gcd_
 geometric_ greater_ greater_equal_ hardshrink i0_ igamma_ igammac_ in_top_k index_reduce_ is_coalesced
 is_distributed is_inference is_same_size lcm_ ldexp_ less_ less_equal_ log_normal_ logaddexp2_ map2_ map_
 mvlgamma_ negative_ nextafter_ not_equal_ polygamma_ put_ record_stream renorm_ resize resize_as sgn_
 split_with_sizes to_dense true_divide_ unsafe_chunk unsafe_split""",
    "sbpjax.tensor.lowrank": "nonzero_static",
    "sbpjax.tensor.signal": "istft stft",
    "sbpjax.tensor.linear_algebra": """cholesky cholesky_inverse cholesky_solve det inverse logdet lu
 lu_solve matrix_exp matrix_power orgqr pinverse qr slogdet svd triangular_solve""",
}
_HOME = {}
for _module, _several in HOMES.items():
    for _name in _several.split():
        _public, _, _own = _name.partition(":")
        _HOME[_public] = (_module, _own or _public)


def attribute(name: str) -> Any:
    """Return a name of the package that was not loaded yet.

    Raises:
        AttributeError: the package has no such name.
    """
    if name == "fx":
        found = importlib.import_module("sbpjax.mock.torch_names.fx")
    elif name in ROOMS:
        found = importlib.import_module(f"sbpjax.{name}")
    elif name in _HOME:
        from .tensor.wrong_call import told_once

        module, own = _HOME[name]
        found = told_once(getattr(importlib.import_module(module), own))
    else:
        from .absent import absent

        raise absent("", name)
    setattr(sys.modules["sbpjax"], name, found)
    return found


def names() -> list[str]:
    """Return what ``dir(sbpjax)`` shows: what is loaded and what can be."""
    return sorted({*vars(sys.modules["sbpjax"]), *ROOMS, *_HOME})


def _late(module: str, name: str):
    def method(self, *args, **options):
        from .tensor.wrong_call import told_once

        found = told_once(getattr(importlib.import_module(module), name))
        setattr(Tensor, name, found)
        return found(self, *args, **options)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Return `sbpjax.{name}` of this tensor."
    return method


for _module, _several in METHODS.items():
    for _name in _several.split():
        setattr(Tensor, _name, _late(_module, _name))

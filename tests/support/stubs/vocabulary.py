"""What a function's source does not say of its types: by what arguments are called, and by what functions are called.

PyTorch's names mean one thing everywhere: ``input`` is a tensor, ``dim`` an int. An annotation in the source goes
first; `ARGUMENTS` speaks where there is none, `RESULTS` where no result is annotated, `FORMS` where a function takes
several forms of calls, which a signature of Python cannot say.

Types are written as in `_core.tensor.handle.types`.
"""

from __future__ import annotations


def _table(text: str) -> dict[str, str]:
    """Return ``{name: type}`` of lines ``type: names``."""
    table = {}
    for line in text.strip().splitlines():
        kind, _, names = line.partition(": ")
        for name in names.split():
            table[name] = kind.strip()
    return table


ARGUMENTS = _table(
    """
    Tensor: input self A LU B L LU_data LU_pivots b pivots tau mat mat1 mat2 vec vec1 vec2 batch1 batch2 tensor1 tensor2
    Tensor: src source input2 weight index condition input_lengths target_lengths x theta real imag abs angle elements
    TensorLike: other y alpha beta value values min max exponent end p threshold a maxnorm base element fill_value
    TensorLike: test_elements q lambd
    ArrayLike: data obj array tensor
    Tensor | None: out prepend append bias mask
    int: diagonal offset dim0 dim1 dim2 k n N decimals correction axis d num_samples steps split_size
    IntOrInts: size sizes shape dim dims repeats shifts kernel_size stride padding dilation output_padding output_size
    IntOrInts: perm destination normalized_shape pad split_size_or_sections indices_or_sections s physical_layout ind
    IntOrInts: movedim.source moveaxis.source var.correction
    float: eps nan posinf neginf std mean rtol atol tol rcond dx step low high start
    FloatOrFloats: scale_factor output_ratio
    str: approximate indexing data_format channel_pos UPLO equation rounding_mode typename interpolation precision
    bool: inplace keepdim requires_grad transpose_a transpose_b upper left adjoint equal_nan increasing retain_graph
    Sequence[Tensor]: tensors matrices inputs
    Tensor | Sequence[Tensor]: *tensors *matrices
    IntOrInts | str: conv1d.padding conv2d.padding conv3d.padding
    Sequence[int]: split_sizes broadcast_shapes.shapes unflatten.sizes
    Sequence[Tensor | None]: indices
    DTypeLike: dtype from_ to type1 type2
    DeviceLike: device devices target
    placement: placement
    SbpLike: sbp grad_sbp
    Generator: generator
    memory_format: memory_format
    layout: layout
    Callable[[Tensor], object]: hook register_post_accumulate_grad_hook.hook
    Callable[..., object]: fn
    float | str: ord norm.p vector_norm.ord matrix_norm.ord
    str: driver
    object: args kwargs tracker state more key options mesh map_location ext_tensor buffer protocol context named _
    IntOrInts: tensor_split.indices bins
    Sequence[float]: range
    Sequence[Sequence[int]]: slice_tup_list
    int: chunk_size edgeitems linewidth set_printoptions.precision set_printoptions.threshold global_src_rank
    str: profile
    bool: sci_mode
    type | str: tensor_type
    float | Tensor: gaussian_nll_loss.var
    Tensor: gradient
    int | Tensor | slice | None | EllipsisType | Sequence[object] | np.ndarray: __getitem__.item __setitem__.item
    """
)
"""Argument, ``function.argument`` or ``*arguments`` to its type. One whose default is None takes None as well."""

RESULTS = _table(
    """
    bool: is_tensor is_storage is_cuda is_cpu is_xla is_ipu is_mkldnn is_mps is_mtia is_nested is_quantized is_sparse
    bool: is_sparse_csr is_vulkan is_xpu is_view is_pinned is_signed is_shared is_coalesced is_distributed is_inference
    bool: is_same_size is_conj is_neg
    int: dim ndimension nelement element_size itemsize nbytes get_device __int__ __long__ stride.1
    float: __float__
    complex: __complex__
    str: name __repr__ __str__ storage_type
    tuple[int, int]: __dlpack_device__
    tuple[int, ...]: dim_order
    int | float: item
    Any: load tolist
    Size: broadcast_shapes
    tuple[Tensor, ...]: chunk split split_with_sizes tensor_split unbind hsplit vsplit dsplit unsafe_chunk unsafe_split
    tuple[Tensor, ...]: broadcast_tensors meshgrid gradient unravel_index split_copy split_with_sizes_copy unbind_copy
    tuple[Tensor, Tensor]: std_mean var_mean native_dropout fractional_max_pool3d_with_indices
    tuple[Tensor, Tensor]: adaptive_max_pool1d_with_indices
    tuple[Tensor, Tensor]: adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices max_pool1d_with_indices
    tuple[Tensor, Tensor]: max_pool2d_with_indices max_pool3d_with_indices fractional_max_pool2d_with_indices
    tuple[Tensor, Tensor, Tensor]: distributed_partial_fc_sample
    tuple[Tensor, Tensor]: fused_bias_add_scale_mask_softmax_dropout fused_scale_mask_softmax_dropout
    tuple[Tensor, Tensor]: fused_scale_tril_softmax_mask_scale fused_self_attention
    Iterator[Tensor]: __iter__
    RemovableHandle: register_hook register_post_accumulate_grad_hook
    ValuesIndices: cummax cummin kthvalue mode sort topk
    MinMax: aminmax
    SVD: svd_lowrank pca_lowrank svd
    SVDh: linalg.svd
    QR: qr
    PLU: lu_unpack linalg.lu
    SolutionCoefficient: triangular_solve
    MantissaExponent: frexp
    HistogramEdges: histogram histogramdd
    NativeLayerNorm: native_layer_norm native_group_norm
    NativeBatchNorm: native_batch_norm
    ATau: geqrf
    SignLogabsdet: slogdet
    Eigen: eigh eig
    LInfo: cholesky_ex
    InverseInfo: inv_ex
    ResultInfo: solve_ex
    LUPivots: lu_factor
    LUPivotsInfo: lu_factor_ex
    LDPivots: ldl_factor
    LDPivotsInfo: ldl_factor_ex
    Lstsq: lstsq
    tuple[Tensor, Tensor] | tuple[Tensor, Tensor, Tensor]: lu
    jax.Array: jax
    object: __dlpack__ to_dlpack __reduce_ex__ simulate gen_tensor_buffer tensor_buffer_to_tensor
    object: tensor_to_tensor_buffer
    device: get_default_device
    Tensor: get_rng_state
    AbstractContextManager[None]: fork_rng
    dict[int, Tensor]: local_shards
    """
)
"""Function, by its path or its name, to its result, where the source does not say it; else a tensor."""

RESULT_CLASSES = {
    "ValuesIndices": "values indices",
    "MinMax": "min max",
    "SVD": "U S V",
    "SVDh": "U S Vh",
    "QR": "Q R",
    "PLU": "P L U",
    "SolutionCoefficient": "solution cloned_coefficient",
    "MantissaExponent": "mantissa exponent",
    "HistogramEdges": "hist bin_edges",
    "NativeLayerNorm": "output mean rstd",
    "NativeBatchNorm": "output save_mean save_invstd",
    "ATau": "a tau",
    "SignLogabsdet": "sign logabsdet",
    "Eigen": "eigenvalues eigenvectors",
    "LInfo": "L info",
    "InverseInfo": "inverse info",
    "ResultInfo": "result info",
    "LUPivots": "LU pivots",
    "LUPivotsInfo": "LU pivots info",
    "LDPivots": "LD pivots",
    "LDPivotsInfo": "LD pivots info",
    "Lstsq": "solution residuals rank singular_values",
}
"""Named tuples of tensors that functions return: name in stubs to fields."""

_EXTREME = [
    "(input: Tensor, *, out: Tensor | None = None) -> Tensor",
    "(input: Tensor, dim: int, keepdim: bool = False, *, out: Sequence[Tensor] | None = None) -> ValuesIndices",
    "(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor",
]
_MEDIAN = [
    "(input: Tensor) -> Tensor",
    "(input: Tensor, dim: int, keepdim: bool = False) -> ValuesIndices",
]
FORMS: dict[str, list[str]] = {
    "max": _EXTREME,
    "min": _EXTREME,
    "median": _MEDIAN,
    "nanmedian": _MEDIAN,
    "where": [
        "(condition: Tensor) -> tuple[Tensor, ...]",
        "(condition: Tensor, input: TensorLike, other: TensorLike, *, out: Tensor | None = None) -> Tensor",
    ],
    "Tensor.where": ["(input: Tensor, condition: Tensor, other: TensorLike) -> Tensor"],
    "Tensor.size": ["(input: Tensor, dim: None = None) -> Size", "(input: Tensor, dim: int) -> int"],
    "Tensor.stride": ["(input: Tensor, dim: None = None) -> tuple[int, ...]", "(input: Tensor, dim: int) -> int"],
    "Tensor.type": [
        "(input: Tensor, dtype: None = None) -> str",
        "(input: Tensor, dtype: DTypeLike, non_blocking: bool = False) -> Tensor",
    ],
    "einsum": ["(equation: str, *operands: Tensor | Sequence[Tensor]) -> Tensor"],
    "atleast_1d": (
        _ATLEAST := ["(input: Tensor) -> Tensor", "(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]"]
    ),
    "atleast_2d": _ATLEAST,
    "atleast_3d": _ATLEAST,
    "nonzero": [
        "(input: Tensor, as_tuple: Literal[False] = False) -> Tensor",
        "(input: Tensor, as_tuple: Literal[True]) -> tuple[Tensor, ...]",
    ],
    "Tensor.to": [
        "(input: Tensor, dtype: DTypeLike, non_blocking: bool = False, copy: bool = False) -> Tensor",
        "(input: Tensor, device: DeviceLike | None = None, dtype: DTypeLike | None = None, non_blocking: bool = False,"
        " copy: bool = False, *, memory_format: memory_format | None = None) -> Tensor",
        "(input: Tensor, other: Tensor, non_blocking: bool = False, copy: bool = False) -> Tensor",
    ],
    "Tensor.__eq__": ["(input: Tensor, other: object) -> Tensor"],
    "Tensor.__ne__": ["(input: Tensor, other: object) -> Tensor"],
    "compile": [
        "(fn: None = None, *, state: object = (), lowering: str = 'spmd')"
        " -> Callable[[Callable[..., object]], Compiled]",
        "(fn: Callable[..., object], *, state: object = (), lowering: str = 'spmd') -> Compiled",
    ],
    "unique": [
        "(input: Tensor, sorted: bool = True, *, dim: int | None = None, dtype: DTypeLike | None = None) -> Tensor",
        "(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,"
        " dim: int | None = None, *, dtype: DTypeLike | None = None) -> tuple[Tensor, ...]",
    ],
    "unique_consecutive": [
        "(input: Tensor, *, dim: int | None = None) -> Tensor",
        "(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None)"
        " -> tuple[Tensor, ...]",
    ],
}
"""Function, by its path or its name, to its forms."""

SWITCHED = {
    "return_indices": "max_pool1d max_pool2d max_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d "
    "fractional_max_pool2d fractional_max_pool3d".split(),
}
"""Functions that return a tensor, and a pair of them if an argument says so."""

NOT_PUBLIC = "bind hashable into_out op_of publish add_oneflow_arguments".split()
"""Functions that modules of public functions use themselves."""

"""Op table: functions and tensor methods without an op: storage, types, devices, threads, precision, determinism."""

from __future__ import annotations

from ..table.table import FN, METHOD, custom

custom("detach", "sbpjax._core.tensor.storage.storage")
custom("Tensor.type_as", "sbpjax._core.functions.conversions", names={"target": "other"})
custom("detach_", "sbpjax._core.tensor.storage.storage")
custom("is_signed get_device", "sbpjax._core.functions.conversions")
custom("index_put", "sbpjax._core.tensor.storage.indexing", strict=True)
custom("index_put_", "sbpjax._core.tensor.storage.indexing")
custom("is_storage", "sbpjax._core.functions.torch_methods")
custom("is_same_size is_inference is_distributed", "sbpjax._core.functions.torch_methods", FN | METHOD)
custom(
    """Tensor.is_coalesced Tensor.to_dense Tensor.record_stream Tensor.resize Tensor.resize_as Tensor.as_subclass
    Tensor.dim_order Tensor.cfloat Tensor.cdouble Tensor.chalf""",
    "sbpjax._core.functions.torch_methods",
)
custom(
    "Tensor.to_sparse_csc Tensor.to_sparse_bsr Tensor.to_sparse_bsc",
    "sbpjax._core.functions.torch_methods",
    own="refuse_sparse",
)
custom("Tensor.geometric_ Tensor.log_normal_ Tensor.apply_ Tensor.map_ Tensor.map2_", "sbpjax._core.functions.filling")

SETTINGS = "sbpjax._core.functions.settings"

custom("set_default_tensor_type typename convert_oneflow_dtype_to_numpy_dtype", SETTINGS)
custom("dtypes", SETTINGS, own="all_dtypes")
custom("set_default_device get_default_device", SETTINGS)
custom("get_num_threads set_num_threads get_num_interop_threads set_num_interop_threads", SETTINGS)
custom("set_float32_matmul_precision get_float32_matmul_precision set_flush_denormal", SETTINGS)
custom("use_deterministic_algorithms are_deterministic_algorithms_enabled", SETTINGS)
custom("is_deterministic_algorithms_warn_only_enabled", SETTINGS)
custom("tensor_buffer_to_tensor tensor_to_tensor_buffer gen_tensor_buffer", SETTINGS)

"""Op table: settings and queries (default types, devices, threads, precision, determinism)."""

from __future__ import annotations

from ..table.table import custom

SETTINGS = "sbpjax._core.functions.settings"

custom("set_default_tensor_type typename convert_oneflow_dtype_to_numpy_dtype", SETTINGS)
custom("dtypes", SETTINGS, own="all_dtypes")
custom("set_default_device get_default_device", SETTINGS)
custom("get_num_threads set_num_threads get_num_interop_threads set_num_interop_threads", SETTINGS)
custom("set_float32_matmul_precision get_float32_matmul_precision set_flush_denormal", SETTINGS)
custom("use_deterministic_algorithms are_deterministic_algorithms_enabled", SETTINGS)
custom("is_deterministic_algorithms_warn_only_enabled", SETTINGS)
custom("tensor_buffer_to_tensor tensor_to_tensor_buffer gen_tensor_buffer", SETTINGS)

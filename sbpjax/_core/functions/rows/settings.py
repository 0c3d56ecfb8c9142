"""Op table: settings and queries (default types, devices, threads, precision, determinism)."""

from __future__ import annotations

from ..table.table import written

SETTINGS = "sbpjax._core.functions.settings"

written("set_default_tensor_type typename convert_oneflow_dtype_to_numpy_dtype", SETTINGS)
written("dtypes", SETTINGS, own="all_dtypes")
written("set_default_device get_default_device", SETTINGS)
written("get_num_threads set_num_threads get_num_interop_threads set_num_interop_threads", SETTINGS)
written("set_float32_matmul_precision get_float32_matmul_precision set_flush_denormal", SETTINGS)
written("use_deterministic_algorithms are_deterministic_algorithms_enabled", SETTINGS)
written("is_deterministic_algorithms_warn_only_enabled", SETTINGS)
written("tensor_buffer_to_tensor tensor_to_tensor_buffer gen_tensor_buffer", SETTINGS)

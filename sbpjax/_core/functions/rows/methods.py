"""Op table: tensor methods that are also functions: ``sbpjax.detach(x)`` is ``x.detach()``."""

from __future__ import annotations

from ..table.table import FN, METHOD, written

written("detach", "sbpjax._core.tensor.storage.storage")
written("Tensor.type_as", "sbpjax._core.functions.conversions", names={"target": "other"})
written("detach_", "sbpjax._core.tensor.storage.storage")
written("is_signed get_device", "sbpjax._core.functions.conversions")
written("index_put", "sbpjax._core.tensor.storage.indexing", strict=True)
written("index_put_", "sbpjax._core.tensor.storage.indexing")
written("is_storage", "sbpjax._core.functions.torch_methods")
written("is_same_size is_inference is_distributed", "sbpjax._core.functions.torch_methods", FN | METHOD)
written(
    """Tensor.is_coalesced Tensor.to_dense Tensor.record_stream Tensor.resize Tensor.resize_as Tensor.as_subclass
    Tensor.dim_order Tensor.cfloat Tensor.cdouble Tensor.chalf""",
    "sbpjax._core.functions.torch_methods",
)
written(
    """Tensor.to_sparse Tensor.to_sparse_coo Tensor.to_sparse_csr Tensor.to_sparse_csc Tensor.to_sparse_bsr
    Tensor.to_sparse_bsc""",
    "sbpjax._core.functions.torch_methods",
    own="to_sparse",
)
written("Tensor.geometric_ Tensor.log_normal_ Tensor.apply_ Tensor.map_ Tensor.map2_", "sbpjax._core.functions.filling")

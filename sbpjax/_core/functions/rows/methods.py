"""Op table: tensor methods that are also functions: ``sbpjax.detach(x)`` is ``x.detach()``."""

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

"""Op table: tensor creation, and conversions to another dtype or placement.

``device=``, or ``placement=`` and ``sbp=``, set the place of a new tensor; values never depend on it.
"""

from __future__ import annotations

from ..table.table import FN, METHOD, custom

OWN = "sbpjax._core.functions.creation"
CREATION = "sbpjax._core.tensor.creation.creation"
LIKE = "sbpjax._core.tensor.creation.like"
RANDOM = "sbpjax._core.functions.random"
DATA = "sbpjax._core.tensor.creation.from_data"
CONVERT = "sbpjax._core.tensor.creation.convert"
STRIDED = "sbpjax._core.functions.strides"
READ = FN | METHOD
LYING = {"layout": "", "pin_memory": ""}  # PyTorch's memory options are accepted and ignored: XLA decides
LYING_LIKE = {**LYING, "memory_format": ""}
SIZE = {"size": "*"}

custom("zeros ones", CREATION, names={**SIZE, **LYING}, out=True)
custom("empty", CREATION, names={**SIZE, **LYING_LIKE}, out=True)
custom("full arange linspace logspace eye", CREATION, names=LYING, out=True)
custom("zeros_like ones_like empty_like full_like", LIKE, names={"input": "x", **LYING_LIKE})
custom("new_zeros new_ones new_empty", LIKE, READ, names={**SIZE, **LYING})
custom("new_full", LIKE, READ, names=LYING)
custom("new_tensor", LIKE, READ)
custom("rand randn", RANDOM, names={**SIZE, **LYING}, out=True)
custom("randint normal", RANDOM, names=LYING, out=True)
custom("randperm", RANDOM, names=LYING, strict=True, out=True)
custom("rand_like randn_like randint_like", RANDOM, names=LYING_LIKE)
custom("bernoulli multinomial", RANDOM, READ, out=True)
custom("poisson", RANDOM)
custom("normal_", RANDOM, READ)
custom("Tensor.uniform_", RANDOM, names={"from": "a", "to": "b"})
custom("Tensor.random_", RANDOM, names={"from": "start"})
custom("Tensor.trunc_normal_ Tensor.exponential_ Tensor.cauchy_ Tensor.bernoulli_", RANDOM)
custom("tensor", DATA, oneflow="data * pin_memory!")
custom("as_tensor from_jax", DATA)
custom("from_dlpack to_dlpack", "sbpjax._core.functions.protocols")
custom("from_numpy", DATA, names={"obj": "array"})
custom("cast", "sbpjax._core.functions.elementwise", READ, own="to_dtype", oneflow="x=input dtype pin_memory!")
custom("to_global", CONVERT, READ, oneflow="self placement sbp check_meta copy", also="Tensor.local_to_global")
custom("Tensor.global_to_global", CONVERT, own="to_global", oneflow="self placement sbp grad_sbp check_meta copy")
custom("to_local", CONVERT, READ, oneflow="self copy")
custom("as_strided", STRIDED, READ, strict=True)
custom("as_strided_", STRIDED, READ)
custom("as_strided_scatter", STRIDED, READ, strict=True)
custom("as_strided_copy", STRIDED, out=True)
custom("empty_permuted empty_strided", STRIDED)
custom("resize_as_", STRIDED, READ, names={"the_template": "other"})
custom("Tensor.resize_", STRIDED, names=SIZE)
custom(
    """Tensor.new_empty_strided Tensor.storage_offset Tensor.contiguous_ Tensor.set_ Tensor.storage
    Tensor.untyped_storage Tensor.data_ptr Tensor.is_set_to Tensor.share_memory_ Tensor.offload Tensor.load
    Tensor.is_offloaded Tensor.new Tensor.check_meta_consistency""",
    STRIDED,
)
custom("fill_ zero_", "sbpjax._core.tensor.storage.inplace", READ)
custom("Tensor.copy_", "sbpjax._core.tensor.storage.inplace", names={"other": "source"})
custom("asarray frombuffer distributed_partial_fc_sample", OWN)
custom("scalar_tensor", OWN, strict=True)
custom("range", OWN, own="range_", out=True)

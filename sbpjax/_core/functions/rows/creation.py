"""Op table: tensor creation, and conversions to another dtype or placement.

``device=``, or ``placement=`` and ``sbp=``, set the place of a new tensor; values never depend on it.
"""

from __future__ import annotations

from ..table.table import FN, METHOD, written

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

written("zeros ones", CREATION, names={**SIZE, **LYING}, out=True)
written("empty", CREATION, names={**SIZE, **LYING_LIKE}, out=True)
written("full arange linspace logspace eye", CREATION, names=LYING, out=True)
written("zeros_like ones_like empty_like full_like", LIKE, names={"input": "x", **LYING_LIKE})
written("new_zeros new_ones new_empty", LIKE, READ, names={**SIZE, **LYING})
written("new_full", LIKE, READ, names=LYING)
written("new_tensor", LIKE, READ)
written("rand randn", RANDOM, names={**SIZE, **LYING}, out=True)
written("randint normal", RANDOM, names=LYING, out=True)
written("randperm", RANDOM, names=LYING, strict=True, out=True)
written("rand_like randn_like randint_like", RANDOM, names=LYING_LIKE)
written("bernoulli multinomial", RANDOM, READ, out=True)
written("poisson", RANDOM)
written("normal_", RANDOM, READ)
written("Tensor.uniform_", RANDOM, names={"from": "a", "to": "b"})
written("Tensor.random_", RANDOM, names={"from": "start"})
written("Tensor.trunc_normal_ Tensor.exponential_ Tensor.cauchy_ Tensor.bernoulli_", RANDOM)
written("tensor", DATA, oneflow="data * pin_memory!")
written("as_tensor from_jax", DATA)
written("from_dlpack to_dlpack", "sbpjax._core.functions.protocols")
written("from_numpy", DATA, names={"obj": "array"})
written("cast", "sbpjax._core.functions.elementwise", READ, own="to_dtype", oneflow="x=input dtype pin_memory!")
written("to_global", CONVERT, READ, oneflow="self placement sbp check_meta copy", also="Tensor.local_to_global")
written("Tensor.global_to_global", CONVERT, own="to_global", oneflow="self placement sbp grad_sbp check_meta copy")
written("to_local", CONVERT, READ, oneflow="self copy")
written("as_strided", STRIDED, READ, strict=True)
written("as_strided_", STRIDED, READ)
written("as_strided_scatter", STRIDED, READ, strict=True)
written("as_strided_copy", STRIDED, out=True)
written("empty_permuted empty_strided", STRIDED)
written("resize_as_", STRIDED, READ, names={"the_template": "other"})
written("Tensor.resize_", STRIDED, names=SIZE)
written(
    """Tensor.new_empty_strided Tensor.storage_offset Tensor.contiguous_ Tensor.set_ Tensor.storage
    Tensor.untyped_storage Tensor.data_ptr Tensor.is_set_to Tensor.share_memory_ Tensor.offload Tensor.load
    Tensor.is_offloaded Tensor.new Tensor.check_meta_consistency""",
    STRIDED,
)
written("fill_ zero_", "sbpjax._core.tensor.storage.inplace", READ)
written("Tensor.copy_", "sbpjax._core.tensor.storage.inplace", names={"other": "source"})
written("asarray frombuffer distributed_partial_fc_sample", OWN)
written("scalar_tensor", OWN, strict=True)
written("range", OWN, own="range_", out=True)

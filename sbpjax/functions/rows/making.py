"""Tensors made of something else, and moved to another dtype or placement."""

from __future__ import annotations

from ..table import FN, METHOD, written

MAKING = "sbpjax.functions.making"
CONVERT = "sbpjax.tensor.convert"
READ = FN | METHOD

written("cast", "sbpjax.tensor.functions", READ, own="to_dtype", oneflow="x=input dtype pin_memory!")
written("to_global", CONVERT)
written("asarray frombuffer distributed_partial_fc_sample", MAKING)
written("scalar_tensor", MAKING, strict=True)
written("range", MAKING, own="range_")

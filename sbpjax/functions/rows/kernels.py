"""OneFlow's own kernels, ``_C.fused_glu`` and the like: each is one op, so it is planned as a whole."""

from __future__ import annotations

from ..table import op

op("_C.fused_fast_gelu_mul(x, multiplier)", "fused.fast_gelu_mul")
op("_C.fused_scale_mask_softmax(x, mask, fill_value=0.0, scale=1.0)", "fused.scale_mask_softmax")
op("_C.fused_bias_add_gelu(a, b, axis)", "fused.bias_add_gelu")
op("_C.fused_scale_tril(x, diagonal=0, fill_value=0.0, scale=1.0)", "fused.scale_tril")
op("_C.fused_glu(x, w, b=None, v=None, c=None, activation='none')", "fused.glu")

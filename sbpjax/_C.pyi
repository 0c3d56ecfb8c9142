"""Written by `make stubs` from the live package; do not edit."""
# OneFlow's op-level functions, under the names its own programs call: ``flow._C.matmul(a, b, transpose_b=True)``.

import builtins
import sbpjax.tensor.types as _types
from sbpjax.tensor.tensor import Tensor as _Tensor
from sbpjax.sbp.placement import placement as _placement

from sbpjax.functions.oneflow_c import amp_black_identity as amp_black_identity
from sbpjax.functions.oneflow_c import amp_white_identity as amp_white_identity
from sbpjax.functions.oneflow_c import bias_add as bias_add
from sbpjax.functions.oneflow_c import binary_cross_entropy_loss as binary_cross_entropy_loss
from sbpjax.functions.oneflow_c import binary_cross_entropy_with_logits_loss as binary_cross_entropy_with_logits_loss
from sbpjax.functions.oneflow_c import broadcast_like as broadcast_like
from sbpjax.functions.oneflow_c import cross_entropy as cross_entropy
from sbpjax.functions.oneflow_c import gather as gather
def global_arange(start: builtins.float, end: _types.TensorLike | None = None, step: builtins.float = 1, *, dtype: _types.DTypeLike | None = None, placement: _placement, sbp: _types.SbpLike) -> _Tensor:
    """Return `sbpjax.arange` on a placement."""
from sbpjax.functions.oneflow_c import identity as identity
from sbpjax.functions.oneflow_c import l1_loss as l1_loss
from sbpjax.functions.oneflow_c import layer_norm as layer_norm
from sbpjax.functions.oneflow_c import layer_norm_affine as layer_norm_affine
from sbpjax.functions.oneflow_c import mse_loss as mse_loss
from sbpjax.functions.oneflow_c import normalization as normalization
def rms_norm(x: _Tensor, weight: _Tensor | None = None, normalized_shape: _types.IntOrInts | None = None, epsilon: builtins.float = 1e-06) -> _Tensor:
    """Return ``x`` over the root of the mean of its squares over the last dims, times a weight."""
from sbpjax.functions.oneflow_c import sparse_softmax_cross_entropy as sparse_softmax_cross_entropy

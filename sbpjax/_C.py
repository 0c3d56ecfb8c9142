"""OneFlow's op-level functions, under the names its own programs call: ``flow._C.matmul(a, b, transpose_b=True)``."""

from sbpjax.functions.oneflow_c import __getattr__ as __getattr__
from sbpjax.functions.oneflow_c import amp_black_identity as amp_black_identity
from sbpjax.functions.oneflow_c import amp_white_identity as amp_white_identity
from sbpjax.functions.oneflow_c import bias_add as bias_add
from sbpjax.functions.oneflow_c import binary_cross_entropy_loss as binary_cross_entropy_loss
from sbpjax.functions.oneflow_c import binary_cross_entropy_with_logits_loss as binary_cross_entropy_with_logits_loss
from sbpjax.functions.oneflow_c import broadcast_like as broadcast_like
from sbpjax.functions.oneflow_c import cross_entropy as cross_entropy
from sbpjax.functions.oneflow_c import gather as gather
from sbpjax.functions.oneflow_c import global_arange as global_arange
from sbpjax.functions.oneflow_c import identity as identity
from sbpjax.functions.oneflow_c import l1_loss as l1_loss
from sbpjax.functions.oneflow_c import layer_norm as layer_norm
from sbpjax.functions.oneflow_c import layer_norm_affine as layer_norm_affine
from sbpjax.functions.oneflow_c import mse_loss as mse_loss
from sbpjax.functions.oneflow_c import normalization as normalization
from sbpjax.functions.oneflow_c import rms_norm as rms_norm
from sbpjax.functions.oneflow_c import sparse_softmax_cross_entropy as sparse_softmax_cross_entropy

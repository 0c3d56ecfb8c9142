"""Mixed precision: autocast, and loss scaling against underflow and overflow of float16 gradients.

``"fp8"`` as dtype of `autocast` or of a graph's ``enable_amp`` is bfloat16 with 8-bit products of linear layers, see
`_core.ops.layers.fp8`.
"""

from sbpjax._core.tensor.amp import lists as lists
from sbpjax._core.tensor.amp.autocast import autocast as autocast
from sbpjax._core.tensor.amp.autocast import custom_bwd as custom_bwd
from sbpjax._core.tensor.amp.autocast import custom_fwd as custom_fwd
from sbpjax._core.tensor.amp.autocast import get_autocast_dtype as get_autocast_dtype
from sbpjax._core.tensor.amp.autocast import is_autocast_available as is_autocast_available
from sbpjax._core.tensor.amp.autocast import is_autocast_cache_enabled as is_autocast_cache_enabled
from sbpjax._core.tensor.amp.autocast import is_autocast_enabled as is_autocast_enabled
from sbpjax.optim.grad_scaler import GradScaler as GradScaler
from sbpjax.optim.static_scaler import StaticGradScaler as StaticGradScaler

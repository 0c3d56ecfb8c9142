"""Mixed precision under the name for GPUs: `autocast` of the device type ``"cuda"``."""

from sbpjax._core.tensor.amp.autocast import cuda_autocast as autocast  # noqa: F401
from sbpjax._core.tensor.amp.autocast import custom_bwd as custom_bwd
from sbpjax._core.tensor.amp.autocast import custom_fwd as custom_fwd
from sbpjax.optim.grad_scaler import GradScaler as GradScaler

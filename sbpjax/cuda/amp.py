"""Mixed precision under the name for GPUs: `autocast` of the device type ``"cuda"``."""

from sbpjax._core.compat.cuda.amp import GradScaler as GradScaler
from sbpjax._core.compat.cuda.amp import autocast as autocast
from sbpjax._core.compat.cuda.amp import custom_bwd as custom_bwd
from sbpjax._core.compat.cuda.amp import custom_fwd as custom_fwd

"""Mixed precision: autocasting, and scaling of the loss so that gradients of float16 neither vanish nor overflow."""

from . import lists as lists
from .autocast import autocast as autocast
from .autocast import custom_bwd as custom_bwd
from .autocast import custom_fwd as custom_fwd
from .autocast import get_autocast_dtype as get_autocast_dtype
from .autocast import is_autocast_available as is_autocast_available
from .autocast import is_autocast_cache_enabled as is_autocast_cache_enabled
from .autocast import is_autocast_enabled as is_autocast_enabled
from .grad_scaler import GradScaler as GradScaler
from .static_scaler import StaticGradScaler as StaticGradScaler

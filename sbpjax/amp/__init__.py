"""Mixed precision: scaling of the loss, so that gradients of low precision neither vanish nor overflow."""

from .grad_scaler import GradScaler as GradScaler
from .static_scaler import StaticGradScaler as StaticGradScaler

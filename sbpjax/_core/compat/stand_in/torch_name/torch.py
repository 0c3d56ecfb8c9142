"""`torch` in a process that a script under ``python -m sbpjax.run --as torch`` started."""

from sbpjax._core.compat import torch_alias
from sbpjax._core.compat.stand_in import take_over

take_over(torch_alias.peer, torch_alias.enable)

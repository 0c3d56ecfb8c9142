"""`torch` in a process that a script under ``python -m sbpjax.run --as torch`` started."""

from sbpjax.compat import torch_alias
from sbpjax.compat.stand_in import take_over

take_over(torch_alias.peer, torch_alias.enable)

"""`torch` in a process that a script under ``python -m sbpjax.run --as torch`` started."""

from sbpjax import mock_torch
from sbpjax.mock.stand_in import take_over

take_over(mock_torch.peer, mock_torch.enable)

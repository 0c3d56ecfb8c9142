"""`oneflow` in a process that a script under ``python -m sbpjax.run --as oneflow`` started."""

from sbpjax import mock_oneflow
from sbpjax.mock.stand_in import take_over

take_over(mock_oneflow.peer, mock_oneflow.enable)

"""Atomic state changes: assignments that no interrupt and no signal handler can divide."""

from sbpjax._core.tensor.storage.exchange import Assignment as Assignment
from sbpjax._core.tensor.storage.exchange import commit as commit
from sbpjax._core.tensor.storage.exchange import make_assigner as make_assigner

"""Stub module `oneflow` for child processes of ``python -m sbpjax.run --as oneflow``."""

from sbpjax._core.compat import oneflow_alias
from sbpjax._core.compat.stand_in import replace_stub

replace_stub(oneflow_alias.peer, oneflow_alias.enable)

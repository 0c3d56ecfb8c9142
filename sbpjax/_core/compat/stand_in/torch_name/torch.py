"""Stub module `torch` for child processes of ``python -m sbpjax.run --as torch``."""

from sbpjax._core.compat import torch_alias
from sbpjax._core.compat.stand_in import replace_stub

replace_stub(torch_alias.peer, torch_alias.enable)

"""Re-export module of `nn.functional`: functions of the table of ops, and those with custom argument handling."""

from sbpjax._core.functions.table.table import reexport_hooks as _reexport_hooks

__getattr__, __dir__ = _reexport_hooks("nn.functional", globals())

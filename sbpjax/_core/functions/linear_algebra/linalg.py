"""Re-export module of ``torch.linalg``: norms, decompositions, solves.

    >>> values, vectors = flow.linalg.eigh(flow.tensor([[2.0, 1.0], [1.0, 2.0]]))
    >>> values
    tensor([1., 3.])

The table of ops has them (`_core.functions.rows.linear_algebra`). Functions that fail on some matrices raise
`LinAlgError` where their result can be read, on the CPU and outside compiled programs; their ``_ex`` forms return
`info` instead.
"""

from sbpjax.errors import LinAlgError as LinAlgError

from ..table.table import reexport_hooks as _reexport_hooks

__getattr__, __dir__ = _reexport_hooks("linalg", globals())

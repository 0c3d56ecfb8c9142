"""Discrete Fourier transforms under the names of ``torch.fft``.

    >>> flow.fft.fft(flow.tensor([1.0, 0.0, 0.0, 0.0]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])

The dims that are transformed are whole on every rank; all others of a global tensor may be split.
"""

from sbpjax._core.functions.table.table import reexport_hooks as _reexport_hooks

__getattr__, __dir__ = _reexport_hooks("fft", globals())

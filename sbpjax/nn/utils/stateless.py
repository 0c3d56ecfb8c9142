"""`functional_call` under PyTorch's older name; see `sbpjax.func.functional_call`."""

from sbpjax._core.tracing.stateless import functional_call as functional_call

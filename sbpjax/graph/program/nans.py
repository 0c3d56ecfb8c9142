"""NaN checks of steps (`jax.debug_nans`, `jax.debug_infs`): a bad value raises, and the state is kept."""

from __future__ import annotations

from typing import Any

from sbpjax._core.jax_private import api_util, check_special
from sbpjax.errors import NanError

# The error of compiled programs; no public name (jax 0.10).
FOUND_NAN: Any = getattr(api_util, "InternalFloatingPointError", FloatingPointError)


def raise_if_nonfinite(arrays: list) -> None:
    """Check the results of a program: one that has run without `jax.debug_nans` is not checked by JAX.

    Raises:
        FOUND_NAN: one has a bad value.
    """
    check_special("step", arrays)


def nan_error(operation: str, error: Exception) -> NanError:
    """Return the error of a step whose results have a bad value.

    Args:
        operation: the operation that ran.
        error: JAX's.
    """
    return NanError(
        operation,
        f"a value that is no number ({error.args[-1] if error.args else error})",
        "under jax.debug_nans a step ends at the first one; parameters are those of the step before",
        "run this step eagerly under jax.debug_nans: the traceback ends at the op that made it, and a label out of its "
        "range is named; sbpjax.autograd.detect_anomaly() finds the op of a backward",
    )

"""`load_library`: there are no operators in shared libraries here."""

from __future__ import annotations

from sbpjax.errors import NotInJaxError, message


def load_library(val: str) -> None:
    """Raise: operators of OneFlow's or PyTorch's in a shared library cannot run in XLA.

    Raises:
        NotInJaxError: always; it says what to use.
    """
    rule = "a library of operators is compiled against OneFlow's or PyTorch's own runtime"
    fix = "jax.ffi.register_ffi_target for a C function, and sbpjax.wrap_jax for the JAX function that calls it"
    raise NotInJaxError(message(f"utils.load_library({val!r})", "a shared library", rule, fix))

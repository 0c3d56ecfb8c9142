"""Parser of serialized programs into MLIR modules."""

from __future__ import annotations

from jax.extend.mlir import ir
from jax.extend.mlir.dialects import chlo, sdy, stablehlo


def parse_program(program: bytes) -> ir.Module:
    """Return the operations of a serialised program.

    Raises:
        ValueError: it cannot be parsed, or holds operations of unknown dialects.
    """
    context = ir.Context()
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    context.emit_error_diagnostics = True  # in the exception instead of on stderr
    with context:
        return stablehlo.deserialize_portable_artifact(context, program)

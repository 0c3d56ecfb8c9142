"""Bytes between two slices of four virtual devices."""

from sbpjax._core.compiler.hlo import collectives


def bytes_across(text: str) -> int:
    """Return the bytes that a device receives from the other slice: in groups of 2, one of each slice, or of all 8."""
    return sum(c.interconnect_bytes for c in collectives(text) if c.group in (2, 8))

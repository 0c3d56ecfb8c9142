"""Serialization: plain values as bytes, signatures, and the signed on-disk cache."""

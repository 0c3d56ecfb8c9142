"""Grouped matrix products: one primitive, kernels for GPU and TPU."""

"""Scaled dot-product attention: one primitive, kernels for CPU, GPU and TPU."""

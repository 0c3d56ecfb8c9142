"""OneFlow's kernels and attention layouts."""

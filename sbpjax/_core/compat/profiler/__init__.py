"""Profiling under PyTorch's names, over `jax.profiler`; re-exported by `sbpjax.profiler`."""

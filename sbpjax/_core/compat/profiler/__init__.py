"""What ran and how long, over `jax.profiler`; the face is `sbpjax.profiler`."""

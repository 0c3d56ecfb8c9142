"""The planner for JAX programs: a jittable training step of any JAX library becomes shardings for `jax.jit`."""

"""Pure functions over jax arrays in the global view, with torch's semantics; import the family you need, e.g. `sbpjax.ops.view`."""

"""Pure ops over jax arrays with torch's semantics; import a family, e.g. `_core.ops.shapes.view`."""

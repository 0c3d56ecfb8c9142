"""Functional forms of layers with custom argument handling; `_core.functions.nn` re-exports them."""

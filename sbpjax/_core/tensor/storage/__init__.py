"""Storage: views, in-place writes, indexing, lazy and offloaded payloads."""

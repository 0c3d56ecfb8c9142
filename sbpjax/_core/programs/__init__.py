"""Programs as data: flat jaxprs, their rewrites, sharding rules of primitives, and plans."""
